"""What nobody measured and is worth measuring, with the command that does. Pure.

Worth is by evidence alone: what was faster for certain over the models that ran it, of models that
were measured on the same device and never with it. Whether it would be is not foretold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accelbench.analysis.questions import physical
from accelbench.core.nouns import counted, digits
from accelbench.core.rows import Row
from accelbench.core.visible import visible
from accelbench.core.vocabulary import Provenance
from accelbench.query.filters import in_catalogue
from accelbench.query.findings.asking import MOST_MODELS
from accelbench.query.findings.finding import FindingKind, StoreFinding
from accelbench.query.findings.phrases import names, place, span
from accelbench.query.findings.versus import Versus
from accelbench.query.suggested_commands import command_for

_IMPORTANCE = 40.0


def unmeasured_findings(
    rows: Sequence[Row], every: Iterable[tuple[str, Versus]], several: frozenset[str]
) -> Iterator[StoreFinding]:
    """For each place that won in general, the models that it never ran.

    Args:
        rows: of one machine, of every status: what failed was measured.
        every: what was compared with each other, with the axis: runtime or precision.
        several: platforms with several devices.
    """
    for axis, versus in every:
        row = versus.row
        if (
            not versus.decided
            or versus.interval is None
            or row.get("provenance") != Provenance.MEASURED
        ):
            continue
        winner = versus.place if versus.value > 1.0 else versus.base
        absent = _absent(rows, row, axis, winner)
        if absent:
            yield _finding(axis, versus, winner, absent, several)


def _absent(rows: Sequence[Row], there: Row, axis: str, winner: str) -> list[str]:
    """Models of a device that were measured, and never there; only those this program can run."""
    alike = ("mode",) if axis == "runtime" else ("mode", "runtime", "hardware")
    of_device = [
        row
        for row in rows
        if row.get("provenance") == Provenance.MEASURED
        and physical(row) == physical(there)
        and all(row.get(name) == there.get(name) for name in alike)
    ]
    tried = {str(row.get("model")) for row in of_device if row.get(axis) == winner}
    models = dict.fromkeys(str(row.get("model")) for row in of_device if row.get("status") == "ok")
    return [name for name in sorted(models) if name not in tried and in_catalogue(name)]


def _finding(
    axis: str, versus: Versus, winner: str, absent: Sequence[str], several: frozenset[str]
) -> StoreFinding:
    assert versus.interval is not None
    low, high = versus.interval
    value, other = versus.value, versus.base
    if winner == versus.base:
        value, other = 1.0 / value, versus.place
        low, high = 1.0 / high, 1.0 / low
    row = versus.row
    were = "was" if len(absent) == 1 else "were"
    ran = f"with {visible(winner)}" if axis == "runtime" else f"in {visible(winner)}"
    asks: dict[str, list[str | int]] = {
        "model": list(absent[:MOST_MODELS]),
        "hardware": [str(row.get("hardware"))],
        "runtime": [winner if axis == "runtime" else str(row.get("runtime"))],
    }
    if axis == "precision":
        asks["precision"] = [winner]
    if row.get("mode") == "training":
        asks["mode"] = ["training"]
    return StoreFinding(
        FindingKind.UNMEASURED,
        f"{counted(len(absent), 'model')} {were} never run {ran} on {place(row, several)}"
        f" ({names(absent)}), which is {digits(value)}× as fast as {visible(other)} over the"
        f" {versus.models} models that ran both (95 % interval {span(low, high)}); whether it is"
        " for these too is worth a run.",
        _IMPORTANCE + min(4.0, len(absent) / 5.0),
        filters={"runtime": (str(row.get("runtime")),)},
        value=value,
        interval=(low, high),
        command=command_for(asks),
    )
