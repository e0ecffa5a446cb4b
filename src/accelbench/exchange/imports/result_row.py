"""Rows of imported results, checked against the columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.axes import size_columns
from accelbench.core.columns import BY_NAME, SQL_TYPES
from accelbench.core.identity import IDENTITY_VERSION, canonical_json, digest
from accelbench.core.plausible_values import (
    OWN_RATE_TOLERANCE,
    explain_impossible,
    find_contradiction,
)
from accelbench.core.ranges import TIME_MS
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance, Status, Timing
from accelbench.exchange.imports.records import Record
from accelbench.store.body_to_row import MisfitError, convert_value
from accelbench.store.contradictions import LIMIT_COLUMNS, RULE_COLUMNS, find_contradictions

_MOST_NS = int(TIME_MS.most * 1e6)


def check_values(record: Record, body: Mapping[str, Any], rates: float | None) -> None:
    """Refuse invalid values, and values that contradict each other.

    `body` is by our columns; others are ignored. `rates` is the accepted factor between a rate and
    its latency, or None if the rate need not follow from it.
    """
    values = {}
    for name, value in body.items():
        if name not in BY_NAME:
            continue
        kind = BY_NAME[name].kind
        try:
            # JSON was already checked when it was parsed.
            values[name] = value if kind == "json" else convert_value(kind, value)
        except MisfitError as misfit:
            record.refuse(name, str(misfit))
        if why := explain_impossible(name, values[name]):
            record.refuse(name, why)
    if conflict := find_contradiction(values, rates):
        record.refuse(*conflict)


def refuse_contradictions(rows: Sequence[tuple[Record, Mapping[str, Any]]]) -> None:
    """Refuse the first result of a file that contradicts its identities, rates or samples."""
    import duckdb

    if not rows:
        return
    ids = [str(body.get("result_id") or f"row {n}") for n, (_, body) in enumerate(rows)]
    bodies = [body for _, body in rows]
    own = any(body.get("protocol_version") is not None for body in bodies)
    names = RULE_COLUMNS if own or any(map(_has_samples, bodies)) else LIMIT_COLUMNS
    read = {name: _sql_type(name) for name in names}
    results = [
        {**_select_values(body, names), "result_id": result_id}
        for result_id, body in zip(ids, bodies, strict=True)
    ]
    samples = [each for one in zip(ids, bodies, strict=True) for each in _iter_samples(*one)]
    with duckdb.connect() as con:
        _make_table(con, "results", results, read)
        if samples:
            _make_table(con, "samples", samples, _SAMPLES)
        contradictions = find_contradictions(con, "results", "samples" if samples else "", names)
    if contradictions:
        first = min(contradictions, key=lambda one: ids.index(str(one.result_id)))
        record, _ = rows[ids.index(str(first.result_id))]
        record.refuse(first.column, first.why)


_SAMPLES = {
    "result_id": "VARCHAR", "phase": "VARCHAR", "timing": "VARCHAR", "steps": "BIGINT[]",
    "samples": "BIGINT[]",
}  # fmt: skip


def _sql_type(name: str) -> str:
    kind = BY_NAME[name].kind
    return "VARCHAR" if kind == "json" else SQL_TYPES[kind]


def _has_samples(body: Mapping[str, Any]) -> bool:
    return bool(body.get("samples"))


def _select_values(body: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values that the rules read; JSON is text in its canonical form."""
    values = {}
    for name in names:
        value = body.get(name)
        if value is not None:
            kind = BY_NAME[name].kind
            values[name] = canonical_json(value) if kind == "json" else value
    return values


