"""Model files: told apart by looking, what they read found in the graph, hostile ones refused."""

import hashlib
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from made_graphs import saved, weight
from onnx import TensorProto, helper, numpy_helper

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.core.serial import case_from_json, case_to_json
from accelbench.core.vocabulary import Family
from accelbench.engines.onnxruntime.providers import serving
from accelbench.models.file_models.given_inputs import parse_inputs, size_named
from accelbench.models.file_models.kinds import FileRefusedError, is_file_word
from accelbench.models.file_models.looking import look
from accelbench.models.file_models.models import model_of_file, name_of
from accelbench.models.inputs import input_shapes, make_inputs


def reader(folder, name="reader.onnx", rows=500):
    """A table of rows looked up, and a product: the smallest language model."""
    nodes = [
        helper.make_node("Cast", ["ids"], ["wide"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "wide"], ["e"]),
        helper.make_node("MatMul", ["e", "w"], ["y"]),
    ]
    given = {"ids": (TensorProto.INT32, ["batch", "seq_len"])}
    return saved(folder / name, nodes, given, [weight("table", rows, 8), weight("w", 8, 4)])


def test_a_graph_says_what_it_reads(tmp_path):
    spec = model_of_file(str(reader(tmp_path)))
    assert (spec.id, spec.family, spec.parameters) == ("reader.onnx", Family.UNKNOWN, 4032)
    (ids,) = spec.inputs
    assert (ids.shape, ids.dtype, ids.low, ids.high) == (("batch", "sequence"), "int32", 0, 500)
    assert spec.file.drawn == {"ids": "0 to 499: rows of the table it reads"}
    assert spec.file.digest == hashlib.sha256((tmp_path / "reader.onnx").read_bytes()).hexdigest()
    drawn = make_inputs(spec, Shapes(3, sequence=70), 0)["ids"]
    assert (drawn.shape, str(drawn.dtype)) == ((3, 70), "int32")
    assert 0 <= drawn.min() < 20
    assert 480 < drawn.max() < 500


def test_a_changed_file_is_the_same_question_with_other_weights(tmp_path):
    def asked(path):
        spec = model_of_file(str(path))
        return Case(spec, Target("onnxruntime", "cpu"), "fp32", Shapes(1, sequence=16))

    before, moved = asked(reader(tmp_path)), asked(reader(tmp_path / "elsewhere"))
    assert before.case_id == moved.case_id
    path = reader(tmp_path)
    model = onnx.load(str(path))
    model.graph.initializer[1].CopyFrom(weight("w", 8, 4))
    model.graph.initializer[1].raw_data = b"\0" * 128
    onnx.save(model, str(path))
    after = asked(path)
    assert after.case_id == before.case_id
    assert after.model.file.digest != before.model.file.digest
    assert asked(reader(tmp_path, rows=501)).case_id != before.case_id
    assert case_from_json(case_to_json(after)).model == after.model


def test_inputs_of_every_type_are_drawn_as_they_are_declared(tmp_path):
    names = {
        "half": (TensorProto.FLOAT16, "float16"),
        "double": (TensorProto.DOUBLE, "float64"),
        "pixels": (TensorProto.UINT8, "uint8"),
        "small": (TensorProto.INT8, "int8"),
        "truth": (TensorProto.BOOL, "bool"),
        "attention_mask": (TensorProto.INT64, "int64"),
    }
    nodes = [
        *(helper.make_node("Cast", [n], [f"{n}_f"], to=TensorProto.FLOAT) for n in names),
        helper.make_node("Sum", [f"{n}_f" for n in names], ["y"]),
    ]
    given = {name: (kind, ["batch", 400]) for name, (kind, _) in names.items()}
    spec = model_of_file(str(saved(tmp_path / "types.onnx", nodes, given)))
    drawn = make_inputs(spec, Shapes(2), 0)
    assert {n: str(v.dtype) for n, v in drawn.items()} == {n: d for n, (_, d) in names.items()}
    assert (drawn["attention_mask"] == 1).all()
    assert drawn["pixels"].max() > 240
    assert drawn["small"].min() < -110
    assert set(np.unique(drawn["truth"])) == {False, True}
    assert abs(float(drawn["half"].astype(np.float32).std()) - 1) < 0.1


