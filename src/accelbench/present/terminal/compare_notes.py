"""What has to be said of a comparison: under each table, and below all of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from accelbench.core.figures import Statistic
from accelbench.core.nouns import NO_DATA, listed
from accelbench.core.precision import not_exact
from accelbench.core.vocabulary import Provenance
from accelbench.core.worth import launches_failed, mostly_failed, why_unusable
from accelbench.exchange.prices import USUAL_CURRENCY, Prices, sign_of
from accelbench.judge.accuracies import accuracy_against, cost_sentence
from accelbench.judge.comparison import Compared
from accelbench.judge.costs import cost_notes, items_of
from accelbench.judge.questions import ComparisonAxis
from accelbench.judge.ratios import CANNOT_TELL, SAMPLES
from accelbench.judge.sides import PER_MILLION
from accelbench.present.terminal.compare_cells import (
    NO_INTERVAL,
    UNLIKE,
    UNUSABLE,
    Lines,
    in_short,
    place,
    threads,
    unlike,
)
from accelbench.present.terminal.words import other_machines
from accelbench.present.texts import phrase

_ONE_LAUNCH = phrase("compare.one-launch", no_interval=NO_INTERVAL)
#: Why times are of no use of which most launches failed.
_MOST_FAILED = phrase("compare.most-launches-failed")
_WITHIN = phrase("compare.intervals-single-launches")
_ONE_FIGURE = phrase("compare.one-imported-result", no_interval=NO_INTERVAL)
_NAMES, _PAIRS = 8, 3
#: What tells most of how far two figures are alike.
_FIRST = ("figure ", "unit ")


def under_table(
    lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str], *, alone: bool
) -> list[str]:
    """What is of one table.

    Args:
        alone: all tables are by one figure, which is said below them.
    """
    held = [line.ratio for line in lines if line.ratio is not None]
    return [
        *_unlike(lines, axis, labels),
        *([] if alone or not held else [by_what(_figures([lines]))]),
        *_otherwise(lines, axis),
        *_accuracies(lines, axis, labels),
        *_not_exact(lines, axis, labels),
        *_failed_launches(lines, axis),
        *_failed_since(lines, axis),
        *_set_aside(lines, axis),
    ]


def _accuracies(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    for line in lines:
        if line.baseline is None or line.side is line.baseline:
            continue
        cost = accuracy_against(line.side.rows, line.baseline.rows)
        if cost is not None:
            base = Compared(line.baseline, line.baseline)
            yield cost_sentence(place(line, axis, labels), place(base, axis, labels), cost)


def below(
    tables: Sequence[Lines], axis: ComparisonAxis, others: Sequence[str], prices: Prices | None
) -> Iterable[str]:
    """What is of all tables."""
    every = [line for lines in tables for line in lines]
    held = [(line, line.ratio) for line in every if line.ratio is not None]
    if axis.name == "batch" and held:
        yield phrase("compare.knee-legend")
    if held and of_one_figure(tables):
        yield by_what(_figures(tables))
    yield from _not_told([line for line, ratio in held if not ratio.told])
    if any(ratio.of == SAMPLES for _, ratio in held):
        yield _WITHIN
    single = [line for line, ratio in held if ratio.low is None]
    if single:
        yield _ONE_LAUNCH if any(map(_ours, single)) else _ONE_FIGURE
    useless = [line.side.rows for line in every if not line.side.usable]
    for why in sorted(
        {_MOST_FAILED if mostly_failed(rows) else why_unusable(rows) for rows in useless}
    ):
        yield phrase("compare.unusable-because", unusable=UNUSABLE, why=why)
    for refused in sorted({line.refused for line in every if line.refused}):
        count = sum(line.refused == refused for line in every)
        allow = phrase("compare.use-allow") if "not alike" in refused else ""
        yield f"{count} not compared, {refused}.{allow}"
    yield from other_machines(others)
    yield from _costs(tables, prices)


def of_one_figure(tables: Sequence[Lines]) -> bool:
    """Whether the ratios of all tables are by the same figure, or means all of them."""
    return len({by_what(figures) for lines in tables if (figures := _figures([lines]))}) < 2


def _figures(tables: Sequence[Lines]) -> set[str]:
    return {
        str(line.ratio.statistic) for lines in tables for line in lines if line.ratio is not None
    }


def _ours(line: Compared) -> bool:
    return line.side.row.get("provenance") == Provenance.MEASURED


def _not_told(wide: Sequence[Compared]) -> Iterable[str]:
    if not wide:
        return
    claim = phrase("compare.without-factor", wide=len(wide), cannot_tell=CANNOT_TELL)
    if any(map(_ours, wide)):
        yield phrase("compare.measure-again-quiet", claim=claim)
    else:
        yield phrase("compare.published-too-few", claim=claim)


def _unlike(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    in_column = any(cell != NO_DATA for cell in threads(lines, axis))
    by_threads = False
    for line in lines:
        if line.ratio is None or not (differs := unlike(line)):
            continue
        texts = [text for text in differs if not (in_column and text.startswith("threads "))]
        by_threads = by_threads or len(texts) < len(differs)
        if texts:
            yield f"{UNLIKE} {place(line, axis, labels)}: {differences_in_short(texts)}."
    if by_threads:
        yield phrase("compare.threads-differ", unlike=UNLIKE)


#: Statistics of which a ratio is, where their names are not words.
_WORDS = {str(Statistic.MEDIAN): "median", str(Statistic.RATE): "mean"}


def by_what(figures: set[str]) -> str:
    """The figure that ratios are of."""
    return phrase("compare.ratio-statistic", by_figure=by_figure(figures))


def by_figure(figures: Collection[str]) -> str:
    """Name the figure by which things are compared."""
    if set(figures) == {str(Statistic.RATE)}:
        return phrase("compare.by-rate")
    named = sorted({_WORDS.get(name, name) for name in figures})
    if len(named) == 1:
        return phrase("compare.by-time", named=named[0])
    return phrase("compare.by-times", named=", ".join(named))


def _otherwise(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    for compared in every:
        if compared.ratio is not None and compared.ratio.told and compared.ratio.otherwise:
            model = compared.side.row.get("model")
            yield f"{model}, {place(compared, axis)}: {compared.ratio.otherwise}."


def _not_exact(lines: Lines, axis: ComparisonAxis, labels: Mapping[str, str]) -> Iterable[str]:
    places: dict[str, list[str]] = {}
    for line in lines:
        if why := not_exact(line.side.rows):
            places.setdefault(why, []).append(place(line, axis, labels))
    if places:
        listing = "; ".join(f"{', '.join(names)} ({why})" for why, names in places.items())
        yield phrase("compare.not-known-exact", listing=listing)


def _failed_launches(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    failing = [
        f"{compared.side.row.get('model')}, {place(compared, axis)} ({failed})"
        for compared in every
        if (failed := launches_failed(compared.side.rows))
    ]
    if failing:
        yield phrase("compare.launches-failed", some=_some(failing))


def _failed_since(every: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    ways = [
        f"{compared.side.row.get('model')}, {place(compared, axis)}"
        f" ({', '.join(compared.failed_since)})"
        for compared in every
        if compared.failed_since
    ]
    if ways:
        shown = listed(ways, _PAIRS, "; ")
        yield phrase("compare.failed-since", shown=shown)


def _set_aside(lines: Sequence[Compared], axis: ComparisonAxis) -> Iterable[str]:
    faster = {(place(compared, axis), text) for compared in lines for text in compared.side.faster}
    if faster:
        yield phrase("compare.faster-not-alike", some=_some((f"{v} ({t})" for v, t in faster)))
    newer = sum(compared.side.newer for compared in lines)
    if newer:
        launches = "1 newer launch" if newer == 1 else f"{newer} newer launches"
        yield phrase("compare.set-aside-older", launches=launches)
    if unusable := sum(compared.side.unusable for compared in lines):
        launches = "1 launch" if unusable == 1 else f"{unusable} launches"
        why = ", or ".join(sorted({c.side.why_unusable for c in lines if c.side.unusable}))
        yield phrase("compare.launches-left-out", launches=launches, why=why)
    slower = {
        f"{name} at {place(compared, axis)}" for compared in lines for name in compared.side.others
    }
    if slower:
        yield phrase("compare.slower-engines", some=_some(slower))


def _some(texts: Iterable[str]) -> str:
    return listed(sorted(texts), _PAIRS)


def _costs(tables: Sequence[Lines], prices: Prices | None) -> Iterable[str]:
    rows = [row for lines in tables for line in lines for row in line.side.rows]
    counted = sorted({items_of(row) for row in rows if row.get(PER_MILLION)})
    if counted:
        sign = sign_of(USUAL_CURRENCY) if prices is None else prices.sign
        yield phrase("compare.cost-unit", sign=sign, counted=" or ".join(counted))
    yield from cost_notes(rows, prices)


def differences_in_short(differs: Iterable[str]) -> str:
    """Conditions by name with a few pairs of values each: a figure may differ in every result."""
    pairs: dict[str, list[str]] = {}
    for text in sorted(set(differs), key=lambda text: (not text.startswith(_FIRST), text)):
        name, _, values = text.partition(" ")
        pairs.setdefault(name, []).append(" → ".join(map(in_short, values.split(" → "))))
    shown = []
    for name, several in list(pairs.items())[:_NAMES]:
        shown.append(f"{name} {listed(several, _PAIRS)}")
    if len(pairs) > _NAMES:
        shown.append(f"and {', '.join(list(pairs)[_NAMES:])}, see --json")
    return "; ".join(shown)
