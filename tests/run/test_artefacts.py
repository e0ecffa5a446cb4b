"""Artefacts of a run: those of other weights are made anew, and no disk is cured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_runs import CPU, Watcher, models

from accelbench.artifacts.cache import Cache
from accelbench.artifacts.make import make
from accelbench.artifacts.manifest import FILE
from accelbench.artifacts.recipe import Recipe
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.facts import new_run_id
from accelbench.core.words import Status
from accelbench.run import journey
from accelbench.run.artefacts import Artefacts
from accelbench.run.context import Settings
from accelbench.run.journey import Journey
from accelbench.run.plan import Plan, Planned
from accelbench.run.results import Outcome
from accelbench.runtimes.onnxruntime import OnnxruntimeRuntime
from accelbench.runtimes.pytorch import PytorchRuntime

CASE = Case(models("resnet-tiny")[0], Target("onnxruntime", "cpu"), "fp32", Shapes(1, image=64))


def renamed(kept: Path, key: str) -> None:
    """Put an artefact where another one belongs, as a key that misses a difference would."""
    manifest = json.loads((kept / FILE).read_text())
    (kept / FILE).write_text(json.dumps({**manifest, "key": key}))
    kept.rename(kept.parent / key)


def run_of(folder: Path, case: Case) -> Mapping[str, Any]:
    planned = Journey(
        Plan((Planned(case, CPU),)),
        Settings(new_run_id(), threads=1, verify="only"),
        {"pytorch": PytorchRuntime(), "onnxruntime": OnnxruntimeRuntime()},
    )
    (row,) = journey.start(planned, folder, Watcher(), {}).rows
    return row


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_artefact_of_other_weights_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    cache = Cache()
    case = replace(CASE, precision=precision)
    right = Recipe(case, OnnxruntimeRuntime().wants(case))
    wrong = replace(right, seed=1)
    stale = make(wrong, cache).manifest.weights_digest
    for one, other in ((right, wrong), (right.of("onnx"), wrong.of("onnx"))):
        if cache.find(other.key) is not None:
            renamed(cache.folder / other.key, one.key)
    row = run_of(tmp_path / "journals", case)
    assert (row["status"], row["verification"]) == ("ok", "ok"), row
    assert row["workarounds"] == []
    kept = cache.find(right.key)
    assert kept is not None
    assert row["weights_digest"] == kept.manifest.weights_digest != stale


def artefacts_of(kept: str, folder: Path) -> tuple[Artefacts, list[str]]:
    """A cache whose artefacts are made of the weights `kept`, and how often they were."""
    cache, made = Cache(folder, cap=2**20), []
    artefacts = Artefacts(cache)

    def fill(_: Any, wanted: Recipe) -> Any:
        made.append(kept)
        with cache.making(wanted.key) as into:
            (into / "model.onnx").write_text("")
            body = {
                "key": wanted.key, "format": "onnx", "model": "m", "file": "model.onnx",
                "inputs": [], "outputs": [], "batch": None, "weights_digest": kept,
            }  # fmt: skip
            (into / FILE).write_text(json.dumps(body))
        return cache.find(wanted.key)

    artefacts._made = fill  # type: ignore[method-assign]
    return artefacts, made


def context_with(known: str | None) -> Any:
    yardstick = None if known is None else SimpleNamespace(weights_digest=known)
    found = SimpleNamespace(yardsticks=SimpleNamespace(of=lambda case: yardstick))
    runtimes = {"onnxruntime": OnnxruntimeRuntime()}
    return SimpleNamespace(settings=Settings("x"), runtimes=runtimes, verifications=found)


@pytest.mark.parametrize(("known", "times"), [("same", 1), ("", 1), (None, 1), ("other", 2)])
def test_it_is_made_anew_once_a_run_and_only_where_the_reference_is_open(
    tmp_path: Path, known: str | None, times: int
) -> None:
    artefacts, made = artefacts_of("same", tmp_path)
    for _ in range(3):
        artefacts.get(context_with(known), Planned(CASE, CPU), ())
    assert len(made) == times


@pytest.mark.parametrize("reason", ["disk_full", "cache_unwritable", "weights_unavailable"])
def test_no_workaround_is_tried_against_what_lies_around_the_model(
    tmp_path: Path, reason: str
) -> None:
    artefacts = Artefacts(Cache(tmp_path, cap=2**20))
    outcome = Outcome(Status.FAILED, reason, "the Shape of what cannot be written: export_failed")
    assert artefacts.next_try(context_with(None), CASE, outcome, ()) is None
    failed = replace(outcome, reason="export_failed")
    assert artefacts.next_try(context_with(None), CASE, failed, ()) is not None
