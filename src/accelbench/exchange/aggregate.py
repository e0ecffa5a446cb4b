"""Aggregation of all result files of a folder into aggregated_benchmarks.json.

An entry is a model on a target in a precision and a mode. Another sequence length, image size or
option is another entry, because a best value is only valid for one configuration. Within an entry
only the batch size varies. Each batch has the median of all its results, by p50, or by the mean if
steps were too short to be timed singly.

    batch scaling efficiency = throughput at the best batch
                               ÷ (throughput at the smallest batch × best batch ÷ smallest batch)

It is null with one batch, and if the smallest batch is the best. Only measured and imported results
count. Emulated ones are counted but not used. Unsteady, throttled and few samples are used and
flagged. A time limit is not a flag: the number of samples shows whether it ended too early.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from accelbench.core import jsonc
from accelbench.core.axes import size_columns
from accelbench.core.errors import StoreError
from accelbench.core.facts import utc_now
from accelbench.core.identity import canonical_json
from accelbench.core.vocabulary import Provenance, Quality, Status
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement, merge_groups
from accelbench.exchange.result_file import to_row
from accelbench.exchange.result_schema import SCHEMA_ID as RESULT_SCHEMA
from accelbench.exchange.result_schema import load_schema
from accelbench.exchange.writing import replace_file, resolve_inside
from accelbench.store.files import REAL_FILES, Files

SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:accelbench:aggregate:{SCHEMA_VERSION}"

RAW = "raw_results"
PROCESSED = "processed_results"
NAME = "aggregated_benchmarks.json"

#: Columns that distinguish entries, in the order in which entries are sorted and shown.
TARGET = ("runtime", "hardware", "device", "device_name")
QUESTION = ("model", *TARGET, "precision", "mode")
#: Other columns of the configuration. Most have the model's default.
OTHER_COLUMNS = (
    *size_columns(),
    *("scenario", "world_size", "compiled", "options", "weights", "data_source"),
)
_MODEL_COLUMNS = ("family", "architecture", "model_size", "parameters")
_FLAGGED_QUALITIES = (Quality.UNSTEADY, Quality.THROTTLED, Quality.UNUSABLE)
#: The flag of results with fewer samples than `ENOUGH_SAMPLES`, the least of complete sampling.
FEW_SAMPLES = "few_samples"
ENOUGH_SAMPLES = 30
#: All flags of an entry.
FLAGS = (FEW_SAMPLES, *_FLAGGED_QUALITIES)


@dataclass(frozen=True)
class AggregateRows:
    """Rows of a folder's result files, and the files that have none."""

    rows: Sequence[Mapping[str, Any]]
    runs: Sequence[Mapping[str, Any]] = ()
    files: int = 0
    skipped: Sequence[Mapping[str, str]] = field(default=())


def update_aggregate(output_dir: Path, files: Files = REAL_FILES) -> Path:
    """Rewrite processed_results/aggregated_benchmarks.json atomically; return its path."""
    document = aggregate(read_folder(output_dir / RAW))
    data = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path = resolve_inside(output_dir, PROCESSED) / NAME
    replace_file(path, data.encode(), files)
    return path


def read_folder(folder: Path) -> AggregateRows:
    """Return every result of each *.json in a folder once."""
    rows: dict[str, Mapping[str, Any]] = {}
    runs: dict[str, Mapping[str, Any]] = {}
    skipped: list[Mapping[str, str]] = []
    paths = sorted(folder.glob("*.json"))
    for path in paths:
        try:
            run, results = _read_file(path)
        except StoreError as error:
            skipped.append({"file": path.name, "reason": error.message})
            continue
        for number, body in enumerate(results):
            row = to_row(body)
            rows[row["result_id"] or f"{path.name}#{number}"] = row
        run_id = run.get("run_id")
        if isinstance(run_id, str):
            runs.setdefault(run_id, run)
    return AggregateRows(
        list(rows.values()), [runs[run] for run in sorted(runs)], len(paths), skipped
    )


