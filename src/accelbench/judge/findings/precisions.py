"""Findings on precisions, engines, unsteady results and single launches. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from accelbench.core.columns import AccuracyMetric
from accelbench.core.formatting import format_count, format_digits
from accelbench.core.precision import error_of
from accelbench.core.rows import Row, number
from accelbench.core.safe_text import visible
from accelbench.core.unusable_reasons import QUALITY_TEXTS, is_mostly_failed, reasons_unusable
from accelbench.core.vocabulary import Provenance, Quality
from accelbench.exchange.titles import format_title
from accelbench.judge.accuracies import AccuracyCost, accuracy_against, cost_sentence
from accelbench.judge.comparison import Compared
from accelbench.judge.filters import Value
from accelbench.judge.findings.finding import (
    ConfigurationEvidence,
    FindingKind,
    StoreFinding,
    engine_on,
    evidence_of,
    grouped,
    model,
    names,
    place,
    question,
    span,
    sure,
    titled,
    whose,
)
from accelbench.judge.findings.versus import FEWEST_MODELS, Versus
from accelbench.judge.points import Point
from accelbench.judge.suggestions import command_for

#: What a command says of what it measures.
_SAID = ("model", "hardware", "runtime", "precision", "batch_size", "mode")
#: Models that a command names; more belong into a plan file.
MOST_MODELS = 6


def command_of(rows: Iterable[Row], more: str = "") -> str:
    """The command that measures these again, and what lies between them."""
    columns: dict[str, dict[Value, None]] = {name: {} for name in _SAID}
    for row in rows:
        for name, known in columns.items():
            value = row.get(name)
            usual = name == "mode" and value == "inference"
            room = name != "model" or len(known) < MOST_MODELS
            if isinstance(value, (str, int)) and room and not usual:
                known[value] = None
    command = command_for({name: list(known) for name, known in columns.items() if known})
    return f"{command} {more}".rstrip() if command else ""


_ENGINES_TOLD, _ENGINES_UNTOLD = 70.0, 20.0


def engine_findings(every: Iterable[Versus], several: frozenset[str]) -> Iterator[StoreFinding]:
    """A finding for each pair of engines on a device; of fewer than three models there is none."""
    for versus in every:
        if versus.models >= FEWEST_MODELS and versus.interval is not None:
            yield _of_pair(versus, several)


def _of_pair(versus: Versus, several: frozenset[str]) -> StoreFinding:
    assert versus.interval is not None
    low, high = versus.interval
    quick, slow, value = versus.place, versus.base, versus.value
    losers, winners = versus.slower, versus.faster
    if versus.decided and value < 1.0:
        quick, slow, value = slow, quick, 1.0 / value
        low, high = 1.0 / high, 1.0 / low
        losers, winners = winners, losers
    quick, slow = visible(quick), visible(slow)
    where = place(versus.row, several)
    if where in (quick, slow):  # openvino is the name of both
        where = f"the platform {where}"
    mode = " in training" if versus.row.get("mode") == "training" else ""
    of = f"geometric mean of {versus.models} models, 95 % interval {span(low, high)}"
    of += versus.left_out
    if versus.decided:
        how = f"{format_digits(value)}× as fast as {slow}"
        if not versus.told:
            how = f"faster than {slow}, by how much can't be told"
        sentence = f"On {where}{mode}, {quick} is {how} ({of}); {_losers(losers, versus, quick)}."
        importance = _ENGINES_TOLD + min(9.0, 3.0 * math.log(value))
    else:
        sentence = (
            f"On {where}{mode}, whether {quick} or {slow} is faster in general can't be told"
            f" ({of}): {quick} is faster for certain in {len(winners)} and slower in"
            f" {len(losers)} of {format_count(len(versus.lines), 'configuration')}."
        )
        importance = _ENGINES_UNTOLD
    return StoreFinding(
        FindingKind.ENGINES,
        sentence[:-1] + whose(versus.row) + ".",
        importance,
        evidence_between(versus.lines),
        {"runtime": (versus.place, versus.base)},
        value,
        (low, high),
    )


def _losers(lines: Sequence[Compared], versus: Versus, quick: str) -> str:
    """Where the winner loses; by single figures nothing is certain, and they say which do."""
    if not any(line.ratio is not None and line.ratio.low is not None for line in versus.lines):
        behind = [
            name
            for name, value in versus.by_model.items()
            if (value < 1.0) is (versus.value > 1.0) and value != 1.0
        ]
        rest = f", slower on {format_count(len(behind), 'model')}: {names(map(visible, behind))}"
        return f"by single figures{rest if behind else ', and on none slower'}"
    if not lines:
        return f"in no configuration is {quick} slower for certain"
    models = dict.fromkeys(model(line.side.row) for line in lines)
    return f"it is slower for certain on {names(models)}"


def evidence_between(lines: Iterable[Compared]) -> tuple[ConfigurationEvidence, ...]:
    """Both sides of ratios."""
    return evidence_of(
        rows
        for line in lines
        for rows in (line.side.rows, line.baseline.rows if line.baseline else ())
    )


#: What others are compared with.
FULL = "fp32"
_TOLD, _UNTOLD = 60.0, 15.0


def precision_findings(every: Iterable[Versus], several: frozenset[str]) -> Iterator[StoreFinding]:
    """A finding for each precision of an engine on a device.

    Of one or two models it is of them alone, at the smallest batch that both precisions ran.
    """
    for versus in every:
        if versus.models >= FEWEST_MODELS and versus.interval is not None:
            yield _in_general(versus, several)
        elif versus.lines:
            yield _of_one(versus, several)


def _in_general(versus: Versus, several: frozenset[str]) -> StoreFinding:
    assert versus.interval is not None
    low, high = versus.interval
    by = engine_on(versus.row, several)
    of = f"geometric mean of {versus.models} models, 95 % interval {span(low, high)}"
    of += versus.left_out
    name = visible(versus.place)
    if versus.decided:
        faster = "faster" if versus.value > 1.0 else "slower"
        change = f"{format_digits(versus.value)}× as fast as {FULL}"
        if not versus.told:
            change = f"{faster} than {FULL}, by how much can't be told"
        lead = f"{name} with {by} is {change} ({of})"
        if versus.value > 1.0 and versus.slower:
            slow = dict.fromkeys(model(line.side.row) for line in versus.slower)
            lead += f", and slower for certain on {names(slow)}"
        importance = _TOLD + min(9.0, 3.0 * abs(math.log(versus.value)))
    else:
        lead = f"Whether {name} with {by} is faster than {FULL} in general can't be told ({of})"
        importance = _UNTOLD
    return StoreFinding(
        FindingKind.PRECISION,
        f"{lead}; {_price(versus.lines)}{whose(versus.row)}.",
        importance,
        evidence_between(versus.lines),
        {"precision": (versus.place, FULL), "runtime": (str(versus.row.get("runtime")),)},
        versus.value,
        (low, high),
    )


def _of_one(versus: Versus, several: frozenset[str]) -> StoreFinding:
    """Of the smallest batch: of noisy ratios the largest would choose the noise."""
    line = min(
        versus.lines, key=lambda each: (number(each.side.row, "batch_size") or 0, _name(each))
    )
    assert line.ratio is not None
    ratio, row = line.ratio, line.side.row
    name, by = visible(versus.place), engine_on(row, several)
    subject = f"{model(row)} ({question(row)}) by {by}"
    if not ratio.ends[0] <= 1.0 <= ratio.ends[1]:
        lead = (
            f"{subject} is {format_digits(ratio.value)}× as fast in {name} as in {FULL}"
            f" ({sure(ratio)})"
        )
        importance = _TOLD - 5.0 + min(5.0, 3.0 * abs(math.log(ratio.value)))
    else:
        lead = f"Whether {subject} is faster in {name} than in {FULL} can't be told"
        lead += f" ({format_digits(ratio.value)}×, {sure(ratio)})"
        importance = _UNTOLD
    known = None if ratio.low is None or ratio.high is None else (ratio.low, ratio.high)
    return StoreFinding(
        FindingKind.PRECISION,
        f"{lead}; {_price([line])}{whose(row)}.",
        importance,
        evidence_between([line]),
        {"precision": (versus.place, FULL), "runtime": (str(row.get("runtime")),)},
        ratio.value,
        known,
    )


def _name(line: Compared) -> str:
    return str(line.side.row.get("model"))


def _price(lines: Sequence[Compared]) -> str:
    """What it costs: in task accuracy where that was measured on the same samples, else by how far
    outputs are from the reference's.
    """
    costs = [
        ((line.side.row, line.baseline.row), cost)
        for line in lines
        if line.baseline is not None
        and (cost := accuracy_against(line.side.rows, line.baseline.rows)) is not None
        and cost.difference is not None
    ]
    if costs:
        (side, base), worst = max(costs, key=lambda entry: _loss(entry[1]))
        said = cost_sentence(str(side.get("precision")), str(base.get("precision")), worst)
        return f"{model(side)} in {visible(said.removesuffix('.'))}"
    launches = [row for line in lines for row in line.side.rows]
    errors = [error for row in launches if (error := error_of(row)) is not None]
    if not errors:
        return "its outputs were not verified"
    unverified = sum(error_of(line.side.row) is None for line in lines)
    more = f"; {format_count(unverified, 'configuration')} not verified" if unverified else ""
    return f"its outputs are off by {format_digits(max(errors))} at most{more}"


def _loss(cost: AccuracyCost) -> float:
    value = cost.difference.value if cost.difference is not None else 0.0
    return value if cost.metric is AccuracyMetric.PERPLEXITY else -value


_UNSTEADY, _SINGLE = 45.0, 25.0
#: Why a figure is not as steady as it was asked to be, in the words of the field.
WHY = {
    quality: f"{quality.replace('_', ' ')} ({QUALITY_TEXTS[quality]})"
    for quality in (
        Quality.UNUSABLE,
        Quality.THROTTLED,
        Quality.UNSTEADY,
        Quality.NOISE_LIMITED,
        Quality.TIME_LIMITED,
    )
}
#: The worst first: of a configuration's launches it speaks.
_ORDER = list(WHY)


def why_unsteady(point: Point) -> Quality | None:
    """Return its quality, or None if it is as was asked."""
    quality = point.measurement.quality
    return next((known for known in WHY if known == quality), None)


def describe_unsteady(why: Quality, point: Point) -> str:
    """Return a quality in words, of unusable launches with their own reasons."""
    reasons = reasons_unusable(point.rows) if why is Quality.UNUSABLE else ""
    return f"{why} ({reasons})" if reasons else WHY[why]


def steadiness_findings(points: Sequence[Point]) -> Iterator[StoreFinding]:
    """Of what was measured here and has times; what others measured they know themselves."""
    measured = [
        point
        for point in points
        if point.kind == Provenance.MEASURED and not is_mostly_failed(point.rows)
    ]
    yield from _unsteady(measured)
    yield from _single(measured)


def _unsteady(measured: Sequence[Point]) -> Iterator[StoreFinding]:
    known = [(why, point) for point in measured if (why := why_unsteady(point)) is not None]
    if not known:
        return
    known.sort(key=lambda pair: (_ORDER.index(pair[0]), format_title(pair[1].row)))
    points = [point for _, point in known]
    verb = "is" if len(known) == 1 else "are"
    many = (
        f"{len(known):,} of {format_count(len(measured), 'measured configuration')} {verb}"
        " not steady"
    )
    yield StoreFinding(
        FindingKind.UNSTEADY,
        f"{many}: {grouped(describe_unsteady(why, point) for why, point in known)}; first of them"
        f" {titled(point.row for point in points)}.",
        _UNSTEADY + 9.0 * len(known) / len(measured),
        evidence_of(point.rows for point in points),
        {"quality": tuple(dict.fromkeys(why.value for why, _ in known))},
        command=command_of([point.row for point in points], "--launches 5"),
    )


def _single(measured: Sequence[Point]) -> Iterator[StoreFinding]:
    single = [point for point in measured if len(point.rows) == 1]
    if not single:
        return
    are = "rests" if len(single) == 1 else "rest"
    yield StoreFinding(
        FindingKind.LAUNCHES,
        f"{len(single):,} of {format_count(len(measured), 'measured configuration')} {are} on a"
        " single"
        " launch: how far another would differ is not known.",
        _SINGLE + 5.0 * len(single) / len(measured),
        evidence_of(point.rows for point in single),
        command=command_of([point.row for point in single], "--launches 5"),
    )
