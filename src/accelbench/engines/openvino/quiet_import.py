"""The engine, imported so that it does not report home: that alone would start a thread."""

from accelbench.hardware.openvino import disable_telemetry

disable_telemetry()

import openvino  # noqa: E402 - what it must not import is kept out above

__all__ = ["openvino"]