def test_whole_numbers_of_which_nothing_is_known_are_asked_for(tmp_path):
    nodes = [helper.make_node("Cast", ["count"], ["y"], to=TensorProto.FLOAT)]
    path = str(saved(tmp_path / "counts.onnx", nodes, {"count": (TensorProto.INT64, ["batch"])}))
    with pytest.raises(UsageError, match="may hold does not follow") as refused:
        model_of_file(path)
    assert "--input count=0..1000" in refused.value.advice
    spec = model_of_file(path, parse_inputs(["count=3..7"]))
    assert set(make_inputs(spec, Shapes(200), 0)["count"]) == {3, 4, 5, 6}
    assert spec.file.drawn == {"count": "as given"}
    constant = model_of_file(path, parse_inputs(["count=int64[batch]:5"]))
    assert set(make_inputs(constant, Shapes(9), 0)["count"]) == {5}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("x", "takes the name of an input"),
        ("x=", "takes the name of an input"),
        ("x=[batch,", "takes the name of an input"),
        ("x=float32[batch,-1]", "neither a size nor a name"),
        ("x=7..7", "holds no value"),
        ("x=9..3", "holds no value"),
    ],
)
def test_a_malformed_input_is_refused(word, says):
    with pytest.raises(UsageError, match=says):
        parse_inputs([word])


def test_what_is_said_of_an_input_has_to_fit_the_file(tmp_path):
    path = str(reader(tmp_path))
    for word, says in (
        ("idz=0..5", "has no input 'idz'"),
        ("ids=int64", "takes int32, not int64"),
        ("ids=[batch]", "has 2 axes, not 1"),
    ):
        with pytest.raises(UsageError, match=says):
            model_of_file(path, parse_inputs([word]))
    bound = model_of_file(path, parse_inputs(["ids=int32[batch,77]:1..400"]))
    assert input_shapes(bound, Shapes(2)) == {"ids": (2, 77)}


@pytest.mark.parametrize(
    ("name", "place", "rank", "size"),
    [
        ("batch_size", 0, 2, "batch"),
        ("", 0, 2, "batch"),
        ("unk__17", 0, 4, "batch"),
        ("s0", 0, 4, "batch"),
        ("", 1, 2, "sequence"),
        ("height", 2, 4, "image"),
        ("?", 3, 4, "image"),
        ("nodes", 0, 2, "nodes"),
        ("past_sequence_length + 1", 2, 4, "past_sequence_length_1"),
        ("", 4, 5, "dim4"),
    ],
)
def test_a_free_dimension_is_a_size_by_its_name_or_where_it_says_nothing_by_its_place(
    name, place, rank, size
):
    assert size_named(name, place, rank) == size


def graph_of_nodes(folder):
    nodes = [helper.make_node("Gather", ["x", "to"], ["y"])]
    given = {"x": (TensorProto.FLOAT, ["nodes", 8]), "to": (TensorProto.INT64, ["edges"])}
    return saved(folder / "gnn.onnx", nodes, given)


def test_dimensions_of_names_of_their_own_are_bound_by_them(tmp_path):
    spec = model_of_file(str(graph_of_nodes(tmp_path)), parse_inputs(["to=0..50"]))
    assert spec.dims == "edges=?,nodes=?"
    assert spec.file.fixed_batch == 1
    with pytest.raises(UsageError, match="has a free dimension 'edges', and no size") as refused:
        input_shapes(spec, Shapes(1, dims="nodes=50"))
    assert refused.value.advice == "Name one: --dim edges=64"
    assert input_shapes(spec, Shapes(1, dims="edges=9,nodes=50")) == {"x": (50, 8), "to": (9,)}


def test_a_first_dimension_of_another_name_is_given_sizes_by_it(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path / "table.onnx", nodes, {"x": (TensorProto.FLOAT, ["rows", 3])})
    spec = model_of_file(str(path))
    for shapes in (Shapes(8), Shapes(8, dims="rows=4")):
        with pytest.raises((UsageError, UnsupportedError)) as refused:
            input_shapes(spec, shapes)
        assert "--dim rows=" in refused.value.advice
        assert "--batch-sizes" in refused.value.advice


