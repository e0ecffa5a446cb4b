"""What a reference leaves: more draws where an output is of so few values that one says little."""

import numpy as np
import pytest
from fixed_machine import models

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.serial import case_to_json
from accelbench.run.worker.output_comparison import drawn, from_fp64, left

CASE = Case(models("bert-tiny")[0], Target("pytorch", "cpu"), "fp32", Shapes(1, 16))


class Drawn:
    """A reference of so many values, whose n-th inputs it computes so far from fp64."""

    def __init__(self, size, apart):
        self._size, self._apart = size, apart
        self.seeds = []

    def prepare(self, case, seed):
        if seed not in self.seeds:
            self.seeds.append(seed)
        return seed

    def outputs(self, seed):
        values = np.random.default_rng(seed).standard_normal((1, self._size))
        return {"y": values.astype(np.float32)}

    def exact(self, seed):
        return {"y": self.outputs(seed)["y"] + self._apart[self.seeds.index(seed)]}

    def rounded(self, seed, precision):
        return self.outputs(seed)


def asked(folder):
    case = case_to_json(CASE)
    return {
        "case": case, "items": [0], "folder": str(folder), "draw": 0, "rounded": None,
        "whole": True,
    }  # fmt: skip


@pytest.mark.parametrize(("size", "draws"), [(1, 5), (15, 5), (16, 2), (1000, 2)])
def test_few_values_are_drawn_more_often(tmp_path, size, draws):
    session = Drawn(size, (0.0,) * 5)
    left(session, 0, asked(tmp_path))
    assert len(session.seeds) == draws
    assert len(list(tmp_path.glob("*.npz"))) == draws


def test_the_draw_that_is_furthest_from_fp64_says_how_far_a_reference_may_be(tmp_path):
    session = Drawn(1, (1e-7, 1e-7, 1e-2, 1e-7, 1e-7))
    left(session, 0, asked(tmp_path))
    far = from_fp64(session, 0, asked(tmp_path))["error"]
    session = Drawn(1, (1e-7,) * 5)
    near = from_fp64(session, 0, asked(tmp_path))["error"]
    assert near < 1e-5 < 1e-3 < far


def test_many_values_are_held_against_fp64_once(tmp_path):
    session = Drawn(1000, (1e-3, 1.0))
    left(session, 0, asked(tmp_path))
    assert from_fp64(session, 0, asked(tmp_path))["error"] < 1e-2


class Noisy(Drawn):
    """A reference with an output that is another each time, and one that rounds otherwise."""

    def outputs(self, seed):
        found, chance = super().outputs(seed), np.random.default_rng()
        rounding = 1e-7 * chance.standard_normal(self._size).astype(np.float32)
        noise = chance.standard_normal((1, self._size)).astype(np.float32)
        return {"y": found["y"] + rounding, "noise": noise}


def test_a_reference_says_which_outputs_it_draws(tmp_path):
    session = Noisy(100, ())
    left(session, 0, asked(tmp_path))
    assert drawn(session, 0, asked(tmp_path)) == {"drawn": ["noise"]}
