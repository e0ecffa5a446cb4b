"""An engine's own files as models that are asked about: TensorFlow Lite's, ncnn's and others."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

import pytest

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.predict.graph_file_models import FileModel, file_model


def macs_of(model: FileModel, image: int | None = None) -> int:
    taken = model.at(Shapes(1, image=image))["forward"]
    return sum(number * signature.macs for signature, number in taken.signatures)


def refusal(path: Path, image: int | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        file_model(str(path), [Shapes(1, image=image)])
    return f"{caught.value} {caught.value.advice}"


@pytest.mark.parametrize(("batch", "fixed"), [(-1, None), (4, 4)])
def test_a_tensorflow_lite_model_is_counted_an_item_at_a_time(tmp_path, batch, fixed):
    pytest.importorskip("ai_edge_litert")
    import tflite_model

    model = file_model(str(tflite_model.write(tmp_path / "net.tflite", batch)), [Shapes(1)])
    assert (model.format, model.batch, model.precision) == ("tflite", fixed, "float")
    assert macs_of(model) == 16 * 32 + 32 * 4
    assert model.spec.parameters == 16 * 32 + 32 + 32 * 4 + 4


def test_an_ncnn_network_is_counted_at_its_own_sizes_or_those_that_are_said(tmp_path):
    pytest.importorskip("ncnn")
    import ncnn_model

    stated = ncnn_model.write(tmp_path / "stated.param", sizes="0=16 1=16 2=3")
    model = file_model(str(stated), [Shapes(1)])
    assert (model.format, model.batch, model.precision) == ("ncnn", None, "float")
    assert macs_of(model) == 16 * 16 * 8 * 27 + 8 * 4
    free = ncnn_model.write(tmp_path / "free.param")
    assert "--image-sizes" in refusal(free)
    assert macs_of(file_model(str(free), [Shapes(1, image=8)]), 8) == 8 * 8 * 8 * 27 + 8 * 4
    quantised = ncnn_model.write(tmp_path / "q.param", sizes="0=16 1=16 2=3", quantised=True)
    assert file_model(str(quantised), [Shapes(1)]).precision == "int8"
    free.with_suffix(".bin").unlink()
    assert "free.bin" in refusal(free, 8)


def test_engine_files_that_are_none_say_what_they_are(tmp_path):
    for name, words in (
        ("m.tflite", "no TensorFlow Lite model"),
        ("m.param", "begins as a pickle"),
    ):
        (tmp_path / name).write_bytes(pickle.dumps([1]))
        assert words in refusal(tmp_path / name)
    importlib.import_module("accelbench_executorch")  # it declares its format
    (tmp_path / "net.pte").write_bytes(b"\0\0\0\0ET12")
    assert "in the backend's own form" in refusal(tmp_path / "net.pte")
