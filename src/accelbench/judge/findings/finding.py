"""Findings as plain values, and what a store shows to have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from accelbench.core.axes import COLUMN_ORDER, axes_of
from accelbench.core.devices import device_count, engine_at, sharing_unit
from accelbench.core.errors import AccelbenchError
from accelbench.core.formatting import (
    UNKNOWN_ENGINE,
    UNKNOWN_HARDWARE,
    UNKNOWN_MODEL,
    format_batch,
    format_count,
    format_digits,
    join_first,
)
from accelbench.core.result_statistics import ends_text, throughput_unit
from accelbench.core.rows import Row, number
from accelbench.core.safe_text import visible
from accelbench.core.unusable_reasons import source_of
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.exchange.titles import format_title
from accelbench.judge.filters import Value
from accelbench.judge.points import Point
from accelbench.judge.ratios import LAUNCHES, Ratio

if TYPE_CHECKING:
    from accelbench.judge.regressions import Check
    from accelbench.store.database import Database


#: Findings that stand at the top of a report and of the overview.
MOST_SHOWN = 7
#: Of each kind, so that the fastest of ten tasks do not hide what broke.
_MOST_OF_KIND = 2
#: What is named in a sentence; more is counted, and stands in the evidence.
NAMED = 3


class FindingKind(StrEnum):
    """What a finding is about."""

    CHANGE = "change"
    OUTPUTS = "outputs"
    FASTEST = "fastest"
    ENGINES = "engines"
    PRECISION = "precision"
    CHEAPEST = "cheapest"
    PRECISE = "most precise"
    FAILURES = "failures"
    UNSTEADY = "unsteady"
    LAUNCHES = "launches"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class ConfigurationEvidence:
    """A configuration that a finding rests on.

    Attributes:
        name: as tables and titles have it.
        results: the ids of its launches.
    """

    name: str
    results: tuple[str, ...]


@dataclass(frozen=True)
class StoreFinding:
    """One sentence, and what it rests on.

    Attributes:
        sentence: what a reader passes on; it holds without anything around it.
        importance: the larger, the sooner it is told.
        evidence: the configurations it rests on.
        filters: column → values that narrow a store to what it is about.
        value: the figure of the sentence, where it has one.
        interval: of that figure; None where nothing is known of it.
        command: what brings the next answer; "" where there is nothing to do.
    """

    kind: FindingKind
    sentence: str
    importance: float
    evidence: tuple[ConfigurationEvidence, ...] = ()
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    value: float | None = None
    interval: tuple[float, float] | None = None
    command: str = ""


def evidence_of(launches: Iterable[Sequence[Row]]) -> tuple[ConfigurationEvidence, ...]:
    """Configurations by their launches, each once."""
    known = {
        (
            format_title(rows[0]),
            tuple(str(row["result_id"]) for row in rows if row.get("result_id")),
        ): None
        for rows in launches
        if rows
    }
    return tuple(ConfigurationEvidence(name, results) for name, results in known)


def ranked(findings: Iterable[StoreFinding]) -> list[StoreFinding]:
    """All of them, the most important first."""
    return sorted(findings, key=lambda finding: (-finding.importance, finding.sentence))


def foremost(findings: Iterable[StoreFinding], most: int = MOST_SHOWN) -> list[StoreFinding]:
    """Those at the top: of each kind two at most, so that no kind hides the others."""
    chosen: list[StoreFinding] = []
    for finding in ranked(findings):
        alike = sum(other.kind is finding.kind for other in chosen)
        if alike < _MOST_OF_KIND and len(chosen) < most:
            chosen.append(finding)
    return chosen


_SIZES = axes_of(*COLUMN_ORDER)


def _unsaid(_: Row) -> str:
    return ""


def crowded(rows: Iterable[Row]) -> frozenset[str]:
    """The platforms that have several devices here, so that their name says too little."""
    names: dict[str, set[str]] = {}
    for row in rows:
        names.setdefault(str(row.get("hardware")), set()).add(str(row.get("device_name")))
    return frozenset(platform for platform, devices in names.items() if len(devices) > 1)


def place(row: Row, several: Collection[str] = ()) -> str:
    """Where it ran: the platform, or the device where the platform has several."""
    platform = str(row.get("hardware") or UNKNOWN_HARDWARE)
    name = row.get("device_name")
    where = visible(str(name)) if platform in several and name else visible(platform)
    count = device_count(row)
    return (
        f"{where} ({count} {sharing_unit(row)})" if (number(row, "world_size") or 1) > 1 else where
    )


def engine(row: Row) -> str:
    """The engine that ran it."""
    return visible(str(row.get("runtime") or UNKNOWN_ENGINE))


def engine_on(row: Row, several: Collection[str] = ()) -> str:
    """The engine and where it ran: onnxruntime on cpu; openvino where both have that name."""
    return engine_at(engine(row), place(row, several))


def way(row: Row, several: Collection[str] = ()) -> str:
    """How it ran: onnxruntime on cpu in fp32."""
    precision = f" in {visible(str(row['precision']))}" if row.get("precision") else ""
    return f"{engine_on(row, several)}{precision}"


def model(row: Row) -> str:
    """Its model's name."""
    return visible(str(row.get("model") or UNKNOWN_MODEL))


