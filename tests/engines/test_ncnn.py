"""ncnn: a network as it is, in the precision that was asked for, and what is refused."""

import json

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError, UsageError
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.file_models import models
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.looking import look
from accelbench.models.file_models.models import model_of_file
from accelbench.models.find import find
from accelbench.run.verify.reference import is_own, reference_of
from accelbench_ncnn import NcnnRuntime
from accelbench_ncnn.layers import layers_of, mismatch, shape_taken

ncnn = pytest.importorskip("ncnn", reason="ncnn, which runs .param, is not installed")
from accelbench_ncnn.reader import item_shapes  # noqa: E402
from ncnn_model import write  # noqa: E402

CPU = Device("cpu", "a processor")


@pytest.fixture(autouse=True)
def looked_at_here(monkeypatch):
    """A process for each look takes a second; that one is started is held by another test."""
    monkeypatch.setattr(models, "_looked_at", lambda path, given: look(path))


def case(model, precision="fp32", batch=2, **options):
    image = 24 if model.image else None
    shapes = Shapes(batch, image=image)
    return Case(model, Target("ncnn", "cpu"), precision, shapes, options=options)


def opened(asked, folder):
    runtime = NcnnRuntime()
    kept = make(Recipe(asked, runtime.wants(asked)), Cache(folder / "cache"))
    return runtime.open(Job(asked, CPU, JobSettings(threads=1), str(kept.folder)))


def test_an_input_is_what_the_weights_behind_it_ask_for(tmp_path):
    found = look(write(tmp_path / "net.param"))
    assert found["inputs"] == [
        {"name": "in0", "dtype": "float32", "shape": ["batch", 3, "", ""], "sizes_free": True,
         "drawn": "normal, mean 0 and deviation 1"}
    ]  # fmt: skip
    assert (found["weights"], found["precision"], found["operators"]) == (260, "fp32", 4)
    spec = model_of_file(str(tmp_path / "net.param"))
    assert spec.inputs[0].shape == ("batch", 3, "image", "image")
    assert spec.fixed_batch is None


@pytest.mark.parametrize("sizes", ["0=24 1=20 2=3", "-23330=4,3,24,20,3", "30=3,24,20,1,3"])
def test_an_input_states_its_sizes(tmp_path, sizes):
    spec = model_of_file(str(write(tmp_path / "net.param", sizes)))
    assert spec.inputs[0].shape == ("batch", 3, 20, 24)


def test_an_owner_says_sizes_of_one_item_or_with_the_batch(tmp_path):
    path = str(write(tmp_path / "net.param", "0=24 1=20 2=3"))
    for said in ("[3,32,40]", "[batch,3,32,40]"):
        spec = model_of_file(path, parse_inputs([f"in0={said}"]))
        assert spec.inputs[0].shape == ("batch", 3, 32, 40)
    with pytest.raises(UsageError, match="1 to 4 axes beside the batch"):
        model_of_file(path, parse_inputs(["in0=[batch,1,1,3,32,40]"]))


def test_sizes_that_nothing_tells_are_asked_for(tmp_path):
    path = tmp_path / "net.param"
    path.write_text("7767517\n2 2\nInput in 0 1 a\nSoftmax s 1 1 a b\n", encoding="utf-8")
    path.with_suffix(".bin").write_bytes(b"")
    with pytest.raises(UsageError, match="does not say what sizes") as refused:
        model_of_file(str(path))
    assert "--input a=[3,224,224]" in str(refused.value.advice)
    assert model_of_file(str(path), parse_inputs(["a=[7]"])).inputs[0].shape == ("batch", 7)


def test_a_table_takes_numbers_of_its_rows(tmp_path):
    path = tmp_path / "net.param"
    path.write_text(
        "7767517\n2 2\nInput in 0 1 ids\nEmbed e 1 1 ids out 0=4 1=50 3=200\n", encoding="utf-8"
    )
    weights = np.linspace(-1, 1, 200, dtype=np.float32)
    path.with_suffix(".bin").write_bytes(b"\0" * 4 + weights.tobytes())
    (entry,) = model_of_file(str(path)).inputs
    assert (entry.dtype, entry.low, entry.high, entry.shape) == (
        "int32", 0, 50, ("batch", "sequence")
    )  # fmt: skip


