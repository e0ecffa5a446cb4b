"""Progress of a run: a live bar on a terminal, plain lines elsewhere, or nothing.

The bar is drawn between two blocks, never by a timer: drawing during a sample would disturb it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from accelbench.core.case import Case
from accelbench.core.columns import step_ms
from accelbench.core.formatting import format_count, format_value
from accelbench.core.protocols import Absent, Device
from accelbench.core.result_statistics import interval_text
from accelbench.core.safe_text import visible
from accelbench.core.unusable_reasons import simulation_of
from accelbench.fleet.fleet_nodes import FleetNode, find_differences, warn_shared_machines
from accelbench.present.terminal import words
from accelbench.present.terminal.terminal import print_line, unguarded
from accelbench.present.texts import phrase
from accelbench.run.process.worker_client import Progress

if TYPE_CHECKING:
    from accelbench.present.publishing.bundle import CrawlPace


_WIPE = "\r\x1b[2K"


class StatusLine:
    """The line below all others on a terminal, drawn anew as things move on, no wider than it."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._drawn = False

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        try:
            # A terminal that nobody gave a size says 0.
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except OSError:
            return 80

    def draw(self, text: str) -> None:
        """Put a text in the place of the one before."""
        self._stream.write(_WIPE + text[: self.width - 1])
        self._stream.flush()
        self._drawn = True

    def wipe(self) -> None:
        """Leave the place to others."""
        if self._drawn:
            self._stream.write(_WIPE)
            self._stream.flush()
            self._drawn = False


def progress_bar(done: int, total: int) -> str:
    """Return a bar of twelve characters with its counts."""
    filled = round(12 * done / max(total, 1))
    return f"{'━' * filled}{'╌' * (12 - filled)} {done}/{total}"


def time_left(seconds: float, done: int, left: int) -> str:
    """Return about how long the rest takes, by what was done in so many seconds."""
    return f" · about {words.duration(seconds / done * left)} left" if done else ""


class ProgressLine:
    """Line that says what is being done; what is no terminal gets a line for each thing."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._line = StatusLine(unguarded(stream))

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._line.wipe()

    def say(self, text: str) -> None:
        """What is begun now."""
        if not self._stream.isatty():
            print_line(text, self._stream)
            return
        self._line.draw(visible(text))


def case_line(row: Mapping[str, Any]) -> list[str]:
    """What became of a case, for people. What it is warned of stands below the run's table."""
    launch = f" launch {row['launch']}" if (row.get("launch") or 1) > 1 else ""
    head = f"{words.case_name(row)} {words.batch_and_shapes(row)}{launch}"
    if row["status"] != "ok":
        lines = [f"{head}: {row['status']} — {row.get('message') or row.get('reason')}"]
        if row.get("advice"):
            lines.append(f"  → {row['advice']}")
        return lines
    simulation = simulation_of(row)
    if simulation is not None:
        return [f"{head}: " + " · ".join(_limits(row, simulation))]
    if step_ms(row) is None:
        return [f"{head}: {verified(row)}"]
    word = "p50" if row.get("latency_p50_ms") is not None else "mean"
    figures = [
        f"{word} {format_value(step_ms(row))} ms {words.spread(row, ' ms')}".strip(),
        f"{format_value(row.get('throughput'))} {row.get('throughput_unit')}",
        f"{format_value(row.get('memory_peak_mb'))} MB",
        f"{row.get('quality')}",
    ]
    lines = [f"{head}: " + " · ".join(figures)]
    if words.parts(row):
        lines.append("  " + " · ".join(words.parts(row)))
    return lines


def _limits(row: Mapping[str, Any], simulation: Mapping[str, Any]) -> list[str]:
    return [
        f"{format_value(step_ms(row))} ms",
        f"{format_value(row.get('throughput'))} {row.get('throughput_unit')}",
        f"bound by {simulation['binds']}",
        phrase("run.simulated", device=simulation["device"]),
    ]


def verified(row: Mapping[str, Any]) -> str:
    """What is said of a case that was not timed."""
    error, tolerance = row.get("verification_error"), row.get("verification_tolerance")
    if error is None or tolerance is None:
        return phrase("run.not-timed-reference")
    return phrase("run.not-timed-outputs", error=error, tolerance=tolerance)


