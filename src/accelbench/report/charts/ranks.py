"""Every rank of a step beside the others, so that a slow one is seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from accelbench.analysis.points import Point
from accelbench.analysis.ranks import RankFigures, ranks_of
from accelbench.measure.launches import typical
from accelbench.report.charts.axes import NUMBER, Spec, grid, layer, words
from accelbench.report.charts.chart import Chart, ChartBody, Subject
from accelbench.report.charts.marks import MOST_PANELS, Panel, Record, arranged, labels
from accelbench.report.charts.theme import PAPER
from accelbench.report.charts.words import (
    DEVICES,
    EVERYTHING,
    emulated,
    figure,
    in_common,
    left_out,
    safe,
    told,
)

#: Figure → the head of its column; work first, as it is what tells a straggler.
_FIGURES: Mapping[str, str] = {
    "work_ms": "own work, ms",
    "exposed_ms": "exposed, ms",
    "communication_ms": "communication, ms",
    "step_ms": "median step, ms",
    "memory_mb": "peak memory, MB",
}
#: A rank whose own work is this many times the median rank's is marked.
_SLOW = 1.05
_MEANT = (
    "Colour: the ratio to the median rank. Own work: the profiled step without exposed"
    " communication; the others wait for the rank that has most of it, marked ► from"
    f" {_SLOW:g}× on."
)
#: Where colours end: a rank that takes half as much again, or a third less.
_FURTHEST = 1.5
_COLOURS = ("#5aa5d6", "#f7f7f7", "#f08a3c")
_MOST_RANKS = 32
_LINE = 21


@dataclass(frozen=True)
class RankLine:
    """A rank of a configuration: the middle of its launches."""

    rank: int
    place: str
    figures: Mapping[str, float]


def rank_lines(point: Point) -> list[RankLine]:
    """The ranks of a point, each by the middle of its launches."""
    launches: dict[int, list[RankFigures]] = {}
    for row in point.rows:
        for rank in ranks_of(row):
            launches.setdefault(rank.rank, []).append(rank)
    several = len({rank.host for ranks in launches.values() for rank in ranks}) > 1
    return [
        RankLine(number_, _place(ranks[0], several), _figures(ranks))
        for number_, ranks in sorted(launches.items())
    ]


def _place(rank: RankFigures, several_hosts: bool) -> str:
    parts = (rank.host if several_hosts else "", rank.device if rank.device != "cpu" else "")
    return " ".join(safe(part, 24) for part in parts if part)


def _figures(launches: Sequence[RankFigures]) -> dict[str, float]:
    figures = {}
    for name in _FIGURES:
        known = [value for rank in launches if (value := getattr(rank, name)) is not None]
        if known:
            figures[name] = typical(known) if min(known) > 0 else sum(known) / len(known)
    return figures


def _drawn(subject: Subject) -> ChartBody | None:
    of_all = [(point, rank_lines(point)) for point in subject.points]
    every = [entry for entry in of_all if sum(bool(line.figures) for line in entry[1]) > 1]
    known = [(point, lines) for point, lines in every if point.timed]
    if not known:
        return None
    known.sort(key=lambda entry: (-len(entry[1]), str(entry[0].row.get("model"))))
    shown = known[:MOST_PANELS]
    points = [point for point, _ in shown]
    always = ("model", DEVICES, "options")
    abouts = told(points, EVERYTHING, always, 96, devices=subject.devices)
    panels, everything = [], []
    for (point, lines), name in zip(shown, abouts.apart, strict=True):
        records = _records(lines, name)
        everything += records
        panels.append(
            Panel(name, [_straggler(point, lines)], records, _layers(records), {"step": _LINE})
        )
    more = sum(max(0, len(lines) - _MOST_RANKS) for _, lines in shown)
    notes = [
        _MEANT,
        *in_common(abouts.together),
        *left_out(len(known) - len(shown), "configuration"),
        *left_out(more, "rank", advice="those with the least work; the evidence has them"),
        *emulated(len(every) - len(known)),
    ]
    return ChartBody(arranged(panels, columns=1), points, notes, everything)


def _straggler(point: Point, lines: Sequence[RankLine]) -> str:
    work = {line.rank: line.figures["work_ms"] for line in lines if "work_ms" in line.figures}
    ratio = point.metric("straggler_ratio")
    if not work or ratio is None:
        return "no step was profiled"
    slowest = max(work, key=lambda rank: work[rank])
    return f"slowest: rank {slowest} · straggler ratio {ratio.value:.2f}"


def _records(lines: Sequence[RankLine], name: str) -> list[Record]:
    middles = {
        figure_name: median(known)
        for figure_name in _FIGURES
        if (known := [n.figures[figure_name] for n in lines if figure_name in n.figures])
    }
    kept = sorted(lines, key=lambda line: -line.figures.get("work_ms", 0.0))[:_MOST_RANKS]
    records: list[Record] = []
    for line in sorted(kept, key=lambda line: line.rank):
        # To the median rank; 1 if that has nothing of it.
        ratios = {n: value / (middles[n] or value or 1.0) for n, value in line.figures.items()}
        slow = ratios.get("work_ms", 1.0) >= _SLOW
        label = " ".join(filter(None, ("►" if slow else "", f"rank {line.rank}", line.place)))
        records += [
            {
                "configuration": name,
                "line": label,
                "rank": line.rank,
                "where": line.place,
                "figure": _FIGURES[figure_name],
                "value": value,
                "ratio": ratios[figure_name],
                "said": figure(value),
            }
            for figure_name, value in line.figures.items()
        ]
    return records


def _layers(records: Sequence[Record]) -> list[Spec]:
    heads = [head for head in _FIGURES.values() if any(r["figure"] == head for r in records)]
    place = grid(
        "figure", heads, "line", (r["line"] for r in records), labelFontSize=11.5, labelLimit=130
    )
    domain = [1 / _FURTHEST, 1, _FURTHEST]
    gradient: Spec = {"direction": "horizontal", "gradientLength": 160, "values": [0.67, 1, 1.5]}
    colour: Spec = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "range": list(_COLOURS), "clamp": True},
        "legend": {"title": "ratio to the median rank", "format": ".2f", **gradient},
    }
    figures: Spec = {"type": "quantitative"}
    tips = [
        *words("configuration", "line", "figure"),
        {"field": "value", **figures, "format": NUMBER},
        {"field": "ratio", **figures, "format": ".2f"},
    ]
    fill = {**place, "fill": colour, "tooltip": tips}
    text = labels({**place, "text": {"field": "said"}})
    return [layer("rect", fill, stroke=PAPER, strokeWidth=2), text]


RANKS = Chart(
    "ranks",
    "Ranks of a step",
    "which of several processes the others wait for",
    "steps of several processes",
    _drawn,
)
