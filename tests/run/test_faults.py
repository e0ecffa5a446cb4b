"""Whatever happens to a worker becomes a result, and the next case goes to a fresh one."""

import dataclasses

import pytest
from fixed_machine import CPU, models
from scripted_runs import Watcher

from accelbench.core.case import Case
from accelbench.run.plan import run_forecast

#: how → (status, reason, a part of the message)
ENDINGS = {
    "raise": ("failed", "exception", "scripted failure"),
    "oom": ("out_of_memory", "out_of_memory", "no memory left"),
    "unsupported": ("unsupported", "scripted", "not supported"),
    "abort": ("failed", "crash", "SIGABRT"),
    "segv": ("failed", "crash", "SIGSEGV"),
    "kill": ("failed", "killed", "SIGKILL"),
    "exit": ("failed", "crash", "exit code 3: code that it ran ended it, as os._exit does"),
}
PHASES = {
    "open": "while loading",
    "prepare": "while preparing",
    "step": "while running the first inference",
}


def outcome(row):
    return row["status"], row["reason"]


@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("when", PHASES)
def test_a_fault_becomes_a_result_and_the_next_model_a_fresh_worker(scripted, how, when):
    # Struck once: the flag file is made by the fault itself.
    flag = str(scripted.folder / "struck")
    scripted.script({"how": how, "when": when, "flag": flag})
    first, second = scripted.run("bert-tiny", "vit-tiny", batches=[4])
    status, reason, said = ENDINGS[how]
    assert outcome(first) == (status, reason)
    assert said in first["message"]
    assert first["advice"]
    assert first.get("latency_mean_ms") is None
    assert "samples" not in first
    if how in ("abort", "segv", "kill", "exit"):
        assert PHASES[when] in first["message"]
    assert outcome(second) == ("ok", None)
    assert second["latency_p50_ms"] == 4.0


@pytest.mark.parametrize("how", ["raise", "segv", "kill"])
def test_a_fault_while_stepping_leaves_the_other_batches_to_a_fresh_worker(scripted, how):
    scripted.script({"how": how, "when": "step", "batch": 4, "step": 7})
    watcher = Watcher()
    rows = scripted.run(watcher=watcher)
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"]
    assert [row["latency_p50_ms"] for row in rows if row["status"] == "ok"] == [1.0, 16.0]
    assert not watcher.alive()


@pytest.mark.parametrize("when", ["prepare", "step"])
def test_a_hang_is_ended_by_the_timeout_and_no_process_is_left(scripted, when):
    scripted.script({"how": "hang", "when": when, "batch": 4})
    watcher = Watcher()
    rows = scripted.run(timeout=1.0, watcher=watcher)
    assert [row["status"] for row in rows] == ["ok", "timeout", "ok"]
    assert rows[1]["reason"] == "timeout"
    assert "1 s" in rows[1]["message"]
    assert PHASES[when] in rows[1]["message"]
    assert "--timeout" in rows[1]["advice"]
    assert len(watcher.processes) == 3  # a template and two workers
    assert not watcher.alive()


def test_a_hang_while_loading_is_not_repeated_for_every_batch(scripted):
    scripted.script({"how": "hang", "when": "open"})
    watcher = Watcher()
    rows = scripted.run(timeout=1.0, watcher=watcher)
    assert [row["status"] for row in rows] == ["timeout"] * 3
    assert "not tried again" not in rows[0]["message"]
    assert all("not tried again" in row["message"] for row in rows[1:])
    assert len(watcher.processes) == 2
    assert not watcher.alive()


def test_a_worker_killed_while_loading_is_tried_again_at_the_next_batch(scripted):
    flag = str(scripted.folder / "struck")
    scripted.script({"how": "kill", "when": "open", "flag": flag})
    rows = scripted.run()
    assert [row["reason"] for row in rows] == ["killed", None, None]


def test_after_running_out_of_memory_larger_batches_are_skipped(scripted):
    scripted.script({"how": "oom", "when": "step", "batch": 16})
    rows = scripted.run("bert-base", batches=[1, 4, 16, 64])
    assert [row["status"] for row in rows] == ["ok", "ok", "out_of_memory", "skipped"]
    assert rows[3]["reason"] == "smaller_batch_out_of_memory"
    for row in rows[2:]:
        assert "The largest batch that fitted is 4." in row["advice"]
        assert "bert-tiny" in row["advice"]


