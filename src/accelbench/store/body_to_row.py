"""Conversion of a result's body to a row with the registry's columns.

A value of another type than its column's is never changed and never lost: the column stays empty,
the value goes to "rest", and the row gets a warning. Samples are converted to milliseconds of a
step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accelbench.core.columns import BY_NAME, COLUMNS, Kind
from accelbench.core.identity import canonical_json, to_plain
from accelbench.core.rows import Json, ResultRow

if TYPE_CHECKING:
    from accelbench.store.database import Database


_INT64 = 2**63
_BRIEF = 60
_NOT_COLUMNS = {"samples", "sampling"}


@dataclass(frozen=True)
class Samples:
    """Raw samples of one phase, in nanoseconds.

    `timing` is their method of timing, and `steps` the number of steps of each; None if it is not
    known.
    """

    phase: str
    ns: list[int]
    timing: str | None = None
    steps: list[int] | None = None

    @property
    def sampling(self) -> dict[str, object]:
        fields = {"timing": self.timing, "steps": self.steps}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class FittedResult:
    """Result as a row of plain JSON values: every column in order, None if absent."""

    row: dict[str, Any]
    samples: tuple[Samples, ...]
    rest: dict[str, Any]  # values without a column that are not numbers


class MisfitError(Exception):
    """A value does not have its column's type."""


def fit_result(body: Mapping[str, Any]) -> FittedResult:
    """Sort a result's body into columns, samples, plugin metrics and the rest.

    Unknown keys with numbers join the "extra" map. "sampling" is {phase: {"timing": …, "steps": [n,
    …]}}.
    """
    body = drop_surrogates(to_plain(body))
    row: dict[str, Any] = dict.fromkeys(column.name for column in COLUMNS)
    rest: dict[str, Any] = {}
    notes: list[str] = []

    def set_aside(name: str, value: Any, why: str) -> None:
        rest[name] = value
        notes.append(f"{name} was not stored: {why}")

    given = {k: v for k, v in body.items() if v is not None and k not in _NOT_COLUMNS}
    for name in given.keys() & BY_NAME.keys():
        try:
            row[name] = convert_value(BY_NAME[name].kind, given[name])
        except MisfitError as misfit:
            set_aside(name, given[name], str(misfit))
    unknown = {k: v for k, v in given.items() if k not in BY_NAME}
    metrics = {k: float(v) for k, v in unknown.items() if _is_number(v)}
    if metrics:
        row["extra"] = {**(row["extra"] or {}), **metrics}
    rest |= {k: v for k, v in unknown.items() if k not in metrics}
    samples = _samples(body, set_aside)
    if notes:
        row["warnings"] = [*(row["warnings"] or []), *sorted(notes)]
    return FittedResult(row, samples, rest)


def explain_miscount(body: Mapping[str, Any], fitted: FittedResult) -> str:
    """Return why a result's samples do not match its values; empty if they may."""
    # A result without samples of its steps is not judged. Lists with other values went to the rest.
    samples, count = body.get("samples"), fitted.row["sample_count"]
    if count is None or not isinstance(samples, Mapping) or samples.get("step") is None:
        return ""
    length = next((len(sample.ns) for sample in fitted.samples if sample.phase == "step"), 0)
    return "" if length == count else f"it has {length:,} samples, and {count:,} are recorded"


def convert_value(kind: Kind, value: Any) -> Any:
    """Return the value as its column stores it; raise MisfitError for another type."""
    return _KINDS[kind](value)


def _brief(value: Any) -> str:
    """Return a short text for a value, the same for any order of its keys."""
    whole = json.dumps(value, sort_keys=True, default=str)  # with NaN, because it is only displayed
    return whole if len(whole) <= _BRIEF else f"{whole[:_BRIEF]}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return canonical_json(_json(value))
    raise MisfitError(f"{_brief(value)} is not text")


def _json(value: Any) -> Any:
    try:
        canonical_json(value)
    except (ValueError, TypeError):
        raise MisfitError(f"{_brief(value)} is not a JSON value") from None
    return value


