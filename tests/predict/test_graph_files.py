"""Models of files: their operators beside the tracer's, and files that are none."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.graph_files.costs import TORCH_EXPORT, open_graph
from accelbench.models.graph_files.steps import UntracedError
from accelbench.models.inputs import settle
from accelbench.predict.cases import FROM_FILE
from accelbench.predict.graph_file_models import FileModel, file_model, names_a_file
from accelbench.predict.graph_file_reading import read
from accelbench.predict.signatures import PassTrace
from accelbench.predict.traces import Traces
from artifact_makers import made

MODELS = ["bert-tiny", "resnet-tiny", "vit-tiny", "gpt2-tiny"]


def macs_of(taken: PassTrace) -> dict[str, int]:
    by_class: Counter[str] = Counter()
    for signature, number in taken.signatures:
        by_class[signature.op_class] += number * signature.macs
    return {name: macs for name, macs in by_class.items() if macs}


def launches_of(taken: PassTrace, *classes: str) -> int:
    return sum(number for s, number in taken.signatures if s.op_class in classes)


def traced(model: str, folder: Path, sequence: int | None = 16) -> PassTrace:
    spec = find(model)
    shapes = settle(spec, Shapes(1, sequence=sequence if spec.sequence else None))
    return Traces(folder).of(model, shapes)["forward"]


def passed(path: Path, **sizes: int | None) -> PassTrace:
    (entry,) = read(path, [sizes])["passes"]
    if "error" in entry:
        raise UntracedError(entry["error"], entry["advice"])
    return PassTrace.from_dict(entry["pass"])


def agrees(found: PassTrace, known: PassTrace) -> None:
    """Products are the same; a bound on the rest, which exporters write in other parts."""
    assert macs_of(found) == macs_of(known)
    assert found.sums.weights_read == known.sums.weights_read
    assert found.weights == pytest.approx(known.weights, rel=0.01)
    assert found.peak_bytes == pytest.approx(known.peak_bytes, rel=0.3)
    assert found.scores == known.scores
    for classes in (("act",), ("ln",), ("softmax",)):
        assert launches_of(found, *classes) == launches_of(known, *classes)


@pytest.mark.parametrize("model", MODELS)
def test_an_onnx_graph_multiplies_what_the_tracer_saw(model, tmp_path):
    folder = made(model).folder
    alone = shutil.copy(folder / "model.onnx", tmp_path)  # weights beside it are not there
    agrees(passed(Path(alone)), traced(model, tmp_path))


@pytest.mark.parametrize("model", ["bert-tiny", "resnet-tiny"])
def test_an_openvino_graph_does_too(model, tmp_path):
    kept = made(model, "ir")
    found, known = passed(kept.folder / kept.manifest.file), traced(model, tmp_path)
    assert macs_of(found) == macs_of(known)
    assert found.sums.weights_read == known.sums.weights_read


def exported(path: Path) -> Path:
    """A program of torch.export whose batch and length are free."""

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.nn.functional.gelu(self.first(x))
            heads = y.view(x.shape[0], x.shape[1], 2, 8).transpose(1, 2)
            mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
            joined = mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], 16)
            out: torch.Tensor = self.second(joined)
            return out

    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=512)}
    program = torch.export.export(Block(), (torch.zeros(3, 5, 8),), dynamic_shapes=(sizes,))
    torch.export.save(program, path)
    return path


def test_a_program_of_torch_export_is_read_as_json_at_other_sizes(tmp_path):
    taken = passed(exported(tmp_path / "block.pt2"), sequence=10)
    assert macs_of(taken) == {"lin": 2 * 10 * 8 * 16, "sdpa": 2 * 10 * 10 * (8 + 8)}
    assert taken.weights == 8 * 16 + 16 + 16 * 8 + 8
    # Nothing but the JSON is opened: what is pickled beside it never is.
    with (
        zipfile.ZipFile(tmp_path / "block.pt2") as archive,
        zipfile.ZipFile(tmp_path / "alone.pt2", "w") as other,
    ):
        for entry in archive.infolist():
            if entry.filename.endswith(".json"):
                other.writestr(entry.filename, archive.read(entry))
    assert macs_of(passed(tmp_path / "alone.pt2", sequence=10)) == macs_of(taken)


# -- graphs made by hand


def graph(
    nodes: list[Any], shape: list[Any], weights: dict[str, Any] | None = None, outputs: int = 1
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(v, k) for k, v in (weights or {}).items()]
    return helper.make_model(
        helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)][:outputs],
            tensors,
        ),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=9,
    )  # fmt: skip


def saved(model: onnx.ModelProto, folder: Path, name: str = "m.onnx") -> Path:
    onnx.save(model, folder / name)
    return folder / name


def linear(shape: list[Any]) -> onnx.ModelProto:
    weight = np.zeros((8, 4), np.float32)
    return graph([helper.make_node("MatMul", ["x", "w"], ["y"])], shape, {"w": weight})


def test_a_free_dimension_is_bound_by_an_option_or_refused_by_its_name(tmp_path):
    path = saved(linear(["batch", "seq_len", 8]), tmp_path)
    assert macs_of(passed(path, sequence=7)) == {"lin": 7 * 8 * 4}
    with pytest.raises(UsageError, match="'seq_len' of its input x is free") as caught:
        file_model(str(path), [Shapes(1)])
    assert "--sequence-lengths" in caught.value.advice
    cached = saved(linear(["batch", "past_sequence_length", 8]), tmp_path, "cached.onnx")
    with pytest.raises(UsageError, match="past_sequence_length"):
        file_model(str(cached), [Shapes(1, sequence=8)])


def test_each_of_several_sizes_has_a_pass(tmp_path):
    path = saved(linear(["batch", "seq_len", 8]), tmp_path)
    model = file_model(str(path), [Shapes(1, sequence=4), Shapes(1, sequence=8)])
    spec: ModelSpec = model.spec
    assert FROM_FILE in spec.sets
    for length in (4, 8):
        assert macs_of(model.at(Shapes(1, sequence=length))["forward"]) == {"lin": length * 32}


def test_a_fixed_batch_is_counted_an_item_at_a_time(tmp_path):
    model: FileModel = file_model(str(saved(linear([4, 6, 8]), tmp_path)), [Shapes(1)])
    assert model.batch == 4
    assert macs_of(model.at(Shapes(1))["forward"]) == {"lin": 6 * 8 * 4}


def test_work_that_grows_with_the_square_of_the_batch_is_refused(tmp_path):
    """65,536 items, each compared with each other, were predicted in 1.3 ms on an H100."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    assert "grows faster than its batch" in refusal(saved(graph(nodes, ["batch", 64]), tmp_path))
    fixed = file_model(str(saved(graph(nodes, [4, 64]), tmp_path, "fixed.onnx")), [Shapes(1)])
    assert fixed.batch == 4


