"""Masks and ids of files other than ONNX, by what their graphs do with them, whatever their names.

Each mask is one module, exported as its owner would: to a program of torch.export and to OpenVINO.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accelbench.models.file_models.tflite_file import TfliteRanges
from accelbench_ncnn.layers import layers_of
from accelbench_ncnn.reader import range_of

torch = pytest.importorskip("torch")
Mask = Callable[[Any, Any], Any]
USED = "the graph uses it as a mask, and they leave nothing out"


def added(scores, mask):
    return scores + (1.0 - mask.to(torch.float32)) * torch.finfo(torch.float32).min


def filled_where_zero(scores, mask):
    return scores.masked_fill(mask == 0, float("-inf"))


def kept_where_true(scores, mask):
    return torch.where(mask.bool(), scores, torch.tensor(-1e9))


def filled_where_true(scores, mask):
    return scores.masked_fill(mask.bool(), -1e4)


def filled_where_not(scores, mask):
    return scores.masked_fill(torch.logical_not(mask > 0), -1e4)


def kept_beside_a_causal_one(scores, mask):
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    return torch.where(causal & mask.bool(), scores, -1e4)


def of_attention(scores, mask):
    return torch.nn.functional.scaled_dot_product_attention(
        scores, scores, scores, attn_mask=mask.bool()
    )


def of_a_layers_padding(scores, mask):
    bias = torch.zeros_like(mask.bool(), dtype=torch.float32)
    return scores + bias.masked_fill_(mask.bool(), float("-inf"))


def no_mask(scores, mask):
    """A number that scales, and chooses between two things neither of which leaves out."""
    return torch.where(mask.bool(), scores * mask.float(), scores + 1)


#: Each has an input of its own; what it has to be, None where it has to be asked for.
MASKS = [
    (added, 1), (filled_where_zero, 1), (kept_where_true, 1), (filled_where_true, 0),
    (filled_where_not, 1), (kept_beside_a_causal_one, 1), (of_attention, 1),
    (of_a_layers_padding, 0), (no_mask, None),
]  # fmt: skip


class Masked(torch.nn.Module):
    """All of them at once: an export takes seconds."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(30, 8)

    def forward(self, ids, a, b, c, d, e, f, g, h, i):
        rows = self.table(ids.unsqueeze(1))
        scores = rows @ rows.transpose(-1, -2)
        masks = zip(MASKS, (a, b, c, d, e, f, g, h, i), strict=True)
        return sum(how(scores, m[:, None, None, :]).softmax(-1).sum() for (how, _), m in masks)


@pytest.fixture(scope="module")
def program():
    whole = torch.int64
    example = (torch.zeros(2, 5, dtype=whole), *(torch.ones(2, 5, dtype=whole) for _ in MASKS))
    return torch.export.export(Masked().eval(), example)


@pytest.mark.parametrize("suffix", [".pt2", ".xml"])
def test_a_mask_leaves_nothing_out(program, suffix, tmp_path):
    path = tmp_path / f"masked{suffix}"
    if suffix == ".pt2":
        from accelbench.models.file_models.pt2_file import look

        torch.export.save(program, path)
    else:
        import openvino

        from accelbench.models.file_models.openvino_file import look

        openvino.save_model(openvino.convert_model(program), path)
    inputs = {entry["name"]: entry for entry in look(path)["inputs"]}
    assert (inputs["ids"]["low"], inputs["ids"]["high"]) == (0, 30)
    for (how, value), name in zip(MASKS, "abcdefghi", strict=True):
        found = {key: inputs[name].get(key) for key in ("constant", "drawn", "low")}
        drawn = None if value is None else f"{'ones' if value else 'zeros'}: {USED}"
        assert found == {"constant": value, "drawn": drawn, "low": None}, how