def _int(value: Any) -> int:
    whole = _is_number(value) and int(value) == value
    if whole and -_INT64 <= value < _INT64:
        return int(value)
    raise MisfitError(f"{_brief(value)} is not a whole number of 64 bits")


def _float(value: Any) -> float:
    if _is_number(value):
        return float(value)
    raise MisfitError(f"{_brief(value)} is not a number")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise MisfitError(f"{_brief(value)} is neither true nor false")


def _time(value: Any) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise MisfitError(f"{_brief(value)} is not a time of ISO 8601") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return spell_time(moment)


def _list(value: Any) -> list[str]:
    if isinstance(value, list):
        return [
            entry if isinstance(entry, str) else canonical_json(_json(entry)) for entry in value
        ]
    raise MisfitError(f"{_brief(value)} is not a list")


def _floats(value: Any) -> list[float]:
    if isinstance(value, list) and all(_is_number(number) for number in value):
        return [float(number) for number in value]
    raise MisfitError(f"{_brief(value)} is not a list of numbers")


def _map(value: Any) -> dict[str, float]:
    if isinstance(value, dict) and all(_is_number(number) for number in value.values()):
        return {name: float(number) for name, number in value.items()}
    raise MisfitError(f"{_brief(value)} does not map names to numbers")


_KINDS: Mapping[Kind, Any] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "time": _time,
    "json": _json,
    "list": _list,
    "floats": _floats,
    "map": _map,
}


def spell_time(moment: datetime) -> str:
    """Return the spelling of `facts.utc_now`; a time without a zone is taken as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='microseconds')}Z"


def drop_surrogates(value: Any) -> Any:
    """Return a value without half surrogate pairs, which paths may contain and stores refuse."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {drop_surrogates(k): drop_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [drop_surrogates(v) for v in value]
    return value


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    # Also for int: a value beyond 1.8e308 has no float. NaN fails every comparison.
    return -1.7976931348623157e308 <= value <= 1.7976931348623157e308


def _samples(body: Mapping[str, Any], set_aside: Any) -> tuple[Samples, ...]:
    phases, sampling = body.get("samples"), body.get("sampling")
    if phases is not None and not isinstance(phases, dict):
        set_aside("samples", phases, "it does not map phases to lists")
        return ()
    kept = []
    for phase, values in (phases or {}).items():
        about = sampling.get(phase) if isinstance(sampling, dict) else None
        about = about if isinstance(about, dict) else {}
        timing, steps = about.get("timing"), about.get("steps")
        try:
            kept.append(
                Samples(
                    phase,
                    _whole_numbers(values),
                    None if timing is None else _text(timing),
                    None if steps is None else _whole_numbers(steps),
                )
            )
        except MisfitError as misfit:
            set_aside(f"samples.{phase}", values, str(misfit))
    return tuple(kept)


def _whole_numbers(value: Any) -> list[int]:
    if isinstance(value, list):
        return [_int(number) for number in value]
    raise MisfitError(f"{_brief(value)} is not a list")


class SampledRow(ResultRow, total=False):
    """Result with its samples by phase, if they were requested."""

    samples: dict[str, list[int]]
    sampling: dict[str, Json]


def step_samples(database: Database, results: Sequence[str]) -> dict[str, list[float]]:
    """Return the samples of each result that has them, in order of time."""
    if not results:
        return {}
    marks = ", ".join("?" * len(results))
    _, rows = database.query(
        "SELECT result_id, samples, steps FROM raw_benchmark_data"  # noqa: S608 — only marks
        f" WHERE phase = 'step' AND result_id IN ({marks})",
        list(results),
    )
    by_id: dict[str, list[float]] = {}
    for key, ns, steps in rows:
        samples = ns if isinstance(ns, list) else []
        by_id[str(key)] = to_step_ms(samples, steps if isinstance(steps, list) else None)
    return {key: by_id[key] for key in results if key in by_id}


def to_step_ms(samples: Sequence[int], steps: Sequence[int] | None) -> list[float]:
    """Return samples as milliseconds of a step; `steps` has the number of steps of each."""
    if not steps:
        return [ns / 1e6 for ns in samples]
    return [ns / number / 1e6 for ns, number in zip(samples, steps, strict=True)]
