"""What an address of the explorer asks for: axes, colours, sizes, ranges, words. Pure.

What can be explored: the figures that an axis may be of, and the fields that groups are of.

Names are those of an address; SQL is ours, over the snapshot's table of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar
from urllib.parse import urlencode

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.asked import PageQuery

_Known = TypeVar("_Known")


@dataclass(frozen=True)
class ExploreFigure:
    """A figure of a cell, in the middle of its launches.

    Attributes:
        name: in an address.
        title: with its unit and its statistic.
        sql: of it; only what is above zero is drawn.
        timed: whether it is a time or made of one: a stand-in's and an unusable one are none.
        better: -1 where less is better, 1 where more is, 0 where neither.
    """

    name: str
    title: str
    sql: str
    timed: bool = True
    better: int = 0


FIGURES: Mapping[str, ExploreFigure] = {
    figure.name: figure
    for figure in (
        ExploreFigure("latency", "latency of a step (median, else mean), ms", "latency", better=-1),
        ExploreFigure("throughput", "throughput, items/s", "throughput", better=1),
        ExploreFigure("tail", "latency that 90 % to 99 % keep, ms", "tail", better=-1),
        ExploreFigure("memory", "peak memory, MB", "memory", timed=False, better=-1),
        ExploreFigure("cost", "cost of a million items", "cost_per_million", better=-1),
        ExploreFigure("energy", "energy of an item, J", "energy_per_item", better=-1),
        ExploreFigure(
            "error", "largest error of the outputs, parts of one", "error", timed=False, better=-1
        ),
        ExploreFigure("ttft", "time to first token (mean), ms", "ttft", better=-1),
        ExploreFigure("token-rate", "tokens a second for a user", "token_rate", better=1),
        ExploreFigure("parameters", "parameters, millions", "parameters / 1e6", timed=False),
        ExploreFigure("flops", "operations of a step, GFLOP", "flops / 1e9", timed=False),
        ExploreFigure("batch", "batch size", "batch_size", timed=False),
    )
}
#: What marks are coloured by, and distributions are of: the name in an address → SQL.
FIELDS: Mapping[str, tuple[str, str]] = {
    "hardware": ("platform", "hardware"),
    "device": ("device", "concat_ws(' ', hardware, device_name)"),
    "runtime": ("engine", "runtime"),
    "place": (
        "device and engine",
        "concat_ws(' · ', concat_ws(' ', hardware, device_name), runtime)",
    ),
    "precision": ("precision", "precision"),
    "family": ("family", "family"),
    "mode": ("mode", "mode"),
    "batch": ("batch size", "batch_size::VARCHAR"),
    "provenance": ("provenance", "kind"),
}

#: What people ask most: a title, and what stands along and up. The first that has figures is shown.
PRESETS = (
    ("Latency against throughput", "latency", "throughput"),
    ("First token against tokens a second for a user", "ttft", "token-rate"),
    ("Latency against parameters", "parameters", "latency"),
    ("Latency against operations", "flops", "latency"),
    ("Throughput against cost", "cost", "throughput"),
    ("Latency against error", "error", "latency"),
    ("Latency against energy", "energy", "latency"),
    ("Throughput against batch size", "batch", "throughput"),
    ("Latency against memory", "memory", "latency"),
)


def figure_named(name: str) -> ExploreFigure:
    """A figure by its name.

    Raises:
        UsageError: There is none.
    """
    return _named(FIGURES, name, "figure")


def field_named(name: str) -> tuple[str, str]:
    """What a field is called and its SQL, by its name.

    Raises:
        UsageError: There is none.
    """
    return _named(FIELDS, name, "field")


def _named(known: Mapping[str, _Known], name: str, noun: str) -> _Known:
    if name not in known:
        raise UsageError(
            f"There is no {noun} {in_quotes(safe(name))} to explore by.",
            f"{noun.capitalize()}s: {', '.join(known)}.",
        )
    return known[name]


#: The ends of a range along and up, by their names in an address.
RANGES = ("x-from", "x-to", "y-from", "y-to")
USUAL_COLOUR = "hardware"


@dataclass(frozen=True)
class ExploreQuery:
    """What was asked for.

    Attributes:
        x: the figure along, and `y` the one up.
        colour: the field that marks are coloured by.
        size: the figure that their size is of; None where all are alike.
        find: letters that are looked for: what has them stands out.
        ranges: ends of the axes, by their names; those that are not there are the data's.
    """

    x: ExploreFigure
    y: ExploreFigure
    colour: str = USUAL_COLOUR
    size: ExploreFigure | None = None
    find: str = ""
    ranges: Mapping[str, float] | None = None

    @property
    def zoomed(self) -> bool:
        """Whether a part of what there is was chosen."""
        return bool(self.ranges)

    @property
    def field_name(self) -> str:
        """What the field of the colours is called."""
        return FIELDS[self.colour][0]

    def pairs(self) -> list[tuple[str, str]]:
        """As an address says it."""
        said = [("x", self.x.name), ("y", self.y.name)]
        said += [("colour", self.colour)] if self.colour != USUAL_COLOUR else []
        said += [("size", self.size.name)] if self.size else []
        said += [("find", self.find)] if self.find else []
        return said + [(name, f"{value:.6g}") for name, value in (self.ranges or {}).items()]

    def query(self, filters: PageQuery) -> str:
        """What stands behind an address, with the filters."""
        return "?" + urlencode([*self.pairs(), *filters.pairs(order=False, picked=False)])

    def whole(self) -> ExploreQuery:
        """The same of everything."""
        return replace(self, ranges={})

    def along(self, x: str, y: str) -> ExploreQuery:
        """The same with other axes."""
        return replace(self, x=figure_named(x), y=figure_named(y), ranges={})

    def where(self) -> tuple[str, list[float]]:
        """The ranges as SQL over cells, and its parameters."""
        figures = {"x": self.x.sql, "y": self.y.sql}
        compared = {"from": ">=", "to": "<="}
        parts, values = ["true"], list[float]()
        for name, value in (self.ranges or {}).items():
            side, end = name.split("-")
            parts.append(f"{figures[side]} {compared[end]} ?")
            values.append(value)
        return " AND ".join(parts), values


def explored(parameters: Mapping[str, str], usual: Sequence[str]) -> ExploreQuery:
    """What an address says.

    Args:
        parameters: of it, the last of each name.
        usual: the figures along and up, where it names none.

    Raises:
        UsageError: A figure, a field or an end of a range is none.
    """
    size = parameters.get("size", "")
    colour = parameters.get("colour") or USUAL_COLOUR
    field_named(colour)
    ends = {name: _end(name, parameters[name]) for name in RANGES if parameters.get(name)}
    for side in ("x", "y"):
        low, high = ends.get(f"{side}-from"), ends.get(f"{side}-to")
        if low is not None and high is not None and low >= high:
            raise UsageError(
                f"{side}-from is {low:g} and {side}-to is {high:g}.", "Give the smaller one first."
            )
    return ExploreQuery(
        figure_named(parameters.get("x") or usual[0]),
        figure_named(parameters.get("y") or usual[1]),
        colour,
        figure_named(size) if size else None,
        parameters.get("find", "")[:200],
        ends,
    )


def _end(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0:
        raise UsageError(f"{name} is {in_quotes(safe(value))}.", "Give a number from 0.")
    return number
