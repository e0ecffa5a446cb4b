"""QNN's provider in ONNX Runtime: loading it, its options, and which nodes it took.

It is a library that a process registers once. Its backend is always the HTP, the NPU itself: the
package's libQnnSaver would "run" too, and give wrong numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.engines.shared.local import listed

NAME = "QNNExecutionProvider"

#: What the emulation pretends to be: Snapdragon X Elite. Without it, compiling a graph ends in
#: QNN_COMMON_ERROR_MEM_ALLOC. On a device the driver says what it is.
EMULATED = {"soc_model": "60", "htp_arch": "75"}

#: How ONNX Runtime says that nodes are left over, where the CPU may not have them.
LEFT_OVER = "fallback to CPU EP has been explicitly disabled"


def devices() -> list[Any]:
    """Return what the provider offers, an NPU first; register it if that was not done yet."""
    import onnxruntime
    import onnxruntime_qnn

    def offered() -> list[Any]:
        return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]

    if not offered():
        onnxruntime.register_execution_provider_library(NAME, onnxruntime_qnn.get_library_path())
    return sorted(offered(), key=lambda device: not str(device.device.type).endswith("NPU"))


def options(emulated: bool, dump: Path | None = None) -> dict[str, str]:
    """Return the provider's options; `dump` is a folder for the graphs that it hands to QNN."""
    import onnxruntime_qnn

    settings = {"backend_path": onnxruntime_qnn.get_qnn_htp_path()}
    if emulated:
        settings |= EMULATED
    if dump is not None:
        settings |= {"dump_json_qnn_graph": "1", "json_qnn_graph_dir": str(dump)}
    return settings


def version() -> str:
    """Return the package's version."""
    import onnxruntime_qnn

    return str(onnxruntime_qnn.__version__)


def assigned(session: Any) -> dict[str, Counter[str]]:
    """Return how many nodes of which operator each provider took."""
    counts: dict[str, Counter[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        taken = counts.setdefault(part.ep_name, Counter())
        taken.update(node.op_type for node in part.get_nodes())
    return counts


def left_over(taken: Mapping[str, Counter[str]]) -> str:
    """Return in words where a graph's nodes ran that the NPU did not take."""
    total = sum(count for counter in taken.values() for count in counter.values())
    parts = []
    for provider, counted in sorted(taken.items()):
        if provider == NAME:
            continue
        parts.append(
            f"{counted.total()} of {total} operators on {provider} ({listed(counted, None)})"
        )
    return "; ".join(parts) or "ONNX Runtime does not say which"
