"""What can be explored: the figures that an axis may be of, and the fields that groups are of.

Names are those of an address; SQL is ours, over the snapshot's table of cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.report.charts.phrases import safe

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
