"""What cannot be is refused with file, line and field in any format; what can be is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bodies import body
from foreign_files import results, table

from accelbench.core.columns import BY_NAME
from accelbench.core.errors import UsageError
from accelbench.exchange.imports.places import placed
from accelbench.exchange.imports.possible import contradiction
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.store.conflicts import ConflictError
from accelbench.store.database import Database

RATE = {"latency_mean_ms": 2.0, "batch_size": 4, "throughput": 2000.0}
TOKENS = {"latency_mean_ms": 2.0, "batch_size": 1, "new_tokens": 8, "throughput_unit": "tokens/s"}
START = {"started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-01T03:04:05Z"}
#: What a result says, the column that is named, and why.
IMPOSSIBLE = [
    ({"latency_ci_low_ms": 2.0, "latency_ci_high_ms": 1.0}, "latency_ci_high_ms", "is below late"),
    ({"latency_p50_ms": 2.0, "latency_p90_ms": 1.0}, "latency_p90_ms", "is below latency_p50_ms"),
    ({"latency_p95_ms": 9.0, "latency_max_ms": 8.0}, "latency_max_ms", "is below latency_p95_ms"),
    ({"latency_min_ms": 0.3, "latency_mean_ms": 0.2}, "latency_mean_ms", "is below latency_min_ms"),
    ({**RATE, "throughput": 1000.0}, "throughput", "is not what the latency says"),
    ({**TOKENS, "throughput": 500.0}, "throughput", "is not what the latency says"),
    ({**TOKENS, "tokens_per_second": 500.0}, "tokens_per_second", "is not what the latency says"),
    ({"sample_count": 10**15}, "sample_count", "more than there can be"),
    ({"unexplained_share": 5.0}, "unexplained_share", "more than there can be"),
    ({"unexplained_share": -0.5}, "unexplained_share", "is below 0"),
    ({"sample_count": 3, "outlier_count": 4}, "sample_count", "is below outlier_count"),
    ({"sample_count": -1}, "sample_count", "is below 0"),
    ({"started_at": "2999-01-02T03:04:05Z"}, "started_at", "is in the future"),
    ({"finished_at": "2999-01-02T03:04:05Z"}, "finished_at", "is in the future"),
    ({"started_at": "0001-01-02T03:04:05Z"}, "started_at", "before there were such clocks"),
    (START, "finished_at", "is below started_at"),
]  # fmt: skip
POSSIBLE = [
    RATE,
    {**TOKENS, "throughput": 4000.0, "tokens_per_second": 4000.0},
    {"latency_p50_ms": 2.0, "latency_p90_ms": 2.0, "latency_max_ms": 2.0, "latency_mean_ms": 2.0},
    {"latency_p50_ms": 2.0005, "latency_p90_ms": 2.0},  # rounded
    {"latency_mean_ms": 2.0, "latency_p50_ms": 1.0, "latency_ci_low_ms": 0.9,
     "latency_ci_high_ms": 30.0},
    {**RATE, "throughput": 1000.0, "world_size": 2},
    {**RATE, "throughput": 1000.0, "provenance": "imported"},  # its own format has judged it
    {"started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:00:05Z"},  # set back
]  # fmt: skip

each_impossible = pytest.mark.parametrize(
    ("said", "field", "why"), IMPOSSIBLE, ids=lambda one: str(one)[:60]
)


def write(folder: Path, form: str, said: dict[str, Any]) -> tuple[Path, int]:
    """The file, and the line on which the last field stands."""
    path = folder / f"r.{form}"
    if form == "json":
        path.write_text(results(**said))
        return path, 0
    if form == "csv":
        path.write_text(table(**said))
        return path, 2
    rows = [json.loads(results(**one))["results"][0] for one in ({"result_id": "first"}, said)]
    made = pa.Table.from_pylist([{**dict.fromkeys(rows[1]), **row} for row in rows])
    for number, name in enumerate(made.column_names):
        if BY_NAME[name].kind == "time":
            moments = pa.array([row.get(name, "").rstrip("Z") or None for row in rows])
            made = made.set_column(number, name, moments.cast(pa.timestamp("us")))
        elif BY_NAME[name].kind == "float":
            made = made.set_column(number, name, made[name].cast(pa.float64()))
    pq.write_table(made, path)
    return path, 2


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@each_impossible
def test_what_cannot_be_is_refused(
    said: dict[str, Any], field: str, why: str, form: str, tmp_path: Path
) -> None:
    path, line = write(tmp_path, form, said)
    with pytest.raises(MalformedError) as caught:
        read_import(form, path)
    error = caught.value
    assert (error.file, error.field) == (path, field)
    assert error.line == (line or error.line)
    assert form != "json" or field in path.read_text().splitlines()[(error.line or 0) - 1]
    assert why in error.message or form == "parquet"
    assert error.advice == "Nothing of it was imported."


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize("said", POSSIBLE, ids=lambda one: str(one)[:60])
def test_what_can_be_is_taken(said: dict[str, Any], form: str, tmp_path: Path) -> None:
    path, _ = write(tmp_path, form, said)
    assert read_import(form, path).results >= 1


SAMPLES = [
    ({"step": [1000, -1]}, 2, "-1 of 'step' is below 0"),
    ({"step": [1000, 1000]}, 3, "2 are there, where sample_count says 3"),
    ({"step": [1000, 1.5]}, 2, "no list of whole nanoseconds"),
    ({"step": [1000, True]}, 2, "no list of whole nanoseconds"),
    ({"step": 7}, 1, "no list of whole nanoseconds"),
]


@pytest.mark.parametrize(("samples", "count", "why"), SAMPLES)
def test_samples_are_those_that_the_result_says(
    samples: dict[str, Any], count: int, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "r.json"
    path.write_text(results(samples=samples, sample_count=count))
    with pytest.raises(MalformedError, match=why) as caught:
        read_import("json", path)
    assert caught.value.field == "samples"
    assert caught.value.line is not None


def test_a_table_of_another_program_is_held_to_the_same_rules(tmp_path: Path) -> None:
    path = tmp_path / "benchmark_results_1.csv"
    path.write_text(
        "framework,model,device,batch_size,dtype,latency_mean_ms,latency_p50_ms,latency_p99_ms\n"
        "pytorch,m,cpu,1,float32,1.0,1.0,1.1\n"
        "pytorch,m,cpu,2,float32,1.0,1.0,0.5\n"
    )
    with pytest.raises(MalformedError, match=r"line 3, 'latency_p99_ms': 0\.5 is below"):
        read_import("guide-csv", path)
    assert contradiction({**RATE, "throughput": 1900.0}, 2.0) is None


def bring(database: Database, kind: str, path: Path) -> int:
    found = read_import(kind, path)
    return database.bring_in(found.run_id, found.facts, found.bodies, found.queries).results


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize(
    "said", [{"latency_mean_ms": 3.0}, {"status": "failed"}, {"memory_peak_mb": 1.0}], ids=str
)
def test_another_figure_under_a_known_id_is_an_error(
    said: dict[str, Any], form: str, tmp_path: Path
) -> None:
    database = Database(tmp_path / "a.duckdb")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    known = {"latency_mean_ms": 2.0, "memory_peak_mb": 5.0}
    first, _ = write(tmp_path / "one", form, known)
    brought = bring(database, form, first)
    assert brought >= 1
    assert bring(database, form, first) == 0  # the same again is the same
    second, line = write(tmp_path / "two", form, known | said)
    before = database.results()
    with pytest.raises(ConflictError) as caught:
        bring(database, form, second)
    assert database.results() == before
    told = placed(form, [second], caught.value)
    assert isinstance(told, MalformedError)
    assert (told.file, told.field) == (second, next(iter(said)))
    assert told.line is not None
    assert told.line == (line or told.line)


def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    whole = json.loads(results(latency_mean_ms=2.0))
    (tmp_path / "r.json").write_text(
        json.dumps(
            {"results": [*whole["results"], {**whole["results"][0], "latency_mean_ms": 3.0}]}
        )
    )
    database = Database(tmp_path / "a.duckdb")
    with pytest.raises(ConflictError, match=r"'latency_mean_ms': it is 3\.0, where"):
        bring(database, "json", tmp_path / "r.json")
    assert not database.results()


def test_the_store_refuses_samples_that_are_not_as_many_as_are_said(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.duckdb")
    with pytest.raises(UsageError, match="Result x of run r is not stored: it has 3 samples"):
        database.bring_in("r", [], [{**body(sample_count=4), "result_id": "x"}])
    assert not database.results()