def device_lines(devices: Sequence[Device | Absent]) -> list[str]:
    """Device, type and availability, as the documents print them."""
    lines = []
    for device in devices:
        if isinstance(device, Device):
            lines += [f"Device: {device.name}", f"  Type: {device.hardware}", "  Available: yes"]
            if device.emulated:
                lines.append(phrase("run.emulated"))
        else:
            lines += [f"Device: {device.hardware}", f"  Type: {device.hardware}", "  Available: no"]
            lines.append(f"  Reason: {device.reason}")
    return lines


class PlainWatch:
    """One line an event that matters, for logs and pipes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def say(self, text: str) -> None:
        """Print a line now. A reader that went away ends the run as Ctrl-C does."""
        try:
            self._stream.write(visible(text) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise KeyboardInterrupt from None

    def devices(self, entries: Sequence[Device | Absent]) -> None:
        for line in device_lines(entries):
            self.say(line)

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        rough = ""
        if estimate is not None:
            low, high = map(words.duration, estimate)
            rough = (
                phrase("run.estimate", low=low, high=high) if low != high else f", roughly {low}"
            )
        noun = "measurement" if launches == 1 else "measurements"
        self.say(f"Run {run_id}: {launches} {noun}{rough}")

    def note(self, text: str) -> None:
        self.say(f"Note: {text}")

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        again = f" · launch {launch}" if launch > 1 else ""
        self.say(f"[{number}/{total}] {case}{again}")

    def progress(self, progress: Progress) -> None:
        return None

    def case_finished(self, row: Mapping[str, Any]) -> None:
        for line in case_line(row):
            self.say("  " + line)


class LiveWatch(PlainWatch):
    """A line that is redrawn while the case goes on; finished cases stay above it."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self._began = time.monotonic()
        self._case_began = self._began
        self._done = 0
        self._done_here = 0  # without those of before a resume, which took no time of this run
        self._total = 0
        self._head = ""
        self._line = StatusLine(stream)

    def say(self, text: str) -> None:
        self._line.wipe()
        super().say(text)

    def started(self, run_id: str, launches: int, estimate: tuple[float, float] | None) -> None:
        super().started(run_id, launches, estimate)
        self._total = launches

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        self._case_began = time.monotonic()
        self._total, self._done = total, number - 1
        self._head = visible(str(case)) + (f" · launch {launch}" if launch > 1 else "")
        self._draw("starting")

    def progress(self, progress: Progress) -> None:
        state = progress.phase
        if progress.median_ns is not None:
            state = f"{progress.samples} samples · {format_value(progress.median_ns / 1e6)} ms"
            ends = (progress.low_ns, progress.median_ns, progress.high_ns)
            interval = interval_text(*ends, lambda ns: format_value(ns / 1e6), " ms")
            state += f" {interval}" if interval else ""
        self._draw(state)

    def case_finished(self, row: Mapping[str, Any]) -> None:
        self._done += 1
        self._done_here += 1
        super().case_finished(row)

    def _draw(self, state: str) -> None:
        now = time.monotonic()
        rest = time_left(now - self._began, self._done_here, self._total - self._done)
        tail = f" · {state} · {words.duration(now - self._case_began)}{rest}"
        text = f"{progress_bar(self._done, self._total)} {self._head}"
        # The state is what moves: of a narrow line the case's name gives way.
        self._line.draw(text[: max(self._line.width - len(tail) - 1, 10)] + tail)


class QuietWatch(PlainWatch):
    """Nothing at all while the run goes on."""

    def say(self, text: str) -> None:
        return None


def watch_for(stream: IO[str], quiet: bool) -> PlainWatch:
    """The way to watch that fits where the lines go."""
    stream = unguarded(stream)  # the live bar is drawn; names in it are made visible here
    if isinstance(stream, TextIOWrapper):
        # A log of another encoding gets a question mark, not the end of the run.
        stream.reconfigure(errors="replace")
    if quiet:
        return QuietWatch(stream)
    return LiveWatch(stream) if stream.isatty() else PlainWatch(stream)


#: Seconds from one line to the next, on a terminal and in a log; the first of a log comes late, so
#: that what is quick says nothing.
_DRAWN_EVERY, _SAID_EVERY = 0.5, 30.0


