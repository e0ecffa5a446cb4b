"""Small models in a real browser, as one command measures them: each platform has verified cells.

What is missing here is a failure wherever npm is: `make test` has fetched engine and browser.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from grids import Row, asked, hold_nulls, said

from accelbench.models.find import find

PLATFORMS = ("wasm", "webnn", "webgpu")
#: Of different architectures, and quick where a processor has to play the GPU.
MODELS = ("bert-tiny", "resnet-tiny", "whisper-mini", "clip-tiny")
#: `make test` asks of one model, and not of a GPU that a processor plays, what `make test-full`
#: asks of all.
FEW = (("resnet-tiny",), ("wasm", "webnn"))
ALL = (MODELS, PLATFORMS)
TOLERANCE = 2e-4
AROUND = ("ACCELBENCH_CACHE", "ACCELBENCH_BROWSER")

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("npm") is None and not os.environ.get("ACCELBENCH_BROWSER"),
        reason="npm is not here to fetch onnxruntime-web and a browser",
    ),
]


@dataclass(frozen=True)
class Grid:
    """What the commands said."""

    models: Sequence[str]
    platforms: Sequence[str]
    code: int
    rows: Sequence[Row]
    matrix: Mapping[str, Any]

    def of(self, platform):
        return [row for row in self.rows if row["hardware"] == platform]


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param(ALL, id="all", marks=pytest.mark.full)],
)
def grid(request, tmp_path_factory):
    folder, (models, platforms) = tmp_path_factory.mktemp("grid"), request.param
    run = f"run {' '.join(models)} --hardware {','.join(platforms)} --batch-sizes 1 --threads 1"
    # The engine and the browser lie where they were fetched to.
    around = {name: os.environ[name] for name in AROUND if name in os.environ}
    few = "--iterations 2 --warmup 1 --new-tokens 0 --quiet"
    code, document = said(folder, f"{run} {few}", 800, **around)
    return Grid(models, platforms, code, document["results"], asked(folder, "matrix"))


#: Each platform of each grid.
EACH = [
    *(pytest.param(FEW, p, id=f"{p}-few") for p in FEW[1]),
    *(pytest.param(ALL, p, id=f"{p}-all", marks=pytest.mark.full) for p in PLATFORMS),
]


def test_the_models_are_of_as_many_architectures():
    assert len({find(model).architecture for model in MODELS}) == len(MODELS)


def test_the_command_ends_well_and_leaves_out_no_cell(grid):
    assert grid.code == 0, [row["message"] for row in grid.rows if row["status"] != "ok"]
    cells = {(model, platform) for model in grid.models for platform in grid.platforms}
    assert {(row["model"], row["hardware"]) for row in grid.rows} == cells


@pytest.mark.parametrize(("grid", "platform"), EACH, indirect=["grid"])
def test_every_cell_is_verified_where_it_ran(grid, platform):
    rows = grid.of(platform)
    assert [row["verification"] for row in rows] == ["ok"] * len(grid.models)
    for row in rows:
        assert 0 <= row["verification_error"] <= row["verification_tolerance"]
        assert row["verification_error"] <= TOLERANCE, row["model"]
        assert row["latency_mean_ms"] > 0

    for row in grid.of(platform):
        evidence, where = row["evidence"], f"{platform}:0"
        assert evidence["requested"] == where
        assert evidence["shares"][where] >= 0.9, row["model"]
        assert evidence["details"]["isolated"] is True
        assert evidence["engine"].startswith("onnxruntime-web ")


@pytest.mark.parametrize(
    "grid", [pytest.param(ALL, id="all", marks=pytest.mark.full)], indirect=True
)
def test_a_software_adapter_is_emulated_and_the_others_are_not(grid):
    for row in grid.of("webgpu"):
        assert row["emulated"] == bool(row["evidence"]["details"]["adapter"]["fallback"])
    assert not any(row["emulated"] for p in ("wasm", "webnn") for row in grid.of(p))


def test_visits_nulls_and_the_matrix(grid):
    for row in grid.rows:
        assert row["repeat_visit_ms"] > 0
        assert row["first_visit_ms"] > 0
    hold_nulls(grid.rows)

    assert set(grid.platforms) <= set(grid.matrix["hardware_types"])
    for model in grid.models:
        cells = grid.matrix["models"][model]["hardware_compatibility"]
        for platform in grid.platforms:
            assert cells[platform]["compatible"] is True, (model, platform)
            assert cells[platform]["verification"] == "ok"