def _iter_samples(result_id: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    about = body.get("sampling") or {}
    for phase, values in (body.get("samples") or {}).items():
        details = about.get(phase) or {}
        yield {"result_id": result_id, "phase": phase, "samples": values, **details}


def _make_table(con: Any, name: str, rows: Sequence[Any], types: Mapping[str, str]) -> None:
    # Without Arrow, whose import takes half a second: a baseline has a few rows.
    con.execute(
        f"CREATE TABLE {name} AS SELECT unnest(from_json($1, $2), max_depth := 2)",
        [json.dumps(rows), json.dumps([types])],
    )


def rate_tolerance(body: Mapping[str, Any]) -> float | None:
    """Return the accepted factor between rate and latency in a file of accelbench.

    Imported results were compared with the rules of their own format.
    """
    return None if body.get("provenance") == Provenance.IMPORTED else OWN_RATE_TOLERANCE


def check_samples(record: Record, body: Mapping[str, Any]) -> None:
    """Refuse invalid samples, and invalid facts about their sampling."""
    if "samples" in body and (why := explain_samples(body["samples"], body.get("sample_count"))):
        record.refuse("samples", why)
    if "sampling" in body and (
        why := explain_sampling(body["sampling"], body.get("samples") or {})
    ):
        record.refuse("sampling", why)


def explain_samples(samples: Any, count: int | None) -> str:
    """Return why samples are invalid; empty if they are valid."""
    if not isinstance(samples, Mapping):
        return "phases with lists were expected"
    for phase, values in samples.items():
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            return f"{in_quotes(phase)} is not a list of whole nanoseconds"
        if any(value < 0 for value in values):
            return f"{min(values)} of {in_quotes(phase)} is below 0"
        if any(value > _MOST_NS for value in values):
            return f"a sample of {in_quotes(phase)} is longer than a year"
    steps = samples.get("step")
    if steps is not None and count is not None and len(steps) != count:
        return f"it has {len(steps)}, and sample_count is {count}"
    return ""


def explain_sampling(sampling: Any, samples: Mapping[str, Any]) -> str:
    """Return why facts about sampling are invalid; empty if they are valid."""
    if not isinstance(sampling, Mapping) or not all(
        isinstance(details, Mapping) for details in sampling.values()
    ):
        return "phases with objects were expected"
    for phase, details in sampling.items():
        timing, steps = details.get("timing"), details.get("steps")
        if timing is not None and timing not in set(Timing):
            return f"the timing of {in_quotes(phase)} is not one of {', '.join(Timing)}"
        if steps is None:
            continue
        if not isinstance(steps, list) or not all(type(n) is int and n > 0 for n in steps):
            return f"the steps of {in_quotes(phase)} are not a list of whole numbers above 0"
        if len(steps) != len(samples.get(phase, steps)):
            return f"{len(steps)} steps of {in_quotes(phase)} do not fit the number of its samples"
    return ""


#: Columns of the configuration, which identify the case of an imported result, with or without a
#: value. The list never changes, so that ids stay the same.
_CASE_COLUMNS = (
    *("model", "hardware", "runtime", "precision", "batch_size", "sequence_length", "image_size"),
    *("prompt_tokens", "new_tokens", "audio_seconds", "mode", "scenario", "compiled"),
    *("world_size", "options"),
)
#: Sizes that were added later; they change the case only if they have a value.
_LATER_COLUMNS = frozenset(size_columns()) - frozenset(_CASE_COLUMNS)
#: Columns with names, in which different spaces do not make another name.
NAME_COLUMNS = ("model", "hardware", "device_name", "runtime", "precision")
_NS_PER_MS = 1e6
#: Key of an unchecked body with the record of its file.
READ_AT = "read_at"


def normalise_spaces(name: str) -> str:
    """Return a name with single spaces: "GPU Y " and "GPU Y" look the same."""
    return " ".join(name.split())


@dataclass(frozen=True)
class Source:
    """Origin of results, which each result carries."""

    name: str
    commit: str = ""
    licence: str = ""
    measured_at: str = ""  # for files without a time
    is_named: bool = False  # by the user

    def to_dict(self) -> dict[str, str]:
        fields = {"name": self.name, "commit": self.commit, "licence": self.licence}
        return {key: value for key, value in fields.items() if value}


def build_result(
    source: Source,
    columns: Mapping[str, Any],
    conditions: Mapping[str, Any] | None = None,
    samples_ms: Mapping[str, Sequence[float]] | None = None,
    *,
    at: Record,
    rates: float | None = None,
) -> dict[str, Any]:
    """Return the body of a result that was measured elsewhere.

    Args:
        conditions: facts that a comparison reports, such as versions and job numbers.
        samples_ms: every sample of a phase, if the file has them.
        rates: the accepted factor between a rate and its latency, if one follows from the other:
            parallel requests, or tokens, are another count.
    """
    known = {
        name: normalise_spaces(value) if name in NAME_COLUMNS and isinstance(value, str) else value
        for name, value in columns.items()
        if value is not None
    }
    body: dict[str, Any] = {
        "status": Status.OK.value,
        "mode": Mode.INFERENCE.value,
        "scenario": SINGLE_STREAM,
        "world_size": 1,
        "compiled": False,
        "options": {},
        "arm": "",
        **known,
        "provenance": Provenance.IMPORTED.value,
        "verification": "not_done",
        "self_check": "not_done",
    }
    details = dict(conditions or {})
    body |= _build_ids(source, body, details)
    body.setdefault("launch", 1)
    if source.measured_at:
        body.setdefault("started_at", source.measured_at)
    body["conditions"] = {**details, "source": source.to_dict()}
    if samples_ms:
        times = [ms for values in samples_ms.values() for ms in values]
        if wrong := next(filter(None, map(TIME_MS.explain_misfit, times)), ""):
            at.refuse("samples", f"{wrong} ms")
        body["samples"] = {
            phase: [round(ms * _NS_PER_MS) for ms in values] for phase, values in samples_ms.items()
        }
    check_values(at, body, rates)
    check_samples(at, body)
    return {**body, READ_AT: at}


def split_records(bodies: Iterable[dict[str, Any]]) -> list[tuple[Record, dict[str, Any]]]:
    """Remove the records from bodies that `build_result` returned."""
    return [(body.pop(READ_AT), body) for body in bodies]


def _build_ids(
    source: Source, body: Mapping[str, Any], conditions: Mapping[str, Any]
) -> dict[str, str]:
    """Return ids derived from the result, so that importing a file twice adds nothing.

    The source's commit is not included, so that a later one only adds new results. Nor is a time
    that the importing user gives, so that adding it later does not duplicate results.
    """
    question = {name: body.get(name) for name in _CASE_COLUMNS}
    question |= {name: body[name] for name in _LATER_COLUMNS if body.get(name) is not None}
    case = digest({"v": IDENTITY_VERSION, "imported": question})
    where = {"hardware": body.get("hardware"), "device": body.get("device_name")}
    device = digest({"v": IDENTITY_VERSION, "imported": where})
    series = {"case": case, "device": device, "threads": body.get("threads"), "of": source.name}
    # Files without launches have always been hashed with 0: another number would duplicate them.
    whole = {"of": source.name, "body": {"launch": 0, **body}, "conditions": conditions}
    return {
        "case_id": case,
        "device_fingerprint": device,
        "series_key": digest({"v": IDENTITY_VERSION, "imported": series}),
        "result_id": digest({"v": IDENTITY_VERSION, "imported": whole}, length=24),
    }