class Tflite:
    """A model of TensorFlow Lite, as far as its operators and constants go."""

    def __init__(self, *operators, **constants):
        from ai_edge_litert import schema_py_generated as schema

        self.codes = [code for code, _, _ in operators]
        graph, self.buffers = schema.SubGraphT(), [schema.BufferT()]
        graph.tensors = [self._tensor(schema, constants.get(f"t{n}")) for n in range(16)]
        graph.operators = []
        for number, (_, reads, made) in enumerate(operators):
            operator = schema.OperatorT()
            operator.opcodeIndex, operator.inputs, operator.outputs = number, list(reads), [made]
            operator.builtinOptions = schema.GatherOptionsT()
            graph.operators.append(operator)
        self.subgraphs = [graph]

    def _tensor(self, schema, value):
        tensor = schema.TensorT()
        tensor.buffer, tensor.type, tensor.shape = 0, schema.TensorType.FLOAT32, [2, 5]
        if value is not None:
            array = np.asarray(value, np.float32)
            buffer = schema.BufferT()
            buffer.data, tensor.shape = np.frombuffer(array.tobytes(), np.uint8), list(array.shape)
            self.buffers.append(buffer)
            tensor.buffer = len(self.buffers) - 1
        return tensor

    def input(self, dtype="int32"):
        return TfliteRanges(self, self.codes).of("0", "m", dtype)


#: Tensor 0 is the input, 1 the scores, 8 and 9 constants; the last operator gives 7.
TURNED = [("CAST", [0], 2), ("SUB", [8, 2], 3), ("MUL", [3, 9], 4), ("ADD", [1, 4], 7)]
CHOSEN = [("CAST", [0], 2), ("SELECT_V2", [2, 9, 1], 7)]
KEPT = [("NOT_EQUAL", [0, 8], 2), ("LOGICAL_NOT", [2], 3), ("SELECT_V2", [3, 9, 1], 7)]


@pytest.mark.parametrize(
    ("operators", "constants", "value"),
    [
        (TURNED, {"t8": 1.0, "t9": -1e4}, 1),
        (CHOSEN, {"t9": -1e9}, 0),
        (KEPT, {"t8": [0.0], "t9": [[-1e9]]}, 1),
    ],
)
def test_masks_of_tensorflow_lite(operators, constants, value):
    drawn = Tflite(*operators, **constants).input()
    assert drawn == {"constant": value, "drawn": f"{'ones' if value else 'zeros'}: {USED}"}


def test_ids_of_tensorflow_lite_are_followed_to_their_table_and_others_asked_for():
    looked_up = [("CAST", [0], 2), ("RESHAPE", [2, 9], 3), ("GATHER", [8, 3], 7)]
    drawn = Tflite(*looked_up, t8=np.zeros((30, 8))).input()
    assert (drawn["low"], drawn["high"]) == (0, 30)
    scaled = [("CAST", [0], 2), ("MUL", [2, 9], 7)]
    assert Tflite(*scaled, t9=2.0).input() == {}
    assert Tflite(*CHOSEN, t9=0.0).input("bool") == {"drawn": "true and false alike"}


def of_ncnn(*lines):
    text = [f"{len(lines) + 1} {len(lines) + 2}", "Input in0 0 1 m", *lines]
    return range_of("m", layers_of("\n".join(["7767517", *text]).encode()))


def test_ids_and_masks_of_ncnn():
    ids = of_ncnn("Reshape r 1 1 m a 0=5", "Embed e 1 1 a out 0=8 1=30 2=0 3=240")
    assert (ids["dtype"], ids["low"], ids["high"]) == ("int32", 0, 30)
    turned = of_ncnn(
        "BinaryOp o 1 1 m a 0=7 1=1 2=1.000000e+00", "BinaryOp p 1 1 a b 0=2 1=1 2=-1e4"
    )
    assert turned["constant"] == 1
    assert "leave nothing out" in turned["drawn"]
    scores = of_ncnn("Input q 0 1 q", "SDPA s 4 1 q q q m out 5=1")
    assert (scores["constant"], scores["dtype"]) == (0, "float32")
    for other in ("BinaryOp p 1 1 m b 0=2 1=1 2=-1e4", "SDPA s 3 1 m m m out"):
        assert of_ncnn(other) == {"dtype": "float32", "drawn": "normal, mean 0 and deviation 1"}
