"""What cannot be is refused with file, line and field in any format; what can be is taken."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bodies import body
from foreign_files import bring, results, table

from accelbench.core.columns import BY_NAME, COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.plausible_values import explain_impossible, find_contradiction
from accelbench.exchange.imports.reading import locate_conflict, read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.store.database import Database
from accelbench.store.merge_validation import ConflictError
from accelbench.store.plausible_values import column_sql, rules
from accelbench.store.schema import SQL_TYPES

RATE = {"latency_mean_ms": 2.0, "batch_size": 4, "throughput": 2000.0}
TOKENS = {"latency_mean_ms": 2.0, "batch_size": 1, "new_tokens": 8, "throughput_unit": "tokens/s"}
START = {"started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-01T03:04:05Z"}
#: What a result says, the column that is named, and why.
IMPOSSIBLE = [
    ({"latency_ci_low_ms": 2.0, "latency_ci_high_ms": 1.0}, "latency_ci_high_ms", "is below late"),
    ({"latency_p50_ms": 2.0, "latency_p90_ms": 1.0}, "latency_p90_ms", "is below latency_p50_ms"),
    ({"latency_p95_ms": 9.0, "latency_max_ms": 8.0}, "latency_max_ms", "is below latency_p95_ms"),
    ({"latency_min_ms": 0.3, "latency_mean_ms": 0.2}, "latency_mean_ms", "is below latency_min_ms"),
    ({**RATE, "throughput": 1000.0}, "throughput", "is not the rate that the latency gives"),
    ({**TOKENS, "throughput": 500.0}, "throughput", "is not the rate that the latency gives"),
    ({**TOKENS, "tokens_per_second": 500.0}, "tokens_per_second", "that the latency gives"),
    ({"sample_count": 10**15}, "sample_count", "above the largest possible value"),
    ({"sample_count": 3, "effective_sample_count": 9.0}, "sample_count", "below effective_sample"),
    ({"latency_p50_ms": 4.0, "device_time_ms": 5.5}, "device_time_ms", "longer than a whole step"),
    ({"latency_p50_ms": 4.0, "latency_max_ms": 9.0, "device_time_ms": 12.0}, "device_time_ms",
     "longer than a whole step"),
    ({"memory_peak_mb": 1e15}, "memory_peak_mb", "above the largest possible value, 1.34218e+08"),
    ({"energy_joules": -1.0}, "energy_joules", "is below 0"),
    ({"power_watts": 1e12}, "power_watts", "above the largest possible value"),
    ({"power_watts": -1.0}, "power_watts", "is below 0"),
    ({"steps_verified": "maybe"}, "steps_verified", "is not one of ok, not_done"),
    ({"reason": "banana", "status": "failed", "runtime": "jax"}, "reason", "that this version"),
    ({"reason": "<script>", "status": "failed"}, "reason", "a lower-case word"),
    ({"provenance": "simulated", "precision": "fp31"}, "precision", "is not one of fp32"),
    ({"latency_p50_ms": None, "status": "ok"}, "status", "neither a latency nor a rate"),
    ({"verification": "ok", "verification_tolerance": 0.1, "verification_error": 0.2},
     "verification_error", "exceeds verification_tolerance"),
    ({"evidence": {"shares": {"cuda:0": 1.5}}}, "evidence", "of the time"),
    ({"options": [1]}, "options", "it is not a JSON object"),
    ({"loss_per_step": [1.0, 1e39]}, "loss_per_step", "is not between"),
    ({"started_at": "1999-12-31T23:59:59Z"}, "started_at", "or before 2000"),
    ({"unexplained_share": 5.0}, "unexplained_share", "above the largest possible value"),
    ({"unexplained_share": -0.5}, "unexplained_share", "is below 0"),
    ({"sample_count": 3, "outlier_count": 4}, "sample_count", "is below outlier_count"),
    ({"sample_count": -1}, "sample_count", "is below 0"),
    ({"started_at": "2999-01-02T03:04:05Z"}, "started_at", "is in the future"),
    ({"finished_at": "2999-01-02T03:04:05Z"}, "finished_at", "is in the future"),
    ({"started_at": "0001-01-02T03:04:05Z"}, "started_at", "or before 2000"),
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
    {"latency_p50_ms": 4.0, "device_time_ms": 4.2},  # of a pass of its own
    {"latency_p50_ms": 4.0, "latency_ci_high_ms": 9.0, "device_time_ms": 8.0},
    {"reason": "banana", "status": "failed", "runtime": "of_another_package"},
    {"reason": "job_failed", "status": "failed", "runtime": "jax", "provenance": "imported"},
    {"reason": "crash", "status": "failed", "runtime": "jax"},
    {"latency_p50_ms": None, "nulls": {"latency_mean_ms": "only verified, not measured"}},
    {"verification": "failed", "verification_tolerance": 0.1, "verification_error": 0.2,
     "status": "failed", "reason": "wrong_outputs"},
    {"evidence": {"shares": {"cuda:0": 1.0}}, "loss_per_step": [-1.0]},
    {"energy_above_idle_joules": -1.0},  # the idle device took more: something else ran
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
    said = {n: json.dumps(v) if BY_NAME[n].kind == "json" else v for n, v in said.items()}
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
def test_what_cannot_be_is_refused(said, field, why, form, tmp_path):
    path, line = write(tmp_path, form, said)
    with pytest.raises(MalformedError) as caught:
        read_import(form, path)
    error = caught.value
    assert (error.file, error.field) == (path, field)
    assert error.line == (line or error.line)
    assert form != "json" or field in path.read_text().splitlines()[(error.line or 0) - 1]
    assert why in error.message or form == "parquet"
    assert error.advice == "Nothing was imported."


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize("said", POSSIBLE, ids=lambda one: str(one)[:60])
def test_what_can_be_is_taken(said, form, tmp_path):
    path, _ = write(tmp_path, form, said)
    assert read_import(form, path).results >= 1


NUMBERS = [column for column in COLUMNS if column.kind in ("int", "float", "floats", "map")]
#: Numbers that are beyond what anything else can be, and here are none of it; and why.
ALLOWED = {
    ("seed", -1): "a seed counts nothing", ("lag1_autocorrelation", -1): "neighbours may alternate",
    ("loss_first", -1): "the logarithm of a density may be below 0", ("loss_last", -1): "the same",
    ("loss_per_step", -1): "the same", ("convergence", -1): "a loss may rise",
    ("energy_above_idle_joules", -1): "the idle device took more: something else ran beside it",
    ("implausible_rate", -1): "a mark only takes a result out of comparisons",
    ("implausible_rate", 1e300): "the same",
    ("extra", -1): "nothing is known of a plugin's figures but that they are finite",
    ("extra", 1e300): "the same",
}  # fmt: skip
BEYOND = (-1, 1e300, float("nan"), float("inf"))


def held(name: str, number: float) -> Any:
    kind = BY_NAME[name].kind
    return [number] if kind == "floats" else {"x": number} if kind == "map" else number


@pytest.mark.parametrize("form", ["json", "csv"])
def test_every_number_has_a_least_and_a_most(form, tmp_path):
    assert len(NUMBERS) > 60
    path = tmp_path / f"r.{form}"
    for column, number in itertools.product(NUMBERS, BEYOND):
        said = {column.name: held(column.name, number)}
        path.write_text(results(**said) if form == "json" else table(**said))
        if (column.name, number) in ALLOWED:
            assert read_import(form, path).results == 1
            continue
        with pytest.raises(MalformedError) as caught:
            read_import(form, path)
        error = caught.value
        inside = column.kind == "map" and form == "json" and not math.isfinite(number)
        assert error.field == ("x" if inside else column.name), (column.name, number)
        assert (error.file, error.line) == (path, 4 if form == "json" else 2)


def test_a_table_breaks_no_rule():
    # A table is held to the same ranges as a row.
    con = duckdb.connect()
    for column, number in itertools.product(NUMBERS, (*BEYOND, 0, 1, 2)):
        if column.kind == "int" and not (math.isfinite(number) and abs(number) < 2**63):
            continue
        holds = " AND ".join(condition for condition, _ in column_sql(column.name))
        asked = f"SELECT {holds} FROM (SELECT $1::{SQL_TYPES[column.kind]} AS {column.name})"
        ((can_be,),) = con.execute(asked, [held(column.name, number)]).fetchall()
        if not (column.kind == "map" and not math.isfinite(number)):  # refused by its kind there
            wanted = not explain_impossible(column.name, held(column.name, number))
            assert can_be is wanted, (column.name, number)
        if number in BEYOND:
            assert can_be is ((column.name, number) in ALLOWED), (column.name, number)
    # A table of nothing breaks no rule.
    con = duckdb.connect()
    nothing = ", ".join(f'NULL::{SQL_TYPES[c.kind]} AS "{c.name}"' for c in COLUMNS)
    asked = ", ".join(rule.condition for rule in rules(list(BY_NAME)))
    assert set(*con.execute(f"SELECT {asked} FROM (SELECT {nothing})").fetchall()) == {True}


SAMPLES = [
    ({"step": [1000, -1]}, 2, "-1 of 'step' is below 0"),
    ({"step": [1000, 1000]}, 3, "it has 2, and sample_count is 3"),
    ({"step": [1000, 1.5]}, 2, "not a list of whole nanoseconds"),
    ({"step": [1000, True]}, 2, "not a list of whole nanoseconds"),
    ({"step": 7}, 1, "not a list of whole nanoseconds"),
    ({"step": [10**30]}, 1, "longer than a year"),
]


@pytest.mark.parametrize(("samples", "count", "why"), SAMPLES)
def test_samples_are_those_that_the_result_says(samples, count, why, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(results(samples=samples, sample_count=count))
    with pytest.raises(MalformedError, match=why) as caught:
        read_import("json", path)
    assert caught.value.field == "samples"
    assert caught.value.line is not None


def test_a_table_of_another_program_is_held_to_the_same_rules(tmp_path):
    path = tmp_path / "benchmark_results_1.csv"
    path.write_text(
        "framework,model,device,batch_size,dtype,latency_mean_ms,latency_p50_ms,latency_p99_ms\n"
        "pytorch,m,cpu,1,float32,1.0,1.0,1.1\n"
        "pytorch,m,cpu,2,float32,1.0,1.0,0.5\n"
    )
    with pytest.raises(MalformedError, match=r"line 3, 'latency_p99_ms': 0\.5 is below"):
        read_import("guide-csv", path)
    assert find_contradiction({**RATE, "throughput": 1900.0}, 2.0) is None


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize(
    "said", [{"latency_mean_ms": 3.0}, {"status": "failed"}, {"memory_peak_mb": 1.0}], ids=str
)
def test_another_figure_under_a_known_id_is_an_error(said, form, tmp_path):
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
    told = locate_conflict(form, [second], caught.value)
    assert isinstance(told, MalformedError)
    assert (told.file, told.field) == (second, next(iter(said)))
    assert told.line is not None
    assert told.line == (line or told.line)


def test_a_file_that_contradicts_itself_is_refused(tmp_path):
    whole = json.loads(results(latency_mean_ms=2.0))
    (tmp_path / "r.json").write_text(
        json.dumps(
            {"results": [*whole["results"], {**whole["results"][0], "latency_mean_ms": 3.0}]}
        )
    )
    database = Database(tmp_path / "a.duckdb")
    with pytest.raises(ConflictError, match=r"'latency_mean_ms': it is 3\.0, but"):
        bring(database, "json", tmp_path / "r.json")
    assert not database.results()


def test_the_store_refuses_samples_that_are_not_as_many_as_are_said(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    with pytest.raises(UsageError, match="Result x of run r is not stored: it has 3 samples"):
        database.bring_in("r", [], [{**body(sample_count=4), "result_id": "x"}])
    assert not database.results()