def test_names_of_files_and_dimensions(tmp_path):
    assert name_of(Path("/models/resnet/model.onnx")) == "resnet/model.onnx"
    assert name_of(Path("/models/resnet/model_int8.onnx")) == "resnet/model_int8.onnx"
    assert name_of(Path("/models/resnet/mine.onnx")) == "mine.onnx"
    assert model_of_file(f"mine={reader(tmp_path)}").id == "mine"

    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path / "fixed.onnx", nodes, {"x": (TensorProto.FLOAT, [4, 3])})
    spec = model_of_file(str(path))
    assert input_shapes(spec, Shapes(4)) == {"x": (4, 3)}
    with pytest.raises(UnsupportedError, match="takes a batch of 4 and no other, not 1"):
        input_shapes(spec, Shapes(1))


def test_quantised_and_half_precision_files_are_told(tmp_path):
    scale, zero = weight("s", 1), numpy_helper.from_array(np.zeros(1, np.int8), "z")
    whole = numpy_helper.from_array(np.ones((8, 4), np.int8), "q")
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    given = {"x": (TensorProto.FLOAT, ["batch", 8])}
    path = saved(tmp_path / "int8.onnx", nodes, given, [scale, zero, whole])
    assert look(path)["precision"] == "int8"
    half = numpy_helper.from_array(np.ones((8, 4), np.float16), "w")
    path = saved(
        tmp_path / "half.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT16, ["batch", 8])},
        [half],
    )
    assert look(path)["precision"] == "fp16"


# -- files that mean harm, or are broken


def refusal(path):
    with pytest.raises(FileRefusedError) as refused:
        look(path)
    return refused.value.message