def test_operators_that_no_rule_counts_are_named(tmp_path):
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Odd", ["x"], ["y"], domain="com.example"),
    ]
    path = saved(graph(nodes, [1, 8]), tmp_path)
    with pytest.raises(UsageError, match=r"NonZero, com\.example\.Odd"):
        file_model(str(path), [Shapes(1)])


def test_a_shape_that_depends_on_values_names_the_operator(tmp_path):
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["i"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["i", "zero"], ["shape"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"], name="turn"),
    ]
    path = saved(graph(nodes, [1, 8], {"zero": np.zeros(1, np.int64)}), tmp_path)
    with pytest.raises(UsageError, match="Reshape 'turn'"):
        file_model(str(path), [Shapes(1)])


def test_a_softmax_between_products_that_something_else_reads_stays_in_parts(tmp_path):
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "x"], ["out"]),
        helper.make_node("ReduceMean", ["shares"], ["seen"]),
        helper.make_node("Add", ["out", "seen"], ["y"]),
    ]
    whole = graph([*nodes[:3], helper.make_node("MatMul", ["shares", "x"], ["y"])], ["b", 6, 8])
    assert macs_of(passed(saved(whole, tmp_path, "a.onnx"))) == {"sdpa": 2 * 6 * 6 * 8}
    apart = passed(saved(graph(nodes, ["b", 6, 8]), tmp_path, "b.onnx"))
    assert macs_of(apart) == {"bmm": 2 * 6 * 6 * 8}
    assert launches_of(apart, "softmax") == 1


