"""An imported value as a row of the store, checked against the columns."""

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


def hold(record: Record, body: Mapping[str, Any], rates: float | None) -> None:
    """Refuse invalid values, and values that contradict another of them.

    `body` is by our columns; others are ignored. `rates` is the accepted factor between a rate and
    its latency, or None if the rate need not follow from it.
    """
    held = {}
    for name, value in body.items():
        if name not in BY_NAME:
            continue
        kind = BY_NAME[name].kind
        try:
            # JSON it is, having been read as such.
            held[name] = value if kind == "json" else convert_value(kind, value)
        except MisfitError as misfit:
            record.wrong(name, str(misfit))
        if why := explain_impossible(name, held[name]):
            record.wrong(name, why)
    if conflict := find_contradiction(held, rates):
        record.wrong(*conflict)


def refuse_contradictions(rows: Sequence[tuple[Record, Mapping[str, Any]]]) -> None:
    """Refuse the first result of a file that contradicts its identities, rates or samples."""
    import duckdb

    if not rows:
        return
    ids = [str(body.get("result_id") or f"row {n}") for n, (_, body) in enumerate(rows)]
    bodies = [body for _, body in rows]
    own = any(body.get("protocol_version") is not None for body in bodies)
    names = RULE_COLUMNS if own or any(map(_has_samples, bodies)) else LIMIT_COLUMNS
    read = {name: _type_of(name) for name in names}
    results = [
        {**_values_read(body, names), "result_id": result_id}
        for result_id, body in zip(ids, bodies, strict=True)
    ]
    samples = [each for one in zip(ids, bodies, strict=True) for each in _sampled(*one)]
    with duckdb.connect() as con:
        _make_table(con, "results", results, read)
        if samples:
            _make_table(con, "samples", samples, _SAMPLES)
        wrong = find_contradictions(con, "results", "samples" if samples else "", names)
    if wrong:
        first = min(wrong, key=lambda one: ids.index(str(one.result_id)))
        record, _ = rows[ids.index(str(first.result_id))]
        record.wrong(first.column, first.why)


_SAMPLES = {
    "result_id": "VARCHAR", "phase": "VARCHAR", "timing": "VARCHAR", "steps": "BIGINT[]",
    "samples": "BIGINT[]",
}  # fmt: skip


def _type_of(name: str) -> str:
    kind = BY_NAME[name].kind
    return "VARCHAR" if kind == "json" else SQL_TYPES[kind]


def _has_samples(body: Mapping[str, Any]) -> bool:
    return bool(body.get("samples"))


