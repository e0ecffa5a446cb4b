"""Reading the files of a format into results and their runs.

The formats that can be imported, and reading files of one of them.
"""

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
    has_samples,
    once,
    says_another,
    told_as_csv,
    told_as_json,
)
from accelbench.exchange.imports.records import MalformedError, object_of
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

#: None is a line that is there and has no figure: it did not run.
Rows = Callable[[Path, Source], Iterator[dict[str, Any] | None]]
Tables = Callable[[Path, Source, Run], Table]


#: The kind whose lines each say whose they are.
CSV = "csv"
TIDY = "tidy"


@dataclass(frozen=True)
class Kind:
    """A format: its content, whose results they are, and its reader."""

    name: str
    what: str
    pattern: str  # of its files in a folder
    rows: Rows | None = None
    source: str = ""  # where nobody names another
    licence: str = ""
    table: Tables | None = None  # where rows would be too many


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("json", "our result files and exports", ours.JSON_PATTERN, ours.json_rows),
        Kind(CSV, "our exports as CSV", ours.CSV_PATTERN, ours.csv_rows),
        Kind("parquet", "our exports as Parquet", parquet.PATTERN, table=tables.ours),
        Kind(TIDY, "public measurements in one schema", parquet.PATTERN, table=tables.tidy),
        Kind("guide-csv", "the guide's benchmark_results_*.csv", guide.PATTERN, guide.rows),
        Kind("timm", "timm's benchmark-*.csv", timm.PATTERN, timm.rows, "timm", "Apache-2.0"),
        Kind("aihub", "Qualcomm AI Hub's perf.yaml, one or a tree of them", aihub.PATTERN,
             aihub.rows, "qai-hub-models", "BSD-3-Clause"),
        Kind("aiconfigurator", "aiconfigurator's measured servers", aiconfigurator.PATTERN,
             aiconfigurator.rows, "aiconfigurator", "Apache-2.0"),
        Kind("mlperf", "MLPerf Inference's summary_results.json", mlperf.PATTERN, mlperf.rows,
             "mlperf-inference"),
        Kind("optimum", "optimum-benchmark's reports", optimum.PATTERN, optimum.rows),
        Kind("benchmark-app", "OpenVINO's benchmark_app -json_stats", benchmark_app.PATTERN,
             benchmark_app.rows),
        Kind("pytest-benchmark", "pytest-benchmark's --benchmark-json", pytest_benchmark.PATTERN,
             pytest_benchmark.rows),
    )
}  # fmt: skip


def kind_of(name: str) -> Kind:
    """Return the format of a name."""
    if name not in KINDS:
        raise UsageError(
            f"There is no kind named {in_quotes(name)}.", f"Known: {', '.join(KINDS)}."
        )
    return KINDS[name]


#: What `run --output-dir` makes of the results that lie beside it.
_DERIVED = frozenset({"processed_results", "profiles"})


def files_of(kind: Kind, path: Path) -> list[Path]:
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


def digest_of(files: Sequence[Path]) -> str:
    """Return the digest of the files' content, independent of names and places."""
    each = sorted(map(_digest, files))
    return hashlib.sha256("".join(each).encode()).hexdigest()[:16]


def _digest(file: Path) -> str:
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
    results: int  # some may be there already, or be equal in everything
    runs: Sequence[Run]
    bodies: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[str] = ()  # for what is too much to be held
    keep_theirs: int = 0  # that say whose they are, although who imports has named a source
    samples_left: Sequence[Path] = ()  # tables whose samples are not read: a result file has them
    empty: int = 0  # lines without a figure, which are passed over: they did not run

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
    """Read a file, or all of a format in a folder: every one of them, or none.

    `source` names whose results they are (default: the format's owner, or its name). Raises
    UsageError if there is no such format, file or moment, or a file is malformed.
    """
    form = kind_of(kind)
    files = files_of(form, path)
    whose = _whose(form, source, commit, licence, measured_at)
    run_id = f"import-{digest([kind, whose.to_dict(), digest_of(files)])}"
    itself = {
        "started_at": (now := utc_now()),
        "finished_at": now,
        "command": f"db import {kind} {path}",
        "label": whose.name,
        "environment": {"source": whose.to_dict(), "files": [file.name for file in files]},
    }
    own = Run(run_id, itself, own=True)
    try:
        return _read(form, files, whose, own)
    except MalformedError as error:
        error.advice = f"{error.advice} Nothing of it was imported.".lstrip()
        raise