# -- what is none


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        file_model(str(path), [Shapes(1)])
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Hostile:
    """Whoever unpickles it makes a folder."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("unpickled",)


def test_pickles_are_refused_and_never_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m.pt", "m.pt2", "m.onnx", "m.xml"):
        (tmp_path / name).write_bytes(pickle.dumps(Hostile()))
        refusal(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("old/data.pkl", pickle.dumps(Hostile()))
    assert "pickled" in refusal(tmp_path / "old.pt2")
    assert not (tmp_path / "unpickled").exists()


def test_files_of_no_graph_say_what_they_are(tmp_path):
    whole = linear(["batch", 6, 8]).SerializeToString()
    (tmp_path / "cut.onnx").write_bytes(whole[: len(whole) // 2])
    assert "is not predicted" in refusal(tmp_path / "cut.onnx")
    (tmp_path / "empty.onnx").touch()
    assert "empty" in refusal(tmp_path / "empty.onnx")
    (tmp_path / "w.safetensors").write_bytes(b"abc")
    assert "weights without the model" in refusal(tmp_path / "w.safetensors")
    (tmp_path / "lfs.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "Git LFS" in refusal(tmp_path / "lfs.onnx")
    (tmp_path / "m.xml").write_text("<net><layers>")
    assert "is not predicted" in refusal(tmp_path / "m.xml")
    with (tmp_path / "huge.onnx").open("wb") as file:
        file.truncate(2**33)
    assert "larger than 2 GiB" in refusal(tmp_path / "huge.onnx")
    assert "no such file" in refusal(tmp_path / "absent.onnx")


def test_absurd_sizes_are_refused(tmp_path):
    model = linear([2**40, 2**20, 8])
    assert "no machine" in refusal(saved(model, tmp_path))


def test_a_program_of_another_make_is_refused(tmp_path):
    for content in ("{}", '{"graph_module": 3}', "[", '{"graph_module": {"graph": {}}}'):
        with zipfile.ZipFile(tmp_path / "p.pt2", "w") as archive:
            archive.writestr("p/models/model.json", content)
        with pytest.raises(UntracedError):
            open_graph(tmp_path / "p.pt2", TORCH_EXPORT)


# -- configs


def test_a_packed_program_whose_bytes_are_damaged_is_refused(tmp_path):
    path = tmp_path / "p.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/models/model.json", json.dumps({"some": list(range(999))}))
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)  # within the packed bytes
    path.write_bytes(data)
    with pytest.raises(UntracedError, match=r"no archive of torch\.export, or half of one"):
        open_graph(path, TORCH_EXPORT)


def test_a_folder_with_a_config_is_traced(tmp_path):
    config = {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 32,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
        "vocab_size": 100, "max_position_embeddings": 64,
    }  # fmt: skip
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    model = file_model(str(folder), [Shapes(1)])
    passes = Traces(tmp_path / "kept", own={str(folder): model}).of(
        str(folder), settle(model.spec, Shapes(1, sequence=16))
    )
    built = build(model.spec, seed=0)
    assert passes["forward"].weights == sum(p.numel() for p in built.parameters())
    assert macs_of(passes["forward"])["sdpa"] == 16 * 16 * 32 * 2
    assert model.to_dict()["sha256"]
    file = str(folder / "config.json")
    itself = file_model(file, [Shapes(1)])
    assert (itself.spec.id, itself.digest) == (file, model.digest)


def test_configs_that_say_too_little_are_refused(tmp_path):
    assert "config.json" in refusal(tmp_path)
    for content, words in (
        ("{", "no JSON"), ("[]", "no object"), ("{}", "names no architecture"),
        ('{"architectures": ["X"], "auto_map": {}}', "Python code of its own"),
        ('{"architectures": ["X"], "num_hidden_layers": 1000000000}', "no model has"),
        ('{"architectures": ["X"], "text_config": {"n_layer": 20000}}', "no model has"),
    ):  # fmt: skip
        (tmp_path / "config.json").write_text(content)
        assert words in refusal(tmp_path)


def test_names_of_models_are_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not names_a_file("no-such-model")
    assert names_a_file("model.onnx")
    (tmp_path / "folder").mkdir()
    assert names_a_file("folder")