def question(row: Row, *, sizes: bool = True) -> str:
    """What was asked of a model beside its name: batch 1, seq 128.

    Args:
        sizes: with those of an item, which each model of several may have its own of.
    """
    words = [
        "training" if row.get("mode") == Mode.TRAINING else "",
        format_batch(row.get("batch_size")),
        sizes_of(row) if sizes else "",
        str(row["scenario"]) if row.get("scenario") not in (None, SINGLE_STREAM) else "",
    ]
    return visible(", ".join(word for word in words if word))


def sizes_of(row: Row) -> str:
    """The sizes of an item; "" where nobody says any."""
    known = (axis.label.format(row[axis.column]) for axis in _SIZES if row.get(axis.column))
    return visible(", ".join(known))


def whose(row: Row) -> str:
    """Behind a figure of others, whose it is; "" of what was measured here."""
    if row.get("provenance") != Provenance.IMPORTED:
        return ""
    source = source_of(row)
    return f" (imported from {visible(source)})" if source else " (imported)"


def names(every: Iterable[str], most: int = NAMED) -> str:
    """The first few names, and how many more there are; one that comes twice is told once."""
    return join_first(list(dict.fromkeys(every)), most)


def titled(every: Iterable[Row], most: int = NAMED, why: Callable[[Row], str] = _unsaid) -> str:
    """The first configurations by their titles, and how many more there are: it adds up.

    A title leaves out threads and options. One that several configurations have says how many,
    as a sentence that counts configurations and names titles would not add up.
    """
    counts = Counter(
        f"{format_title(row)} ({said})" if (said := why(row)) else format_title(row)
        for row in every
    )
    told = [
        name if count == 1 else f"{name} ({count:,} of them)"
        for name, count in list(counts.items())[:most]
    ]
    rest = counts.total() - sum(list(counts.values())[:most])
    return ", ".join(told) + (f" and {rest:,} more" if rest else "")


def grouped(words: Iterable[str]) -> str:
    """Words by how often they come: 3 unsteady, 1 throttled."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def sure(ratio: Ratio, unit: str = "") -> str:
    """The interval of a ratio in words, or why it has none."""
    if ratio.low is None or ratio.high is None:
        return ratio.no_interval
    of = "" if ratio.of == LAUNCHES else " within single launches"
    return f"95 % interval{of} {span(ratio.low, ratio.high)}{unit}"


def span(low: float, high: float) -> str:
    """Both ends."""
    return ends_text(low, high, format_digits)


def figure_of(point: Point) -> str:
    """What a step takes, with its interval; a rate, or a percentile, where that is all there is."""
    known, unit, launches = point.latency, " ms a step", len(point.rows)
    if known is None and point.percentile is not None:
        value, statistic = point.percentile
        return f"{format_digits(value)} ms a step ({statistic}; no interval)"
    if known is None:
        known, unit = point.throughput, f" {throughput_unit(point.row)}"
    if known is None:
        return "a figure that is no time"
    if known.spread is None:
        return (
            f"{format_digits(known.value)}{unit} (no interval: {format_count(launches, 'figure')})"
        )
    return f"{format_digits(known.value)}{unit} ({known.spread.sentence(format_digits)})"


_RUN = "run_id"


def changed_in(
    database: Database, filters: Mapping[str, Sequence[Value]], machine: str | None = None
) -> Check | None:
    """The check of the newest run that was measured here; None where nothing was before it.

    Args:
        filters: column → the values that count; runs among them are what is checked.
    """
    return check_or_why(database, filters, machine)[0]


def check_or_why(
    database: Database, filters: Mapping[str, Sequence[Value]], machine: str | None = None
) -> tuple[Check | None, str]:
    """The same, with why there is none although something was measured before; "" otherwise."""
    from accelbench.judge.baselines import BaselineQuery, baseline_for
    from accelbench.judge.suggestions import NothingMeasuredError

    runs = tuple(str(run) for run in filters.get(_RUN, ()))
    asked = {name: tuple(values) for name, values in filters.items() if name != _RUN}
    try:
        return baseline_for(database, None, BaselineQuery(asked, runs, machine)).check(None), ""
    except NothingMeasuredError:
        return None, ""  # a first run has nothing before it
    except AccelbenchError as error:
        return None, str(error)
