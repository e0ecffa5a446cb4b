"""JSON result files, one for each model, hardware and precision."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelbench.core.identity import digest, to_plain
from accelbench.core.precision import PRECISIONS, long_name
from accelbench.exchange.result_schema import SCHEMA_ID
from accelbench.exchange.writing import write_exactly, write_new
from accelbench.store.body_to_row import drop_surrogates, fit_result
from accelbench.store.files import REAL_FILES, Files

_MAX_LENGTH = 80  # file systems allow 255 bytes; the rest of a name and its suffix need room


def safe_name(text: str) -> str:
    """Return a plain file name of ASCII letters, digits, dot, dash and underscore.

    A run of other characters becomes one dash. A shortened or empty name gets a digest of the text.
    """
    flat = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", flat)
    name = re.sub(r"\.{2,}", ".", name).strip(".-")
    if not name:
        return f"unnamed-{_short_digest(text)}"
    if len(name) > _MAX_LENGTH:
        return f"{name[:_MAX_LENGTH]}-{_short_digest(text)}"
    return name


def result_file_name(model: str, hardware: str, precision: str, when: datetime) -> str:
    """Return <model>_<hardware>_<precision long form>_<YYYYMMDD_HHMMSS>.json, in UTC."""
    long = long_name(precision) if precision in PRECISIONS else precision
    stamp = when.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    return f"{safe_name(model)}_{safe_name(hardware)}_{safe_name(long)}_{stamp}.json"


def _short_digest(text: str) -> str:
    return digest(text.encode("utf-8", "backslashreplace").decode(), length=8)


def to_row(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result's body as its row of the store, in plain JSON values."""
    return fit_result(body).row


def to_entry(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with its samples and their method of timing."""
    fitted = fit_result(body)
    entry = dict(fitted.row)
    if fitted.samples:
        entry["samples"] = {sample.phase: sample.ns for sample in fitted.samples}
        entry["sampling"] = {
            sample.phase: sample.sampling for sample in fitted.samples if sample.sampling
        }
    return entry


def build_document(run: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of a result file: the run's body and the results with samples."""
    return {
        "schema": SCHEMA_ID,
        "run": drop_surrogates(to_plain(run)),
        "results": [to_entry(body) for body in results],
    }


def write_results(
    folder: Path,
    run: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    when: datetime | None = None,
    files: Files = REAL_FILES,
) -> list[Path]:
    """Write results of a run into new files by model, hardware and precision; return them.

    `when` is the time in the files' names. Existing files are never overwritten.
    """
    when = when or datetime.now(UTC)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for body in results:
        key = tuple(str(body.get(name) or "unknown") for name in ("model", "hardware", "precision"))
        groups.setdefault((key[0], key[1], key[2]), []).append(body)
    return [
        write_new(folder, result_file_name(*key, when), _encode(build_document(run, bodies)), files)
        for key, bodies in groups.items()
    ]


def write_result_file(
    path: Path,
    run: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    files: Files = REAL_FILES,
) -> None:
    """Write all results into one new file."""
    data = _encode(build_document(run, results))
    write_exactly(path, lambda written: written.write_bytes(data), files)


def _encode(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
