"""Every empty column of a result says why it is empty."""

import pytest
from fixed_machine import FOUND, models
from scripted_runs import Watcher

from accelbench.core.columns import COLUMNS
from accelbench.core.facts import new_run_id
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode, Status, Timing
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.measure.summary import PERCENTILES, Resolution, fewest_samples, summarise
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.conduct.results import why_null
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request


def empty_columns(row):
    return {c.name for c in COLUMNS if row.get(c.name) is None and c.name != "nulls"}


def check(rows):
    for row in rows:
        assert set(row["nulls"]) == empty_columns(row)
        assert "not known" not in row["nulls"].values(), row["model"]


def test_every_null_of_a_scripted_run_is_explained(scripted):
    scripted.script({"when": "step", "how": "raise", "batch": 4})
    rows = scripted.run()
    assert {row["status"] for row in rows} == {"ok", "failed"}
    check(rows)
    check(scripted.run(batches=(1,), runtimes=("scripted",), iterations=1, warmup=0))


@pytest.mark.parametrize("names", [("bert-tiny", "gpt2-tiny"), ("vit-tiny",)])
def test_every_null_of_real_runs_is_explained(tmp_path, names):
    request = Request(
        models(*names),
        hardware=("cpu",),
        batch_sizes=(1,),
        sequence_lengths=(8,),
        new_tokens=(3,),
        modes=(Mode.INFERENCE, Mode.TRAINING),
    )
    runtimes = {"pytorch": PytorchRuntime()}
    plan = expand.plan_for(request, FOUND, runtimes)
    settings = RunSettings(run_id=new_run_id(), threads=1, iterations=3, warmup=1)
    ended = lifecycle.start(PlannedRun(plan, settings, runtimes), tmp_path, Watcher(), {})
    assert {row["status"] for row in ended.rows} == {Status.OK}
    check(list(ended.rows))
    for row in ended.rows:
        generates = row["new_tokens"] is not None
        assert ("ttft_ms" in row["nulls"]) == (not generates)
        assert ("loss_per_step" in row["nulls"]) == (row["mode"] == "inference")


def test_why_a_column_is_empty():
    body = {"status": "ok", "mode": "training"}
    why = why_null(body, {"convergence": "the reference is too large"})
    assert why["convergence"] == "the reference is too large"
    assert why["ttft_ms"] == "nothing is generated"
    why = why_null({"status": "failed", "mode": "inference"}, {})
    assert why["latency_p50_ms"] == "the case is failed: there is no figure"
    body = {"status": "ok", "mode": "inference", "sample_count": 30}
    assert why_null(body, {})["latency_p99_ms"] == "it needs 100 samples and has 30"
    body = {"status": "ok", "mode": "inference", "architecture": "rag"}
    assert why_null(body, {})["embed_ms"] == "of a rag model only a whole request is split"
    assert why_null(body | {"architecture": "vision"}, {})["embed_ms"] == "nothing is retrieved"
    requests = why_null({"status": "ok", "mode": "inference", "new_tokens": 8}, {})
    assert requests["ttft_ms"] == "the runtime does not tell the parts of a request"
    trained = why_null({"status": "ok", "mode": "training"}, {})
    assert trained["backward_ms"] == "the runtime does not tell it"

    whole = {"evidence": {"details": {"training": {"one_program": True}}}}
    fused = why_null({"status": "ok", "mode": "training", **whole}, {})
    for part in ("forward_ms", "loss_ms", "backward_ms", "optimizer_ms"):
        assert "fused into one program" in fused[part]
    assert "fused" not in fused["convergence"]


#: From how many independent samples on the interval of a percentile has an upper end.
UPPER_END = {"p50": 6, "p90": 36, "p95": 72, "p99": 368}
OK = {"status": "ok", "sampling": {"step": {"timing": "each"}}}


@pytest.mark.parametrize("n", [5, 10, 20, 50, 100, 400])
def test_why_a_percentile_is_not_given_is_what_measuring_goes_by(n):
    figures = summarise([1e6 + i * 0.618 % 1 for i in range(n)], Resolution(Timing.EACH))
    said = why_null({**OK, **figures}, {})
    for name, q in PERCENTILES.items():
        of = f"latency_{name}"
        assert (f"{of}_ms" in said) == (n < fewest_samples(q))
        if n < fewest_samples(q):
            why = f"it needs {fewest_samples(q)} samples and has {n}"
            assert {said[f"{of}_{one}"] for one in ("ms", "low_ms", "high_ms", "rough")} == {why}
        elif n < UPPER_END[name]:
            assert f"that needs {UPPER_END[name]} independent ones" in said[f"{of}_high_ms"]
    whole = why_null({**OK, "sampling": {"step": {"timing": "whole"}}}, {})
    assert whole["latency_p90_rough"] == whole["latency_p90_ms"]
    assert whole["latency_p90_ms"] == "steps too short for the clock were timed in blocks"
