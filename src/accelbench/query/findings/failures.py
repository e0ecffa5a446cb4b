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
from accelbench.query.findings.phrases import engine_on, titled

_OUTPUTS, _FAILED, _PARTLY = 85.0, 50.0, 30.0
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
    latest: dict[tuple[str, str], str] = {}
    for point in points:
        for where in (_device(point.row), _NOWHERE):
            key = _case(point.row), where
            latest[key] = max(latest.get(key, ""), last_moment(point.rows))
    ran = {
        _launched(row, place)
        for row in rows
        if of_this_arm(row) and answered(row)
        for place in (_device(row), _NOWHERE)
    }
    lost: dict[tuple[str, str], list[Row]] = {}
    some: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: str(row.get("started_at") or "")):
        if not of_this_arm(row) or answered(row):
            continue
        key = _case(row), _device(row)
        if str(row.get("started_at") or "") < latest.get(key, ""):
            continue
        known = some if _launched(row, key[1]) in ran and not is_wrong(row) else lost
        known.setdefault(key, []).append(row)
    wrong = [several for several in lost.values() if any(map(is_wrong, several))]
    yield from _wrong(wrong)
    failed = [several for several in lost.values() if several not in wrong]
    yield from _failed([several for several in failed if _is_failure(several[-1])])
    yield from _partly([rows for key, rows in some.items() if key not in lost])


#: Of what failed before it had a device.
_NOWHERE = ""


def _case(row: Row) -> str:
    return str(row.get("case_id") or title(row))


def _device(row: Row) -> str:
    """Two cards of a platform answer the same case."""
    return str(row.get("device_name") or _NOWHERE)


def _launched(row: Row, place: str) -> tuple[str, str, str]:
    """What the launches of a configuration in a run have in common."""
    return str(row.get("run_id") or ""), _case(row), place


def _is_failure(row: Row) -> bool:
    return row.get("status") not in _NO_FAILURE


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
        f"{what} wrong, compared with the reference, and none of their times counts:"
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


def _partly(some: Sequence[Sequence[Row]]) -> Iterator[StoreFinding]:
    """Figures that stand although launches beside them failed."""
    failed = [several for several in some if any(map(_is_failure, several))]
    if not failed:
        return
    whys = Counter(_cause(row) for several in failed for row in several if _is_failure(row))
    launches = whys.total()
    has, it = ("has", "it") if len(failed) == 1 else ("have", "them")
    yield StoreFinding(
        FindingKind.FAILURES,
        f"{counted(len(failed), 'configuration')} {has} a figure although"
        f" {counted(launches, 'launch', 'launches')} of {it} failed, most of all"
        f" {whys.most_common(1)[0][0]}: {titled(several[0] for several in failed)}.",
        _PARTLY + min(5.0, len(failed) / 10.0),
        evidence_of(failed),
    )


def _cause(row: Row) -> str:
    reason = str(row.get("reason") or row.get("status")).replace("_", " ")
    return f"with {engine_on(row)} ({visible(reason)})"
