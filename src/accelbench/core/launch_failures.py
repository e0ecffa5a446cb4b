"""Launches of a run that failed, and what they say of the figures of those beside them.

A *configuration* is what a run launches several times: a case on a device. Outputs that were wrong
in one of its launches are wrong in all of the run, which then has no figures of it. Where more than
half of the launches failed, what is left was chosen by how it came out: it is unusable. Nobody
knows which lines of an import of somebody else's are launches of one configuration; each of them
speaks for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.columns import ASKED
from accelbench.core.identity import canonical
from accelbench.core.provenance import OF_IMPORT_SQL, of_import
from accelbench.core.rows import Row, number
from accelbench.core.vocabulary import Quality, Status
from accelbench.core.worth import (
    ANSWERED_SQL,
    UnusableText,
    answered,
    reasons_unusable,
)

Key = tuple[object, ...]

#: In a row that has figures: of how many launches, and how many of them failed.
FAILED, LAUNCHED = "failed_launches", "launches_tried"
_WRONG = "wrong_outputs"
#: `is_wrong` in SQL.
WRONG_SQL = f"(coalesce(verification, '') = 'failed' OR coalesce(reason, '') = '{_WRONG}')"
_CONFIGURATION = ("run_id", "case_id", "device_fingerprint", "arm")
_SEPARATOR = chr(31)
#: What was asked, where a row does not name its case. Who failed does not know its threads.
_ASKED = tuple(name for name in ASKED if name != "threads")


@dataclass(frozen=True)
class Failing:
    """A configuration some of whose launches failed, in one run."""

    launched: int
    failed: int
    wrong: bool  # the outputs of one of them at least

    @property
    def mostly(self) -> bool:
        """Whether what did not fail is of no use."""
        return 2 * self.failed > self.launched

    def of(self, row: Row, *, outputs: bool = True) -> Row:
        """A launch that has figures, as the others have it."""
        if FAILED in row or not answered(row):
            return row
        more: dict[str, object] = {FAILED: self.failed, LAUNCHED: self.launched}
        if self.wrong:
            more |= {"verification": "failed"} if outputs else {}
        elif self.mostly:
            more["quality"] = Quality.UNUSABLE.value
        return {**row, **more}


def of_whole_runs(rows: Iterable[Row]) -> list[Row]:
    """Results as all launches of their configurations have them; those that failed stay.

    Args:
        rows: of any status: without those that failed nothing can be seen.
    """
    every = list(rows)
    return marked(every, failing_of(every))


def times_of_whole_runs(rows: Iterable[Row]) -> list[Row]:
    """The same of times alone, for who tells of each output himself whether it is wrong."""
    every = list(rows)
    known = failing_of(every)
    return [_of(row, known, outputs=False) for row in every] if known else every


def marked(rows: Sequence[Row], known: Mapping[Key, Failing]) -> list[Row]:
    """The same by configurations that are known, as `failing_sql` finds them."""
    return [_of(row, known) for row in rows] if known else list(rows)


def _of(row: Row, known: Mapping[Key, Failing], *, outputs: bool = True) -> Row:
    failing = known.get(_key(row))
    return row if failing is None else failing.of(row, outputs=outputs)


def failing_of(rows: Sequence[Row]) -> dict[Key, Failing]:
    """The configurations of which a launch failed."""
    lost: dict[Key, list[Row]] = {}
    for row in rows:
        if _failed(row):
            lost.setdefault(_key(row), []).append(row)
    if not lost:
        return {}
    launched = Counter(
        key for row in rows if row.get("status") != Status.SKIPPED and (key := _key(row)) in lost
    )
    return {
        key: Failing(launched[key], len(several), any(map(is_wrong, several)))
        for key, several in lost.items()
    }


def is_wrong(row: Row) -> bool:
    """Whether a launch's outputs were seen to be wrong."""
    return row.get("verification") == "failed" or row.get("reason") == _WRONG


def launches_failed(rows: Sequence[Row]) -> str:
    """How many launches of a configuration failed, in words; "" where none did.

    Args:
        rows: its launches with figures, as `of_whole_runs` has them.
    """
    first = rows[0] if rows else {}
    failed = first.get(FAILED)
    return f"{failed} of {first[LAUNCHED]} launches failed" if failed else ""


