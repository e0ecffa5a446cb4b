"""A figure of somebody else's as a row of ours: what it is of, whose it is, its identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.core.axes import columns
from accelbench.core.identity import IDENTITY_VERSION, digest
from accelbench.core.ranges import TIME_MS
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance, Status
from accelbench.exchange.imports.holding import hold, hold_samples
from accelbench.exchange.imports.records import Record

#: What was asked, and makes a case; a figure's other columns are answers. Cases of figures that
#: were imported are known by exactly these, said or not: the list never changes.
_ASKED = (
    *("model", "hardware", "runtime", "precision", "batch_size", "sequence_length", "image_size"),
    *("prompt_tokens", "new_tokens", "audio_seconds", "mode", "scenario", "compiled"),
    *("world_size", "options"),
)
#: Sizes that came later make another case only where they are said.
_LATER = frozenset(columns()) - frozenset(_ASKED)
#: What is a name: white space around it, or more of it within, makes no other thing of it.
NAMES = ("model", "hardware", "device_name", "runtime", "precision")
_NS = 1e6  # in a millisecond
#: Key of a body until it is checked: the record of its file.
READ_AT = "read_at"


def spaced(name: str) -> str:
    """A name with single spaces between its words: "GPU Y " and "GPU Y" look the same."""
    return " ".join(name.split())


@dataclass(frozen=True)
class Source:
    """Where figures come from; each of them carries it."""

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
    """The body of a result that was measured elsewhere.

    Args:
        source: whose it is.
        columns: by our names; what is None is not known.
        conditions: what a comparison has to say of it: versions, job numbers and such.
        samples_ms: every sample of a phase, where the file has them.
        at: where it stands, for who has to look there.
        rates: how many times off its rate may be from its latency, where one follows from the
            other: requests that run beside each other, or tokens, are another count.

    Raises:
        MalformedError: It cannot be.
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
        if wrong := next(filter(None, map(TIME_MS.wrong, times)), ""):
            at.wrong("samples", f"{wrong} ms")
        body["samples"] = {
            phase: [round(ms * _NS) for ms in values] for phase, values in samples_ms.items()
        }
    hold(at, body, rates)
    hold_samples(at, body)
    return {**body, READ_AT: at}


def split_records(bodies: Iterable[dict[str, Any]]) -> list[tuple[Record, dict[str, Any]]]:
    """Take out of bodies that `imported` made where each stands."""
    return [(body.pop(READ_AT), body) for body in bodies]


def _identities(
    source: Source, body: Mapping[str, Any], conditions: Mapping[str, Any]
) -> dict[str, str]:
    """Of what the figure says alone: a file that is imported twice, from wherever, is one.

    Nor is the commit of its source in them, so that a later one brings what is new in it; nor a
    moment that who imports it gives, so that it may be given afterwards and doubles nothing.
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