class StatusOfPages:
    """What is told of the pages while they are made, by a clock of seconds."""

    def __init__(self, stream: IO[str], now: Callable[[], float] = time.monotonic) -> None:
        self._line, self._now = ProgressLine(stream), now
        self._every = _DRAWN_EVERY if stream.isatty() else _SAID_EVERY
        self._last = now()

    def __enter__(self) -> StatusOfPages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._line.__exit__(kind, error, trace)

    def told(self, pace: CrawlPace) -> None:
        """How far it is, if the last was told long enough ago."""
        now = self._now()
        if now - self._last >= self._every:
            self._last = now
            self._line.say(words_of(pace))


def words_of(pace: CrawlPace) -> str:
    """Pages, and about how long the rest takes."""
    left = pace.seconds_left
    rest = f", about {words.duration(left)} left" if left is not None else ""
    return phrase(
        "run.page-pace",
        pages=pace.pages,
        known=pace.known,
        seconds=words.duration(pace.seconds),
        rest=rest,
    )


def node_line(node: FleetNode) -> str:
    """A node with its devices."""
    if node.broken:
        return f"{node.name}: cannot measure: {node.broken}"
    devices = [f"{d} {d.name}" for found in node.devices.values() for d in found]
    return f"{node.name}: {', '.join(devices)} · accelbench {node.version}"


def print_nodes(nodes: Sequence[FleetNode], at: Mapping[str, str], stream: IO[str]) -> None:
    """Nodes, what they are at, and what differs among them."""
    for node in nodes:
        print_line(node_line(node), stream)
        if at.get(node.id):
            print_line(f"  measures {at[node.id]}", stream)
    for shared in warn_shared_machines(nodes):
        print_line(f"Note: {shared}.", stream)
    for difference in find_differences(nodes):
        print_line(phrase("run.nodes-differ", difference=difference), stream)
    usable = [node for node in nodes if not node.broken]
    if len(usable) > 1 and not find_differences(nodes):
        print_line(phrase("run.nodes-alike"), stream)


class FleetWatch:
    """Watches a fleet's run: a line for each result, with its node; on a terminal a bar as well."""

    def __init__(self, stream: IO[str], quiet: bool) -> None:
        self._lines = watch_for(stream, quiet)
        self._bar = StatusLine(stream) if isinstance(self._lines, LiveWatch) else None
        if self._bar is not None:
            self._lines = PlainWatch(stream)
        self._total = self._done = 0
        self._at: dict[str, str] = {}
        self._began = time.monotonic()

    @property
    def quiet(self) -> bool:
        """Whether nothing is shown."""
        return isinstance(self._lines, QuietWatch)

    def begin(self, fleet: str, total: int, nodes: int) -> None:
        """A run begins, of so many results."""
        self._total = total
        whole = phrase(
            "run.fleet-started", fleet=fleet, count=total, nodes=format_count(nodes, "node")
        )
        self._say(whole)

    def note(self, text: str) -> None:
        """Something the reader should know."""
        self._say(f"Note: {text}")

    def node_joined(self, node: FleetNode) -> None:
        """A node that can be measured on."""
        self._say(f"Node {node_line(node)}")

    def node_lost(self, node: str, why: str) -> None:
        """A node that is gone."""
        self._at.pop(node, None)
        self._say(phrase("run.node-lost", node=node, why=why))

    def node_active(self, node: str, text: str) -> None:
        """What a node is at."""
        self._at[node] = text
        self._draw()

    def result_measured(self, node: str, row: Mapping[str, Any]) -> None:
        """A result."""
        self._done += 1
        head, *more = case_line(row)
        of = f"{node} · " if node else ""
        for text in (f"[{self._done}/{max(self._total, self._done)}] {of}{head}", *more):
            self._say(text)

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.wipe()
        self._lines.say(text)
        self._draw()

    def _draw(self) -> None:
        if self._bar is not None and self._total:
            self._bar.draw(self._state())

    def _state(self) -> str:
        done, total = self._done, max(self._total, self._done)
        rest = time_left(time.monotonic() - self._began, done, total - done)
        nodes = " | ".join(f"{node}: {visible(text)}" for node, text in sorted(self._at.items()))
        return f"{progress_bar(done, total)}{rest} · {nodes}"
