"""EnhancedHardwareBenchmarkRunner: what is measured, where, why, and what is returned and left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scripted_api import CPU, GPU

from accelbench import EnhancedHardwareBenchmarkRunner
from accelbench.api import benchmark, enhanced
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.present.charts import draw
from accelbench.store.database import ENVIRONMENT, Database
from accelbench.store.journal import BARE_JOURNALS

FEW: dict[str, Any] = {"batch_sizes": [1], "iterations": 5, "warmup": 1}


class Says:
    """A selector that names what it is told to, and keeps what it was asked."""

    def __init__(self, **best: str) -> None:
        self._best = best
        self.asked: list[Mapping[str, Any]] = []

    def select_hardware(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        first = self._best.get(asked["model_name"].replace("-", "_"), "cpu")
        return {"primary_recommendation": first, "fallback_options": [], "all_scores": {}}


def runner(selector: Any = None, **more: Any) -> EnhancedHardwareBenchmarkRunner:
    return EnhancedHardwareBenchmarkRunner(
        **{"selector": selector or Says(), "verbose": False, **more}
    )


def test_it_measures_on_what_the_selector_names_and_says_why(machine):
    machine.has(CPU, GPU)
    says = Says(bert_tiny="cuda")
    result = runner(says).run_benchmark("bert-tiny", "embedding", **FEW)
    assert (result["hardware"], result["runtime"]) == ("cuda", "pytorch")
    assert result["automatic"] is True
    assert result["reason"].startswith("chosen before cpu")
    assert result["recommendation"]["primary_recommendation"] == "cuda"
    assert says.asked[0]["available_hardware"] == ["cpu", "cuda"]
    assert (result["status"], result["status_counts"]) == ("ok", {"ok": 1})
    assert result["model_family"] == "embedding"
    assert "is measured on cuda" in result["notes"][0]


def test_a_platform_that_is_named_is_taken_and_nobody_is_asked(machine):
    machine.has(CPU, GPU)
    says = Says()
    result = runner(says).run_benchmark("bert-tiny", hardware="cpu", **FEW)
    assert (result["hardware"], result["automatic"], says.asked) == ("cpu", False, [])
    assert result["recommendation"] is None


def test_one_that_is_named_and_absent_is_never_replaced(machine):
    result = runner().run_benchmark("bert-tiny", hardware="cuda", **FEW)
    assert (result["hardware"], result["status"]) == ("cuda", "unsupported")
    assert result["aggregate"] is None
    assert result["results"][0]["reason"] == "hardware_absent"


def test_only_what_is_available_may_be_chosen(machine):
    machine.has(CPU, GPU)
    says = Says()
    runner(says).run_benchmark("bert-tiny", available_hardware=["CPU", "openvino"], **FEW)
    assert says.asked[0]["available_hardware"] == ["cpu"]


def test_where_nothing_that_may_be_chosen_is_here_that_is_the_reason(machine):
    machine.has(CPU)
    result = runner().run_benchmark("bert-tiny", available_hardware=["cuda"], **FEW)
    assert (result["hardware"], result["results"]) == (None, [])
    assert result["reason"] == "none of cuda is here"


def test_results_are_plain_json_in_the_order_of_batch_sizes(machine):
    result = runner().run_benchmark("bert-tiny", batch_sizes=[4, 1], iterations=5, warmup=1)
    again = json.loads(json.dumps(result, allow_nan=False))
    assert [row["batch_size"] for row in again["results"]] == again["batch_sizes"] == [1, 4]
    assert [row["latency_mean_ms"] for row in again["results"]] == [1.0, 4.0]
    # A script is no measurement: nothing is made of its figures.
    assert result["aggregate"] is None


def test_what_did_not_go_through_is_part_of_the_answer(machine):
    machine.script({"how": "oom", "when": "step", "batch": 8})
    result = runner().run_benchmark("bert-tiny", batch_sizes=[1, 8], iterations=5, warmup=1)
    assert result["status"] == "partial"
    assert result["status_counts"] == {"ok": 1, "out_of_memory": 1}


# -- several


def test_several_models_are_one_run_and_each_has_its_own_choice(machine):
    machine.has(CPU, GPU)
    whole = runner(Says(gpt2_tiny="cuda")).run_multiple(["bert-tiny", "gpt2-tiny"], **FEW)
    assert {name: one["hardware"] for name, one in whole["models"].items()} == {
        "bert-tiny": "cpu",
        "gpt2-tiny": "cuda",
    }
    assert {row["run_id"] for one in whole["models"].values() for row in one["results"]} == {
        whole["run_id"]
    }


def test_families_choose_from_a_set(machine):
    whole = runner().run_multiple(
        model_families=["embedding", "vision"], models_set="small", limit=3, **FEW
    )
    families = {one["model_family"] for one in whole["models"].values()}
    assert len(whole["models"]) == 3
    assert families <= {"embedding", "vision", "multimodal"}


def test_a_report_of_the_run_is_left_where_files_go(machine, tmp_path):
    whole = runner(output_dir=tmp_path / "out").run_multiple(
        ["bert-tiny"], create_report=True, **FEW
    )
    page = tmp_path / "out" / f"report-{whole['run_id']}.html"
    assert str(page) in whole["files"]
    assert "bert-tiny" in page.read_text(encoding="utf-8")
    assert list((tmp_path / "out" / "raw_results").glob("bert*.json"))
    assert (tmp_path / "out/processed_results/aggregated_benchmarks.json").is_file()


def test_without_a_database_there_is_a_report_too(machine):
    whole = runner(no_database=True).run_multiple(["bert-tiny"], create_report=True, **FEW)
    (page,) = whole["files"]
    assert Path(page).is_file()


def test_a_report_that_cannot_be_drawn_is_told_before_anything_is_measured(machine, monkeypatch):
    monkeypatch.setattr(draw, "find_spec", lambda name: None)
    with pytest.raises(AccelbenchError, match="create_report needs the package vl-convert"):
        runner().run_multiple(["bert-tiny"], create_report=True, **FEW)
    assert not list(Path().iterdir())


# -- where it goes


def test_results_go_into_the_usual_database(machine):
    result = runner().run_benchmark("bert-tiny", **FEW)
    assert result["database"] == str(Path("accelbench.duckdb").resolve())
    (row,) = Database(Path("accelbench.duckdb").resolve()).results()
    assert row["result_id"] == result["results"][0]["result_id"]


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_or_into_the_one_that_is_named(machine, how, monkeypatch):
    if how == "variable":
        monkeypatch.setenv(ENVIRONMENT, "mine.duckdb")
    result = runner(database_path="mine.duckdb" if how == "argument" else None).run_benchmark(
        "bert-tiny", **FEW
    )
    assert result["database"] == str(Path("mine.duckdb").resolve())
    assert not Path("accelbench.duckdb").exists()


def test_or_into_none_and_only_the_journal_is_left(machine):
    result = runner(no_database=True).run_benchmark("bert-tiny", **FEW)
    assert result["database"] is None
    assert Path(result["journal"]).parent == BARE_JOURNALS.absolute()
    assert not list(Path().rglob("*.duckdb"))


def test_ctrl_c_keeps_what_was_measured(machine, monkeypatch):
    observe = benchmark.observer_of

    def observer(*arguments: Any) -> Any:
        made = observe(*arguments)

        def finish(row: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(made, "case_finished", finish)
        return made

    monkeypatch.setattr(enhanced, "observer_of", observer)
    with pytest.raises(KeyboardInterrupt):
        runner().run_benchmark("bert-tiny", batch_sizes=[1, 8], iterations=5, warmup=1)
    assert len(Database(Path("accelbench.duckdb").resolve()).results()) == 1


def test_progress_is_printed_as_the_guides_api_prints_it(machine, capsys):
    runner(verbose=True).run_benchmark("bert-tiny", **FEW)
    said = capsys.readouterr().out
    assert "Note: bert-tiny fp32 inference is measured on cpu" in said
    assert "PyTorch Benchmark: bert-tiny" in said
    assert "Results saved to: " in said


# -- what is refused


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_name": "bert-tny"}, "Did you mean bert-tiny"),
        ({"model_family": "embeding"}, "There is no model family 'embeding'"),
        ({"model_family": "vision"}, "is not of the family vision: it is of embedding"),
        ({"hardware": "abacus"}, "There is no hardware named 'abacus'"),
        ({"available_hardware": ["abacus"]}, "There is no hardware named 'abacus'"),
        ({"available_hardware": "cpu"}, "takes a list of names, not 'cpu'"),
        ({"mode": "dreaming"}, "Modes: inference, training"),
        ({"batch_sizes": [0]}, "batch_sizes takes a whole number of at least 1, not 0"),
        ({"batch_sizes": 8}, "batch_sizes takes a list of whole numbers, not 8"),
        ({"precision": "fp7"}, "fp7"),
        ({"framework": "abacus"}, "There is no framework named 'abacus'"),
        ({"launches": 0}, "launches takes a whole number of at least 1"),
        ({"iterations": 0}, "iterations takes a whole number of at least 1"),
        ({"verify": "never"}, "verify takes auto, require, off"),
        ({"energy": "yes"}, "energy takes True or False, not 'yes'"),
        ({"processes": 0}, "processes takes a whole number of at least 1, not 0"),
        ({"strategy": "zero3"}, "There is no strategy 'zero3'"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(machine, given, said):
    with pytest.raises(UsageError) as caught:
        runner().run_benchmark(**{"model_name": "bert-tiny", **given})
    assert said in str(caught.value)
    assert not list(Path().iterdir())


def test_a_database_and_none_contradict_each_other():
    with pytest.raises(UsageError, match="contradict"):
        EnhancedHardwareBenchmarkRunner("mine.duckdb", no_database=True)


@pytest.mark.parametrize("given", [{"models": "bert-tiny"}, {"model_families": "vision"}])
def test_several_are_named_in_a_list(machine, given):
    with pytest.raises(UsageError, match="takes a list of names"):
        runner().run_multiple(**given)


# -- for real


def test_a_real_model_is_measured_for_real_where_the_selector_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    made = EnhancedHardwareBenchmarkRunner(verbose=False)
    asked: dict[str, Any] = {"batch_sizes": [1, 2], "iterations": 5, "available_hardware": ["cpu"]}
    result = made.run_benchmark("bert-tiny", "embedding", **asked)
    assert result["status"] == "ok", json.dumps(result)
    assert {row["provenance"] for row in result["results"]} == {"measured"}
    whole = result["aggregate"]
    usable = [row for row in result["results"] if row["quality"] != "unusable"]
    if len(usable) < len(result["results"]):  # the machine was busy
        assert usable or whole is None
        return
    assert whole["best_throughput"]["throughput"] == max(row["throughput"] for row in usable)
    assert whole["best_latency"]["latency_ms"] > 0
    assert result["recommendation"]["primary_recommendation"] == "cpu"
    # What was just measured is what the next choice rests on.
    again = made.selector.select_hardware("embedding", "bert-tiny", 1, "inference")
    assert again["all_scores"]["cpu"]["basis"] == "measured"
