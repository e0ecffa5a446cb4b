"""A result as experiment trackers keep a run: parameters, values, tags and a document.

Every tracker gets the same under the names of the store's columns. Unknown values are left out.
Host names are not exported, and of a path in a home folder only what is below `~`.
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
from accelbench.exchange.titles import title

Row = Mapping[str, Any]
Parameter = str | int | float | bool

#: What a configuration is made of: every column of a case, but for what only labels a figure.
_LABELS = frozenset({"throughput_unit", "input_shape", "options"})
_PARAMETERS = tuple(c.name for c in COLUMNS if c.role == "case" and c.name not in _LABELS)
#: Whatever is measured, with the ends of its intervals; and what is said of such a figure.
_FIGURES = tuple(c.name for c in COLUMNS if c.role == "metric" and c.kind in ("float", "int"))
_REMARKS = tuple(c.name for c in COLUMNS if c.role == "metric" and c.kind == "bool")
#: Of the other columns those that somebody filters or groups runs by.
_TAGS = (
    *("result_id", "run_id", "case_id", "series_key", "launch", "arm"),
    *("status", "reason", "provenance", "quality", "emulated"),
    *("verification", "self_check", "steps_verified"),
    *("throughput_unit", "memory_source", "weights_digest", "protocol_version"),
)
_OF_THE_RUN = ("label", "git_commit", "git_branch")
#: What is kept apart from the document.
_NESTED = ("samples", "sampling")
#: Signs that MLflow takes in a name; the other trackers take them all.
_NAME_SIGNS = re.compile(r"[^\w\-. /]")
#: Nothing was run: there is no run to keep.
_NEVER_RUN = frozenset({Status.UNSUPPORTED, Status.SKIPPED})


@dataclass(frozen=True)
class TrackedResult:
    """A result as given to a tracker."""

    result_id: str  # recognises the same result
    name: str  # the question, place, launch, and whether it is emulated, simulated or imported
    configuration: str  # the same for all its launches
    series: str  # the same for all its batches
    parameters: Mapping[str, Parameter]  # the configuration, by column
    figures: Mapping[str, float]  # its values, by column
    tags: Mapping[str, str]  # to filter runs by
    notes: Sequence[str]  # sentences
    document: Mapping[str, Any]  # the whole result
    samples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    started: float | None = None  # in seconds since 1970, if known
    finished: float | None = None  # likewise

    @property
    def model(self) -> str:
        return str(self.parameters.get("model") or UNKNOWN_MODEL)

    @property
    def ok(self) -> bool:
        return self.tags.get("status") == Status.OK

    @property
    def batch(self) -> int:
        size = self.parameters.get("batch_size")
        return size if isinstance(size, int) else 0


def was_run(row: Row) -> bool:
    """Return whether there was anything that a tracker could keep a run of."""
    return row.get("status") not in _NEVER_RUN


def tracked(row: Row, run: Row) -> TrackedResult:
    """Return a row, with its samples if wanted, as trackers keep it."""
    if row.get("run_id"):
        row = {**row, "run_id": anonymous_run_id(str(row["run_id"]))}
    configuration = title(row)
    arm = f", {row['arm']}" if row.get("arm") else ""
    number = row.get("launch")
    launch = "" if number is None else f" launch {number}"
    mark = _mark(row)
    return TrackedResult(
        result_id=str(row.get("result_id") or ""),
        name=f"{configuration}{launch}{arm}{f' ({mark})' if mark else ''}",
        configuration=configuration,
        series=title({**row, "batch_size": None}),
        parameters=dict(_parameters(row)),
        figures=dict(_figures(row)),
        tags=dict(_tags(row, run)),
        notes=[_shown(note) for note in _notes(row)],
        document=_without_homes(
            {
                name: known
                for name, known in row.items()
                if known is not None and name not in _NESTED
            }
        ),
        samples=dict(row.get("samples") or {}),
        started=_seconds(row.get("started_at")),
        finished=_seconds(row.get("finished_at")),
    )


def _mark(row: Row) -> str:
    provenance = str(row.get("provenance") or "")
    source = source_of(row)
    words = ["" if provenance in ("", Provenance.MEASURED) else provenance]
    if words[0] and source:
        words[0] += f" from {source}"
    words.append("emulated" if row.get("emulated") else "")
    return visible(", ".join(filter(None, words)))


def _parameters(row: Row) -> Iterator[tuple[str, Parameter]]:
    for name in _PARAMETERS:
        known = row.get(name)
        if known is not None and known != "":
            yield name, known if isinstance(known, (bool, int, float)) else _shown(known)
    for name, known in (row.get("options") or {}).items():
        yield _name(f"option.{name}"), known if isinstance(known, (bool, int)) else _shown(known)


def _figures(row: Row) -> Iterator[tuple[str, float]]:
    for name, known in [
        *((name, row.get(name)) for name in _FIGURES),
        *((_name(f"extra.{name}"), known) for name, known in (row.get("extra") or {}).items()),
    ]:
        if isinstance(known, (int, float)) and math.isfinite(known):
            yield name, float(known)


def _tags(row: Row, run: Row) -> Iterator[tuple[str, str]]:
    for facts, names in ((row, (*_TAGS, *_REMARKS)), (run, _OF_THE_RUN)):
        for name in names:
            known = facts.get(name)
            if known is not None and known != "":
                yield name, str(known).lower() if isinstance(known, bool) else _shown(known)
    if source := source_of(row):
        yield "source", _shown(source)


def _notes(row: Row) -> Iterator[str]:
    for name in ("message", "advice"):
        if row.get(name):
            yield str(row[name])
    yield from map(str, row.get("warnings") or ())


def _shown(known: object) -> str:
    return visible(hide_homes(str(known)))


def _name(text: str) -> str:
    return _NAME_SIGNS.sub("_", text)


def _without_homes(known: Any) -> Any:
    if isinstance(known, Mapping):
        return {str(_without_homes(name)): _without_homes(item) for name, item in known.items()}
    if isinstance(known, (list, tuple)):
        return [_without_homes(item) for item in known]
    return hide_homes(known) if isinstance(known, str) else known


def _seconds(moment: object) -> float | None:
    try:
        return datetime.fromisoformat(str(moment)).timestamp() if moment else None
    except ValueError:
        return None
