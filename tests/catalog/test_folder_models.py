"""Models of folders: a config is enough, weights in it are its own, pickled ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accelbench.catalog.file_models import folders
from accelbench.catalog.file_models.folders import described, is_folder_word, model_of_folder
from accelbench.catalog.find import find
from accelbench.catalog.inputs import input_shapes
from accelbench.catalog.selection import choose
from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import Family

VIT: dict[str, Any] = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 32,
    "patch_size": 16,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my-vit"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(VIT), encoding="utf-8")
    return made


def test_a_folder_with_a_config_is_a_model_without_a_models_file(folder: Path) -> None:
    (spec,) = choose([str(folder)])
    assert (spec.id, spec.family, spec.modalities) == ("my-vit/", Family.VISION, ("vision",))
    assert input_shapes(spec, Shapes(2)) == {"pixel_values": (2, 3, 32, 32)}
    assert spec.training is not None
    assert spec.weights_from("random") == "random"


def test_weights_in_a_folder_are_the_models_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "describe", lambda models: [find("vit-tiny")])
    (folder / "model.safetensors").write_bytes(b"")
    loaded = model_of_folder(str(folder / "config.json"))
    assert loaded.weights_from("random") == str(folder)
    assert loaded.config_digest == find("vit-tiny").config_digest


def test_a_folder_of_pickled_weights_is_refused(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02")
    with pytest.raises(UsageError, match="its weights are pickled") as refused:
        model_of_folder(str(folder))
    assert "safe_serialization=True" in refused.value.advice


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "its config.json is no JSON"),
        ("[]", "its config.json is no object"),
        ("{}", "names no architecture"),
        ('{"architectures": ["X"], "auto_map": {}}', "Python code of its own"),
    ],
)
def test_a_config_that_says_too_little_is_refused(folder: Path, content: str, says: str) -> None:
    (folder / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        model_of_folder(str(folder))


def test_a_hub_id_is_a_model_where_the_local_cache_has_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"somebody/my-vit": folder}
    monkeypatch.setattr(folders, "cached_folder", there.get)
    monkeypatch.setattr(
        folders, "describe", lambda models: [replace(find("vit-tiny"), id=models[0].id)]
    )
    assert is_folder_word("somebody/my-vit")
    assert not is_folder_word("somebody/other")
    assert not is_folder_word("bert-tiny")
    assert choose(["somebody/my-vit"])[0].id == "somebody/my-vit"


LAYERS = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_N", "type": "sentence_transformers.models.Normalize"},
]


@pytest.mark.parametrize("inside", ["", "0_Transformer"])
def test_of_sentence_transformers_the_transformer_is_measured_and_the_rest_is_said(
    folder: Path, inside: str
) -> None:
    layers = [{**LAYERS[0], "path": inside}, *LAYERS[1:]]
    (folder / "modules.json").write_text(json.dumps(layers), encoding="utf-8")
    if inside:
        (folder / inside).mkdir()
        (folder / "config.json").rename(folder / inside / "config.json")
    assert is_folder_word(str(folder))
    spec = model_of_folder(str(folder))
    assert spec.id == "my-vit/"
    assert described(spec) == [
        "my-vit/ is its transformer alone: Pooling and Normalize are left out."
    ]


@pytest.mark.parametrize("path", ["../../etc", "/etc"])
def test_a_layer_outside_its_folder_is_not_looked_at(folder: Path, path: str) -> None:
    layers = [{**LAYERS[0], "path": path}]
    (folder / "modules.json").write_text(json.dumps(layers), encoding="utf-8")
    with pytest.raises(UsageError, match="does not begin with a transformer"):
        model_of_folder(str(folder))


def test_models_of_diffusers_say_the_way_out(folder: Path) -> None:
    (folder / "config.json").write_text('{"_class_name": "UNet2DModel"}', encoding="utf-8")
    with pytest.raises(UsageError, match="a UNet2DModel of diffusers") as refused:
        model_of_folder(str(folder))
    assert "a function in a file" in refused.value.advice
    (folder.parent / "model_index.json").write_text("{}", encoding="utf-8")
    assert is_folder_word(str(folder.parent))
    with pytest.raises(UsageError, match="a pipeline of diffusers") as refused:
        model_of_folder(str(folder.parent))
    assert str(folder) in refused.value.advice
