"""Reading files of a format into results, with the run that brings them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.facts import RUN_FINISHED, RUN_STARTED, Fact, utc_now
from accelbench.core.identity import digest
from accelbench.exchange.imports.foreign import Source
from accelbench.exchange.imports.kinds import digest_of, files_of, kind_of
from accelbench.store.fit import MisfitError, as_kind


@dataclass(frozen=True)
class Found:
    """What files hold, ready for the store."""

    run_id: str
    source: Source
    files: Sequence[Path]
    facts: Sequence[Fact]
    bodies: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[str] = ()  # for what is too much to be held


def read_import(
    kind: str,
    path: Path,
    source: str | None = None,
    commit: str = "",
    licence: str | None = None,
    measured_at: str = "",
) -> Found:
    """Read a file, or all of a format in a folder: every one of them, or none.

    Args:
        kind: The format's name.
        path: A file, or a folder.
        source: Whose figures they are; else the format's owner, or its name.
        commit: The version of the source.
        licence: The source's.
        measured_at: When, for files that do not say it themselves.

    Raises:
        UsageError: There is no such format, file or moment, or a file is malformed.
    """
    form = kind_of(kind)
    files = files_of(form, path)
    whose = Source(
        name=source or form.source or form.name,
        commit=commit,
        licence=form.licence if licence is None else licence,
        measured_at=_moment(measured_at),
    )
    rows, query = form.rows, form.query
    bodies = [body for file in files for body in rows(file, whose)] if rows else []
    queries = [query(file, whose) for file in files] if query else []
    run_id = f"import-{digest([kind, whose.told(), digest_of(files)])}"
    now = utc_now()
    started = {
        "started_at": now,
        "command": f"db import {kind} {path}",
        "label": whose.name,
        "environment": {"source": whose.told(), "files": [file.name for file in files]},
    }
    facts = (
        Fact(RUN_STARTED, run_id, started),
        Fact(RUN_FINISHED, run_id, {"finished_at": now, "status": "finished"}),
    )
    return Found(run_id, whose, files, facts, bodies, queries)


def _moment(text: str) -> str:
    if not text:
        return ""
    try:
        return str(as_kind("time", text))
    except MisfitError as error:
        raise UsageError(f"{text!r} is no date.", "Write it as 2026-08-08.") from error