class Bomb:
    """Whoever unpickles it writes a file."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return (Path.touch, (self._path,))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".ckpt", ".bin", ".onnx"])
def test_a_pickle_is_refused_and_never_run(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    assert "pickle" in refusal(path)
    assert not (tmp_path / "ran").exists()


def test_what_is_no_graph_is_refused_by_how_it_begins(tmp_path):
    bomb = tmp_path / "bomb.onnx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model", b"\0" * 2**24)
    assert (
        refusal(bomb) == "It begins as a zip archive does, and is no ONNX graph whatever its"
        " name says."
    )
    for name, content, says in (
        ("empty", b"", "It is empty."),
        ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        ("page", b"<!DOCTYPE html><html>", "begins as XML or HTML does"),
        ("noise", bytes(range(1, 200)), "no ONNX graph, or a part of one is missing"),
    ):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        assert says in refusal(path)
    assert "There is no such file" in refusal(tmp_path / "absent.onnx")


def test_what_asks_for_too_much_is_refused(tmp_path):
    path = reader(tmp_path)
    path.write_bytes(path.read_bytes()[:-3000])
    assert "a part of one is missing" in refusal(path)

    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.write(b"\x08\x08")
        file.truncate(2**31 + 1)  # a hole: it takes no room
    assert "larger than 2 GiB" in refusal(path)

    # Numbers of one byte each become four in memory: a bound keeps the machine out of it.
    path = tmp_path / "m.onnx"
    ask = (
        "from accelbench.models.file_models import looking; from pathlib import Path;"
        "looking._READERS_BYTES = 2**29; looking._TIMES_READ = 1;"
        f"looking._bound(Path({str(path)!r})); x = bytearray(2**30)"
    )
    path.write_bytes(b"\0" * 100)
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr

    path = tmp_path / "m.onnx"
    assert "claims 2,147,483,648 bytes and has 16,000" in refusal(claiming(path, dims=[2**26, 8]))
    assert "has a size below 0" in refusal(claiming(path, dims=[-5, 8]))
    model = onnx.load(str(reader(tmp_path, "m.onnx")))
    model.graph.initializer[0].ClearField("raw_data")
    onnx.save(model, str(path))
    assert "claims 16,000 bytes and has none" in refusal(path)


def claiming(path, **fields):
    """A graph whose weight says that it is what it is not."""
    model = onnx.load(str(reader(path.parent, path.name)))
    tensor = model.graph.initializer[0]
    for name, value in fields.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    onnx.save(model, str(path))
    return path


def beside(path, location, offset=0, length=16000):
    """A graph whose table is said to lie in another file."""
    model = onnx.load(str(reader(path.parent, path.name)))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length}
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(model.SerializeToString())
    return path


def test_weights_beside_the_graph_are_part_of_its_digest(tmp_path):
    data = tmp_path / "m.data"
    data.write_bytes(b"\1" * 16000)
    path = beside(tmp_path / "m.onnx", "m.data")
    first = look(path)
    assert first["beside"] == [str(data)]
    data.write_bytes(b"\2" * 16000)
    assert look(path)["digest"] != first["digest"]


def within(path, where, location):
    """A graph that has a tensor in another file, in a place that is no list of weights."""
    model = onnx.load(str(reader(path.parent, path.name)))
    tensor = TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    node = helper.make_node("Constant", [], ["c"])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    if where == "sparse":
        attribute.name, attribute.type = "sparse_value", onnx.AttributeProto.SPARSE_TENSOR
        attribute.sparse_tensor.values.CopyFrom(tensor)
        attribute.sparse_tensor.indices.CopyFrom(numpy_helper.from_array(np.arange(4), "i"))
        attribute.sparse_tensor.dims.append(4)
    else:
        attribute.t.CopyFrom(tensor)
    if where == "function":
        opset = [helper.make_opsetid("", 17)]
        model.functions.append(helper.make_function("my", "F", [], ["c"], [node], opset))
    else:
        model.graph.node.insert(0, node)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("where", ["function", "sparse"])
def test_weights_of_functions_and_sparse_ones_are_weights(tmp_path, where):
    data = tmp_path / "w.data"
    data.write_bytes(b"\1" * 16)
    path = within(tmp_path / "m.onnx", where, "w.data")
    first = look(path)
    assert first["beside"] == [str(data)]
    data.write_bytes(b"\2" * 16)
    assert look(path)["digest"] != first["digest"]
    assert "outside its own folder: it is not read" in refusal(within(path, where, "../secret"))


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../secret", "link"])
def test_weights_outside_the_folder_are_not_read(tmp_path, location):
    (tmp_path / "secret").write_bytes(b"\0" * 16000)
    inside = tmp_path / "models"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    assert "outside its own folder: it is not read" in refusal(beside(inside / "m.onnx", location))


def test_weights_beside_that_are_cut_off_or_absent_are_refused(tmp_path):
    path = tmp_path / "m.onnx"
    assert "is not beside it" in refusal(beside(path, "absent.data"))
    (tmp_path / "m.data").write_bytes(b"\0" * 9000)
    assert "ends beyond the end of m.data" in refusal(beside(path, "m.data"))
    assert "claims 16,000 bytes" in refusal(beside(path, "m.data", length=None))
    assert "ends beyond" in refusal(beside(path, "m.data", offset=-4))


def test_graphs_that_nothing_would_run_are_refused(tmp_path):
    given = {"x": (TensorProto.FLOAT, ["batch", 3])}
    relu = helper.make_node("Relu", ["x"], ["y"])
    path = tmp_path / "m.onnx"
    assert "no operator in it" in refusal(saved(path, [], given, outputs=["x"]))
    assert "Nothing in it gives its output 'z'" in refusal(
        saved(path, [relu], given, outputs=["z"])
    )
    circle = [
        helper.make_node("Add", ["x", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    assert "Its operator Add reads 'b'" in refusal(saved(path, circle, given))
    words = {"x": (TensorProto.STRING, ["batch"])}
    assert "'x' takes text, which is not drawn" in refusal(saved(path, [relu], words))
    constant = helper.make_node("Relu", ["w"], ["y"])
    assert "takes no input" in refusal(saved(path, [constant], {}, [weight("w", 2)]))


def test_files_of_other_kinds_say_what_to_do_instead(tmp_path):
    for suffix, advice in ((".safetensors", "config.json"), (".engine", "the ONNX file"),
                           (".plan", "--option onnxruntime.provider=tensorrt"),
                           (".mlpackage", "--hardware mps --framework onnxruntime"),
                           (".keras", "Export the model to ONNX")):  # fmt: skip
        path = tmp_path / f"m{suffix}"
        path.write_bytes(b"x")
        with pytest.raises(UsageError, match="is not measured") as refused:
            model_of_file(str(path))
        assert advice in refused.value.advice
    # What the advice names is there: the provider of TensorRT, and Core ML's, which mps has alone.
    tensorrt, core_ml = serving("cuda", "tensorrt"), serving("mps")
    assert tensorrt is not None
    assert core_ml.name == "coreml"
    assert is_file_word("absent.onnx")
    assert not is_file_word("bert-tiny")
