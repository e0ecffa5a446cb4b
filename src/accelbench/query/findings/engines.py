"""Engine against engine over the models that both ran, with the losers named. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from accelbench.analysis.comparison import Compared
from accelbench.core.nouns import counted, digits
from accelbench.core.visible import visible
from accelbench.query.findings.finding import (
    ConfigurationEvidence,
    FindingKind,
    StoreFinding,
    evidence_of,
)
from accelbench.query.findings.phrases import model, names, place, span, whose
from accelbench.query.findings.versus import FEWEST_MODELS, Versus

_TOLD, _UNTOLD = 70.0, 20.0


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
        how = f"{digits(value)}× as fast as {slow}"
        if not versus.told:
            how = f"faster than {slow}, by how much can't be told"
        sentence = f"On {where}{mode}, {quick} is {how} ({of}); {_losers(losers, versus, quick)}."
        importance = _TOLD + min(9.0, 3.0 * math.log(value))
    else:
        sentence = (
            f"On {where}{mode}, whether {quick} or {slow} is faster in general can't be told"
            f" ({of}): {quick} is faster for certain in {len(winners)} and slower in"
            f" {len(losers)} of {counted(len(versus.lines), 'configuration')}."
        )
        importance = _UNTOLD
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
        rest = f", slower on {counted(len(behind), 'model')}: {names(map(visible, behind))}"
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
