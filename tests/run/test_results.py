"""Composing results: registry names only, and identities that hold."""

from dataclasses import replace

import pytest
from fixed_machine import CPU, models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.columns import BY_NAME
from accelbench.core.model import AnalyticCost
from accelbench.core.protocols import Device
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Outcome, Provenance, Status
from accelbench.run.conduct.results import LaunchFacts, compose, identity_of
from accelbench.run.plan.request import Planned
from accelbench.store.body_to_row import fit_result

CASE = Case(models("bert-tiny")[0], Target("pytorch", "cpu"), "fp32", Shapes(8, 128))
OK = {
    "metrics": {"latency_p50_ms": 1.0},
    "quality": "converged",
    "warnings": ["from the loop"],
    "evidence": {"devices": ["cpu:0"], "details": {"threads": 2}},
    "samples": {"step": [1, 2, 3]},
    "sampling": {"step": {"timing": "each"}},
}


def body(outcome=None, asked=None, device=CPU):
    return compose(
        asked or LaunchFacts("run", 0),
        Planned(CASE, device),
        outcome or Outcome(Status.OK, measurement=OK, opened={"threads": 2}),
        Provenance.MEASURED,
        AnalyticCost(2.0, 3.0, 4.0, 5.0, 6.0),
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:01.000000Z",
    )


def test_rows_are_columns_with_fitting_values(scripted):
    assert not set(body()) - set(BY_NAME) - {"samples", "sampling"}
    fitted = fit_result(body())
    assert not fitted.rest
    assert fitted.row["warnings"] == ["from the loop"]

    for row in scripted.run(batches=[1, 2]):
        assert not set(row) - set(BY_NAME) - {"samples", "sampling"}
        assert not fit_result(row).rest
        assert row["provenance"] == "simulated"
        assert row["emulated"] is False
        assert row["started_at"] < row["finished_at"]
        assert row["environment"]["governor"]

    failed = Outcome(Status.FAILED, "crash", "it crashed", "try again")
    row = body(failed)
    assert (row["status"], row["reason"], row["advice"]) == ("failed", "crash", "try again")
    assert "samples" not in row
    assert row["quality"] is None
    assert row["evidence"] is None
    assert not [n for n in row if n.startswith("latency")]


def test_a_case_s_identity_knows_no_machine():
    # Changing it cuts every line of history: raise IDENTITY_VERSION and this value together.
    assert CASE.case_id == GOLDEN

    here = replace(CASE, target=replace(CASE.target, device="1"))
    assert here.case_id == CASE.case_id
    other = Device("cpu", "another processor", count=64)
    assert body(device=other)["case_id"] == body()["case_id"]
    assert body(device=other)["series_key"] != body()["series_key"]

    def asked(device):
        return replace(CASE, target=Target("openvino", "openvino", device)).case_id

    assert len({asked("cpu"), asked("gpu"), asked("npu"), asked(None)}) == 4
    assert asked("1") == asked("0") == asked(None)


GOLDEN = "0d3f00fd46f59165"


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "bf16"},
        {"shapes": Shapes(9, 128)},
        {"shapes": Shapes(8, 64)},
        {"options": {"compile": True}},
        {"target": Target("onnxruntime", "cpu")},
        {"world_size": 2},
        {"scenario": "server"},
    ],
)
def test_what_is_asked_changes_the_identity(change):
    assert replace(CASE, **change).case_id != CASE.case_id


def test_what_a_runtime_compiles_unasked_is_compiled_and_the_same_question():
    asked = replace(CASE, options={"compile": True})
    found = {}
    for compiles in (False, True):
        for case in (CASE, asked):
            made = compose(
                LaunchFacts("run", 0), Planned(case, CPU), Outcome(Status.FAILED, "crash"),
                Provenance.MEASURED, None, "", "", compiles=compiles,
            )  # fmt: skip
            assert made["case_id"] == case.case_id
            found[compiles, case.compiled] = made["compiled"]
    assert found == {key: any(key) for key in found}


def test_the_series_changes_with_the_threads():
    other = {**OK, "evidence": {**OK["evidence"], "details": {"threads": 4}}}
    row = body(Outcome(Status.OK, measurement=other, opened={"threads": 4}))
    assert (body()["threads"], row["threads"]) == (2, 4)
    assert row["series_key"] != body()["series_key"]
    assert row["case_id"] == body()["case_id"]

    silent = {**OK, "evidence": {"devices": ["cpu:0"]}}
    assert (
        body(
            Outcome(Status.OK, measurement=silent), LaunchFacts("r", 0, job=JobSettings(threads=3))
        )["threads"]
        == 3
    )
    assert body(Outcome(Status.OK, measurement=silent))["threads"] is None

    opened = {"threads": 2}
    failed = body(Outcome(Status.FAILED, "crash", "m", "a", opened=opened))
    assert failed["series_key"] == body()["series_key"]
    refused = body(Outcome(Status.UNSUPPORTED, "precision", "m", "a"))
    assert refused["series_key"] is None


def test_weights_times_shapes_and_the_self_check_of_a_row():
    assert (
        body(asked=LaunchFacts("run", 0, job=JobSettings(weights="hub")))["weights"]
        == CASE.model.hub_ids[0]
    )
    assert body(asked=LaunchFacts("run", 0, job=JobSettings(weights="/w")))["weights"] == "/w"

    opened = {"timings": {"build": 5_000_000}, "weights_digest": "abc"}
    row = body(Outcome(Status.OK, measurement=OK, opened=opened))
    assert row["build_ms"] == 5.0
    assert row["load_ms"] is None
    assert row["weights_digest"] == "abc"

    import json

    assert json.loads(body()["input_shape"]) == {"input_ids": [8, 128], "attention_mask": [8, 128]}

    refused = body(Outcome(Status.FAILED, "not_real", "it ignores its inputs"))
    broken = body(Outcome(Status.FAILED, "exception", "it broke"))
    assert (refused["self_check"], broken["self_check"]) == ("failed", "not_done")


def test_a_result_id_is_of_run_case_device_launch_and_arm():
    planned = Planned(CASE, CPU)
    ids = {
        identity_of(asked, planned)
        for asked in (
            LaunchFacts("r", 0),
            LaunchFacts("r", 1),
            LaunchFacts("q", 0),
            LaunchFacts("r", 0, arm="B"),
        )
    }
    assert len(ids) == 4
    assert identity_of(LaunchFacts("r", 0), planned) == identity_of(
        LaunchFacts("r", 0, job=JobSettings(seed=9)), planned
    )
    assert body()["result_id"] == identity_of(LaunchFacts("run", 0), planned)
