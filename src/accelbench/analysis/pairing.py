"""Which launches of now stand beside which of a baseline. Pure.

A *case* is what was asked. How it ran — on which device by name, with how many threads, compiled or
not — is known only once an engine has it open, and tells several *variants* of a case apart.
A launch that never got that far is of every variant that its run has of the case; where the run
has none it is all that there is of the case, unless a newer run has more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from accelbench.analysis.questions import Key, Row, values
from accelbench.analysis.standing import newest
from accelbench.core.columns import ASKED
from accelbench.core.vocabulary import Status

#: What a case's variants are told apart by.
RAN_AS = ("device_name", "threads", "compiled")

Launches = Sequence[Row]
Variants = dict[Key, Launches]


@dataclass(frozen=True)
class Pair:
    """Launches of now and of before, of one question; either may be missing."""

    now: Launches = ()
    before: Launches = ()
    unlike: tuple[str, ...] = ()  # how they did not run alike
    among: tuple[Row, ...] = ()  # of several of now, which the baseline does not tell apart


def paired(now: Iterable[Row], before: Iterable[Row], columns: Collection[str]) -> Iterator[Pair]:
    """Every question of either side, with its partner where there is one.

    Args:
        now: rows of one machine.
        before: rows of the baseline: of each question its newest run counts.
        columns: what the baseline says of how it was asked and ran.
    """
    case_columns = [name for name in ASKED if name in columns and name not in RAN_AS]
    ran_as = [name for name in RAN_AS if name in columns]
    ours, theirs = _cases(now, case_columns), _cases(before, case_columns)
    for key in dict.fromkeys([*ours, *theirs]):
        mine, other = ours.get(key, []), theirs.get(key, [])
        yield from _of_case(_full(mine), _variants(other, ran_as), ran_as)


def _cases(rows: Iterable[Row], names: Sequence[str]) -> dict[Key, list[Row]]:
    cases: dict[Key, list[Row]] = {}
    for row in rows:
        cases.setdefault(values(row, names), []).append(row)
    return cases


def _full(rows: Sequence[Row]) -> Variants:
    """Questions of now, told apart by everything that there is to tell them apart by."""
    return _variants(rows, ASKED) if rows else {}


def _variants(rows: Sequence[Row], by: Sequence[str]) -> Variants:
    """A case's variants, each by its newest run, with the launches that never opened."""
    opened: dict[Key, list[Row]] = {}
    never = []
    for row in rows:
        if _opened(row):
            opened.setdefault(values(row, by), []).append(row)
        else:
            never.append(row)
    variants: Variants = {key: newest(several) for key, several in opened.items()}
    if not never:
        return variants
    lost = newest(never)
    run, moment = lost[0].get("run_id"), _moment(lost)
    beside = {key: s for key, s in variants.items() if s[0].get("run_id") == run}
    if beside:
        return {**variants, **{key: [*launches, *lost] for key, launches in beside.items()}}
    newer = {key: launches for key, launches in variants.items() if _moment(launches) > moment}
    return newer or {(None,): lost}


def _of_case(ours: Variants, theirs: Variants, ran_as: Sequence[str]) -> Iterator[Pair]:
    answers: dict[Key, list[Launches]] = {}
    for launches in ours.values():
        key = values(launches[0], ran_as) if _opened(launches[0]) else (None,)
        answers.setdefault(key, []).append(launches)
    left = dict(theirs)
    alone: list[Launches] = []
    for key, several in answers.items():
        then = left.pop(key, None)
        if then is None:
            alone += several
        elif len(several) > 1:
            yield from (
                Pair(launches, then, among=tuple(o[0] for o in several)) for launches in several
            )
        else:
            yield Pair(several[0], then)
    # One variant on either side is the same case, which did not run alike, or not at all.
    if len(alone) == 1 and len(left) == 1:
        (then,) = left.values()
        yield Pair(alone[0], then, unlike=_apart(alone[0][0], then[0], ran_as))
        return
    yield from (Pair(now=launches) for launches in alone)
    yield from (Pair(before=then) for then in left.values())


def _apart(a: Row, b: Row, names: Sequence[str]) -> tuple[str, ...]:
    if not (_opened(a) and _opened(b)):
        return ()
    return tuple(
        f"{name} {b.get(name)} → {a.get(name)}" for name in names if a.get(name) != b.get(name)
    )


def _opened(row: Row) -> bool:
    return row.get("status") == Status.OK or row.get("threads") is not None


def _moment(rows: Launches) -> str:
    return max(str(row.get("started_at") or "") for row in rows)