def why_unusable(rows: Sequence[Row]) -> str:
    """Return why the times of launches are unusable, as the end of a sentence."""
    if mostly_failed(rows):
        return launches_failed(rows)
    return reasons_unusable(rows) or UnusableText.NOISY


def mostly_failed(rows: Sequence[Row]) -> bool:
    """Whether launches with figures are the few that did not fail."""
    first = rows[0] if rows else {}
    return 2 * (number(first, FAILED) or 0) > (number(first, LAUNCHED) or 0)


def _failed(row: Row) -> bool:
    if answered(row) or row.get("status") == Status.SKIPPED:
        return False
    return bool(row.get("run_id")) and not of_import(row)


def _key(row: Row) -> Key:
    case = row.get("case_id") or _SEPARATOR.join(_text(row.get(name)) for name in _ASKED)
    return row.get("run_id"), case, row.get("device_fingerprint") or "", row.get("arm") or ""


def _text(value: object) -> str:
    """A value as SQL writes it."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value).lower() if isinstance(value, bool) else canonical(value)


def failing_sql(table: str = "benchmark_results") -> str:
    """`failing_of` all results: run, case, device and arm, launches, failed ones, and `is_wrong`.

    Args:
        table: of results.
    """
    failed = (
        f"NOT {ANSWERED_SQL} AND status <> '{Status.SKIPPED}'"
        f" AND coalesce(run_id, '') <> '' AND NOT {OF_IMPORT_SQL}"
    )
    key = ", ".join(_part(name) for name in _CONFIGURATION)
    return f"""
        SELECT {key}, count(*) AS launched, count(*) FILTER ({failed}) AS failed,
            coalesce(bool_or({WRONG_SQL}) FILTER ({failed}), false) AS wrong
        FROM {table} WHERE status <> '{Status.SKIPPED}' AND run_id IN (
            SELECT run_id FROM {table} WHERE {failed})
        GROUP BY ALL HAVING count(*) FILTER ({failed}) > 0"""  # noqa: S608 — our words


def failing_in(rows: Iterable[Sequence[object]]) -> dict[Key, Failing]:
    """What `failing_sql` found, for `marked`."""
    return {
        tuple(key): Failing(launched, failed, bool(wrong))
        for *key, launched, failed, wrong in rows
        if isinstance(launched, int) and isinstance(failed, int)
    }


def whole_runs_sql(table: str = "benchmark_results") -> str:
    """`of_whole_runs` in SQL: what may stand for the table of results in a query.

    Args:
        table: of results.
    """
    replaced = ", ".join(f"{sql} AS {name}" for name, sql in WHOLE_RUNS_COLUMNS.items())
    return f"""(SELECT result.* REPLACE ({replaced}), failing.failed AS {FAILED},
            failing.launched AS {LAUNCHED}
        FROM {table} AS result LEFT JOIN ({failing_sql(table)}) AS failing
        ON {same_configuration_sql("failing")})"""  # noqa: S608


#: What a result has otherwise than it stands in the store, beside the configuration `failing`.
WHOLE_RUNS_COLUMNS = {
    "verification": (
        f"CASE WHEN failing.wrong AND {ANSWERED_SQL} THEN 'failed' ELSE verification END"
    ),
    "quality": (
        "CASE WHEN 2 * failing.failed > failing.launched AND NOT failing.wrong"
        f" AND {ANSWERED_SQL} THEN '{Quality.UNUSABLE}' ELSE quality END"
    ),
}


def same_configuration_sql(failing: str) -> str:
    """That a result is of a configuration that `failing_sql` found.

    Args:
        failing: the name of what it found.
    """
    return " AND ".join(
        f"{_part(name, named=False)} = {failing}.of_{name}" for name in _CONFIGURATION
    )


def _part(name: str, *, named: bool = True) -> str:
    value = f"coalesce({name}, '')"
    if name == "run_id":
        value = name
    elif name == "case_id":
        texts = ", ".join(f"coalesce({column}::VARCHAR, '')" for column in _ASKED)
        value = f"coalesce({name}, concat_ws(chr({ord(_SEPARATOR)}), {texts}))"
    return f"{value} AS of_{name}" if named else value