def test_its_reference_is_itself_without_what_makes_it_fast(tmp_path):
    spec = model_of_file(str(write(tmp_path / "net.param")))
    reference = reference_of(case(spec, "bf16"))
    assert (reference.target.runtime, reference.precision, dict(reference.options)) == (
        "ncnn", "fp32", {"kernels": "plain"}
    )  # fmt: skip
    assert is_own(case(spec, kernels="plain"))
    assert not is_own(case(spec))


def convolved(path, x):
    """What the network is, by NumPy alone, from the weights in its file."""
    values = np.frombuffer(path.with_suffix(".bin").read_bytes(), np.float32)
    window, bias = values[1:217].reshape(8, 3, 3, 3), values[217:225]
    product, last = values[226:258].reshape(4, 8), values[258:262]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    made = np.einsum("nchwij,ocij->nohw", views, window) + bias[:, None, None]
    return np.maximum(made, 0).mean(axis=(2, 3)) @ product.T + last


@pytest.mark.parametrize("batch", [1, 3])
def test_outputs_are_the_networks_in_the_precision_that_is_said(tmp_path, batch):
    path = write(tmp_path / "net.param")
    spec = model_of_file(str(path))
    for precision, kernels, most in (
        ("fp32", "optimized", 1e-5), ("fp32", "plain", 1e-5), ("bf16", "optimized", 0.02)
    ):  # fmt: skip
        asked = case(spec, precision, batch, kernels=kernels)
        session = opened(asked, tmp_path)
        fed = session.prepare(asked)
        found = session.outputs(fed)["out0"]
        x = np.concatenate([m["in0"].numpy(batch_index=0) for m in fed])
        right = convolved(path, x)
        assert found.shape == right.shape == (batch, 4)
        assert np.abs(found - right).max() <= most * np.abs(right).max(), (precision, kernels)
        details = session.evidence().details
        assert details["computed_in"] == {precision: 1.0}
        assert (details["threads"], details["kernels"], details["vulkan"]) == (1, kernels, False)
        assert details["packing"] is (kernels == "optimized")
        json.dumps(details)
        session.close()


def test_quantised_networks_are_of_int8_and_others_are_not(tmp_path):
    quantised = model_of_file(str(write(tmp_path / "q.param", quantised=True)))
    plain = model_of_file(str(write(tmp_path / "net.param", half=True)))
    assert (quantised.file.precision, plain.file.precision) == ("int8", "fp32")
    session = opened(case(quantised, "int8"), tmp_path)
    session.outputs(session.prepare(case(quantised, "int8")))
    assert session.evidence().details["computed_in"] == {"int8": 1.0}
    support = NcnnRuntime().supports(case(plain, "int8"), CPU)
    assert (support.ok, support.reason) == (False, "precision")
    assert "ncnn2int8" in support.advice


def test_fp16_is_refused_where_it_would_be_fp32(tmp_path, monkeypatch):
    spec = model_of_file(str(write(tmp_path / "net.param")))
    for machine, ok in (("x86_64", False), ("aarch64", True)):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert NcnnRuntime().supports(case(spec, "fp16"), CPU).ok is ok


def test_an_input_that_a_layer_cannot_take_is_never_run(tmp_path):
    path = write(tmp_path / "net.param")
    assert item_shapes(path, {"in0": ("float32", (3, 9, 7))})["2"] == (8, 9, 7)
    with pytest.raises(CaseError, match="'conv' of its network takes 3 channels, and is given 5"):
        item_shapes(path, {"in0": ("float32", (5, 9, 7))})
    with pytest.raises(CaseError, match="takes 3 axes, and is given 2"):
        item_shapes(path, {"in0": ("float32", (9, 7))})


@pytest.mark.parametrize(
    ("line", "taken", "unfit"),
    [
        ("Convolution c 1 1 a b 0=8 1=3 6=216", (3, "", ""), (4, 5, 5)),
        ("ConvolutionDepthWise c 1 1 a b 0=6 1=3 6=54 7=6", (6, "", ""), (5, 5, 5)),
        ("Convolution1D c 1 1 a b 0=8 1=3 6=96", (4, ""), (3, 9)),
        ("Convolution3D c 1 1 a b 0=2 1=3 6=108", (2, "", "", ""), (1, 5, 5, 5)),
        ("InnerProduct p 1 1 a b 0=4 2=32", (8,), (9,)),
        ("LSTM l 1 1 a b 0=5 1=140 2=0", ("", 7), (3, 6)),
        ("GRU g 1 1 a b 0=5 1=210 2=2", ("", 7), (3, 6)),
        ("BatchNorm n 1 1 a b 0=5", None, (4, 2, 2)),
        ("LayerNorm n 1 1 a b 0=5", None, (2, 4)),
    ],
)
def test_what_layers_take_follows_from_their_weights(line, taken, unfit):
    layer = layers_of(f"7767517\n2 2\nInput i 0 1 a\n{line}\n".encode())[1]
    assert shape_taken(layer) == taken
    assert mismatch(layer, unfit)
    if taken is not None:
        assert not mismatch(layer, [size or 5 for size in taken])