def _read_file(path: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    try:
        document = jsonc.read(path)
    except OSError as error:
        raise StoreError(f"it cannot be read: {error.strerror}") from error
    except jsonc.JsonError as error:
        raise StoreError(f"it is not valid JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != RESULT_SCHEMA:
        raise StoreError(f"it is not a document of schema {RESULT_SCHEMA}")
    results, run = document.get("results"), document.get("run", {})
    whole = isinstance(results, list) and all(isinstance(result, dict) for result in results)
    if not whole or not isinstance(run, dict):
        raise StoreError("its results do not match the schema")
    return run, results  # type: ignore[return-value]  # checked above: a list of dicts


def aggregate(folder: AggregateRows) -> dict[str, Any]:
    """Return the document for the rows of a folder."""
    launches: list[Mapping[str, Any]] = [*launches_of(folder.rows)]
    counted = [row for row in launches if row["comparable"]]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in counted:
        groups.setdefault(
            canonical_json([row.get(n) for n in (*QUESTION, *OTHER_COLUMNS)]), []
        ).append(row)
    sizes = [
        _group_by_batch([r for r in rows if r["answered"] and not r.get("emulated")])
        for rows in groups.values()
    ]
    measurements = iter(merge_groups([rows for by_size in sizes for rows in by_size.values()]))
    entries = [
        _build_entry(rows, {size: next(measurements) for size in by_size})
        for rows, by_size in zip(groups.values(), sizes, strict=True)
    ]
    return {
        "schema": SCHEMA_ID,
        "generated_at": utc_now(),
        "files": folder.files,
        "skipped_files": [dict(file) for file in folder.skipped],
        "runs": [
            {name: run.get(name) for name in ("run_id", "started_at", "git_commit", "label")}
            for run in folder.runs
        ],
        "results": len(counted),
        "status_counts": _count_words((row.get("status") for row in counted), Status),
        "left_out": _count_words(
            (row.get("provenance") for row in launches if not row["comparable"]), Provenance
        ),
        "entries": sorted(
            entries, key=lambda e: canonical_json([e[n] for n in (*QUESTION, "shape")])
        ),
    }


def _count_words(words: Iterable[Any], known: type[Status] | type[Provenance]) -> dict[str, int]:
    return dict(sorted(Counter(w if w in set(known) else "unknown" for w in words).items()))


def _build_entry(
    rows: Sequence[Mapping[str, Any]], by_batch: Mapping[int, RunMeasurement]
) -> dict[str, Any]:
    first = rows[0]
    batches = [_summarize_batch(size, measured) for size, measured in sorted(by_batch.items())]
    # An unusable measurement cannot be the best.
    usable = [batch for batch in batches if by_batch[batch["batch_size"]].is_usable]
    timed = [batch for batch in usable if batch["latency_ms"] is not None]
    with_throughput = [batch for batch in usable if batch["throughput"] is not None]
    best = max(with_throughput, key=lambda batch: batch["throughput"], default=None)
    with_memory = [batch for batch in batches if batch["memory_peak_mb"] is not None]
    largest = max(with_memory, key=lambda batch: batch["memory_peak_mb"], default=None)
    fastest = min(timed, key=lambda batch: batch["latency_ms"], default=None)
    return {
        **{name: first.get(name) for name in QUESTION},
        "shape": {name: first[name] for name in OTHER_COLUMNS if first.get(name) is not None},
        **{name: first.get(name) for name in _MODEL_COLUMNS},
        "best_latency": _pick_columns(fastest, "latency_ms", "latency_statistic"),
        "best_throughput": {**picked, "unit": first.get("throughput_unit")}
        if (picked := _pick_columns(best, "throughput"))
        else None,
        "memory_peak": _pick_columns(largest, "memory_peak_mb", "memory_source"),
        "batch_scaling_efficiency": _scaling_efficiency(with_throughput, best),
        "batches": batches,
        "results": len(rows),
        "status_counts": _count_words((r.get("status") for r in rows), Status),
        "emulated": any(r.get("emulated") for r in rows),
        "flags": sorted({flag for batch in batches for flag in batch["flags"]}),
        "provenance": sorted({str(r["provenance"]) for r in rows}),
        "run_ids": sorted({str(r["run_id"]) for r in rows if r.get("run_id")}),
    }


def _group_by_batch(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    by_size: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        if (row.get("batch_size") or 0) >= 1:
            by_size.setdefault(row["batch_size"], []).append(row)
    return by_size


def _summarize_batch(size: int, measured: RunMeasurement) -> dict[str, Any]:
    """Return the medians of one batch size, and the largest memory peak of its results."""
    times: Sequence[Mapping[str, Any]] = measured.rows
    rows: Sequence[Mapping[str, Any]] = measured.launches
    p50 = [r["latency_p50_ms"] for r in times if r.get("latency_p50_ms") is not None]
    mean = [r["latency_mean_ms"] for r in times if r.get("latency_mean_ms") is not None]
    # The median of p50s if every result has one: p50s and means are not mixed.
    statistic, latencies = ("p50", p50) if len(p50) == len(times) else ("mean", mean)
    throughputs = [r["throughput"] for r in times if r.get("throughput") is not None]
    peaks = [r for r in rows if r.get("memory_peak_mb") is not None]
    peak = max(peaks, key=lambda r: r["memory_peak_mb"], default=None)
    return {
        "batch_size": size,
        "latency_ms": median(latencies) if latencies else None,
        "latency_statistic": statistic if latencies else None,
        "throughput": median(throughputs) if throughputs else None,
        "memory_peak_mb": peak["memory_peak_mb"] if peak else None,
        "memory_source": peak.get("memory_source") if peak else None,
        "results": len(rows),
        "flags": sorted({flag for row in rows for flag in _find_flags(row)}),
    }


def _find_flags(row: Mapping[str, Any]) -> list[str]:
    flags = [str(row["quality"])] if row.get("quality") in _FLAGGED_QUALITIES else []
    count = row.get("sample_count")
    return [*flags, FEW_SAMPLES] if count is not None and count < ENOUGH_SAMPLES else flags


def _pick_columns(batch: Mapping[str, Any] | None, *names: str) -> dict[str, Any] | None:
    if batch is None:
        return None
    return {name: batch[name] for name in (*names, "batch_size", "flags")}


def _scaling_efficiency(
    batches: Sequence[Mapping[str, Any]], best: Mapping[str, Any] | None
) -> float | None:
    if best is None or best is batches[0] or not batches[0]["throughput"]:
        return None
    smallest = batches[0]
    ratio = best["batch_size"] / smallest["batch_size"]
    efficiency: float = best["throughput"] / (smallest["throughput"] * ratio)
    return efficiency


_FLAGS = {
    "description": "reasons to doubt a value: one of its results is throttled, unsteady or"
    f" unusable, or has fewer than {ENOUGH_SAMPLES} samples (few_samples); no flag if their number"
    " is not known",
    "type": "array",
    "items": {"enum": sorted(map(str, FLAGS))},
}


def aggregate_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    words = {
        "id": SCHEMA_ID,
        "flags": _FLAGS,
        "statuses": [*map(str, Status), "unknown"],
        "provenances": [*map(str, Provenance), "unknown"],
    }
    columns = {"question": QUESTION, "aside": OTHER_COLUMNS, "about": _MODEL_COLUMNS}
    return load_schema("aggregate", words, columns)


def format_schema() -> str:
    """Return the published text of the schema."""
    return json.dumps(aggregate_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_schema())
