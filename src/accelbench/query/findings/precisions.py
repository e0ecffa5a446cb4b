"""What a lower precision brings, and what it costs in outputs or in task accuracy. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from accelbench.analysis.accuracies import AccuracyCost, accuracy_against, cost_sentence
from accelbench.analysis.comparison import Compared
from accelbench.core.accuracy_columns import AccuracyMetric
from accelbench.core.exactness import error_of
from accelbench.core.nouns import counted, digits
from accelbench.core.rows import number
from accelbench.core.visible import visible
from accelbench.query.findings.engines import evidence_between
from accelbench.query.findings.finding import FindingKind, StoreFinding
from accelbench.query.findings.phrases import (
    engine_on,
    model,
    names,
    question,
    span,
    sure,
    whose,
)
from accelbench.query.findings.versus import FEWEST_MODELS, Versus

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
        change = f"{digits(versus.value)}× as fast as {FULL}"
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
        lead = f"{subject} is {digits(ratio.value)}× as fast in {name} as in {FULL} ({sure(ratio)})"
        importance = _TOLD - 5.0 + min(5.0, 3.0 * abs(math.log(ratio.value)))
    else:
        lead = f"Whether {subject} is faster in {name} than in {FULL} can't be told"
        lead += f" ({digits(ratio.value)}×, {sure(ratio)})"
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
    more = f"; {counted(unverified, 'configuration')} not verified" if unverified else ""
    return f"its outputs are off by {digits(max(errors))} at most{more}"


def _loss(cost: AccuracyCost) -> float:
    """How much worse it became; of a perplexity more is worse."""
    value = cost.difference.value if cost.difference is not None else 0.0
    return value if cost.metric is AccuracyMetric.PERPLEXITY else -value