def _read(form: Kind, files: Sequence[Path], whose: Source, own: Run) -> ImportedResults:
    if form.table:
        read = [form.table(file, whose, own) for file in files]
        runs = once([*(run for table in read for run in table.runs), own])
        rows, theirs = sum(table.rows for table in read), sum(table.theirs for table in read)
        queries = [table.query for table in read]
        kept = theirs if whose.named else 0
        left = [file for file, table in zip(files, read, strict=True) if table.samples]
        empty = sum(table.empty for table in read)
        return ImportedResults(own.id, whose, files, rows, runs, (), queries, kept, left, empty)
    lines = [body for file in files for body in form.rows(file, whose)] if form.rows else []
    bodies = [body for body in lines if body is not None]
    refuse_contradictions(split_records(body for body in bodies if READ_AT in body))
    runs = [*_runs_of(bodies), own]
    kept = sum(says_another(body, whose) for body in bodies) if whose.named else 0
    left = [file for file in files if form.name == CSV and has_samples(file)]
    empty = len(lines) - len(bodies)
    return ImportedResults(own.id, whose, files, len(bodies), runs, bodies, (), kept, left, empty)


def _runs_of(bodies: Iterable[dict[str, Any]]) -> list[Run]:
    runs: dict[str, Run] = {}
    for body in bodies:
        about = body.pop(RUN, None)
        if not about or not body.get("run_id"):
            continue
        run = Run(str(body["run_id"]), about)
        runs[run.id] = min(runs.get(run.id, run), run, key=_began)
    return list(runs.values())


def _began(run: Run) -> str:
    return str(run.about.get("started_at") or "")


def _whose(
    form: Kind, source: str | None, commit: str, licence: str | None, measured_at: str
) -> Source:
    if source and form.name == TIDY:
        raise UsageError(
            "A tidy table says whose each of its figures is.",
            "Leave out --source; the column is `source`.",
        )
    for word in (source, commit, licence):
        if word is not None and not word.isprintable():
            raise UsageError(
                f"{in_quotes(word)} has characters that cannot be shown.", "Leave them out."
            )
    if source is not None and not source.strip():
        raise UsageError("--source is empty.", "Say whose figures they are, or leave it out.")
    return Source(
        name=source or form.source or form.name,
        commit=commit,
        licence=form.licence if licence is None else licence,
        measured_at=_moment(measured_at),
        named=source is not None,
    )


def _moment(text: str) -> str:
    if not text:
        return ""
    try:
        moment = str(convert_value("time", text))
    except MisfitError as error:
        raise UsageError(f"{in_quotes(text)} is no date.", "Write it as 2026-08-08.") from error
    if moment > spell_time(latest_time()):
        raise UsageError(f"{text} is in the future.", "Say when it was measured.")
    return moment


def placed(kind: str, files: Sequence[Path], conflict: ConflictError) -> Exception:
    """Return a conflict with file, line and field, if a file states that value."""
    for file in files:
        lines = list(_told(kind, file, conflict.result_id, conflict.column))
        claim_line, known = (_first(lines, value) for value in (conflict.claim, conflict.known))
        if claim_line is None:
            continue
        # Of two lines of one file the later is the one that says something else.
        line, value, other = claim_line, conflict.claim, conflict.known
        if known is not None and known > claim_line:
            line, value, other = known, other, value
        name = tidy.FIGURES.get(conflict.column) if kind == TIDY else None
        why = f"it is {value}, where the result {conflict.result_id} has {other}"
        return MalformedError(file, line, name or conflict.column, why, conflict.advice)
    return conflict


def _first(lines: Sequence[tuple[int, Any]], value: Any) -> int | None:
    return next((line for line, figure in lines if figure == value), None)


def _told(kind: str, file: Path, result_id: str, column: str) -> Iterator[tuple[int, Any]]:
    if kind == "json":
        for record, body in told_as_json(object_of(file)):
            if body["result_id"] == result_id:
                yield (record.lines or {}).get(column, record.line), body.get(column)
    elif kind == "csv":
        for line, body in told_as_csv(file):
            if body["result_id"] == result_id:
                yield line.line, body.get(column)
    elif kind == TIDY:
        yield from tidy.lines_of(file, result_id, column)
    elif kind == "parquet":
        with parquet.looking_at(file) as con:
            query = f'''SELECT file_row_number + 1, "{column}" FROM {parquet.read(file)}
                WHERE result_id = {quote_sql(result_id)}'''  # noqa: S608 — our column
            yield from con.execute(query).fetchall()
