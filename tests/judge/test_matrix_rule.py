"""The rule of the compatibility matrix, case by case and in general."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_rows import failed, row

from accelbench.judge.attempts import attempts
from accelbench.judge.matrix import RULE, Availability, MatrixCell, Rating, matrix

OPENVINO = {"hardware": "openvino", "runtime": "openvino"}
LEVELS = [Rating.NONE, Rating.LOW, Rating.MEDIUM, Rating.HIGH]


def cell(rows: list[dict[str, Any]], hardware: str, model: str = "bert-tiny") -> MatrixCell:
    (line,) = [one for one in matrix(rows).models if one.name == model]
    return line.cells[hardware]


@pytest.mark.parametrize(
    ("throughput", "level"),
    [
        (1000.0, Rating.HIGH),
        (200.0, Rating.HIGH),
        (95.0, Rating.HIGH),  # within a tenth of the CPU, which is the fastest
        (89.0, Rating.MEDIUM),
        (80.0, Rating.MEDIUM),
        (79.0, Rating.LOW),
    ],
)
def test_a_verified_platform_is_rated_by_its_speed_against_the_cpu(throughput, level):
    found = cell([row(), row(throughput=throughput, **OPENVINO)], "openvino")
    assert (found.rating, found.compatible) == (level, True)
    assert found.speed == pytest.approx(throughput / 100)
    assert found.batches == (1,)


def test_rated_by_speed():
    # What is not near the fastest is not high for being near the cpu.
    rows = [row(), row(throughput=500.0, hardware="cuda"), row(throughput=100.0, **OPENVINO)]
    assert cell(rows, "openvino").rating is Rating.MEDIUM
    assert cell(rows, "cpu").rating is Rating.MEDIUM
    assert cell(rows, "cuda").rating is Rating.HIGH
    assert cell([row()], "cpu").rating is Rating.MEDIUM
    assert cell([row(), row(throughput=50.0, **OPENVINO)], "cpu").rating is Rating.HIGH
    # The cpu is its fastest runtime and names it.
    rows = [
        row(batch_size=1, throughput=100.0),
        row(batch_size=4, throughput=100.0),
        row(batch_size=1, throughput=50.0, runtime="jax"),
        row(batch_size=4, throughput=200.0, runtime="jax"),
        row(batch_size=8, throughput=10.0, runtime="pytorch", verification="reference"),
        row(batch_size=4, throughput=160.0, **OPENVINO),
    ]
    assert cell(rows, "cpu").runtimes == ("jax", "onnxruntime", "pytorch")
    assert cell(rows, "openvino").speed == pytest.approx(0.8)


def test_only_the_same_question_is_compared():
    # Only the same question is compared.
    unlike = [{"sequence_length": 64}, {"new_tokens": 8}, {"options": {"threads": 1}}]
    for other in [*unlike, {"batch_size": 2}, {"weights": "hub/id"}, {"world_size": 2}]:
        found = cell([row(), row(**OPENVINO, **other)], "openvino")
        assert (found.rating, found.token, found.compatible) == (Rating.NONE, "no_cpu_result", True)
    # An option of one engine does not keep it from being compared.
    rows = [row(), row(throughput=300.0, options={"hint": "throughput"}, **OPENVINO)]
    assert cell(rows, "openvino").rating is Rating.HIGH
    assert cell(rows, "openvino").runtime == "openvino hint=throughput"


def test_what_has_no_rating():
    # Emulation is compatible and never rated.
    rows = [row(), row(hardware="qnn", runtime="qnn", emulated=True, throughput=900.0)]
    found = cell(rows, "qnn")
    assert (found.compatible, found.rating, found.emulated) == (True, Rating.NONE, True)
    assert found.speed is None
    assert "compatible (emulated)" in found.reason
    rows.append({**rows[1], "runtime": "other", "verification": "not_done"})
    beside = cell(rows, "qnn")
    assert (beside.runtimes, beside.verification) == (("qnn",), "ok")
    # An emulation is nobodys yardstick nor does it speed up a real device.
    emulated = {"hardware": "qnn", "runtime": "qnn", "emulated": True, "device": "qnn:0"}
    slow = [row(), row(throughput=10.0, **emulated)]
    assert cell(slow, "cpu").rating is Rating.MEDIUM  # still the best of one
    real = row(hardware="qnn", runtime="qnn", device="qnn:1", throughput=50.0)
    assert cell([row(), row(throughput=900.0, **emulated), real], "qnn").speed == pytest.approx(0.5)
    found = cell([row(), row(throughput=None, **OPENVINO)], "openvino")
    assert (found.compatible, found.rating, found.token) == (True, Rating.NONE, "not_timed")
    # What is fast and unverified is not verified and says why.
    nulls = {"verification_error": "it was not asked for"}
    fast = row(throughput=900.0, verification="not_done", nulls=nulls, **OPENVINO)
    found = cell([row(), fast], "openvino")
    assert (found.compatible, found.rating, found.token) == (True, Rating.NONE, "not_verified")
    assert "it was not asked for" in found.reason
    assert "--benchmark-only" in found.advice
    # An import is told what fits imports.
    theirs = {"verification": "not_done", "provenance": "imported"}
    found = cell([row(**theirs)], "cpu")
    assert (found.rating, found.token) == (Rating.NONE, "not_verified")
    assert "accelbench run bert-tiny --hardware cpu" in found.advice
    assert "--benchmark-only" not in found.advice


FEW = {"sample_count": 3, "effective_sample_count": 3.0}
MANY = {"sample_count": 120, "effective_sample_count": 90.0}


@pytest.mark.parametrize(
    ("throughput", "samples", "rating", "token"),
    [
        (300.0, FEW, Rating.NONE, "not_sure"),  # 1.1 to 8 times
        (900.0, FEW, Rating.HIGH, ""),  # 3.4 times at the least
        (300.0, MANY, Rating.HIGH, ""),
        (300.0, {}, Rating.HIGH, ""),  # nothing is said of its samples
    ],
)
def test_a_few_samples_rate_only_what_they_surely_are(throughput, samples, rating, token):
    found = cell([row(**samples), row(throughput=throughput, **samples, **OPENVINO)], "openvino")
    assert (found.compatible, found.rating, found.token) == (True, rating, token)
    assert found.speed == throughput / 100.0
    assert ("may be" in found.reason) is (token != "")


def test_a_wide_interval_across_levels_is_not_sure_and_launches_settle_it():
    wide = {**MANY, "latency_ci_low_ms": 5.0, "latency_ci_high_ms": 15.0}
    one = row(throughput=200.0, **wide, **OPENVINO)
    assert cell([row(**MANY), one], "openvino").token == "not_sure"
    launches = [row(throughput=200.0 + n, launch=n, **wide, **OPENVINO) for n in range(5)]
    assert cell([row(**MANY), *launches], "openvino").rating is Rating.HIGH


# -- each in its best precision


def best(rows: list[dict[str, Any]], hardware: str) -> MatrixCell:
    (line,) = matrix(rows, best_precision=True).models
    return line.cells[hardware]


NPU = {"hardware": "qnn", "runtime": "qnn", "precision": "int8"}


def test_precisions_of_one_engine():
    # What runs in int8 alone is worth what it does there.
    refused = failed("precision", **{**NPU, "precision": "fp32"})
    rows = [row(), row(throughput=500.0, verification_error=0.3, **NPU), refused]
    found = best(rows, "qnn")
    assert (found.rating, found.speed, found.precisions) == (Rating.HIGH, 5.0, ("int8",))
    assert "in int8" in found.reason
    assert cell([row(), refused], "qnn").compatible is False  # where fp32 is named
    # A precision that an engine lacks makes its hardware no incompatible one.
    refused = failed("precision", **{**NPU, "precision": "fp32"})
    found = best([row(), refused], "qnn")
    assert (found.availability, found.token) == (Availability.NOT_AVAILABLE, "precision")
    assert "--hardware qnn --precision int8" in found.advice
    wrong = failed("wrong_outputs", **NPU)
    assert best([row(), refused, wrong], "qnn").availability is Availability.INCOMPATIBLE


@pytest.mark.parametrize(("error", "speed"), [(0.05, 5.0), (0.3, 1.2), (None, 1.2)])
def test_int8_beside_fp32_counts_within_a_stated_error(error, speed):
    mine = {"precision": "int8", "verification_error": error}
    rows = [row(), row(throughput=120.0, **OPENVINO)]
    rows += [row(throughput=500.0, **mine, **OPENVINO)]
    assert best(rows, "openvino").speed == speed


def test_what_was_wrong_or_failed_once():
    # A precision that was wrong takes nothing from another.
    wrong = failed("wrong_outputs", precision="bf16", **OPENVINO)
    found = best([row(), row(throughput=300.0, **OPENVINO), wrong], "openvino")
    assert (found.rating, found.precisions) == (Rating.HIGH, ("fp32",))
    assert "bf16" in found.notes[0]
    # A runtime that was wrong once is trusted at no batch.
    wrong = failed("wrong_outputs", batch_size=8, **OPENVINO)
    found = cell([row(), row(throughput=900.0, **OPENVINO), wrong], "openvino")
    assert (found.compatible, found.rating) == (True, Rating.LOW)
    assert "wrong at batch 8" in found.reason
    # A wrong launch beside good ones is not forgiven.
    rows = [row(throughput=900.0, **OPENVINO), failed("wrong_outputs", launch=1, **OPENVINO)]
    found = cell([row(), *rows], "openvino")
    assert found.rating is Rating.LOW
    assert "1 of 2 launches failed" in found.notes[0]
    # A verification that failed is wrong whatever the status says.
    found = cell([row(), row(verification="failed", **OPENVINO)], "openvino")
    assert found.availability is Availability.INCOMPATIBLE
    assert "wrong_outputs" in found.reason
    # A failed launch beside good ones is shown and the middle counts.
    good = [row(launch=i, throughput=t, **OPENVINO) for i, t in enumerate((250.0, 300.0, 360.0))]
    found = cell([row(), *good, failed("timeout", launch=3, **OPENVINO)], "openvino")
    assert found.speed == pytest.approx(3.0)
    assert found.notes == ("openvino: 1 of 4 launches failed, timeout: said timeout (batch 1)",)


@pytest.mark.parametrize("reason", ["wrong_outputs", "export_failed", "fallback", "out_of_memory"])
def test_what_fails_is_incompatible(reason):
    found = cell([row(), failed(reason, **OPENVINO)], "openvino")
    assert found.availability is Availability.INCOMPATIBLE
    assert (found.rating, found.token) == (Rating.NONE, reason)
    assert found.reason == f"openvino: {reason}: said {reason}"


@pytest.mark.parametrize(
    "reason",
    [
        "provider_missing", "engine_sees_no_device", "killed", "timeout", "surroundings",
        "weights_unavailable", "data_unreadable", "data_mismatch", "no_real_inputs", "disk_full",
        "cache_unwritable", "artefact_lost",
    ],
)  # fmt: skip
def test_trouble_around_a_cell_is_not_the_cells(reason):
    found = cell([row(), failed(reason, **OPENVINO)], "openvino")
    assert (found.availability, found.token) == (Availability.NOT_AVAILABLE, reason)
    assert found.reason == f"{reason}: said {reason}"


def test_a_reason_of_another_package_is_taken_for_the_cells():
    found = cell([row(), failed("gremlins", **OPENVINO)], "openvino")
    assert found.availability is Availability.INCOMPATIBLE


LATER = {"run_id": "r2", "started_at": "2026-02-02T03:04:05.000000Z"}
LAST = {"run_id": "r3", "started_at": "2026-03-02T03:04:05.000000Z"}


def test_verifying_again():
    # To verify again takes no rating away.
    rows = [row(), row(throughput=300.0, **OPENVINO)]
    again = row(throughput=None, **LATER, **OPENVINO)
    found = cell([*rows, again], "openvino")
    assert (found.rating, found.speed) == (Rating.HIGH, 3.0)
    assert found.run_id == "r2"
    assert found.notes == ("openvino: timed in run r1, verified since (batch 1)",)
    # To verify what was only timed gives it its rating.
    timed = row(throughput=300.0, verification="not_done", **OPENVINO)
    assert cell([row(), timed], "openvino").token == "not_verified"
    proof = row(throughput=None, **LATER, **OPENVINO)
    assert cell([row(), timed, proof], "openvino").rating is Rating.HIGH


@pytest.mark.parametrize(
    "between", [{}, {"workarounds": ["fixed_batch"], "throughput": None, "status": "ok"}]
)
def test_the_time_of_what_failed_or_became_another_graph_is_not_kept(between):
    rows = [row(), row(throughput=300.0, **OPENVINO)]
    middle = failed("wrong_outputs", **{**LATER, **OPENVINO, **between})
    proof = row(throughput=None, **LAST, **OPENVINO)
    found = cell([*rows, middle, proof], "openvino")
    assert (found.rating, found.token) == (Rating.NONE, "not_timed")


def test_without_proof_or_time_there_is_no_rating():
    neither = row(throughput=None, verification="not_done", **OPENVINO)
    found = cell([row(), neither], "openvino")
    assert (found.compatible, found.rating, found.token) == (True, Rating.NONE, "nothing_shown")


@pytest.mark.parametrize("reason", ["hardware_absent", "package_missing", "no_runtime"])
def test_what_is_missing_is_not_available(reason):
    absent = failed(reason, status="unsupported", device=None, hardware="cuda", runtime="pytorch")
    found = cell([row(), absent], "cuda")
    assert found.availability is Availability.NOT_AVAILABLE
    assert found.reason == f"{reason}: said {reason}"


def test_what_is_said_of_what_was_not_measured():
    # A refusal of the hardware comes before a missing package.
    rows = [
        row(),
        failed("package_missing", status="unsupported", hardware="cuda", runtime="jax"),
        failed("precision", status="unsupported", hardware="cuda", runtime="pytorch"),
    ]
    found = cell(rows, "cuda")
    assert (found.availability, found.token) == (Availability.INCOMPATIBLE, "precision")
    assert any("package_missing" in note for note in found.notes)
    # What was never measured says what is known of it.
    found = matrix([row()], {"cuda": "no NVIDIA driver is loaded"}).models[0].cells
    assert found["cuda"].reason == "not here: no NVIDIA driver is loaded"
    assert found["cuda"].availability is Availability.NOT_AVAILABLE
    assert found["rocm"].availability is Availability.NOT_MEASURED
    assert found["rocm"].token == "never_measured"
    assert found["rocm"].advice.endswith("accelbench run bert-tiny --hardware rocm")
    assert found["qnn"].advice.endswith("--hardware qnn --precision int8"), "it refuses fp32"


def test_the_newest_run_counts():
    # The newest run counts and not the best.
    later = "2026-02-02T03:04:05.000000Z"
    rows = [row(throughput=900.0, **OPENVINO), row()]
    slow = row(throughput=10.0, run_id="r2", started_at=later, **OPENVINO)
    assert cell([*rows, slow], "openvino").rating is Rating.LOW
    gone = failed("hardware_absent", device=None, run_id="r2", started_at=later, **OPENVINO)
    assert cell([*rows, gone], "openvino").availability is Availability.NOT_AVAILABLE
    skipped = failed("budget", status="skipped", run_id="r2", started_at=later, **OPENVINO)
    assert cell([*rows, skipped], "openvino").rating is Rating.HIGH
    # A newer run on another device of the platform leaves the first one.
    rows = [
        row(),
        row(throughput=150.0, device="openvino:0", **OPENVINO),
        row(throughput=400.0, device="openvino:1", run_id="r2", started_at="2027", **OPENVINO),
        row(throughput=120.0, device="openvino:0", run_id="r3", started_at="2028", **OPENVINO),
    ]
    assert cell(rows, "openvino").speed == pytest.approx(4.0)


@pytest.mark.parametrize("provenance", ["predicted", "simulated", None])
def test_only_what_was_measured_or_imported_counts(provenance):
    found = matrix([row(), row(provenance=provenance, hardware="cuda")])
    assert found.models[0].cells["cuda"].token == "never_measured"
    imported = matrix([row(), row(provenance="imported", throughput=300.0, hardware="cuda")])
    assert imported.models[0].cells["cuda"].rating is Rating.HIGH


def test_every_platform_of_the_documents_is_a_column_and_others_where_tried():
    eight = ("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu")
    assert matrix([row()]).hardware == eight
    assert matrix([row(), row(hardware="abacus"), row(hardware="wasm")]).hardware == (
        *eight, "wasm", "abacus",
    )  # fmt: skip


def test_asking_for_some_platforms_changes_no_rating():
    rows = [row(), row(throughput=500.0, hardware="cuda"), row(throughput=100.0, **OPENVINO)]
    every, some = matrix(rows), matrix(rows, only=("openvino",))
    assert some.hardware == ("openvino",)
    assert some.models[0].cells["openvino"] == every.models[0].cells["openvino"]


def family(*levels: str) -> MatrixCell:
    """Of models with these levels on a platform: high, low, n/a (emulated), no, or gone."""
    rates = {"high": 300.0, "medium": 150.0, "low": 10.0}
    rows: list[dict[str, Any]] = []
    for number, level in enumerate(levels):
        model = {"model": f"m{number}", "hardware": "cuda"}
        rows.append(row(model=f"m{number}"))
        # A faster platform keeps what is between 0.8 and 2 times the CPU at medium.
        rows.append(row(model=f"m{number}", throughput=1000.0, hardware="rocm"))
        if level in rates:
            rows.append(row(throughput=rates[level], **model))
        elif level == "n/a":
            rows.append(row(emulated=True, **model))
        elif level == "no":
            rows.append(failed("wrong_outputs", **model))
    (line,) = matrix(rows).families
    assert line.name == "embedding"
    return line.cells["cuda"]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (["high"], Rating.HIGH),
        (["high", "high", "low"], Rating.HIGH),
        (["high", "medium"], Rating.MEDIUM),  # the lower of the two middle ones
        (["high", "high", "high", "no"], Rating.MEDIUM),
        (["high", "no"], Rating.LOW),
        (["high", "gone"], Rating.HIGH),
        (["high", "n/a"], Rating.HIGH),
        (["n/a"], Rating.NONE),
    ],
)
def test_a_family_is_its_middle_model_and_never_high_with_a_broken_one(levels, expected):
    found = family(*levels)
    assert (found.rating, found.compatible) == (expected, True)


def test_a_family_says_which_models_are_incompatible_and_how_many_are_missing():
    assert "1 of 2 models tried go through: 1 high" in family("high", "no", "gone").reason
    assert "incompatible: m1; 1 not measured" in family("high", "no", "gone").reason
    assert family("no", "no").availability is Availability.INCOMPATIBLE
    assert family("gone").availability is Availability.NOT_MEASURED


def test_the_rule_that_is_printed_names_the_constants():
    assert "2×" in " ".join(RULE)
    assert "0.8×" in " ".join(RULE)
    assert "90%" in " ".join(RULE)


# -- in general

RATES = st.floats(0.01, 1e6)
PLACES = st.sampled_from(
    [("cpu", "pytorch"), ("cpu", "onnxruntime"), ("openvino", "openvino"), ("cuda", "pytorch")]
)


@st.composite
def results(draw: st.DrawFn) -> dict[str, Any]:
    hardware, runtime = draw(PLACES)
    said = {
        "hardware": hardware, "runtime": runtime, "device": f"{hardware}:0",
        "model": draw(st.sampled_from(["a", "b"])), "batch_size": draw(st.sampled_from([1, 4])),
        "launch": draw(st.integers(0, 1)), "run_id": f"r{draw(st.integers(0, 2))}",
        "result_id": str(draw(st.integers(0, 10**9))),
    }  # fmt: skip
    said["started_at"] = said["run_id"]
    if draw(st.integers(0, 4)) == 0:
        reasons = ["wrong_outputs", "timeout", "hardware_absent", "precision"]
        return failed(draw(st.sampled_from(reasons)), **said)
    return row(
        throughput=draw(st.none() | RATES),
        verification=draw(st.sampled_from(["ok", "ok", "reference", "not_done"])),
        emulated=draw(st.integers(0, 5)) == 0,
        **said,
    )


ROWS = st.lists(results(), min_size=1, max_size=24, unique_by=lambda r: r["result_id"])


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert matrix(shuffled) == matrix(rows)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_no_cell_is_untrue(rows):
    for line in matrix(rows).models:
        for hardware, found in line.cells.items():
            mine = [r for r in rows if r["model"] == line.name and r["hardware"] == hardware]
            good = [r for r in mine if r["status"] == "ok"]
            assert found.reason
            if found.compatible:
                assert good
            if found.availability is Availability.INCOMPATIBLE:
                assert any(r["status"] != "ok" for r in mine)
            if found.rating in (Rating.HIGH, Rating.MEDIUM):
                proven = [r for r in good if r["verification"] != "not_done"]
                assert any(not r["emulated"] for r in proven)
                assert any(r["throughput"] and not r["emulated"] for r in good)
                assert found.speed is not None
            if found.speed is not None:
                assert any(r["hardware"] == "cpu" for r in rows if r["model"] == line.name)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.floats(1.0, 100.0), st.sampled_from(["cpu", "openvino", "cuda"]))
def test_a_faster_platform_is_never_rated_lower_and_lifts_no_other(rows, times, hardware):
    faster = [
        {**r, "throughput": r["throughput"] * times}
        if r["hardware"] == hardware and r["throughput"]
        else r
        for r in rows
    ]
    for before, after in zip(matrix(rows).models, matrix(faster).models, strict=True):
        for name in before.cells:
            old, new = before.cells[name], after.cells[name]
            if "not_sure" in (old.token, new.token):  # rated where its ends happen to be alike
                continue
            change = LEVELS.index(new.rating) - LEVELS.index(old.rating)
            if abs(times - 1) > 1e-6:  # else a ratio on a level's edge may round to either side
                assert change >= 0 if name == hardware else change <= 0
            assert (new.availability, new.token) == (old.availability, old.token)


def test_a_time_that_is_unusable_rates_nothing():
    found = cell([row(), row(throughput=900.0, quality="unusable", **OPENVINO)], "openvino")
    assert (found.rating, found.token, found.speed) == (Rating.NONE, "not_timed", None)
    assert "no time of it is usable: interval wider than ±25 %" in found.reason
    again = [row(throughput=200.0, **OPENVINO), row(throughput=9.0, quality="unusable", **OPENVINO)]
    again[1] |= {"run_id": "r2", "started_at": "2027-01-01T00:00:00Z"}
    assert cell([row(), *again], "openvino").speed == 2.0  # what was timed before keeps its time


def test_a_lone_slow_launch_does_not_take_the_place_of_five():
    five = [row(launch=n, throughput=300.0, run_id="r1", **OPENVINO) for n in range(5)]
    lone = row(throughput=50.0, run_id="r2", started_at="2026-12-02 00:00:00", **OPENVINO)
    found = cell([row(), *five, {**lone, "quality": "noise_limited"}], "openvino")
    assert found.speed == pytest.approx(3.0)


def test_of_other_software_the_newest_run_counts_however_few_its_launches():
    old, new = ({"conditions": {"packages": {"openvino": v}}} for v in ("1", "2"))
    five = [row(launch=n, throughput=300.0, run_id="r1", **OPENVINO, **old) for n in range(5)]
    lone = row(throughput=200.0, run_id="r2", started_at="2026-12-02 00:00:00", **OPENVINO, **new)
    assert cell([row(), *five, lone], "openvino").speed == pytest.approx(2.0)


def test_a_cell_names_the_newest_of_the_runs_that_it_is_of():
    moments = ("2026-01-01", "2026-01-03", "2026-01-02")
    rows = [
        row(batch_size=2**n, run_id=f"r{n}", started_at=moment) for n, moment in enumerate(moments)
    ]
    assert cell(rows, "cpu").run_id == "r1"


def test_a_failure_since_is_what_is_told():
    five = [row(launch=n, throughput=300.0, run_id="r1", **OPENVINO) for n in range(5)]
    since = failed("crash", run_id="r2", started_at="2026-12-02 00:00:00", **OPENVINO)
    assert cell([row(), *five, since], "openvino").speed is None


def test_what_others_measured_is_not_completed_by_measuring_here():
    """“accelbench run” measures on another machine, whose results never fill such a cell."""
    advice = cell([row(provenance="imported")], "rocm").advice
    said = "No result of this source on rocm is here: import some, where it has any."
    assert advice == said
    assert cell([row()], "rocm").advice == "Measure it: accelbench run bert-tiny --hardware rocm"


def test_an_imported_percentile_is_no_time_that_nobody_took():
    """It read “nothing was timed … accelbench run without --verify-only” of a p90 of 430 ms."""
    theirs = {"provenance": "imported", "verification": "not_done", "throughput": None}
    found = cell([row(**theirs, hardware="cuda", latency_p90_ms=429.992)], "cuda")
    assert "of its time a percentile alone is known (430 ms p90)" in found.reason
    assert found.advice == "It was imported: only its source can say more of its time."
    assert "nothing was timed" in cell([row(throughput=None)], "cpu").reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"scenario": "offline"}, "scenario single_stream there, offline here"),
        ({"throughput_unit": "tokens/s"}, "unit items/s there, tokens/s here"),
        ({"batch_size": 8, "world_size": 4}, "world size 1 there, 4 here, batch size 1 there, 8"),
    ],
)
def test_what_the_cpu_was_asked_otherwise_is_told(asked, said):
    """It read “the CPU has no verified and usable result at the same shapes and threads”."""
    found = cell([row(), row(batch_size=64, scenario="server"), row(**OPENVINO, **asked)], "cpu")
    assert found.rating is Rating.MEDIUM
    found = cell(
        [row(), row(batch_size=64, scenario="server"), row(**OPENVINO, **asked)], "openvino"
    )
    assert f"timed, but the CPU's results that count are of something else: {said}" in found.reason


def test_a_median_alone_is_no_time_that_nobody_took():
    """It read “nothing was timed” of launches with medians of 10.1 ms."""
    rows = [row(throughput=None, latency_p50_ms=10.1), row(**OPENVINO)]
    known = "of its time a percentile alone is known (10.1 ms p50), no mean and no rate"
    assert cell(rows, "cpu").reason == f"its outputs are verified; {known}"
    assert cell(rows, "openvino").reason == f"timed, but the CPU has no such time: {known}"
    only = cell([row(**OPENVINO)], "openvino").reason
    assert only == "timed, but the CPU has no verified and usable result"


def test_rows_of_one_way_that_say_neither_a_moment_nor_a_run_are_rated():
    nowhen = {"started_at": None, "run_id": None}
    rows = [row(launch=n, throughput=rate, **nowhen) for n, rate in enumerate((90.0, 110.0))]
    assert cell(rows, "cpu").rating is Rating.MEDIUM
    # Nor does a refusal of as unknown a moment take their figures from them.
    refusal = row(status="failed", reason="out_of_memory", device=None, throughput=None, **nowhen)
    assert cell([*rows, refusal], "cpu").rating is Rating.MEDIUM


def test_refusals_that_name_no_device_are_one_attempt_of_the_platform():
    refusals = [failed("out_of_memory", device=None, launch=n) for n in range(2)]
    assert [attempt.launches for attempt in attempts(refusals)] == [2]
    elsewhere = row(started_at="2027-01-01T00:00:00Z", run_id="r2")
    assert [attempt.launches for attempt in attempts([*refusals, elsewhere])] == [1]
