"""A simulated result changes nothing for what is measured beside it, or reads it afterwards."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from scripted_runs import Watcher
from simulated_runs import FOUND, RUNTIMES, planned, run

from accelbench.api import running
from accelbench.api.config import BenchmarkConfig
from accelbench.core.facts import PROFILE
from accelbench.core.run_options import RunSettings
from accelbench.exchange.aggregate import AggregateRows, aggregate
from accelbench.exchange.result_file import to_row
from accelbench.judge.matrix import matrix
from accelbench.predict.roofline import simulated
from accelbench.present.terminal.summary import compared, print_summary, trust
from accelbench.present.terminal.watch import case_line
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.launch_context import LaunchTally
from accelbench.run.conduct.lifecycle import RunResult
from accelbench.run.messages import NO_WORKER
from accelbench.run.plan import run_forecast
from accelbench.run.plan.run_forecast import Budget

BOTH = {"hardware": ("cpu", "cuda:a100-80gb"), "batch_sizes": (1, 4)}

Row = Mapping[str, Any]


@pytest.fixture
def rows(scripted):
    """Two results of the CPU, as if they were measured, and two of a device that is not here."""
    ended = run(scripted, planned(**BOTH))
    found = [to_row(body) for body in ended.rows]
    return [
        row if row["hardware"] == "cuda" else {**row, "provenance": "measured"} for row in found
    ]


def measured(rows):
    return [row for row in rows if row["provenance"] == "measured"]


def test_nobody_calculates_unasked(scripted):
    made = lifecycle.PlannedRun(planned(), RunSettings(run_id="20260101-000000-nobody"), RUNTIMES)
    (row,) = lifecycle.start(made, scripted.journals, Watcher(), {}).rows
    assert (row["status"], row["reason"]) == ("unsupported", "hardware_absent")

    config = BenchmarkConfig(
        model_name="bert-tiny", device_prefer="cuda:a100-80gb", batch_sizes=[1], verbose=False
    )
    (one,) = running._plan(config, FOUND, RUNTIMES).cases
    assert one.roofline is None
    assert one.refusal.reason == "hardware_absent"

    # A browser cannot generate token by token: beside a real one all take a forward pass as well.
    alone = planned("gpt2-tiny", hardware=("cpu",)).cases
    beside = planned("gpt2-tiny", hardware=("cpu", "webgpu:rtx-4060"))
    mine, other = beside.cases
    assert mine.case.case_id == alone[0].case.case_id
    assert mine.case.generates
    assert not other.case.generates
    assert any(note.startswith("Simulated: browser") for note in beside.notes)


def test_views_leave_it_out(rows):
    # One of a CPU as well: it must be no yardstick.
    imagined = [
        {**row, "hardware": "cpu", "throughput": 1e9} for row in rows if row not in measured(rows)
    ]
    found = matrix([*rows, *imagined])
    assert found == matrix(measured(rows))
    assert found.models[0].cells["cuda"].token == "never_measured"

    document = aggregate(AggregateRows(rows))
    assert document["entries"] == aggregate(AggregateRows(measured(rows)))["entries"]
    assert document["left_out"] == {"simulated": 2}

    here, away = measured(rows)[0], rows[-1]
    pair = [{**here, "runtime": "pytorch"}, {**away, "runtime": "jax", "hardware": "cpu"}]
    alike = [{**row, "batch_size": 1, "precision": "fp32"} for row in pair]
    assert list(compared(alike, ("pytorch", "jax"))) == []
    real = [alike[0], {**alike[0], "runtime": "jax"}]
    assert len(list(compared(real, ("pytorch", "jax")))) == 1

    assert trust(rows) == trust(measured(rows))
    assert trust([row for row in rows if row["provenance"] == "simulated"]) == []

    (line,) = case_line(rows[-1])
    assert "pytorch/cuda:a100-80gb fp32 simulated batch 4" in line
    assert "from the document of NVIDIA A100-SXM4-80GB, not measured" in line
    assert "n/a" not in line
    assert "None" not in line
    stream = io.StringIO()
    print_summary(rows, stream)
    assert stream.getvalue().count("simulated") == 2
    assert stream.getvalue().count("a limit") == 2

    away = [row for row in rows if row["provenance"] == "simulated"]
    nothing = [{**row, "reason": NO_WORKER} for row in measured(rows)]
    assert RunResult("r", LaunchTally(), [*nothing, *away]).nothing_could_start
    assert not RunResult("r", LaunchTally(), rows).nothing_could_start
    assert not RunResult("r", LaunchTally(), away).nothing_could_start


def test_it_takes_no_time_no_profile_and_is_not_repeated(scripted):
    watcher = Watcher()
    ended = run(scripted, planned(**BOTH), watcher, launches=3)
    by_hardware = [row["hardware"] for row in ended.rows]
    assert (by_hardware.count("cpu"), by_hardware.count("cuda")) == (6, 2)
    assert [number for _, number in watcher.started_cases] == list(range(1, 9))
    assert not any("gave other outputs" in w for row in ended.rows for w in row["warnings"] or ())

    settings = RunSettings(run_id="r")
    assert run_forecast.seconds(planned(**BOTH), settings) == run_forecast.seconds(
        planned(**{**BOTH, "hardware": ("cpu",)}), settings
    )
    assert run_forecast.seconds(planned(), settings) == (0.0, 0.0)

    scripted.script(operators={"MatMul": 1.0})
    ended = run(scripted, planned(**BOTH), profile=True)
    profiles = [f.body for f in scripted.facts(ended.run_id) if f.kind == PROFILE]
    assert [one["hardware"] for one in profiles] == ["cpu", "cpu"]


def test_the_shares_of_a_budget_are_those_of_what_is_measured(scripted, monkeypatch):
    shared = []

    class Watched(Budget):
        def __init__(self, seconds, cases):
            shared.append(cases)
            super().__init__(seconds, cases)

    monkeypatch.setattr(lifecycle, "Budget", Watched)
    run(scripted, planned(**BOTH), launches=2)
    assert shared == [4]


def test_it_neither_succeeds_nor_fails(scripted):
    fits = run(scripted, planned(**BOTH))
    assert fits.tally.counts == {"ok": 2, "simulated": 2}
    assert fits.tally.all_fine
    large = planned("llama-2-7b", hardware=("cuda:rtx-4060",), precisions=("fp16",))
    too_large = run(scripted, large)
    assert too_large.rows[0]["status"] == "out_of_memory"
    assert too_large.tally.counts == {"not simulated": 1}
    assert too_large.tally.all_fine
    scripted.script({"when": "step", "how": "raise"})
    failed = run(scripted, planned(**BOTH))
    assert failed.tally.counts == {"failed": 2, "simulated": 2}
    assert not failed.tally.all_fine


def test_a_run_that_was_cut_off_goes_on_with_it(scripted):
    class Impatient(Watcher):
        def case_finished(self, row):
            super().case_finished(row)
            raise KeyboardInterrupt

    cut = run(scripted, planned(hardware=("cuda:a100-80gb", "cuda:t4")), Impatient())
    assert cut.interrupted
    (first,) = cut.rows
    ended = lifecycle.resume(
        cut.run_id, scripted.journals, Watcher(), {}, FOUND, simulate=simulated
    )
    assert [row["device"] for row in ended.rows] == ["a100-80gb", "t4"]
    assert ended.rows[0] == first
    assert ended.tally.counts == {"simulated": 2}
    assert ended.rows[1]["latency_mean_ms"] == pytest.approx(ended.rows[1]["flops"] / 8.1e12 * 1e3)
    again = lifecycle.resume(cut.run_id, scripted.journals, Watcher(), {}, FOUND)
    assert again.tally.counts == {"simulated": 2}