def _values_read(body: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return what the rules read of a result; JSON is text in its canonical form."""
    values = {}
    for name in names:
        value = body.get(name)
        if value is not None:
            kind = BY_NAME[name].kind
            values[name] = canonical_json(value) if kind == "json" else value
    return values


def _sampled(result_id: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    about = body.get("sampling") or {}
    for phase, values in (body.get("samples") or {}).items():
        details = about.get(phase) or {}
        yield {"result_id": result_id, "phase": phase, "samples": values, **details}


def _make_table(con: Any, name: str, rows: Sequence[Any], types: Mapping[str, str]) -> None:
    # Not through Arrow, whose import takes half a second: a baseline has a few rows.
    con.execute(
        f"CREATE TABLE {name} AS SELECT unnest(from_json($1, $2), max_depth := 2)",
        [json.dumps(rows), json.dumps([types])],
    )


def rates_of(body: Mapping[str, Any]) -> float | None:
    """Return the accepted factor between rate and latency in a file of ours.

    Imported results were compared with the rules of their own format.
    """
    return None if body.get("provenance") == Provenance.IMPORTED else OWN_RATE_TOLERANCE


def hold_samples(record: Record, body: Mapping[str, Any]) -> None:
    """Refuse invalid samples and statements about them."""
    if "samples" in body and (why := wrong_samples(body["samples"], body.get("sample_count"))):
        record.wrong("samples", why)
    if "sampling" in body and (why := wrong_sampling(body["sampling"], body.get("samples") or {})):
        record.wrong("sampling", why)


def wrong_samples(samples: Any, count: int | None) -> str:
    """Return why samples are invalid, or ""."""
    if not isinstance(samples, Mapping):
        return "phases with lists were expected"
    for phase, values in samples.items():
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            return f"{in_quotes(phase)} is no list of whole nanoseconds"
        if any(value < 0 for value in values):
            return f"{min(values)} of {in_quotes(phase)} is below 0"
        if any(value > _MOST_NS for value in values):
            return f"a sample of {in_quotes(phase)} is longer than a year"
    steps = samples.get("step")
    if steps is not None and count is not None and len(steps) != count:
        return f"{len(steps)} are there, where sample_count says {count}"
    return ""


def wrong_sampling(sampling: Any, samples: Mapping[str, Any]) -> str:
    """Return why a statement about sampling is invalid, or ""."""
    if not isinstance(sampling, Mapping) or not all(
        isinstance(details, Mapping) for details in sampling.values()
    ):
        return "phases with objects were expected"
    for phase, details in sampling.items():
        timing, steps = details.get("timing"), details.get("steps")
        if timing is not None and timing not in set(Timing):
            return f"the timing of {in_quotes(phase)} is none of {', '.join(Timing)}"
        if steps is None:
            continue
        if not isinstance(steps, list) or not all(type(n) is int and n > 0 for n in steps):
            return f"the steps of {in_quotes(phase)} are no list of whole numbers above 0"
        if len(steps) != len(samples.get(phase, steps)):
            return f"{len(steps)} steps of {in_quotes(phase)} do not fit the number of its samples"
    return ""


#: What was asked, and makes a case; a figure's other columns are answers. Cases of figures that
#: were imported are known by exactly these, said or not: the list never changes.
_ASKED = (
    *("model", "hardware", "runtime", "precision", "batch_size", "sequence_length", "image_size"),
    *("prompt_tokens", "new_tokens", "audio_seconds", "mode", "scenario", "compiled"),
    *("world_size", "options"),
)
#: Sizes that came later make another case only where they are said.
_LATER = frozenset(size_columns()) - frozenset(_ASKED)
#: What is a name: white space around it, or more of it within, makes no other thing of it.
NAMES = ("model", "hardware", "device_name", "runtime", "precision")
_NS = 1e6  # in a millisecond
#: Key of a body until it is checked: the record of its file.
READ_AT = "read_at"


def spaced(name: str) -> str:
    """Return a name with single spaces: "GPU Y " and "GPU Y" look the same."""
    return " ".join(name.split())


@dataclass(frozen=True)
class Source:
    """Origin of results; each result carries it."""

    name: str
    commit: str = ""
    licence: str = ""
    measured_at: str = ""  # for files that do not say when themselves
    named: bool = False  # by who imports it

    def to_dict(self) -> dict[str, str]:
        fields = {"name": self.name, "commit": self.commit, "licence": self.licence}
        return {key: value for key, value in fields.items() if value}


def imported(
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
        conditions: what a comparison reports: versions, job numbers and the like.
        samples_ms: every sample of a phase, if the file has them.
        rates: the accepted factor between a rate and its latency, if one follows from the other:
            parallel requests, or tokens, are another count.
    """
    known = {
        name: spaced(value) if name in NAMES and isinstance(value, str) else value
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
    body |= _identities(source, body, details)
    body.setdefault("launch", 1)
    if source.measured_at:
        body.setdefault("started_at", source.measured_at)
    body["conditions"] = {**details, "source": source.to_dict()}
    if samples_ms:
        times = [ms for values in samples_ms.values() for ms in values]
        if wrong := next(filter(None, map(TIME_MS.explain_misfit, times)), ""):
            at.wrong("samples", f"{wrong} ms")
        body["samples"] = {
            phase: [round(ms * _NS) for ms in values] for phase, values in samples_ms.items()
        }
    hold(at, body, rates)
    hold_samples(at, body)
    return {**body, READ_AT: at}


def split_records(bodies: Iterable[dict[str, Any]]) -> list[tuple[Record, dict[str, Any]]]:
    """Remove the places from bodies that `imported` made."""
    return [(body.pop(READ_AT), body) for body in bodies]


def _identities(
    source: Source, body: Mapping[str, Any], conditions: Mapping[str, Any]
) -> dict[str, str]:
    """Return ids of what the result states, so that a file that is imported twice is one.

    The source's commit is not included, so that a later one brings what is new; nor a moment given
    by the importing user, so that adding it later doubles nothing.
    """
    question = {name: body.get(name) for name in _ASKED}
    question |= {name: body[name] for name in _LATER if body.get(name) is not None}
    case = digest({"v": IDENTITY_VERSION, "imported": question})
    where = {"hardware": body.get("hardware"), "device": body.get("device_name")}
    device = digest({"v": IDENTITY_VERSION, "imported": where})
    series = {"case": case, "device": device, "threads": body.get("threads"), "of": source.name}
    # Files without launches have been hashed with a 0: another number would import them twice.
    whole = {"of": source.name, "body": {"launch": 0, **body}, "conditions": conditions}
    return {
        "case_id": case,
        "device_fingerprint": device,
        "series_key": digest({"v": IDENTITY_VERSION, "imported": series}),
        "result_id": digest({"v": IDENTITY_VERSION, "imported": whole}, length=24),
    }
