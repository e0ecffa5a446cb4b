"""`timm/NAME` and `torchvision/NAME`, by packages that stand in for theirs."""

import os
import sys

import pytest

from accelbench.core.errors import CaseError, MissingExtraError, UsageError
from accelbench.core.vocabulary import Family
from accelbench.models.build import build_module
from accelbench.models.package_models.building import draw_vanishing
from accelbench.models.selection import choose, is_package_word, model_of_package
from code_looked_at import look_here

pytest.importorskip("torch")

TIMM = """
import torch

class Net(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 4, 3, stride=2)
        self.head = torch.nn.Linear(4, 7)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.normal_(self.stem.weight, std=1.0)
        self.pretrained_cfg = {"input_size": (3, size, size)}

    def forward(self, x):
        return self.head(self.stem(x).mean((2, 3)))

def list_models():
    return ["tinynet_a", "tinynet_b"]

def create_model(name, pretrained=False):
    assert not pretrained
    return Net({"tinynet_a": 32, "tinynet_b": 48}[name])
"""
TORCHVISION = """
from . import models
"""
MODELS = """
from types import SimpleNamespace as Some
import torch
from . import detection, video

BUILDERS = {"film": video.film, "boxes": detection.boxes}
SIZES = {"film": Some(crop_size=(12, 14)), "boxes": Some()}

def list_models():
    return list(BUILDERS)

def get_model_builder(name):
    return BUILDERS[name]

def get_model(name, weights, **more):
    assert weights is None
    return BUILDERS[name](**more)

def get_model_weights(name):
    return Some(DEFAULT=Some(transforms=lambda: SIZES[name], meta={"min_temporal_size": 18}))
"""
VIDEO = """
import torch

class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x.flatten(2).mean(2) * self.scale

def film(*, weights_backbone="fetched"):
    assert weights_backbone is None
    return Mean()
"""


@pytest.fixture(autouse=True)
def packages(tmp_path, monkeypatch):
    files = {
        "timm/__init__.py": TIMM,
        "timm/version.py": "__version__ = '1.0'\n",
        "torchvision/__init__.py": TORCHVISION,
        "torchvision/models/__init__.py": MODELS,
        "torchvision/models/video.py": VIDEO,
        "torchvision/models/detection.py": VIDEO.replace("film", "boxes"),
    }
    for name, text in files.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    folder = str(tmp_path / "packages")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
    yield tmp_path / "packages"
    for name, module in [*sys.modules.items()]:  # transformers asks for torchvision
        if str(getattr(module, "__file__", None)).startswith(folder):
            del sys.modules[name]


@pytest.fixture
def here(monkeypatch):
    """Look at models in this process, which has imported torch."""
    look_here(monkeypatch)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("timm/resnet18", True),
        ("mine=torchvision/resnet18", True),
        ("timm/resnet18.a1_in1k", True),
        ("timm", False),
        ("timm/", False),
        ("other/resnet18", False),
        ("folder/timm/resnet18", False),
    ],
)
def test_words_of_packages(word, told):
    assert is_package_word(word) is told


def test_a_model_is_built_by_its_package_and_says_what_it_reads(here):
    (spec,) = choose(["small=timm/tinynet_b"])
    (x,) = spec.inputs
    assert (spec.id, spec.family, spec.modalities) == ("small", Family.VISION, ("vision",))
    assert (x.name, x.shape, x.dtype) == ("x", ("batch", 3, 48, 48), "float")
    assert spec.parameters == 4 * 3 * 9 + 4 + 4 * 7 + 7
    assert spec.code.package == "timm"


def test_its_version_and_its_code_are_a_condition(packages):
    first = model_of_package("timm/tinynet_a")
    (packages / "timm/version.py").write_text("__version__ = '2.0'\n", encoding="utf-8")
    second = model_of_package("timm/tinynet_a")
    assert second.config_digest == first.config_digest
    assert second.code.digest != first.code.digest
    with pytest.raises(CaseError, match="was changed after the run had looked at it"):
        build_module(first, 0)


def test_a_head_that_lets_nothing_through_is_drawn_from_the_seed(here):
    spec = model_of_package("timm/tinynet_a")
    heads = [build_module(spec, seed).module.head.weight for seed in (0, 0, 1)]
    assert float(heads[0].detach().abs().mean()) > 0.1
    assert heads[0].equal(heads[1])
    assert not heads[0].equal(heads[2])


def test_weights_that_let_something_through_stay_as_the_package_drew_them():
    import torch

    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(4, 4))
    kept = model[0].weight.clone()
    with torch.no_grad():
        model[1].weight.fill_(1e-3)
    assert draw_vanishing(model) == ["1"]
    assert model[0].weight.equal(kept)


def test_a_size_is_that_of_the_transforms_of_its_weights(here):
    spec = model_of_package("torchvision/film")
    assert (spec.id, spec.inputs[0].shape) == ("torchvision/film", ("batch", 3, 18, 12, 14))


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("timm/tinynet_c", "timm has no model 'tinynet_c'. Did you mean tinynet_b or tinynet_a"),
        ("timm/tinynet_a.in1k", "names weights, and models of packages have random ones"),
        ("torchvision/boxes", "it takes a list of images and gives lists"),
    ],
)
def test_what_is_not_measured_is_one_sentence(here, word, told):
    with pytest.raises(UsageError) as refused:
        model_of_package(word)
    assert told in f"{refused.value.message} {refused.value.advice}"


def test_a_torchvision_of_another_build_is_told_from_a_fault(packages):
    (packages / "torchvision-0.1.dist-info").mkdir()
    (packages / "torchvision-0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.1\n", encoding="utf-8"
    )
    (packages / "torchvision/__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')\n", encoding="utf-8"
    )
    with pytest.raises(UsageError) as refused:
        model_of_package("torchvision/film")
    assert "torchvision 0.1 is of another build than this torch" in refused.value.message
    assert "--index-url" in refused.value.advice


def test_a_package_that_is_absent_is_named_with_its_install(monkeypatch):
    monkeypatch.setattr("accelbench.models.selection.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as missing:
        choose(["timm/resnet18"])
    assert "needs the package timm, which is not installed" in missing.value.message
    assert missing.value.advice == "Install it with: accelbench setup timm"
