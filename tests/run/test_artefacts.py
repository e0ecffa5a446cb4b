"""Artefacts of a run: those of other weights are made anew, and no disk is cured."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import onnx
import pytest
from fixed_machine import CPU, models
from onnx import TensorProto, helper
from scripted_runs import Watcher

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.facts import new_run_id
from accelbench.core.protocols import ArtifactFormat
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Outcome, Status
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import FILE, Recipe
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.models.file_models.models import model_of_file
from accelbench.models.file_models.unchanged import refuse_changed
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.artifacts import ArtifactExports, ExportedArtifact
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.conduct.run_record import planned_to_json, settled
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.process.worker_client import WorkerTroubleError

CASE = Case(models("resnet-tiny")[0], Target("onnxruntime", "cpu"), "fp32", Shapes(1, image=64))


def renamed(kept, key):
    """Put an artefact where another one belongs, as a key that misses a difference would."""
    manifest = json.loads((kept / FILE).read_text())
    (kept / FILE).write_text(json.dumps({**manifest, "key": key}))
    kept.rename(kept.parent / key)


def run_of(folder, case, watcher=None):
    planned = PlannedRun(
        Plan((Planned(case, CPU),)),
        RunSettings(run_id=new_run_id(), threads=1, verify="only"),
        {"pytorch": PytorchRuntime(), "onnxruntime": OnnxruntimeRuntime()},
    )
    (row,) = lifecycle.start(planned, folder, watcher or Watcher(), {}).rows
    return row


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_an_artefact_of_other_weights_is_made_anew(tmp_path, monkeypatch, precision):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    cache = Cache()
    case = replace(CASE, precision=precision)
    right = Recipe(case, OnnxruntimeRuntime().wants(case))
    wrong = replace(right, seed=1)
    stale = make(wrong, cache).manifest.weights_digest
    for one, other in ((right, wrong), (right.base, wrong.base)):
        if cache.find(other.key) is not None:
            renamed(cache.folder / other.key, one.key)
    row = run_of(tmp_path / "journals", case)
    assert (row["status"], row["verification"]) == ("ok", "ok"), row
    assert row["workarounds"] == []
    kept = cache.find(right.key)
    assert row["weights_digest"] == kept.manifest.weights_digest != stale


def artefacts_of(kept, folder):
    """A cache whose artefacts are made of the weights `kept`, and how often they were."""
    cache, made = Cache(folder, cap=2**20), []
    artefacts = ArtifactExports(cache)

    def fill(_, wanted):
        made.append(kept)
        with cache.making(wanted.key) as into:
            (into / "model.onnx").write_text("")
            body = {
                "key": wanted.key, "format": "onnx", "model": "m", "file": "model.onnx",
                "inputs": [], "outputs": [], "batch": None, "weights_digest": kept,
            }  # fmt: skip
            (into / FILE).write_text(json.dumps(body))
        return cache.find(wanted.key)

    artefacts._made = fill
    return artefacts, made


def context_with(known):
    yardstick = None if known is None else SimpleNamespace(weights_digest=known)
    found = SimpleNamespace(yardsticks=SimpleNamespace(of=lambda case: yardstick))
    runtimes = {"onnxruntime": OnnxruntimeRuntime()}
    return SimpleNamespace(settings=RunSettings(run_id="x"), runtimes=runtimes, verifications=found)


@pytest.mark.parametrize(("known", "times"), [("same", 1), ("", 1), (None, 1), ("other", 2)])
def test_it_is_made_anew_once_a_run_and_only_where_the_reference_is_open(tmp_path, known, times):
    artefacts, made = artefacts_of("same", tmp_path)
    for _ in range(3):
        artefacts.get(context_with(known), Planned(CASE, CPU), ())
    assert len(made) == times


def test_a_crash_is_tried_again_before_a_workaround_is_taken_for_its_cure(tmp_path):
    artefacts, context = ArtifactExports(Cache(tmp_path, cap=2**20)), context_with(None)
    crash = Outcome(Status.FAILED, "crash", "the worker ended while loading (exit code 139)")
    tries = [artefacts.next_try(context, CASE, crash, ("eager_attention",)) for _ in range(2)]
    assert tries == [("eager_attention",), ("eager_attention", "fixed_batch")]
    unknown = replace(crash, message="the worker ended, nobody knows how")
    assert artefacts.next_try(context, replace(CASE, precision="int8"), unknown, ()) is None


class OneBatchEach(ScriptedRuntime):
    """A script whose artefact is for one batch size, or for all."""

    def __init__(self, static):
        super().__init__()
        self.static = static

    def wants(self, case):
        return ArtifactFormat("onnx", static=self.static)


@pytest.mark.parametrize("static", [True, False])
def test_what_cannot_be_opened_at_one_batch_is_tried_at_others_where_each_has_its_own(
    scripted, monkeypatch, static
):
    def get(self, context, planned, applied):
        if planned.case.shapes.batch == 1:
            raise WorkerTroubleError(
                Outcome(Status.FAILED, "export_failed", "no graph for one item")
            )
        return ExportedArtifact("/nowhere", static)

    monkeypatch.setattr(ArtifactExports, "get", get)
    scripted.runtimes["scripted"] = OneBatchEach(static)
    rows = scripted.run(batches=[1, 4, 16], fix=False)
    later = "ok" if static else "failed"
    assert [row["status"] for row in rows] == ["failed", later, later]
    assert ("not tried again" in str(rows[1]["message"])) != static


@pytest.mark.parametrize("reason", ["disk_full", "cache_unwritable", "weights_unavailable"])
def test_no_workaround_is_tried_against_what_lies_around_the_model(tmp_path, reason):
    artefacts = ArtifactExports(Cache(tmp_path, cap=2**20))
    outcome = Outcome(Status.FAILED, reason, "the Shape of what cannot be written: export_failed")
    assert artefacts.next_try(context_with(None), CASE, outcome, ()) is None
    failed = replace(outcome, reason="export_failed")
    assert artefacts.next_try(context_with(None), CASE, failed, ()) is not None


def test_what_no_workaround_cured_is_told_with_its_first_cause(scripted, monkeypatch):
    def get(self, context, planned, applied):
        why, advice = ("no patch 4", "x") if applied else ("no operator Abc", "use wasm")
        raise WorkerTroubleError(Outcome(Status.FAILED, "export_failed", why, advice))

    ways = [("patch",), None]
    monkeypatch.setattr(ArtifactExports, "get", get)
    monkeypatch.setattr(ArtifactExports, "next_try", lambda self, *_: ways.pop(0))
    scripted.runtimes["scripted"] = OneBatchEach(static=True)
    (row,) = scripted.run(batches=[1])
    assert row["message"] == "no patch 4; at first: no operator Abc"
    assert row["advice"] == "use wasm"
    assert row["workarounds"] == ["patch"]


class Meddler(Watcher):
    """Whoever writes a model's file anew once its run has come to some phase."""

    def __init__(self, path, phase):
        super().__init__()
        self._path, self._phase = path, phase

    def progress(self, progress):
        super().progress(progress)
        if progress.phase == self._phase:
            scaled(self._path, 3.0)


