"""run_inference_benchmark and run_benchmark_suite: results, files, output, refusals."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from scripted_api import COMMIT, CPU, GPU, MPS

from accelbench import BenchmarkConfig, run_benchmark_suite, run_inference_benchmark
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import RESULT, RUN_STARTED
from accelbench.exchange.guide_csv import GUIDE_COLUMNS, VALUE_COLUMNS
from accelbench.run.conduct import lifecycle
from accelbench.run.plan import expand
from accelbench.store.database import ENVIRONMENT, Database
from accelbench.store.journal import read

#: The keys of "Metrics Collected", as the document lists them.
DOCUMENT = (
    *("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "latency_mean_ms", "latency_std_ms"),
    *("latency_min_ms", "latency_max_ms", "throughput_ips", "memory_mb", "compilation_time_ms"),
    *("framework", "model", "device", "device_type", "batch_size", "input_shape", "dtype"),
    *("timestamp", "git_commit"),
)


def run(**more: Any) -> list[dict[str, Any]]:
    return run_inference_benchmark(
        BenchmarkConfig(**{"model_name": "resnet50", "batch_sizes": [1], "verbose": False, **more})
    )


def the_csv() -> list[dict[str, str]]:
    (path,) = Path("results/raw").glob("*.csv")
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_a_result_has_the_guides_keys_and_the_stores_columns(machine):
    (result,) = run(measurement_iterations=400, batch_sizes=[4], dtype="float16")
    assert set(GUIDE_COLUMNS) == set(DOCUMENT)
    assert tuple(result)[: len(GUIDE_COLUMNS)] == GUIDE_COLUMNS
    assert result.keys() >= {column.name for column in COLUMNS}
    assert result["framework"] == "pytorch"
    assert (result["model"], result["model_id"]) == ("resnet50", "resnet-50")
    assert (result["device"], result["device_type"]) == ("cpu:0", "cpu")
    assert (result["batch_size"], result["input_shape"]) == (4, (4, 3, 224, 224))
    assert (result["dtype"], result["precision"]) == ("float16", "fp16")
    assert result["git_commit"] == COMMIT
    assert result["status"] == "ok"
    assert result["latency_p50_ms"] == pytest.approx(4.0)
    assert result["throughput_ips"] == pytest.approx(1000.0)
    assert result["timestamp"] == result["started_at"]
    assert all(isinstance(result[key], float) for key in VALUE_COLUMNS)
    assert math.isnan(result["compilation_time_ms"])
    assert result["compile_ms"] is None
    assert all(result[key] for key in ("run_id", "result_id", "case_id"))


def test_as_many_steps_as_asked_and_a_warning_where_they_are_few(machine):
    (few,) = run(measurement_iterations=20, warmup_iterations=3)
    assert (few["sample_count"], few["warmup_steps"]) == (20, 3)
    assert "Measured with 20 iterations; the guide asks for 50 or more." in few["warnings"]
    (enough,) = run(measurement_iterations=50)
    assert enough["sample_count"] == 50
    assert not [text for text in enough["warnings"] if "guide asks" in text]


def test_results_come_in_the_order_that_was_asked_for(machine):
    assert [r["batch_size"] for r in run(batch_sizes=[8, 1, 4])] == [8, 1, 4]
    assert [r["batch_size"] for r in run(batch_sizes=(1, 1))] == [1]


def test_an_input_shape_is_what_is_fed(machine):
    assert run(input_shape=(3, 160, 160))[0]["input_shape"] == (1, 3, 160, 160)
    assert run(model_name="bert", input_shape=(32,))[0]["input_shape"] == (1, 32)


def test_every_case_that_is_not_ok_says_why_and_still_formats(machine):
    machine.script({"how": "oom", "when": "step", "batch": 8})
    results = run(batch_sizes=[1, 8, 32])
    assert [r["status"] for r in results] == ["ok", "out_of_memory", "skipped"]
    for result in results[1:]:
        assert all(result[key] for key in ("reason", "message", "advice"))
        assert f"{result['latency_p50_ms']:.2f} {result['throughput_ips']:.1f}" == "nan nan"
    assert [row["latency_p50_ms"] for row in the_csv()][1:] == ["", ""]


# -- where it runs


@pytest.mark.parametrize(
    ("devices", "best"), [((CPU,), "cpu"), ((CPU, MPS), "mps"), ((CPU, MPS, GPU), "cuda")]
)
def test_the_best_device_present_is_taken(machine, devices, best):
    machine.has(*devices)
    assert run()[0]["device_type"] == best


def test_a_device_that_is_named_is_taken_though_a_better_one_is_there(machine):
    machine.has(CPU, GPU)
    assert run(device_prefer="cpu")[0]["device_type"] == "cpu"


def test_a_named_device_that_is_absent_is_never_replaced(machine):
    results = run(device_prefer="cuda", batch_sizes=[1, 8])
    assert {r["status"] for r in results} == {"unsupported"}
    assert {r["device_type"] for r in results} == {"cuda"}
    assert {r["reason"] for r in results} == {"hardware_absent"}
    assert "there is none in this test" in results[0]["message"]


def test_a_framework_that_is_not_installed_is_unsupported(machine):
    (result,) = run(framework="jax")
    assert (result["framework"], result["status"]) == ("jax", "unsupported")
    assert result["message"] == "no runtime named jax is installed here"
    assert result["input_shape"] == (1, 3, 224, 224)


def test_a_framework_works_once_it_is_installed(machine, monkeypatch):
    both = {**expand.installed_runtimes(), "jax": expand.installed_runtimes()["pytorch"]}
    monkeypatch.setattr(expand, "installed_runtimes", lambda: both)
    (result,) = run(framework="jax")
    assert (result["framework"], result["status"]) == ("jax", "ok")


# -- suites


def test_a_suite_is_one_run_with_one_csv(machine):
    results = run_benchmark_suite(
        models=["resnet50", "vit_b_16"],
        frameworks=["pytorch", "jax"],
        batch_sizes=[1, 8],
        measurement_iterations=5,
        dtype="bfloat16",
        verbose=False,
    )
    assert [(r["model"], r["framework"], r["batch_size"]) for r in results] == [
        (model, framework, batch)
        for model in ("resnet50", "vit_b_16")
        for framework in ("pytorch", "jax")
        for batch in (1, 8)
    ]
    assert [r["status"] for r in results] == ["ok", "ok", "unsupported", "unsupported"] * 2
    assert {r["dtype"] for r in results} == {"bfloat16"}
    assert len({r["run_id"] for r in results}) == 1
    rows = the_csv()
    assert [row["result_id"] for row in rows] == [r["result_id"] for r in results]
    assert list(rows[0])[: len(GUIDE_COLUMNS)] == list(GUIDE_COLUMNS)
    assert float(rows[0]["latency_p50_ms"]) == results[0]["latency_p50_ms"]


def test_a_suites_batch_sizes_are_the_guides_by_default(machine):
    results = run_benchmark_suite(["resnet50"], ["jax"], verbose=False)
    assert [r["batch_size"] for r in results] == [1, 8, 32, 128]


def test_a_model_that_is_named_twice_is_measured_once(machine):
    results = run_benchmark_suite(["resnet50", "resnet-50"], ["jax"], [1], verbose=False)
    assert [r["model"] for r in results] == ["resnet50"]


@pytest.mark.parametrize("names", ["resnet50", []])
def test_a_suite_takes_lists_of_names(machine, names):
    with pytest.raises(UsageError, match="models takes a list of names"):
        run_benchmark_suite(names, ["pytorch"])


# -- what is written


def test_the_csv_is_never_overwritten(machine, monkeypatch):
    monkeypatch.setattr("accelbench.api.running.time.time", lambda: 1735732800.0)
    for _ in range(3):
        run(framework="jax")
    names = sorted(path.name for path in Path("results/raw").glob("*.csv"))
    stem = "benchmark_results_20250101_120000"
    assert names == [f"{stem}-2.csv", f"{stem}-3.csv", f"{stem}.csv"]


def test_the_journal_is_beside_the_csv_and_holds_every_sample(machine):
    (result,) = run(csv_output_dir="mine", measurement_iterations=7)
    (path,) = Path("mine").rglob("*.jsonl")
    facts = read(path)
    begun = next(fact.body for fact in facts if fact.kind == RUN_STARTED)
    assert begun["command"].startswith("accelbench.run_inference_benchmark(BenchmarkConfig(")
    (fact,) = [fact for fact in facts if fact.kind == RESULT]
    assert fact.body["result_id"] == result["result_id"]
    assert len(fact.body["samples"]["step"]) == 7
    assert not list(Path().rglob("*.duckdb"))


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_database_is_filled_where_one_is_wanted(machine, how, monkeypatch):
    db = Path("mine.duckdb").absolute()
    if how == "variable":
        monkeypatch.setenv(ENVIRONMENT, str(db))
    config = BenchmarkConfig(batch_sizes=[1], verbose=False)
    (result,) = run_inference_benchmark(config, db=db if how == "argument" else None)
    (row,) = Database(db).results()
    assert row["result_id"] == result["result_id"]
    assert not list(Path("results").rglob("*.jsonl"))


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(machine):
    Path("results").touch()
    with pytest.raises(SurroundingsError, match=r"cannot be written to results/raw"):
        run()


def test_data_that_is_not_there_is_told_before_anything_is_written(machine):
    with pytest.raises(UsageError, match="no data at data/imagenet100"):
        run(data_source="data/imagenet100")
    assert not list(Path().iterdir())


def test_ctrl_c_keeps_what_was_measured(machine, monkeypatch, capsys):
    begin = lifecycle.start

    def interrupted(planned: Any, folder: Any, observer: Any, *more: Any) -> Any:
        finished = observer.case_finished

        def finish(row: Any) -> None:
            finished(row)
            raise KeyboardInterrupt

        observer.case_finished = finish
        return begin(planned, folder, observer, *more)

    monkeypatch.setattr(lifecycle, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(batch_sizes=[1, 8, 32], verbose=True)
    said = capsys.readouterr().out
    assert "Total configurations: 1\n" in said
    assert "Complete" not in said
    assert [row["batch_size"] for row in the_csv()] == ["1"]


# -- what is printed


def test_the_output_has_the_guides_form(machine, capsys):
    run(batch_sizes=[1, 4], measurement_iterations=50, verbose=True)
    (path,) = Path("results/raw").glob("*.csv")
    line = "=" * 60
    lines = capsys.readouterr().out.splitlines()
    assert [x for x in lines if not x.startswith("  Memory: ")] == [
        *(line, "PyTorch Benchmark: resnet50", line),
        *("Device: test processor", "  Type: CPU", "  Available: True", ""),
        "Benchmarking batch size: 1",
        *("  Latency (p50): 1.000ms", "  Throughput: 1000.00 images/sec", ""),
        "Benchmarking batch size: 4",
        *("  Latency (p50): 4.000ms", "  Throughput: 1000.00 images/sec", ""),
        *(line, "Benchmark Suite Complete", line),
        *("Total configurations: 2", f"Results saved to: {path}"),
    ]
    assert len([x for x in lines if x.startswith("  Memory: ") and x.endswith(" MB")]) == 2


def test_what_did_not_work_is_printed_with_its_reason(machine, capsys):
    run(device_prefer="cuda", verbose=True)
    said = capsys.readouterr().out
    assert "Device: cuda\n  Type: CUDA\n  Available: False\n  Reason: cuda is not present" in said
    assert "  Status: unsupported — cuda is not present: there is none in this test\n" in said
    assert "  → Buy one.\n" in said


def test_nothing_is_printed_where_nothing_is_wanted(machine, capfd):
    run()
    assert capfd.readouterr() == ("", "")


# -- for real


def test_a_real_model_is_measured_for_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    results = run(
        model_name="resnet-tiny", device_prefer="cpu", batch_sizes=[1, 2], measurement_iterations=5
    )
    assert [r["status"] for r in results] == ["ok", "ok"], json.dumps(results, default=str)
    for result in results:
        assert result["latency_p50_ms"] > 0
        assert result["throughput_ips"] > 0
        assert result["memory_mb"] > 0
        assert result["provenance"] == "measured"
        assert result["evidence"]["engine"].startswith("torch ")
