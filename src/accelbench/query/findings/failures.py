"""What came to no figure and why, and whose outputs were wrong. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from accelbench.analysis.points import Point
from accelbench.analysis.standing import last_moment
from accelbench.core.launch_failures import is_wrong
from accelbench.core.nouns import counted
from accelbench.core.provenance import of_this_arm
from accelbench.core.rows import Row
from accelbench.core.visible import visible
from accelbench.core.vocabulary import Status
from accelbench.core.worth import answered
from accelbench.exchange.titles import title
from accelbench.query.findings.finding import FindingKind, StoreFinding, evidence_of
from accelbench.query.findings.phrases import engine, place, titled

_OUTPUTS, _FAILED = 85.0, 50.0
#: What nobody could have measured, or nobody tried.
_NO_FAILURE = (Status.OK, Status.SKIPPED, Status.UNSUPPORTED)
#: Causes that a sentence tells.
_CAUSES = 3


def failure_findings(rows: Sequence[Row], points: Sequence[Point]) -> Iterator[StoreFinding]:
    """Of configurations that have no figure now; what answered later is mended.

    Args:
        rows: results of one machine, of every status.
        points: what of them has figures.
    """
    latest = {
        str(p.row.get("case_id")): last_moment(p.rows) for p in points if p.row.get("case_id")
    }
    lost: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not of_this_arm(row) or answered(row):
            continue
        key = str(row.get("case_id") or title(row))
        if str(row.get("started_at") or "") >= latest.get(key, ""):
            lost.setdefault((key, str(row.get("device_name") or "")), []).append(row)
    yield from _wrong([rows for rows in lost.values() if any(map(is_wrong, rows))])
    yield from _failed(
        [
            rows
            for rows in lost.values()
            if not any(map(is_wrong, rows)) and rows[-1].get("status") not in _NO_FAILURE
        ]
    )


def _wrong(lost: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    if not lost:
        return
    what = (
        "Outputs of one configuration are"
        if len(lost) == 1
        else (f"Outputs of {counted(len(lost), 'configuration')} are")
    )
    yield StoreFinding(
        FindingKind.OUTPUTS,
        f"{what} wrong, held against the reference, and none of their times counts:"
        f" {titled(rows[0] for rows in lost)}.",
        _OUTPUTS + min(5.0, float(len(lost))),
        evidence_of(lost),
        {"status": ("failed",)},
    )


def _failed(lost: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    if not lost:
        return
    causes = Counter(_cause(rows[-1]) for rows in lost)
    told = "; ".join(f"{count} {cause}" for cause, count in causes.most_common(_CAUSES))
    rest = sum(causes.values()) - sum(count for _, count in causes.most_common(_CAUSES))
    yield StoreFinding(
        FindingKind.FAILURES,
        f"{counted(len(lost), 'configuration')} came to no figure: {told}"
        f"{f'; {rest} for other reasons' if rest else ''}.",
        _FAILED + min(5.0, len(lost) / 10.0),
        evidence_of(lost),
        {"status": tuple(dict.fromkeys(str(rows[-1].get("status")) for rows in lost))},
    )


def _cause(row: Row) -> str:
    reason = str(row.get("reason") or row.get("status")).replace("_", " ")
    return f"with {engine(row)} on {place(row)} ({visible(reason)})"