def scaled(path, factor):
    """A graph that multiplies what it reads, of one size whatever the factor."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy"]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [factor] * 4)
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("phase", ["looked", "verifying"])
def test_a_file_that_is_changed_after_the_look_is_not_measured_as_what_it_was(
    tmp_path, monkeypatch, phase
):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    path = scaled(tmp_path / "mine.onnx", 2.0)
    case = Case(model_of_file(str(path)), Target("onnxruntime", "cpu"), "fp32", Shapes(1))
    if phase == "looked":
        # The cache has its manifest already, so nothing of the file is read again.
        assert run_of(tmp_path / "first", case)["status"] == "ok"
        times = path.stat()
        scaled(path, 3.0)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert path.stat().st_size == times.st_size
    row = run_of(tmp_path / "second", case, Meddler(path, phase))
    assert (row["status"], row["reason"]) == ("failed", "file_changed")
    assert "was changed after the run had looked at it" in row["message"]


def test_a_copy_of_a_file_is_that_file_where_a_plan_is_read(tmp_path):
    path = scaled(tmp_path / "mine.onnx", 2.0)
    case = Case(model_of_file(str(path)), Target("onnxruntime", "cpu"), "fp32", Shapes(1))
    file = case.model.file
    assert file is not None

    def read():
        begun = {
            "plan": [planned_to_json(Planned(case, CPU))],
            "settings": RunSettings(run_id="r").to_dict(),
        }
        _, plan = settled("r", begun)
        again = plan.cases[0].case.model.file
        assert again is not None
        return again

    os.utime(path, ns=(0, 0))  # as of a copy on another machine
    assert read() != file
    refuse_changed(read())
    scaled(path, 3.0)
    assert read() == file
    with pytest.raises(CaseError, match="was changed"):
        refuse_changed(read())
