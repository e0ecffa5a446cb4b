"""Qualcomm's NPU through ONNX Runtime's QNN provider; on x86-64 the package emulates it."""

from accelbench.engines.qnn.runtime import QnnRuntime

__all__ = ["QnnRuntime"]
