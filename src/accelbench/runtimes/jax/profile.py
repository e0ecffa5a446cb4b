"""Where a step's time goes in JAX: XLA's own profiler, which notes each operation as it runs.

What XLA compiled is what runs: an operation is a fusion of what the model calls apart. Its
record is read by JAX itself; TensorFlow is not needed.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from accelbench.core.clock import Clock
from accelbench.core.errors import UnsupportedError
from accelbench.core.profile import Profile, Spent, profiled
from accelbench.runtimes.shared.profiling import own, walls
from accelbench.store.scratch import temporary_folder

NAME = "XLA's profiler"
_TRACE = "trace.json"
_DEVICE = "/device:"
_REMARK = (
    "Times of the operations that XLA compiled, mostly fusions of several of the model's; on a"
    " CPU several may run at the same time."
)


class Event(NamedTuple):
    """An operation that ran."""

    thread: str
    start: float
    duration: float
    operation: str
    on_device: bool
    ordinal: int = 0  # of the device, where there are several


def profile(
    step: Callable[[], Any], clock: Clock, steps: int, device: str, traces: Path | None
) -> Profile:
    """So many steps, each done when it returns, under XLA's profiler."""
    with recorded(step, clock, steps) as (events, times, folder):
        report = profiled(NAME, spent(events, device), times, _REMARK)
        chrome = next(folder.rglob("*.trace.json.gz"), None)
        if traces is None or chrome is None:
            return report
        (traces / _TRACE).write_bytes(gzip.decompress(chrome.read_bytes()))
        return replace(report, trace=_TRACE)


def readable() -> bool:
    """Whether JAX reads what the profiler writes."""
    return hasattr(jax.profiler, "ProfileData")


@contextmanager
def recorded(
    step: Callable[[], Any], clock: Clock, steps: int
) -> Iterator[tuple[list[Event], list[int], Path]]:
    """The operations of so many steps, what each step took, and the folder of the record.

    Raises:
        UnsupportedError: this JAX cannot read what the profiler writes.
    """
    if not readable():
        raise UnsupportedError(
            "no_profiler",
            f"jax {jax.__version__} cannot read what XLA's profiler writes",
            "Install a newer one: pip install -U jax",
        )
    with temporary_folder() as folder:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # every Python call would be noted, at its cost
        with jax.profiler.trace(str(folder), profiler_options=options):
            times = walls(clock, steps, step)
        [record] = folder.rglob("*.xplane.pb")
        events = list(events_of(jax.profiler.ProfileData.from_file(str(record))))
        yield events, times, folder


def events_of(data: Any) -> Iterator[Event]:
    """Every operation of a record: XLA marks its own by the statistic hlo_op."""
    for plane in data.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                operation = stats.get("hlo_op")
                if operation:
                    yield Event(
                        f"{plane.name} {line.name}",
                        event.start_ns,
                        event.duration_ns,
                        str(operation),
                        plane.name.startswith(_DEVICE),
                        _ordinal(plane.name, stats),
                    )


def _ordinal(plane: str, stats: Mapping[str, Any]) -> int:
    """Of a processor's parts XLA says which with each event; a card has a plane of its own."""
    told = stats.get("device_ordinal")
    if told is not None:
        return int(told)
    number = plane.rpartition(":")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def spent(events: list[Event], device: str) -> Iterator[Spent]:
    """What operations took; of a loop, without its body on the same thread.

    Where a device tells of its operations, what the host did to start them is left out.
    """
    operations = [event for event in events if event.on_device] or events
    times = own([(event.thread, event.start, event.duration) for event in operations])
    for event, ns in zip(operations, times, strict=True):
        yield Spent(event.operation, kind(event.operation), ns, where=device)


def kind(operation: str) -> str:
    """An operation's name without its number: loop_add_fusion.12 is a loop_add_fusion."""
    stem, _, number = operation.rpartition(".")
    return stem if stem and number.isdecimal() else operation
