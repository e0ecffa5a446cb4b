"""A chart: a declaration that turns results into the specification of a picture. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from accelbench.core.calibration import TimedCollectives
from accelbench.core.formatting import format_count, join_first
from accelbench.core.result_statistics import Statistic
from accelbench.core.rows import Row
from accelbench.core.unusable_reasons import (
    REASON_TEXTS,
    UnusableReason,
    failed_launches_text,
    why_unusable,
)
from accelbench.exchange.prices import Prices, price_sign
from accelbench.judge.accuracies import AccuracyPlace
from accelbench.judge.history import Series
from accelbench.judge.matrix import Matrix
from accelbench.judge.points import Point
from accelbench.judge.run_noise import Histories
from accelbench.present.charts.axes import CONFIG, SCHEMA, wrapped
from accelbench.present.charts.axes import Spec as Spec
from accelbench.present.charts.palette import by_device, expected_size, narrowed
from accelbench.present.charts.words import Devices, days, devices_on, safe
from accelbench.present.texts import catalogue, phrase


@dataclass(frozen=True)
class Roof:
    """The two limits of a device."""

    hardware: str
    name: str
    precision: str
    operations_per_second: float
    bytes_per_second: float
    source: str  # measured, or whose figures these are
    measured_on: str = ""  # the day, where the device was calibrated


@dataclass(frozen=True)
class Subject:
    """All that a chart may be of."""

    points: Sequence[Point] = ()
    #: Milliseconds of every sample, in their order, by result.
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)
    series: Sequence[Series] = ()
    matrix: Matrix | None = None
    roofs: Sequence[Roof] = ()
    machine: str = ""
    #: What the points are made of, and what came to no figure.
    rows: Sequence[Row] = ()
    #: By which rows were told what they cost.
    prices: Prices | None = None
    #: The older runs of the rows.
    known: Histories = field(default_factory=Histories)
    #: What calibrations of the machine timed among ranks.
    collectives: Sequence[TimedCollectives] = ()
    #: Results that have a task accuracy, the newest of each place first.
    accuracies: Mapping[AccuracyPlace, Sequence[Row]] = field(default_factory=dict)

    @cached_property
    def devices(self) -> Devices:
        """The devices of each platform: where there are several, a picture of one names it."""
        return devices_on(self.points)

    @property
    def sign(self) -> str:
        """What stands before an amount of money."""
        return price_sign(self.prices)


@dataclass(frozen=True)
class ChartBody:
    """A picture's body, what it is of, and what has to be said below its title."""

    body: Spec
    points: Sequence[Point] = ()
    notes: Sequence[str] = ()
    records: Sequence[Row] = ()  # what is drawn, as a table


@dataclass(frozen=True)
class ChartLabel:
    """What a chart is called."""

    name: str  # of its file, and in an address
    title: str  # above it
    answers: str  # the question that it answers; the words of whoever cannot see it
    needs: str  # what has to be known before there is anything to show


@dataclass(frozen=True)
class Chart(ChartLabel):
    """One chart of results."""

    draw: Callable[[Subject], ChartBody | None]  # its body; None where there is nothing to show


def label_of(name: str) -> ChartLabel:
    """Return what a chart is called, by the catalogue of labels."""
    return ChartLabel(name, **catalogue("chart_labels")[name])


#: Width and height in pixels, of the picture as it is and of the one in one column.
Sizes = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Picture:
    """A chart of something: what is drawn, and the same in words and as a table of figures."""

    chart: ChartLabel
    spec: Spec
    about: Sequence[str]
    records: Sequence[Row]

    @cached_property
    def sizes(self) -> Sizes:
        """About how large it will be, before it is drawn: as it is, and in one column."""
        return expected_size(self.spec), expected_size(narrowed(self.spec))


def picture(chart: Chart, subject: Subject) -> Picture | None:
    """The whole specification; None where the chart has nothing to show."""
    drawn = chart.draw(subject)
    return None if drawn is None else pictured(chart, drawn, subject.machine)


def pictured(label: ChartLabel, drawn: ChartBody, machine: str = "") -> Picture:
    """The whole specification of a body: with its title, what it rests on and the theme."""
    about = [*_about(drawn, machine), *drawn.notes]
    lines = [line for sentence in about for line in wrapped(sentence)]
    title = {"text": label.title, "subtitle": lines}
    spec = {
        "$schema": SCHEMA,
        "description": f"{label.title}: {label.answers}",
        "title": title,
        "config": CONFIG,
        **by_device(drawn.body),
    }
    names = dict.fromkeys(name for record in drawn.records for name in _figures(record))
    records = [{name: record.get(name, "") for name in names} for record in drawn.records]
    return Picture(label, spec, about, records)


def _figures(record: Row) -> Row:
    return {name: value for name, value in record.items() if name not in _OF_DRAWING}


_OF_DRAWING = frozenset(
    (*("colour", "paint", "form", "line", "bar", "end", "place"), *("alone", "said", "piece", "at"))
)


def _about(drawn: ChartBody, machine: str) -> list[str]:
    points = drawn.points
    if not points:
        return [safe(machine, 90)] if machine else []
    launches = sum(len(point.rows) for point in points)
    # What was calculated has no samples to be counted.
    samples = [point.samples for point in points if point.kind not in _CALCULATED]
    facts = [
        (
            f"{format_count(len(points), 'configuration')} from"
            f" {format_count(launches, 'launch', 'launches')}"
        )
    ]
    if known := [n for n in samples if n is not None]:
        facts.append(
            f"{sum(known):,} samples" + ("" if len(known) == len(samples) else " and more")
        )
    elif samples:
        facts.append(phrase("charts.sample-count-unknown"))
    medians = sum(point.latency_by is Statistic.MEDIAN for point in points)
    if any(point.latency_by for point in points) and medians in (0, len(points)):
        facts.append("medians" if medians else "means")
    places = sorted({point.machine for point in points if point.machine}) or [machine]
    facts += [safe(join_first(places, 2), 90), *days([point.row for point in points])]
    if 0 < medians < len(points):
        facts.append(
            phrase(
                "charts.means-without-median", points=format_count(len(points) - medians, "mean")
            )
        )
    facts += newer_set_aside(points)
    foreign = {point.kind for point in points} - {"measured"}
    marked = [f"{kind}: {meaning}" for kind, meaning in _MARKS.items() if kind in foreign]
    if useless := sum("quality" in record for record in drawn.records):
        why = dict.fromkeys(why_unusable(point.rows) for point in points if not point.usable)
        reasons = join_first(list(why) or [REASON_TEXTS[UnusableReason.TOO_NOISY]], 2)
        marked.append(f"{format_count(useless, 'figure')} unusable (dashed outline): {reasons}")
    lost = [point for point in points if point.usable and failed_launches_text(point.rows)]
    if lost:
        why = dict.fromkeys(failed_launches_text(point.rows) for point in lost)
        marked.append(
            phrase(
                "charts.runs-with-failures",
                lost=format_count(len(lost), "configuration"),
                why=join_first(list(why), 2),
            )
        )
    return [" · ".join(filter(None, facts)), *([" · ".join(marked)] if marked else [])]


def newer_set_aside(points: Iterable[Point]) -> list[str]:
    """That newer launches are not among those that figures are of, where there are any."""
    newer = sum(point.newer for point in points)
    return [f"{format_count(newer, 'newer launch', 'newer launches')} set aside"] if newer else []


_CALCULATED = ("predicted", "simulated")
_MARKS = {
    "imported": "measured by others",
    "predicted": "band",
    "simulated": "hatched, not measured",
}
