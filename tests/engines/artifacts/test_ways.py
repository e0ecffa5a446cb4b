"""Models whose way depends on the values of their inputs are found; others are exported."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import UnsupportedError
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts.exporting import find_value_dependence
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import model_of_code
from artifact_makers import made
from code_looked_at import look_here
from kept_artefacts import kept_artefacts

_Forward = Callable[[Any, torch.Tensor], torch.Tensor]


class _Model(torch.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.last = 0.0
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def _draw(number):
    return {"x": torch.randn(3, 4, generator=torch.Generator().manual_seed(number))}


def _dependence(forward):
    module = _Model(forward).eval()
    return find_value_dependence(lambda fed: module(**fed), module, _draw)


def _selected(model, x):
    one, other = model.a(x), model.b(x)
    return torch.relu(one if bool(x[0, 0] > 0) else other)


def _looped(model, x):
    while float(x.norm()) > 1:
        x = x / 2
    return model.a(x)


_OTHER_WAYS = {
    "a Boolean": lambda m, x: m.a(x) if bool(x[0, 0] > 0) else m.b(x) * 3,
    "the same operators": lambda m, x: (m.a if x.mean().item() > 0 else m.b)(x),
    "a number": lambda m, x: m.a(x) * (3 if x.sum() > 0 else 2),
    "a NumPy array": lambda m, x: m.a(x) if x.numpy()[0, 0] > 0 else m.b(x),
    "a list": lambda m, x: m.a(x) if x.tolist()[0][0] > 0 else m.b(x),
    "a choice of results": _selected,
    "a loop": _looped,
    "a divisor": lambda m, x: m.a(x) / float(x.abs().max()),
}


@pytest.mark.parametrize("name", _OTHER_WAYS)
def test_inputs_that_take_another_way_are_found(name):
    found = _dependence(_OTHER_WAYS[name])
    assert found.varies
    assert found.place.startswith("test_ways.py, line ")


def _checked(model, x):
    assert not bool(torch.isnan(x).any())
    return model.a(x)


def _noted(model, x):
    model.last = x.mean().item()
    return model.a(x)


def _in_place(model, x):
    x = x * 1
    x[0] = 0
    x += 1
    return model.a(x)


_ONE_WAY = {
    "a choice by operator": lambda m, x: torch.where(x > 0, m.a(x), m.b(x)),
    "a check": _checked,
    "a value that is only noted": _noted,
    "a mask of ones": lambda m, x: m.a(x) if torch.ones(3).all() else m.b(x),
    "random numbers": lambda m, x: torch.nn.functional.dropout(m.a(x), 0.5, True),
    "changes in place": _in_place,
    "sizes that depend on values": lambda m, x: m.a(x).sum() + x[x > 0].sum(),
}


@pytest.mark.parametrize("name", _ONE_WAY)
def test_models_with_one_way_are_found_to_have_one(name):
    found = _dependence(_ONE_WAY[name])
    assert not found.varies
    assert not found.is_undetermined


def test_what_cannot_be_followed_is_undetermined():
    found = _dependence(lambda m, x: m.a(x) if bool(x[0, 0] < 9) else m.b(x))
    assert found.is_undetermined
    assert found.draws == 32
    found = _dependence(
        lambda m, x: torch.cond(x[0, 0] > 0, lambda y: m.a(y), lambda y: m.b(y), (x,))
    )
    assert found.is_undetermined


@pytest.mark.parametrize("name", ["clip-tiny", "bert-tiny"])
def test_models_of_the_catalogue_have_one_way(name):
    assert made(name).manifest.other_way == ""


_CODE = """
import torch

class Chooses(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(16, 8), torch.nn.Linear(16, 8)
    def forward(self, x):
        return self.a(x) if bool(x[0, 0] > LIMIT) else self.b(x) * 3

example_inputs = (torch.randn(1, 16),)
def make():
    return Chooses()
"""


def _recipe(tmp_path, limit):
    file = tmp_path / "chooses.py"
    file.write_text(_CODE.replace("LIMIT", str(limit)))
    word = code_word(f"{file}:make")
    assert word is not None
    case = Case(model_of_code(word), Target("onnxruntime", "cpu"), "fp32", Shapes(1))
    return Recipe(case, ArtifactFormat("onnx", False))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_model_whose_way_varies_is_not_exported(tmp_path, monkeypatch, seed):
    look_here(monkeypatch)
    with pytest.raises(UnsupportedError) as refused:
        make(replace(_recipe(tmp_path, 0.0), seed=seed), kept_artefacts())
    assert refused.value.reason == "data_dependent"
    assert "chooses.py, line 9" in refused.value.message


def test_a_graph_without_the_rare_way_names_the_line(tmp_path, monkeypatch):
    look_here(monkeypatch)
    kept = make(_recipe(tmp_path, 9.0), kept_artefacts())
    assert kept.manifest.other_way == "chooses.py, line 9"
