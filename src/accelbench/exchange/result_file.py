"""The documents' JSON result file: one a model, hardware and precision; it stands alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelbench.core.identity import plain
from accelbench.exchange.names import result_file_name
from accelbench.exchange.result_schema import SCHEMA_ID
from accelbench.exchange.rows import entry_of
from accelbench.exchange.writing import write_exactly, write_new
from accelbench.store.files import REAL_FILES, Files
from accelbench.store.fit import readable


def document(run: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a result file holds: the run's body and a row a result, raw samples included."""
    return {
        "schema": SCHEMA_ID,
        "run": readable(plain(run)),
        "results": [entry_of(body) for body in results],
    }


def write(
    folder: Path,
    run: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    when: datetime | None = None,
    files: Files = REAL_FILES,
) -> list[Path]:
    """Write result bodies of a run into files by model, hardware and precision.

    Args:
        folder: Made where absent.
        run: The body of run_started.
        results: Bodies of result facts.
        when: The moment in the files' names; now, unless given.
        files: How files are touched.

    Returns:
        The files, each new: one that exists is never overwritten.
    """
    when = when or datetime.now(UTC)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for body in results:
        key = tuple(str(body.get(name) or "unknown") for name in ("model", "hardware", "precision"))
        groups.setdefault((key[0], key[1], key[2]), []).append(body)
    return [
        write_new(folder, result_file_name(*key, when), _encode(document(run, bodies)), files)
        for key, bodies in groups.items()
    ]


def write_one(
    path: Path,
    run: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    files: Files = REAL_FILES,
) -> None:
    """Write all results into one file of a given name, which must be free."""
    data = _encode(document(run, results))
    write_exactly(path, lambda written: _put(written, data), files)


def _put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _encode(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
