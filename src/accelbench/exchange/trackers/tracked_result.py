"""Result in the form of experiment trackers: parameters, values, tags and a document.

Every tracker gets the same values, under the names of the store's columns. Unknown values are left
out. Host names are not exported, and paths in a home folder start with `~`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from accelbench.core.columns import COLUMNS
from accelbench.core.facts import anonymous_run_id
from accelbench.core.formatting import UNKNOWN_MODEL
from accelbench.core.safe_text import hide_homes, visible
from accelbench.core.unusable_reasons import source_of
from accelbench.core.vocabulary import Provenance, Status
from accelbench.exchange.titles import format_title

Row = Mapping[str, Any]
Parameter = str | int | float | bool

#: Columns of a configuration: every column of a case, without mere labels of values.
_LABELS = frozenset({"throughput_unit", "input_shape", "options"})
_PARAMETERS = tuple(c.name for c in COLUMNS if c.role == "case" and c.name not in _LABELS)
#: Measured values with the bounds of their intervals, and remarks about them.
_VALUES = tuple(c.name for c in COLUMNS if c.role == "metric" and c.kind in ("float", "int"))
_REMARKS = tuple(c.name for c in COLUMNS if c.role == "metric" and c.kind == "bool")
#: Other columns that are useful to filter or group runs.
_TAGS = (
    *("result_id", "run_id", "case_id", "series_key", "launch", "arm"),
    *("status", "reason", "provenance", "quality", "emulated"),
    *("verification", "self_check", "steps_verified"),
    *("throughput_unit", "memory_source", "weights_digest", "protocol_version"),
)
_RUN_TAGS = ("label", "git_commit", "git_branch")
#: Columns that are not in the document.
_NESTED = ("samples", "sampling")
#: Characters that MLflow refuses in a name; the other trackers accept all.
_REFUSED_CHARACTERS = re.compile(r"[^\w\-. /]")
#: Statuses of results that never ran.
_NEVER_RUN = frozenset({Status.UNSUPPORTED, Status.SKIPPED})


@dataclass(frozen=True)
class TrackedResult:
    """Result as given to a tracker."""

    result_id: str  # identifies the result
    name: str  # configuration, device, launch and a mark such as "emulated"
    configuration: str  # the same for all its launches
    series: str  # the same for all its batches
    parameters: Mapping[str, Parameter]  # of the configuration, by column
    values: Mapping[str, float]  # by column
    tags: Mapping[str, str]  # to filter runs by
    notes: Sequence[str]  # sentences
    document: Mapping[str, Any]  # the whole result
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    started: float | None = None  # in seconds since 1970, if known
    finished: float | None = None  # in seconds since 1970, if known

    @property
    def model(self) -> str:
        return str(self.parameters.get("model") or UNKNOWN_MODEL)

    @property
    def is_ok(self) -> bool:
        return self.tags.get("status") == Status.OK

    @property
    def batch(self) -> int:
        size = self.parameters.get("batch_size")
        return size if isinstance(size, int) else 0


def was_run(row: Row) -> bool:
    """Return whether a result was run, so that trackers can store it."""
    return row.get("status") not in _NEVER_RUN


def to_tracked_result(row: Row, run: Row) -> TrackedResult:
    """Return a row in the form of trackers, with its samples if it has them."""
    if row.get("run_id"):
        row = {**row, "run_id": anonymous_run_id(str(row["run_id"]))}
    configuration = format_title(row)
    arm = f", {row['arm']}" if row.get("arm") else ""
    number = row.get("launch")
    launch = "" if number is None else f" launch {number}"
    mark = _describe_origin(row)
    return TrackedResult(
        result_id=str(row.get("result_id") or ""),
        name=f"{configuration}{launch}{arm}{f' ({mark})' if mark else ''}",
        configuration=configuration,
        series=format_title({**row, "batch_size": None}),
        parameters=dict(_iter_parameters(row)),
        values=dict(_iter_values(row)),
        tags=dict(_iter_tags(row, run)),
        notes=[_format_value(note) for note in _iter_notes(row)],
        document=_hide_homes(
            {
                name: known
                for name, known in row.items()
                if known is not None and name not in _NESTED
            }
        ),
        samples=dict(row.get("samples") or {}),
        started=_to_seconds(row.get("started_at")),
        finished=_to_seconds(row.get("finished_at")),
    )


def _describe_origin(row: Row) -> str:
    provenance = str(row.get("provenance") or "")
    source = source_of(row)
    words = ["" if provenance in ("", Provenance.MEASURED) else provenance]
    if words[0] and source:
        words[0] += f" from {source}"
    words.append("emulated" if row.get("emulated") else "")
    return visible(", ".join(filter(None, words)))


def _iter_parameters(row: Row) -> Iterator[tuple[str, Parameter]]:
    for name in _PARAMETERS:
        known = row.get(name)
        if known is not None and known != "":
            yield name, known if isinstance(known, (bool, int, float)) else _format_value(known)
    for name, known in (row.get("options") or {}).items():
        yield (
            _safe_name(f"option.{name}"),
            known if isinstance(known, (bool, int)) else _format_value(known),
        )


def _iter_values(row: Row) -> Iterator[tuple[str, float]]:
    for name, known in [
        *((name, row.get(name)) for name in _VALUES),
        *((_safe_name(f"extra.{name}"), known) for name, known in (row.get("extra") or {}).items()),
    ]:
        if isinstance(known, (int, float)) and math.isfinite(known):
            yield name, float(known)


def _iter_tags(row: Row, run: Row) -> Iterator[tuple[str, str]]:
    for facts, names in ((row, (*_TAGS, *_REMARKS)), (run, _RUN_TAGS)):
        for name in names:
            known = facts.get(name)
            if known is not None and known != "":
                yield name, str(known).lower() if isinstance(known, bool) else _format_value(known)
    if source := source_of(row):
        yield "source", _format_value(source)


def _iter_notes(row: Row) -> Iterator[str]:
    for name in ("message", "advice"):
        if row.get(name):
            yield str(row[name])
    yield from map(str, row.get("warnings") or ())


def _format_value(known: object) -> str:
    return visible(hide_homes(str(known)))


def _safe_name(text: str) -> str:
    return _REFUSED_CHARACTERS.sub("_", text)


def _hide_homes(known: Any) -> Any:
    if isinstance(known, Mapping):
        return {str(_hide_homes(name)): _hide_homes(item) for name, item in known.items()}
    if isinstance(known, (list, tuple)):
        return [_hide_homes(item) for item in known]
    return hide_homes(known) if isinstance(known, str) else known


def _to_seconds(moment: object) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
