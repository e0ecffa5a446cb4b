"""What OpenVINO has allocated on a unit, by the plugin's own count.

The GPU's plugin counts its process's buffers by where they lie; the NPU's tells what its
driver has given to anybody, so what was taken before the model was read is subtracted. Of
the CPU the kernel knows. None keeps a peak that can be started anew: the highest of what
is sampled is the peak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accelbench.core.protocols import DeviceMemory
from accelbench.runtimes.openvino.units import GPU, NPU, kind

_GPU, _NPU = "GPU_MEMORY_STATISTICS", "NPU_DEVICE_ALLOC_MEM_SIZE"

#: Kinds of a GPU's buffers that lie in the host's memory: the host's figures have those.
_HOSTS = frozenset({"usm_host"})


class UnitMemory:
    """The counter of a unit, where it has one."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._before: dict[str, int] = {}

    def begin(self, unit: str) -> None:
        """What is there now is not the model's."""
        reading = self._told(unit)
        if reading is not None and kind(unit) == NPU:
            self._before[unit] = reading[0]

    def now(self, unit: str) -> DeviceMemory | None:
        """What the model takes; None where the unit has no memory or tells nothing of it."""
        reading = self._told(unit)
        if reading is None:
            return None
        taken, counter = reading
        return DeviceMemory(
            peak_bytes=None,
            current_bytes=max(taken - self._before.get(unit, 0), 0),
            source=f"openvino {counter}",
        )

    def _told(self, unit: str) -> tuple[int, str] | None:
        known = _COUNTERS.get(kind(unit))
        if known is None:
            return None
        counter, understood = known
        try:
            return understood(self._core.get_property(unit, counter)), counter
        except (RuntimeError, TypeError, ValueError):  # an older driver, or no such device
            return None


def _on_the_card(buffers: Mapping[str, int]) -> int:
    return sum(int(size) for where, size in buffers.items() if where not in _HOSTS)


_COUNTERS: Mapping[str, tuple[str, Callable[[Any], int]]] = {
    GPU: (_GPU, _on_the_card),
    NPU: (_NPU, int),
}
