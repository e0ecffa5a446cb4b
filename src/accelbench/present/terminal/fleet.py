"""A fleet as people see it: its nodes, and a run on them while it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import IO, Any

from accelbench.core.visible import visible
from accelbench.fleet.fleet_nodes import FleetNode, differences, shared_machines
from accelbench.present.terminal.terminal import print_line
from accelbench.present.terminal.watch import (
    LiveWatch,
    PlainWatch,
    QuietWatch,
    StatusLine,
    case_line,
    progress_bar,
    time_left,
    watch_for,
)
from accelbench.present.texts import phrase


def node_line(node: FleetNode) -> str:
    """A node with its devices."""
    if node.broken:
        return f"{node.name}: measures nothing: {node.broken}"
    devices = [f"{d} {d.name}" for found in node.devices.values() for d in found]
    return f"{node.name}: {', '.join(devices)} · accelbench {node.version}"


def print_nodes(nodes: Sequence[FleetNode], at: Mapping[str, str], stream: IO[str]) -> None:
    """Nodes, what they are at, and what differs among them."""
    for node in nodes:
        print_line(node_line(node), stream)
        if at.get(node.id):
            print_line(f"  measures {at[node.id]}", stream)
    for shared in shared_machines(nodes):
        print_line(f"Note: {shared}.", stream)
    for difference in differences(nodes):
        print_line(phrase("run.nodes-differ", difference=difference), stream)
    usable = [node for node in nodes if not node.broken]
    if len(usable) > 1 and not differences(nodes):
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
        self._began = monotonic()

    @property
    def quiet(self) -> bool:
        """Whether nothing is shown."""
        return isinstance(self._lines, QuietWatch)

    def begin(self, fleet: str, total: int, nodes: int) -> None:
        """A run begins, of so many results."""
        self._total = total
        noun = "measurement" if total == 1 else "measurements"
        self._say(
            phrase(
                "run.fleet-started",
                fleet=fleet,
                total=total,
                noun=noun,
                nodes=nodes,
                words="node" if nodes == 1 else "nodes",
            )
        )

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

    def at(self, node: str, text: str) -> None:
        """What a node is at."""
        self._at[node] = text
        self._draw()

    def measured(self, node: str, row: Mapping[str, Any]) -> None:
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
        rest = time_left(monotonic() - self._began, done, total - done)
        nodes = " | ".join(f"{node}: {visible(text)}" for node, text in sorted(self._at.items()))
        return f"{progress_bar(done, total)}{rest} · {nodes}"