def text(*lines, layers=2, blobs=2):
    return "\n".join(["7767517", f"{layers} {blobs}", *lines, ""]).encode()


_INPUT, _RELU = "Input i 0 1 a", "ReLU r 1 1 a b"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xdd\x85\x76\x00" + b"\0" * 60, "in binary, whose inputs have no names"),
        (b"\xff\xfe\x00", "no text"),
        (b"1234\n1 1\n", "no ncnn network"),
        (b"7767517\n", "how many layers"),
        (text(_INPUT, layers=2**31), "how many layers"),
        (text(_INPUT), "2 layers, and has 1"),
        (text(_INPUT, _RELU, blobs=1), "1 results of layers, and has 2"),
        (text(_INPUT, _RELU, blobs=2**30), "1073741824 results of layers, and has 2"),
        (text(_INPUT, "ReLU r 1 1 c b"), "takes 'c', which no layer before it makes"),
        (text(_INPUT, "ReLU r 1 1 a a"), "'a' is made twice"),
        (text(_INPUT, "ReLU r 1 9 a b"), "fewer results than it says"),
        (text(_INPUT, f"ReLU {'r' * 256} 1 1 a b"), "longer than 255 bytes"),
        (text(_INPUT, _RELU + " 99=1"), "a key 99, which ncnn has not"),
        (text(_INPUT, _RELU + " what"), "not of the form key=value"),
        (text(_INPUT, _RELU + " -23300=9,1"), "not as long as it says"),
        (text(_INPUT, _RELU + " 30=4,1,1,1"), "states are not of its results"),
    ],
)
def test_text_that_would_lead_the_engine_astray_is_refused(content, why):
    with pytest.raises(FileRefusedError, match=why):
        layers_of(content)


def test_weights_that_are_not_its_own_are_refused(tmp_path):
    path = write(tmp_path / "net.param")
    weights = path.with_suffix(".bin")
    whole = weights.read_bytes()
    for content, why in ((whole[:500], "more weights than the 500 bytes"),
                         (whole + b"more", "another network's")):  # fmt: skip
        weights.write_bytes(content)
        with pytest.raises(FileRefusedError, match=why):
            look(path)
    weights.unlink()
    with pytest.raises(FileRefusedError, match="is not beside it"):
        look(path)
    weights.symlink_to("/etc/hostname")
    with pytest.raises(FileRefusedError, match="outside its own folder"):
        look(path)


def test_layers_that_it_has_not_and_networks_that_do_nothing_are_refused(tmp_path):
    path = write(tmp_path / "net.param")
    path.write_bytes(path.read_bytes().replace(b"Convolution ", b"Wobble      "))
    with pytest.raises(FileRefusedError, match="'Wobble', which ncnn"):
        look(path)
    path.write_bytes(text(_INPUT, "Split s 1 1 a b"))
    with pytest.raises(FileRefusedError, match="no layer in it that computes"):
        look(path)


def test_a_list_of_what_was_found_is_of_one_item(tmp_path):
    path = tmp_path / "net.param"
    path.write_bytes(text("Input i 0 1 a 0=6 1=4", "DetectionOutput d 1 1 a b 0=21"))
    path.with_suffix(".bin").write_bytes(b"")
    assert model_of_file(str(path)).fixed_batch == 1


def test_other_files_of_a_network(tmp_path):
    write(tmp_path / "net.param")
    with pytest.raises(UsageError, match=r"holds the weights of net\.param"):
        model_of_file(str(tmp_path / "net.bin"))
    support = NcnnRuntime().supports(case(find("bert-tiny")), CPU)
    assert (support.ok, support.reason) == (False, "format")
    assert "Name a .param file" in support.advice
