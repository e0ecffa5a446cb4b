"""What a run prints, in the guide's form: a banner a model, a block a batch, the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from accelbench.core.absent import NO_DATA
from accelbench.core.cards import title_of
from accelbench.core.case import Case
from accelbench.core.protocols import Absent, Device
from accelbench.core.visible import visible
from accelbench.run.process.observer import Progress

_LINE = "=" * 60


class Printed:
    """Prints a run as it goes.

    Args:
        stream: Where to.
        names: The model's name as it was asked for, by case_id.
        places: The device that a case runs on, or why it has none, by case_id.
    """

    def __init__(
        self, stream: IO[str], names: Mapping[str, str], places: Mapping[str, Device | Absent]
    ) -> None:
        self._stream = stream
        self._names = names
        self._places = places
        self._banner = ""

    def say(self, *lines: str) -> None:
        """Print lines now."""
        self._stream.write("".join(f"{visible(line)}\n" for line in lines))
        self._stream.flush()

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        return None  # each banner has its own

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        return None

    def note(self, text: str) -> None:
        self.say(f"Note: {text}")

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        banner = f"{title_of(case.target.runtime)} Benchmark: {self._names[case.case_id]}"
        if banner != self._banner:
            self._banner = banner
            self.say(_LINE, banner, _LINE, *_device_lines(self._places[case.case_id]), "")
        self.say(f"Benchmarking batch size: {case.shapes.batch}")

    def progress(self, progress: Progress) -> None:
        return None

    def case_finished(self, row: Mapping[str, Any]) -> None:
        if row["status"] != "ok":
            why = row.get("message") or row.get("reason")
            self.say(f"  Status: {row['status']} — {why}")
            if row.get("advice"):
                self.say(f"  → {row['advice']}")
        else:
            self.say(*_figure_lines(row))
        self.say("")

    def ended(self, results: int, path: str, interrupted: bool) -> None:
        """The last block."""
        title = "Interrupted" if interrupted else "Benchmark Suite Complete"
        self.say(
            *(_LINE, title, _LINE),
            f"Total configurations: {results}",
            f"Results saved to: {path}",
        )


def _device_lines(place: Device | Absent) -> list[str]:
    if isinstance(place, Device):
        return [f"Device: {place.name}", f"  Type: {place.hardware.upper()}", "  Available: True"]
    return [
        f"Device: {place.hardware}",
        f"  Type: {place.hardware.upper()}",
        "  Available: False",
        f"  Reason: {place.reason}",
    ]


def _figure_lines(row: Mapping[str, Any]) -> list[str]:
    p50, mean = row.get("latency_p50_ms"), row.get("latency_mean_ms")
    word, latency = ("p50", p50) if p50 is not None else ("mean", mean)
    unit = str(row.get("throughput_unit") or "items/s").removesuffix("/s")
    return [
        f"  Latency ({word}): {_shown(latency, 3)}ms",
        f"  Throughput: {_shown(row.get('throughput'), 2)} {unit}/sec",
        f"  Memory: {_shown(row.get('memory_peak_mb'), 2)} MB",
    ]


def _shown(value: float | None, digits: int) -> str:
    return NO_DATA if value is None else f"{value:.{digits}f}"
