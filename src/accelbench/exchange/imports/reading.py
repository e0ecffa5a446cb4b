"""The formats that can be imported, and reading their files into results and runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.facts import Fact, utc_now
from accelbench.core.identity import digest
from accelbench.core.plausible_values import latest_time
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports import (
    aiconfigurator,
    aihub,
    benchmark_app,
    guide,
    mlperf,
    optimum,
    ours,
    parquet,
    pytest_benchmark,
    tables,
    tidy,
    timm,
)
from accelbench.exchange.imports.ours import (
    Run,
    Table,
    has_other_source,
    has_samples,
    iter_csv_results,
    iter_json_results,
    unique_runs,
)
from accelbench.exchange.imports.records import MalformedError, read_object
from accelbench.exchange.imports.result_row import (
    READ_AT,
    Source,
    refuse_contradictions,
    split_records,
)
from accelbench.exchange.titles import RUN
from accelbench.store.body_to_row import MisfitError, convert_value, spell_time
from accelbench.store.duck import quote_sql
from accelbench.store.merge_validation import ConflictError

#: None stands for a line without a value, which did not run.
Rows = Callable[[Path, Source], Iterator[dict[str, Any] | None]]
Tables = Callable[[Path, Source, Run], Table]


#: Names of formats. Each line of a tidy table names its source.
CSV = "csv"
TIDY = "tidy"


@dataclass(frozen=True)
class ImportFormat:
    """Format of files to import, with its owner and its reader."""

    name: str
    description: str
    pattern: str  # glob of its files in a folder
    rows: Rows | None = None
    source: str = ""  # the default
    licence: str = ""
    table: Tables | None = None  # for formats with too many rows for memory


IMPORT_FORMATS: dict[str, ImportFormat] = {
    kind.name: kind
    for kind in (
        ImportFormat(
            "json", "our result files and exports", ours.JSON_PATTERN, ours.read_json_rows
        ),
        ImportFormat(CSV, "our exports as CSV", ours.CSV_PATTERN, ours.read_csv_rows),
        ImportFormat(
            "parquet", "our exports as Parquet", parquet.PATTERN, table=tables.read_export
        ),
        ImportFormat(
            TIDY, "public measurements in one schema", parquet.PATTERN, table=tables.read_tidy
        ),
        ImportFormat(
            "guide-csv", "the guide's benchmark_results_*.csv", guide.PATTERN, guide.read_rows
        ),
        ImportFormat(
            "timm", "timm's benchmark-*.csv", timm.PATTERN, timm.read_rows, "timm", "Apache-2.0"
        ),
        ImportFormat(
            "aihub",
            "Qualcomm AI Hub's perf.yaml, one or a tree of them",
            aihub.PATTERN,
            aihub.read_rows,
            "qai-hub-models",
            "BSD-3-Clause",
        ),
        ImportFormat(
            "aiconfigurator",
            "aiconfigurator's measured servers",
            aiconfigurator.PATTERN,
            aiconfigurator.read_rows,
            "aiconfigurator",
            "Apache-2.0",
        ),
        ImportFormat(
            "mlperf",
            "MLPerf Inference's summary_results.json",
            mlperf.PATTERN,
            mlperf.read_rows,
            "mlperf-inference",
        ),
        ImportFormat("optimum", "optimum-benchmark's reports", optimum.PATTERN, optimum.read_rows),
        ImportFormat(
            "benchmark-app",
            "OpenVINO's benchmark_app -json_stats",
            benchmark_app.PATTERN,
            benchmark_app.read_rows,
        ),
        ImportFormat(
            "pytest-benchmark",
            "pytest-benchmark's --benchmark-json",
            pytest_benchmark.PATTERN,
            pytest_benchmark.read_rows,
        ),
    )
}


def find_format(name: str) -> ImportFormat:
    """Return a format by its name, or raise UsageError."""
    if name not in IMPORT_FORMATS:
        raise UsageError(
            f"There is no kind named {in_quotes(name)}.", f"Known: {', '.join(IMPORT_FORMATS)}."
        )
    return IMPORT_FORMATS[name]


#: Folders that `run --output-dir` derives from results.
_DERIVED = frozenset({"processed_results", "profiles"})


def find_files(kind: ImportFormat, path: Path) -> list[Path]:
    """Return the file, or those of the format in a folder."""
    try:
        if path.is_file():
            return [path]
        if not path.exists():
            raise UsageError(f"There is no {path}.")
        if not path.is_dir():
            raise UsageError(f"{path} is neither a file nor a folder.")
        files = sorted(
            file
            for file in path.rglob(kind.pattern)
            if file.is_file() and not _DERIVED.intersection(file.relative_to(path).parent.parts)
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not files:
        raise UsageError(f"There is no {kind.pattern} in {path}.")
    return files


def digest_files(files: Sequence[Path]) -> str:
    """Return a digest of the files' content, independent of names and places."""
    each = sorted(map(_digest_file, files))
    return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


