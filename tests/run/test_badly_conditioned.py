"""Right and wrong engines of a model that amplifies rounding beyond every tolerance.

The model is a deep one of products, as starnet's blocks are, in NumPy: an engine is another order
of its sums, or a fault. Each is compared with the reference by the worker's own comparison.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fixed_machine import models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec
from accelbench.core.serial import case_to_json
from accelbench.models.inputs import make_inputs
from accelbench.run.verify.reference import OwnRounding
from accelbench.run.verify.verdicts import FAILED, NOT_DONE, judged
from accelbench.run.verify.verification import undetermined
from accelbench.run.worker import output_comparison

WIDTH = 64
SPEC = replace(
    models("bert-tiny")[0], inputs=(InputSpec("x", ("batch", WIDTH), "float"),), generation=None
)
CASE = Case(SPEC, Target("pytorch", "cpu"), "fp32", Shapes(1))
Array = np.ndarray[Any, Any]
Layer = Callable[[Array, Array], Array]


def product(x, weights):
    return x @ weights


def summed_backwards(x, weights):
    return x[:, ::-1] @ weights[::-1]


def in_bf16(x, weights):
    bits = (x @ weights).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


class Engine:
    """So many layers, each a wave of a product: each makes of a difference thrice as much."""

    def __init__(self, layers, layer=product, seed=0, gain=3.0):
        draw = np.random.default_rng(seed)
        of = (layers, WIDTH, WIDTH)
        self._weights = (draw.standard_normal(of) / WIDTH**0.5).astype(np.float32)
        self._layer, self._gain = layer, np.float32(gain)

    def prepare(self, case, seed):
        return make_inputs(case.model, case.shapes, seed)

    def _passed(self, x, dtype):
        x = x.astype(dtype)
        for weights in self._weights.astype(dtype):
            x = np.sin(self._gain.astype(dtype) * self._layer(x, weights))
        return {"y": x}

    def outputs(self, inputs):
        return self._passed(inputs["x"], np.float32)

    def exact(self, inputs):
        return self._passed(inputs["x"], np.float64)

    def rounded(self, inputs, precision):
        raise AssertionError(precision)

    def evidence(self):
        return {}


class Zeros(Engine):
    def outputs(self, inputs):
        return {"y": 0 * super().outputs(inputs)["y"]}


def verdict_of(engine, layers, folder, ask):
    """What becomes of an engine beside the reference of so many layers."""
    reference = Engine(layers)
    request = {"case": case_to_json(CASE), "items": [0], "folder": str(folder), "draw": 0}
    output_comparison.left(reference, 0, {**request, "rounded": None, "whole": True})
    found = engine
    comparison = output_comparison.OutputComparison(found, 0, None)
    answer = comparison.compare({**request, "rounded": None})
    verdict = judged(json.loads(json.dumps(answer)))
    if verdict.word != FAILED:
        return verdict
    moved = ask(reference, 0, request)
    return undetermined(verdict, OwnRounding("rounding", moved["errors"])) or verdict


WAYS = [output_comparison.from_fp64, output_comparison.from_last_places]
#: So many that rounding is amplified to a tenth or more of what other inputs change.
DEEP, SHALLOW = 19, 4


@pytest.mark.parametrize("ask", WAYS)
def test_another_order_of_sums_is_neither_wrong_nor_right(tmp_path, ask):
    verdict = verdict_of(Engine(DEEP, summed_backwards), DEEP, tmp_path, ask)
    assert verdict.word == NOT_DONE, verdict
    assert verdict_of(Engine(SHALLOW, summed_backwards), SHALLOW, tmp_path, ask).word == "ok"


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(
    "wrong",
    [
        Zeros(DEEP),
        Engine(DEEP, in_bf16),
        Engine(DEEP - 1),
        Engine(DEEP, seed=1),
        Engine(DEEP, gain=2.9),
    ],
    ids=["zeros", "bf16", "a layer is missing", "other weights", "another constant"],
)
def test_a_wrong_engine_of_a_badly_conditioned_model_is_wrong(tmp_path, wrong, ask):
    assert verdict_of(wrong, DEEP, tmp_path, ask).word == FAILED


@pytest.mark.parametrize("ask", WAYS)
def test_a_wrong_engine_of_a_well_conditioned_model_is_wrong(tmp_path, ask):
    assert verdict_of(Engine(SHALLOW, in_bf16), SHALLOW, tmp_path, ask).word == FAILED


def test_the_last_places_of_inputs_are_their_neighbours_and_the_same_each_time():
    from accelbench.models.inputs import last_places_moved

    drawn = make_inputs(SPEC, Shapes(2), 7)["x"]
    with last_places_moved():
        moved, again = (make_inputs(SPEC, Shapes(2), 7)["x"] for _ in range(2))
    assert moved.dtype == drawn.dtype
    assert np.array_equal(moved, again)
    towards = np.where(moved > drawn, np.inf, -np.inf).astype(np.float32)
    assert np.array_equal(np.nextafter(drawn, towards), moved)
    assert 0.3 < float((moved > drawn).mean()) < 0.7
    assert np.array_equal(make_inputs(SPEC, Shapes(2), 7)["x"], drawn)
