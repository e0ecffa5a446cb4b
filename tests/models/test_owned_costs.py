"""What a pass of a user's own model costs: graphs of files and torch modules, by one rule."""

import openvino
import pytest
from made_graphs import saved, weight
from onnx import TensorProto, helper

from accelbench.core.case import Shapes
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import model_of_code
from accelbench.models.cost import cost
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.file_models.models import model_of_file

#: A convolution of 3 channels to 16 with a kernel of 3, ReLU, a mean and a product: by hand.
CONV = 2 * 16 * 27 * 32 * 32
IMAGE = CONV + 16 * 32 * 32 + 16 * 32 * 32 + 2 * 16 * 10

MODULE = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.out = torch.nn.Linear(16, 10)

    def forward(self, x):
        return self.out(self.conv(x).relu().mean((2, 3)))


class Looks(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


def net():
    return Net(), (torch.randn(2, 3, 32, 32),)


class Grows(torch.nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(8, 8)

    def forward(self, x):
        Grows.calls += 1
        for _ in range(Grows.calls):
            x = self.out(x)
        return x


def grows():
    return Grows(), (torch.randn(1, 8),)


def looks():
    return Looks(), (torch.randn(2, 3),)


def call():
    sum(range(10))
"""


def pictures(path, shape=("batch", 3, 32, 32)):
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["m"]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    return saved(
        path,
        nodes,
        {"x": (TensorProto.FLOAT, shape)},
        [weight("k", 16, 3, 3, 3), weight("w", 16, 10)],
    )


def flops(spec, batch, **sizes):
    counted = cost(spec, Shapes(batch, **sizes), "fp32")
    return None if counted is None else counted.flops


def test_graphs_of_either_engine_cost_what_their_operators_take(tmp_path):
    spec = model_of_file(str(pictures(tmp_path / "net.onnx")))
    counted = cost(spec, Shapes(4), "fp32")
    assert counted.flops == 4 * IMAGE
    assert counted.weight_bytes == 4 * spec.parameters == 4 * (16 * 27 + 160)
    assert flops(spec, 1) == IMAGE
    half = cost(spec, Shapes(4), "fp16")
    assert (half.flops, half.bytes_moved) == (counted.flops, counted.bytes_moved / 2)

    (tmp_path / "own.py").write_text(MODULE)
    word = code_word(f"{tmp_path}/own.py:net")
    assert word is not None
    spec = model_of_code(word)
    assert flops(spec, 1) == IMAGE
    assert flops(spec, 7) == 7 * IMAGE

    model = openvino.convert_model(str(pictures(tmp_path / "net.onnx")))
    openvino.save_model(model, str(tmp_path / "net.xml"), compress_to_fp16=False)
    assert flops(model_of_file(str(tmp_path / "net.xml")), 3) == 3 * IMAGE


def test_a_free_length_costs_what_it_costs_at_each(tmp_path):
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["e"]),
        helper.make_node("Transpose", ["e"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["e", "t"], ["y"]),
    ]
    table = [weight("table", 100, 8)]
    given = {"x": (TensorProto.INT64, ["batch", "seq_len"])}
    path = saved(tmp_path / "pairs.onnx", nodes, given, table)
    spec = model_of_file(str(path))
    for length in (5, 128, 1000):
        assert flops(spec, 2, sequence=length) == 2 * 2 * length * length * 8
    bound = model_of_file(str(path), parse_inputs(["x=int64[batch,32]"]))
    assert flops(bound, 2) == 2 * 2 * 32 * 32 * 8


@pytest.mark.parametrize(
    ("shape", "nodes", "why"),
    [
        (["batch", "rooms"], [helper.make_node("Relu", ["x"], ["y"])], "a free size of its own"),
        (
            ["batch", 4],
            [helper.make_node("Blur", ["x"], ["y"], domain="ai.mine")],
            "no rule counts its operators ai.mine.Blur",
        ),
        (
            ["batch", 4],
            [
                helper.make_node(
                    "Relu", [f"v{i}" if i else "x"], [f"v{i + 1}" if i < 8000 else "y"]
                )
                for i in range(8001)
            ],
            "it has 8,001 operators",
        ),
    ],
)
def test_a_graph_that_is_not_counted_says_why(tmp_path, shape, nodes, why):
    spec = model_of_file(
        str(saved(tmp_path / "net.onnx", nodes, {"x": (TensorProto.FLOAT, shape)}))
    )
    assert spec.file.counted is None
    assert why in spec.file.uncounted


@pytest.mark.parametrize(
    ("attribute", "why"),
    [
        ("looks", "its way depends on values"),
        ("grows", "two passes of it do not take the same"),
        ("call", "not seen from outside"),
    ],
)
def test_code_that_is_not_counted_says_why(tmp_path, attribute, why):
    (tmp_path / "own.py").write_text(MODULE)
    word = code_word(f"{tmp_path}/own.py:{attribute}")
    assert word is not None
    spec = model_of_code(word)
    assert spec.code.counted is None
    assert why in spec.code.uncounted