def _digest_file(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from error


@dataclass(frozen=True)
class ImportedResults:
    """Content of files, ready for the store."""

    run_id: str
    source: Source
    files: Sequence[Path]
    results: int  # their number, with duplicates and known ones
    runs: Sequence[Run]
    bodies: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[str] = ()  # for content that is too large for memory
    kept_sources: int = 0  # results that keep their source although the user named one
    unread_samples: Sequence[Path] = ()  # tables whose samples are not imported
    empty: int = 0  # skipped lines without a value, which did not run

    @property
    def facts(self) -> list[Fact]:
        return [fact for run in self.runs for fact in run.facts()]


def read_import(
    kind: str,
    path: Path,
    source: str | None = None,
    commit: str = "",
    licence: str | None = None,
    measured_at: str = "",
) -> ImportedResults:
    """Read a file, or all files of a format in a folder; one malformed file refuses all.

    `source` names the origin of the results (default: the format's owner, or its name). Raises
    UsageError if the format, the file or the time is not valid, or a file is malformed.
    """
    form = find_format(kind)
    files = find_files(form, path)
    whose = _resolve_source(form, source, commit, licence, measured_at)
    run_id = f"import-{digest([kind, whose.to_dict(), digest_files(files)])}"
    itself = {
        "started_at": (now := utc_now()),
        "finished_at": now,
        "command": f"db import {kind} {path}",
        "label": whose.name,
        "environment": {"source": whose.to_dict(), "files": [file.name for file in files]},
    }
    own = Run(run_id, itself, is_import=True)
    try:
        return _read_files(form, files, whose, own)
    except MalformedError as error:
        error.advice = f"{error.advice} Nothing was imported.".lstrip()
        raise


def _read_files(
    form: ImportFormat, files: Sequence[Path], whose: Source, own: Run
) -> ImportedResults:
    if form.table:
        read = [form.table(file, whose, own) for file in files]
        runs = unique_runs([*(run for table in read for run in table.runs), own])
        rows, sourced = sum(table.rows for table in read), sum(table.sourced for table in read)
        queries = [table.query for table in read]
        kept = sourced if whose.is_named else 0
        left = [file for file, table in zip(files, read, strict=True) if table.samples]
        empty = sum(table.empty for table in read)
        return ImportedResults(own.id, whose, files, rows, runs, (), queries, kept, left, empty)
    lines = [body for file in files for body in form.rows(file, whose)] if form.rows else []
    bodies = [body for body in lines if body is not None]
    refuse_contradictions(split_records(body for body in bodies if READ_AT in body))
    runs = [*_collect_runs(bodies), own]
    kept = sum(has_other_source(body, whose) for body in bodies) if whose.is_named else 0
    left = [file for file in files if form.name == CSV and has_samples(file)]
    empty = len(lines) - len(bodies)
    return ImportedResults(own.id, whose, files, len(bodies), runs, bodies, (), kept, left, empty)


def _collect_runs(bodies: Iterable[dict[str, Any]]) -> list[Run]:
    runs: dict[str, Run] = {}
    for body in bodies:
        about = body.pop(RUN, None)
        if not about or not body.get("run_id"):
            continue
        run = Run(str(body["run_id"]), about)
        runs[run.id] = min(runs.get(run.id, run), run, key=_start_time)
    return list(runs.values())


def _start_time(run: Run) -> str:
    return str(run.about.get("started_at") or "")


def _resolve_source(
    form: ImportFormat, source: str | None, commit: str, licence: str | None, measured_at: str
) -> Source:
    if source and form.name == TIDY:
        raise UsageError(
            "A tidy table names the source of each result.",
            "Leave out --source; the column is `source`.",
        )
    for word in (source, commit, licence):
        if word is not None and not word.isprintable():
            raise UsageError(
                f"{in_quotes(word)} has characters that cannot be shown.", "Leave them out."
            )
    if source is not None and not source.strip():
        raise UsageError("--source is empty.", "Name the source of the results, or leave it out.")
    return Source(
        name=source or form.source or form.name,
        commit=commit,
        licence=form.licence if licence is None else licence,
        measured_at=_parse_time(measured_at),
        is_named=source is not None,
    )


def _parse_time(text: str) -> str:
    if not text:
        return ""
    try:
        moment = str(convert_value("time", text))
    except MisfitError as error:
        raise UsageError(f"{in_quotes(text)} is not a date.", "Write it as 2026-08-08.") from error
    if moment > spell_time(latest_time()):
        raise UsageError(f"{text} is in the future.", "Give the date of the measurement.")
    return moment


def locate_conflict(kind: str, files: Sequence[Path], conflict: ConflictError) -> Exception:
    """Return a conflict with file, line and field, if a file has that value."""
    for file in files:
        lines = list(_find_lines(kind, file, conflict.result_id, conflict.column))
        claim_line, known = (
            _first_line(lines, value) for value in (conflict.claim, conflict.known)
        )
        if claim_line is None:
            continue
        # Of two lines in one file, the later one is in conflict.
        line, value, other = claim_line, conflict.claim, conflict.known
        if known is not None and known > claim_line:
            line, value, other = known, other, value
        name = tidy.COLUMN_NAMES.get(conflict.column) if kind == TIDY else None
        why = f"it is {value}, and the result {conflict.result_id} has {other}"
        return MalformedError(file, line, name or conflict.column, why, conflict.advice)
    return conflict


def _first_line(lines: Sequence[tuple[int, Any]], value: Any) -> int | None:
    return next((line for line, figure in lines if figure == value), None)


def _find_lines(kind: str, file: Path, result_id: str, column: str) -> Iterator[tuple[int, Any]]:
    if kind == "json":
        for record, body in iter_json_results(read_object(file)):
            if body["result_id"] == result_id:
                yield (record.lines or {}).get(column, record.line), body.get(column)
    elif kind == "csv":
        for line, body in iter_csv_results(file):
            if body["result_id"] == result_id:
                yield line.line, body.get(column)
    elif kind == TIDY:
        yield from tidy.find_lines(file, result_id, column)
    elif kind == "parquet":
        with parquet.open_parquet(file) as con:
            query = f'''SELECT file_row_number + 1, "{column}" FROM {parquet.rows_sql(file)}
                WHERE result_id = {quote_sql(result_id)}'''  # noqa: S608 — our column
            yield from con.execute(query).fetchall()
