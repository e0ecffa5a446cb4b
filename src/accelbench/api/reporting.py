"""A report of a run that the API has made, as `accelbench report` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError
from accelbench.exchange import result_file
from accelbench.run.conduct.lifecycle import RunResult
from accelbench.store.database import Database
from accelbench.store.scratch import temporary_folder

#: What draws charts may hang, as any engine.
_SECONDS = 600.0


def reported(
    page: Path, begun: Mapping[str, Any], ended: RunResult, database: Database | None
) -> Path:
    """Write it by the program itself: drawing brings an engine, which the caller need not have.

    Args:
        page: Where to; one that exists is refused.
        begun: The body of run_started.
        ended: The run.
        database: What it went into, where there is one.

    Raises:
        SurroundingsError: It could not be written; what was measured is stored all the same.
    """
    with temporary_folder() as scratch:
        source = ["--run", ended.run_id]
        if database is not None:
            source += ["--db", database.name]
        else:
            file = scratch / f"{ended.run_id}.json"
            result_file.write_one(file, begun, ended.rows)
            source += ["--json-path", str(file)]
        done = processes.run_python(
            "accelbench", ["report", *source, "--output", str(page)], timeout=_SECONDS
        )
    if done.returncode:
        raise SurroundingsError(
            f"The report was not written: {done.last_line or 'it said nothing'}",
            f"What was measured is stored as run {ended.run_id}.",
        )
    return page