def test_without_memory_for_the_model_itself_no_batch_is_advised(scripted):
    scripted.script({"how": "oom", "when": "open"})
    rows = scripted.run("bert-base", batches=[8, 16])
    assert [row["status"] for row in rows] == ["out_of_memory"] * 2
    for row in rows:
        assert "batch" not in row["advice"]
        assert "bert-tiny" in row["advice"]


def test_what_cannot_fit_is_refused_before_anything_is_allocated(scripted, monkeypatch):
    base = models("bert-base")[0]
    fits = run_forecast.memory(case_like(base, 8))
    monkeypatch.setattr(run_forecast, "free", lambda device: fits)
    watcher = Watcher()
    rows = scripted.run("bert-base", batches=[4096, 10**9], watcher=watcher)
    assert [outcome(r) for r in rows] == [("out_of_memory", "out_of_memory_estimated")] * 2
    assert not watcher.processes
    assert "nothing was allocated" in rows[0]["message"]
    assert "batch 8 fits" in rows[0]["advice"]
    assert "batch 7 fits" in rows[1]["advice"], "8 fits too: it is not called the largest"
    assert "largest" not in rows[1]["advice"]
    assert "--precision" not in rows[1]["advice"]  # no precision makes so large a batch fit
    assert "bert-tiny" in rows[0]["advice"]


def case_like(model, batch):
    from accelbench.core.case import Shapes, Target

    return Case(model, Target("scripted", "cpu"), "fp32", Shapes(batch, model.sequence))


def test_memory_is_judged_by_what_was_free_before_the_worker_took_any(scripted, monkeypatch):
    need = run_forecast.memory(case_like(models("bert-base")[0], 4))
    assert need is not None
    looks = []

    def free(device):
        looks.append(1)
        return need if len(looks) == 1 else need // 2  # what the first batch has taken is gone

    monkeypatch.setattr(run_forecast, "free", free)
    rows = scripted.run("bert-base", batches=[1, 4])
    assert [row["status"] for row in rows] == ["ok", "ok"]


def test_a_leak_shows_in_the_peak(scripted):
    scripted.script(leak_bytes=0)
    (clean,) = scripted.run(batches=[1], iterations=40, warmup=1)
    scripted.script(leak_bytes=2**20)
    (leaking,) = scripted.run(batches=[1], iterations=40, warmup=1)
    assert leaking["memory_peak_mb"] >= 40
    assert leaking["host_memory_peak_mb"] == leaking["memory_peak_mb"]
    assert clean["memory_peak_mb"] < 30
    assert leaking["memory_source"]


def test_a_used_up_budget_skips_with_a_reason(scripted):
    rows = scripted.run(budget=1e-9)
    assert [outcome(row) for row in rows] == [("skipped", "budget")] * 3
    assert all("--budget" in row["advice"] for row in rows)


def test_a_hang_in_a_budget_is_skipped_when_it_is_used_up(scripted):
    scripted.script({"how": "hang", "when": "step", "batch": 4})
    watcher = Watcher()
    rows = scripted.run(budget=1.5, watcher=watcher)
    assert [row["status"] for row in rows] == ["ok", "skipped", "skipped"]
    assert not watcher.alive()


def test_silent_fallback_is_a_failure(scripted):
    scripted.script({"how": "fallback", "when": "step"})
    (row,) = scripted.run(batches=[1])
    assert outcome(row) == ("failed", "fallback")


def test_a_figure_that_json_does_not_hold_fails_the_case_alone(scripted):
    scripted.script(step_ns=[float("nan")])
    (row,) = scripted.run(batches=[1])
    assert row["status"] == "failed"


def test_a_runtime_that_is_gone_is_unsupported(scripted):
    planned = scripted.journey(batches=[1])
    gone = dataclasses.replace(planned, runtimes={})
    (row,) = scripted.start(gone, Watcher()).rows
    assert outcome(row) == ("unsupported", "no_runtime")


def test_a_refused_case_is_a_result_without_a_process(scripted):
    from accelbench.core.vocabulary import Status
    from accelbench.run.plan.request import Plan, Planned, Refusal

    planned = scripted.journey(batches=[1])
    no = Refusal(Status.UNSUPPORTED, "mode", "not that", "do this")
    case = planned.plan.cases[0].case
    refused = dataclasses.replace(planned, plan=Plan((Planned(case, CPU, no),)))
    watcher = Watcher()
    (row,) = scripted.start(refused, watcher).rows
    assert outcome(row) == ("unsupported", "mode")
    assert (row["message"], row["advice"]) == ("not that", "do this")
    assert not watcher.processes
