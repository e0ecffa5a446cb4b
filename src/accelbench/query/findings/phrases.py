"""How findings name things and say how sure a ratio is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from accelbench.analysis.points import Point
from accelbench.analysis.ratios import LAUNCHES, Ratio
from accelbench.core.absent import UNKNOWN_ENGINE, UNKNOWN_HARDWARE, UNKNOWN_MODEL, batch_text
from accelbench.core.axes import AS_ASKED, axes_of
from accelbench.core.devices import devices_of, engine_at, sharing
from accelbench.core.nouns import counted, digits, listed
from accelbench.core.provenance import source_of
from accelbench.core.rates import unit_of
from accelbench.core.rows import Row, number
from accelbench.core.spreads import ends_text
from accelbench.core.visible import visible
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.exchange.titles import title
from accelbench.query.findings.finding import NAMED

_SIZES = axes_of(*AS_ASKED)


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
    count = devices_of(row)
    return f"{where} ({count} {sharing(row)})" if (number(row, "world_size") or 1) > 1 else where


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
        row: one of its results.
        sizes: with those of an item, which each model of several may have its own of.
    """
    words = [
        "training" if row.get("mode") == Mode.TRAINING else "",
        batch_text(row.get("batch_size")),
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
    return listed(list(dict.fromkeys(every)), most)


def titled(every: Iterable[Row], most: int = NAMED, why: Callable[[Row], str] = _unsaid) -> str:
    """The first configurations by their titles, and how many more there are: it adds up.

    A title leaves out threads and options. One that several configurations have says how many,
    as a sentence that counts configurations and names titles would not add up.
    """
    counts = Counter(
        f"{title(row)} ({said})" if (said := why(row)) else title(row) for row in every
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
    return ends_text(low, high, digits)


def figure_of(point: Point) -> str:
    """What a step takes, with its interval; a rate, or a percentile, where that is all there is."""
    known, unit, launches = point.latency, " ms a step", len(point.rows)
    if known is None and point.percentile is not None:
        value, statistic = point.percentile
        return f"{digits(value)} ms a step ({statistic}; no interval)"
    if known is None:
        known, unit = point.throughput, f" {unit_of(point.row)}"
    if known is None:
        return "a figure that is no time"
    if known.spread is None:
        return f"{digits(known.value)}{unit} (no interval: {counted(launches, 'figure')})"
    return f"{digits(known.value)}{unit} ({known.spread.sentence(digits)})"


def and_more(every: Sequence[str], most: int = NAMED) -> str:
    """Names after a colon; "" of none."""
    return f": {names(every, most)}" if every else ""
