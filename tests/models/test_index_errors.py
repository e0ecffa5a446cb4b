"""Errors about an index name the input that may have held it."""

import pytest

from accelbench.core.model import InputSpec
from accelbench.models.find import index_advice

IDS = InputSpec("ids", ("batch", 5), "int64", 0, 1000)
KINDS = InputSpec("kinds", ("batch", 5), "int64", 0, 2)
X = InputSpec("x", ("batch", 5), "float32")
ONNX = (
    "ONNX Runtime: Non-zero status code returned while running Gather node. indices element out of"
    " data bounds, idx=993 must be within the inclusive range [-50,49]"
)


@pytest.mark.parametrize(
    ("message", "inputs", "named"),
    [
        (ONNX, (X, IDS, KINDS), ["ids"]),  # the other never holds 993
        ("IndexError: index out of range in self", (X, IDS, KINDS), ["ids", "kinds"]),
        ("index 7 is out of bounds for dimension 0 with size 4", (IDS,), ["ids"]),
        ("index 1 is out of bounds", (X,), []),
        ("the tensor has another shape", (IDS,), []),
    ],
)
def test_the_input_that_may_have_held_the_index_is_named(message, inputs, named):
    advice = index_advice(message, inputs)
    assert [one.name for one in (IDS, KINDS) if f"{one.name} (" in advice] == named
    assert ("--input" in advice) == bool(named)
