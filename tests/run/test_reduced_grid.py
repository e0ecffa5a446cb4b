"""A small grid, as one command measures it: every cell verified or truly refused, none untrue.

Tiny models of different architectures, every runtime that runs on a computer without an
accelerator, and every precision that these runtimes have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from grids import Row, asked, hold_nulls, said

from accelbench.evidence.launches import launches_of
from accelbench.models.find import find

MODELS = ("bert-tiny", "resnet-tiny", "gpt2-tiny", "t5-tiny", "whisper-mini", "clip-tiny")
#: `make test` asks of two what `make test-full` asks of all.
FEW = ("bert-tiny", "resnet-tiny")
#: The one that is run in narrower precisions too. To emulate gpt2-tiny, whose outputs are large, on
#: an NPU takes ten times as long as bert-tiny.
NARROWED = {FEW: "bert-tiny", MODELS: "gpt2-tiny"}
RUNTIMES = ("pytorch", "onnxruntime", "openvino", "jax")
NARROW = ("fp16", "bf16", "int8")
VERIFIED = ("ok", "reference")

#: Why a runtime refuses a precision; what is not named here must be verified.
REFUSED = {
    ("onnxruntime", "fp16"): "precision",
    ("onnxruntime", "bf16"): "precision",
    ("jax", "int8"): "precision",
    ("qnn", "fp32"): "precision",
    ("qnn", "bf16"): "precision",
}
#: What the processor's instructions decide: verified, or refused for this reason.
MACHINES = {
    ("openvino", "fp16"): "precision",
    ("openvino", "bf16"): "precision",
    ("jax", "fp16"): "precision_upcast",
    ("jax", "bf16"): "precision_upcast",
}
#: Verified cells without a rating: other processes held the CPU while their case was timed.
UNTIMED = ("not_timed", "no_cpu_result")
#: What says where the work ran, beside the device: a key of the details, and what it may name.
PROOF = {
    "pytorch": ("output_devices", [["cpu"]]),
    "onnxruntime": ("provider_time_share", [{"CPUExecutionProvider": 1.0}]),
    "openvino": ("execution_devices", [["cpu"]]),
    "jax": ("output_devices", [["cpu:0"]]),
    "qnn": ("backend", ["libQnnHtp.so", "QnnHtp.dll"]),
}

#: Of all two minutes of two cores; more where others are at work on them too.
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Grid:
    """What the commands said."""

    models: tuple[str, ...]
    codes: Sequence[int]
    rows: Sequence[Row]
    matrices: Mapping[str, Any]  # by precision

    @property
    def narrowed(self):
        return NARROWED[self.models]

    def of(self, runtime):
        return [row for row in self.rows if row["runtime"] == runtime]

    def behind(self, precision, model, hardware):
        cell = (precision, model, hardware)
        return [r for r in self.rows if (r["precision"], r["model"], r["hardware"]) == cell]

    def cells(self):
        """Each cell of a model, with the results behind it."""
        for precision, found in self.matrices.items():
            for model, line in found["models"].items():
                for hardware, cell in line["hardware_compatibility"].items():
                    yield cell, self.behind(precision, model, hardware)


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param(MODELS, id="all", marks=pytest.mark.full)],
)
def grid(request, tmp_path_factory):
    """Two runs into one database, with as few steps as will do, and its matrices."""
    folder = tmp_path_factory.mktemp("grid")
    every = f"--framework {','.join((*RUNTIMES, 'qnn'))} --hardware cpu,openvino:cpu,qnn"
    few = "--batch-sizes 1 --threads 1 --iterations 2 --warmup 1 --quiet"
    # Artefacts of its own: nothing that an earlier version exported is taken for this one's.
    cache = {"ACCELBENCH_CACHE": str(folder / "cache")}
    runs = [
        said(folder, f"run {words} {every} {few}", 600, **cache)
        for words in (
            f"{' '.join(request.param)} --precision fp32",
            f"{NARROWED[request.param]} --precision {','.join(NARROW)}",
        )
    ]
    return Grid(
        models=request.param,
        codes=[code for code, _ in runs],
        rows=[row for _, document in runs for row in document["results"]],
        matrices={
            precision: asked(folder, f"matrix --precision {precision}")
            for precision in ("fp32", *NARROW)
        },
    )


@pytest.fixture
def npu(grid):
    """What QNN ran, where the platform has it."""
    rows = grid.of("qnn")
    absent = [row for row in rows if row["reason"] in ("hardware_absent", "package_missing")]
    if absent:
        pytest.skip(f"{absent[0]['message']}. {absent[0]['advice']}")
    return rows


def test_the_models_are_of_as_many_architectures():
    assert len({find(model).architecture for model in MODELS}) == len(MODELS)


def test_the_commands_end_well_and_leave_out_no_cell(grid):
    failed = [row["message"] for row in grid.rows if row["status"] == "failed"]
    # 3: what was named and nobody can run, such as fp32 on QNN's NPU.
    assert (set(grid.codes) <= {0, 3}, failed) == (True, [])
    cells = [(model, name, "fp32") for model in grid.models for name in (*RUNTIMES, "qnn")]
    cells += [(grid.narrowed, name, p) for name in (*RUNTIMES, "qnn") for p in NARROW]
    got = Counter((row["model"], row["runtime"], row["precision"]) for row in grid.rows)
    assert got == Counter(cells)


def held(row):
    """One result is what it has to be: verified, or refused for the reason that is known."""
    way = (row["runtime"], row["precision"])
    known = REFUSED.get(way, MACHINES.get(way))
    if way not in REFUSED and row["status"] == "ok":
        assert row["verification"] in VERIFIED, (row["model"], way)
        itself = way == ("pytorch", "fp32")
        assert (row["verification"] == "reference") == itself, (row["model"], way)
        if not itself:
            assert 0 <= row["verification_error"] <= row["verification_tolerance"]
        return
    assert known is not None, (row["model"], way, row["reason"], row["message"])
    assert (row["status"], row["reason"]) == ("unsupported", known), (row["model"], way)
    assert row["message"]
    assert row["advice"]
    figures = ("latency_mean_ms", "throughput", "verification_error", "evidence")
    assert {row[name] for name in figures} == {None}, (row["model"], way)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_cell_is_verified_or_refused_for_the_known_reason(grid, runtime):
    for row in grid.of(runtime):
        held(row)


def test_so_is_every_cell_of_the_npu_or_its_emulation(npu):
    for row in npu:
        held(row)
    assert len({row["emulated"] for row in npu}) == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_model_is_verified_on_every_runtime(grid, runtime):
    """Refusals counted as misses: of fp32, which every runtime has, there is none."""
    whole = [row for row in grid.of(runtime) if row["precision"] == "fp32"]
    verified = [row for row in whole if row["verification"] in VERIFIED]
    assert len(verified) / len(whole) == 1
    assert {row["model"] for row in verified} == set(grid.models)


def test_every_runtime_that_has_a_narrow_precision_has_a_verified_cell(grid):
    for runtime, precision in (
        *(("pytorch", one) for one in NARROW),
        ("onnxruntime", "int8"),
        ("openvino", "int8"),
    ):
        (row,) = (row for row in grid.of(runtime) if row["precision"] == precision)
        assert row["verification"] == "ok", (runtime, precision, row["message"])


def test_what_ran_says_where(grid):
    for row in grid.rows:
        if row["status"] != "ok":
            continue
        where, evidence = f"{row['hardware']}:0", row["evidence"]
        assert row["device"] == where
        assert (evidence["requested"], evidence["devices"]) == (where, [where])
        assert set(evidence["shares"]) <= {where}
        key, named = PROOF[row["runtime"]]
        assert evidence["details"][key] in named, (row["model"], row["runtime"])


def test_int8_says_by_which_quantiser_and_how_it_was_calibrated(grid):
    quantisers = {
        row["runtime"]: row["evidence"]["details"]["quantiser"]
        for row in grid.rows
        if row["precision"] == "int8" and row["status"] == "ok"
    }
    for runtime, method in (
        *(("pytorch", "torchao"), ("onnxruntime", "onnxruntime static"), ("openvino", "nncf")),
        *([("qnn", "onnxruntime static")] if "qnn" in quantisers else []),
    ):
        assert quantisers[runtime]["method"].startswith(method)
        # torchao takes the ranges of activations as they come: nothing is calibrated.
        assert (quantisers[runtime]["calibration"] is None) == (runtime == "pytorch")


def test_every_null_has_its_reason(grid):
    hold_nulls(grid.rows)


class TestMatrix:
    """No cell says more than the results behind it."""

    def test_every_model_that_was_measured_has_its_line(self, grid):
        assert set(grid.matrices["fp32"]["models"]) == set(grid.models)
        for precision in NARROW:
            assert set(grid.matrices[precision]["models"]) == {grid.narrowed}

    def test_what_is_rated_was_verified_by_the_runtime_that_is_named(self, grid):
        rated = 0
        for cell, rows in grid.cells():
            good = {r["runtime"]: r for r in rows if r["status"] == "ok" and not r["emulated"]}
            if cell["reason_token"] in UNTIMED:  # the machine was too busy for the cell or the CPU
                assert cell["verification"] in VERIFIED
                assert not all(row["times_usable"] for row in launches_of(grid.rows)), cell
                rated += 1
                continue
            told = cell["performance_rating"] != "n/a" or cell["reason_token"] == "not_sure"
            assert told == bool(good), cell
            if good:
                row = good[cell["runtime"]]
                assert row["verification"] in VERIFIED
                assert cell["verification"] in {r["verification"] for r in good.values()}
                assert cell["run_id"] == row["run_id"]
                assert set(row["workarounds"]) <= set(cell["workarounds"])
                rated += 1
        # cpu and openvino of every model in fp32 and of one in int8, the CPU's of two more.
        assert rated >= 2 * len(grid.models) + 4

    def test_its_speed_is_that_of_the_fastest_against_the_fastest_on_the_cpu(self, grid):
        compared = 0
        for precision, found in grid.matrices.items():
            for model, line in found["models"].items():
                yardstick = fastest(grid.behind(precision, model, "cpu"))
                counted = [c["reason_token"] for c in line["hardware_compatibility"].values()]
                compared += sum(token in UNTIMED for token in counted)
                for hardware, cell in line["hardware_compatibility"].items():
                    unsure = cell["reason_token"] == "not_sure"
                    if cell["performance_rating"] == "n/a" and not unsure:
                        assert cell["speed_vs_cpu"] is None
                        continue
                    own = fastest(grid.behind(precision, model, hardware))
                    assert cell["speed_vs_cpu"] == pytest.approx(own / yardstick, rel=1e-6)
                    compared += 1
        assert compared >= 2 * len(grid.models) + 4

    def test_what_was_refused_is_incompatible_and_says_why(self, grid):
        for cell, rows in grid.cells():
            refused = [row for row in rows if row["reason"] in ("precision", "precision_upcast")]
            if not rows or refused != rows:
                continue
            assert cell["availability"] == "incompatible"
            assert (cell["compatible"], cell["performance_rating"]) == (False, "n/a")
            assert cell["reason_token"] in {row["reason"] for row in refused}
            assert any(row["message"] in cell["reason"] for row in refused)

    def test_what_nobody_ran_is_not_rated(self, grid):
        for cell, rows in grid.cells():
            if not rows:
                assert cell["availability"] in ("not available", "not measured")
                assert cell["performance_rating"] == "n/a"
                assert cell["reason"]

    def test_what_was_emulated_is_right_and_not_rated(self, grid, npu):
        if not npu[0]["emulated"]:
            pytest.skip("here is the NPU itself: its times mean something, and are rated")
        good = [row for row in npu if row["status"] == "ok"]
        assert {row["precision"] for row in good} == {"fp16", "int8"}
        for row in good:
            line = grid.matrices[row["precision"]]["models"][row["model"]]
            cell = line["hardware_compatibility"]["qnn"]
            assert (cell["compatible"], cell["emulated"], cell["verification"]) == (
                *(True, True, "ok"),
            )
            assert (cell["performance_rating"], cell["reason_token"]) == ("n/a", "emulated")
            assert cell["speed_vs_cpu"] is None


def fastest(rows):
    return max(
        (row["throughput"] for row in launches_of(rows) if row["answered"] and row["times_usable"]),
        default=0.0,
    )
