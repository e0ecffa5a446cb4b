"""What OpenVINO's graphs are made of: quantised by nncf, in a process whose words are shown."""

import subprocess
import sys

import numpy as np
import pytest

from accelbench.core.errors import CaseError
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts import intermediate
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from artifact_makers import case_of
from kept_artefacts import kept_artefacts

openvino = pytest.importorskip("openvino")
nncf = pytest.importorskip("nncf")


#: In a process of its own: once OpenVINO has run and gone, SIGTERM is the end of a process,
#: whatever Python was to do with it, and another test sends one.
COMPUTE = """
import sys
import numpy as np
import openvino
model = openvino.Core().compile_model(sys.argv[1], "CPU")
given = {port.any_name: np.ones((1, 16), np.int64) for port in model.inputs}
np.save(sys.argv[2], model(given)[0])
"""


def computed(model, into):
    """The first output of a model."""
    line = [sys.executable, "-c", COMPUTE, str(model), str(into)]
    subprocess.run(line, check=True, timeout=120)
    return np.load(into)


def test_quantising_draws_no_bars(capfd):
    # On a seed of its own: what is in the cache prints nothing whoever draws.
    kept = make(
        Recipe(case_of("resnet-tiny"), ArtifactFormat("ir-int8"), seed=41), kept_artefacts()
    )
    assert kept.manifest.quantiser["method"].startswith("nncf")
    assert capfd.readouterr().out == ""


def test_what_nncf_cannot_do_is_said_with_its_cause(capfd, monkeypatch):
    def broken(*_, **__):
        print("Statistics collection 100%")
        raise RuntimeError("Exception from src/x.cpp:1:\nno such shape")

    monkeypatch.setattr(nncf, "quantize", broken)
    with pytest.raises(CaseError, match="no such shape") as caught:
        make(Recipe(case_of("resnet-tiny"), ArtifactFormat("ir-int8"), seed=42), kept_artefacts())
    assert caught.value.reason == "conversion_failed"
    assert capfd.readouterr().out == ""


def test_a_large_graph_is_read_and_computes_the_same(tmp_path, monkeypatch):
    """Converting would hold its weights twice in memory; reading leaves them in their file."""
    found = []
    for least in (2**60, 1):
        monkeypatch.setattr(intermediate, "_READ_FROM", least)
        if least == 1:
            monkeypatch.delattr(openvino, "convert_model")
        recipe = Recipe(case_of("bert-tiny"), ArtifactFormat("ir"))
        kept = make(recipe, Cache(tmp_path / str(least), 2**40))
        found.append(computed(kept.folder / kept.manifest.file, tmp_path / f"{least}.npy"))
    assert np.allclose(*found, atol=1e-5)


def test_a_graph_of_which_nothing_is_quantised_is_no_int8():
    """A graph whose products lie in a loop came out as it went in, and its time was int8's."""
    with pytest.raises(CaseError, match=r"nncf quantised nothing of loop\.onnx") as refused:
        intermediate.refuse_unquantised("loop.onnx", ["Parameter", "Loop", "Result"])
    assert refused.value.reason == "conversion_failed"
    intermediate.refuse_unquantised("m", ["Parameter", "FakeQuantize", "MatMul", "Result"])
