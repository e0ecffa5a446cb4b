"""Lines of what differs in its batch alone: which there are, how each looks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.analysis.points import Point, alike_together
from accelbench.analysis.questions import AXES, Key
from accelbench.core.rows import number
from accelbench.hardware.colours import colour_of
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.marks import Record
from accelbench.report.charts.theme import LINE_WIDTHS, PANEL_WIDE, engine_dashes
from accelbench.report.charts.words import ALIKE, WAY, Devices, told

#: More ways of running, each a line in its own dashes, are a tangle.
_MOST_WAYS = 8
#: Beside the first and the last batch.
MARGIN = 1.15
#: Pixels between two lines' marks of one batch, and between those of the first and the last.
_BESIDE, _TOGETHER = 3.0, 14.0


@dataclass(frozen=True)
class Line:
    """What differs in its batch alone."""

    points: Sequence[Point]
    way: str

    @property
    def panel(self) -> Key:
        """The work that it is of."""
        return self.points[0].asked_in(ALIKE)


def lines_of(
    points: Sequence[Point],
    devices: Devices | None = None,
    fewest: int = 2,
    names_by: Sequence[str] = WAY,
) -> list[Line]:
    """A single batch shows nothing of what a larger one does, and is no line.

    Args:
        points: what may be on lines.
        devices: all devices that there are, of which these may be of a few alone.
        fewest: batches of a line; of 1 a mark may stand alone.
        names_by: what a line is called by.
    """
    groups = alike_together(points, _but_for_its_batch, only=True)
    ordered = [
        sorted(line, key=lambda point: number(point.row, "batch_size") or 0)
        for line in groups.values()
        if len(line) >= fewest
    ]
    if not ordered:
        return []
    names = told([line[0] for line in ordered], names_by, longest=60, devices=devices).apart
    return [Line(line, name) for line, name in zip(ordered, names, strict=True)]


_BATCH = AXES["batch"]


def _but_for_its_batch(point: Point) -> object:
    return point.kind, point.question(_BATCH)


def most_common(lines: Sequence[Line]) -> list[Line]:
    """Lines of the ways that most models were run in: a legend is of so many and no more."""
    ways = Counter(line.way for line in lines)
    known = {way for way, _ in ways.most_common(_MOST_WAYS)}
    return [line for line in lines if line.way in known]


def side_by_side(records: Sequence[Record]) -> list[Record]:
    """Lines a little beside each other, so that their intervals do not lie on each other."""
    names = list(dict.fromkeys(record["line"] for record in records))
    batches = [record["batch"] for record in records]
    wide = max(batches) / min(batches) * MARGIN**2
    apart = min(_BESIDE, _TOGETHER / len(names)) / PANEL_WIDE
    return [
        {**record, "at": record["batch"] * wide ** (apart * (place - (len(names) - 1) / 2))}
        for record in records
        for place in (names.index(record["line"]),)
    ]


def way_of(records: Sequence[Record]) -> dict[str, Spec]:
    """How a line ran, by its platform's colour, its engine's dashes and a width, in one legend."""
    first = {str(record["line"]): record for record in reversed(records)}
    names = list(dict.fromkeys(str(record["line"]) for record in records))
    hardware = {name: str(first[name]["hardware"]) for name in names}
    engines = [str(first[name]["runtime"]) for name in names]
    seen: Counter[tuple[str, str]] = Counter()
    widths = []
    for name, engine in zip(names, engines, strict=True):
        widths.append(LINE_WIDTHS[seen[hardware[name], engine] % len(LINE_WIDTHS)])
        seen[hardware[name], engine] += 1
    legend = (
        {
            "title": None,
            "symbolType": "stroke",
            "symbolSize": 700,
            "symbolOpacity": 1,
        }
        if len(names) > 1
        else None
    )
    form: Spec = {"field": "line", "type": "nominal", "sort": names, "legend": legend}
    colours = {"domain": names, "range": [colour_of(hardware[name]) for name in names]}
    return {
        "color": {**form, "scale": colours},
        "strokeDash": {
            **form,
            "scale": {"domain": names, "range": [engine_dashes(engine) for engine in engines]},
        },
        "strokeWidth": {**form, "scale": {"type": "ordinal", "domain": names, "range": widths}},
    }
