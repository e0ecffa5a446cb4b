"""Models of folders: a config is enough, weights in it are its own, pickled ones are refused."""

import json
from dataclasses import replace

import pytest

from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import Family
from accelbench.models.build import build
from accelbench.models.file_models import folders
from accelbench.models.file_models.folders import (
    describe_layers,
    is_folder_word,
    model_of_folder,
    read_layers,
)
from accelbench.models.find import find
from accelbench.models.inputs import input_shapes
from accelbench.models.selection import choose
from described_here import described_here

VIT = {
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
def folder(tmp_path):
    made = tmp_path / "my-vit"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(VIT), encoding="utf-8")
    return made


def test_a_folder_with_a_config_is_a_model_without_a_models_file(folder):
    with described_here("file_models.folders"):
        (spec,) = choose([str(folder)])
    assert (spec.id, spec.family, spec.modalities) == ("my-vit/", Family.VISION, ("vision",))
    assert input_shapes(spec, Shapes(2)) == {"pixel_values": (2, 3, 32, 32)}
    assert spec.training is not None
    assert spec.weights_setting("random") == "random"


def test_weights_in_a_folder_are_the_models_own(folder, monkeypatch):
    monkeypatch.setattr(folders, "describe", lambda models: [find("vit-tiny")])
    (folder / "model.safetensors").write_bytes(b"")
    loaded = model_of_folder(str(folder / "config.json"))
    assert loaded.weights_setting("random") == str(folder)
    assert loaded.config_digest == find("vit-tiny").config_digest


def test_pickled_weights_are_refused(folder, tmp_path):
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02")
    with pytest.raises(UsageError, match="its weights are pickled") as refused:
        model_of_folder(str(folder))
    assert "safe_serialization=True" in refused.value.advice
    root = _sentence_folder(tmp_path, pooling_mode_mean_tokens=True)
    (root / "2_Dense" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UsageError, match="pickled"):
        model_of_folder(str(root))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "its config.json is no JSON"),
        ("[]", "its config.json is no object"),
        ("{}", "names no architecture"),
        ('{"architectures": ["X"], "auto_map": {}}', "Python code of its own"),
    ],
)
def test_a_config_that_says_too_little_is_refused(folder, content, says):
    (folder / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        model_of_folder(str(folder))


def test_a_hub_id_is_a_model_where_the_local_cache_has_it(folder, monkeypatch):
    there = {"somebody/my-vit": folder}
    monkeypatch.setattr(folders, "cached_folder", there.get)
    monkeypatch.setattr(
        folders, "describe", lambda models: [replace(find("vit-tiny"), id=models[0].id)]
    )
    assert is_folder_word("somebody/my-vit")
    assert not is_folder_word("somebody/other")
    assert not is_folder_word("bert-tiny")
    assert choose(["somebody/my-vit"])[0].id == "somebody/my-vit"


BERT = {
    "architectures": ["BertForMaskedLM"],  # sentence-transformers loads its body
    "model_type": "bert",
    "vocab_size": 50,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
}
LAYERS = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
    {"idx": 3, "name": "3", "path": "3_N", "type": "sentence_transformers.models.Normalize"},
]


def _written(folder, **content):
    for name, value in content.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".json").write_text(json.dumps(value), encoding="utf-8")


def _sentence_folder(tmp_path, inside="", **pooling):
    root = tmp_path / "my-encoder"
    (root / inside).mkdir(parents=True)
    _written(root / inside, config=BERT, sentence_bert_config={"max_seq_length": 16})
    _written(
        root,
        modules=[{**LAYERS[0], "path": inside}, *LAYERS[1:]],
        **{
            "1_Pooling__config": pooling,
            "2_Dense__config": {
                "in_features": 8 * sum(value is True for value in pooling.values()),
                "out_features": 4,
                "bias": True,
                "activation_function": "torch.nn.modules.activation.Tanh",
            },
        },
    )
    return root


@pytest.mark.parametrize("inside", ["", "0_Transformer"])
def test_sentence_transformers_are_measured_whole(tmp_path, inside):
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig, BertForMaskedLM

    root = _sentence_folder(tmp_path, inside, pooling_mode_mean_tokens=True)
    source = BertForMaskedLM(BertConfig(**BERT)).eval()
    source.save_pretrained(root / inside)
    dense = torch.nn.Linear(8, 4)
    weights = {f"linear.{name}": value for name, value in dense.state_dict().items()}
    save_file(weights, root / "2_Dense" / "model.safetensors")

    with described_here("file_models.folders"):
        spec = model_of_folder(str(root))
    assert (spec.id, spec.sequence, spec.max_sequence) == ("my-encoder/", 16, 16)
    assert [layer["type"] for layer in spec.config["layers"]] == ["Pooling", "Dense", "Normalize"]
    assert describe_layers(spec)
    module = build(spec, 0, spec.weights_setting("random"))
    assert sum(weight.numel() for weight in module.parameters()) == spec.parameters

    ids = torch.randint(0, 50, (2, 6))
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    with torch.no_grad():
        found = module(ids, mask)["sentence_embedding"]
        tokens = source.bert(ids, attention_mask=mask).last_hidden_state
        mean = torch.stack([tokens[0].mean(0), tokens[1, :3].mean(0)])
        right = torch.nn.functional.normalize(torch.tanh(dense(mean)), dim=1)
    torch.testing.assert_close(found, right, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "right"),
    [
        ({"pooling_mode_cls_token": True}, [1.0]),
        ({"pooling_mode_max_tokens": True}, [3.0]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, [6 / 3**0.5]),
        ({"pooling_mode_weightedmean_tokens": True}, [(1 + 6 + 6) / 6]),
        ({"pooling_mode_lasttoken": True}, [2.0]),
        ({"pooling_mode": "mean"}, [2.0]),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, [1.0, 3.0]),
    ],
)
def test_each_mode_of_pooling_leaves_padding_out(tmp_path, pooling, right):
    import torch

    from accelbench.models.networks.sentence import _layer

    _written(tmp_path, **{"1_Pooling__config": pooling})
    (layer,) = read_layers(tmp_path, tmp_path, [LAYERS[1]])
    tokens = torch.tensor([[[1.0], [3.0], [2.0], [9.0]]])
    found = _layer(layer)(tokens, torch.tensor([[1, 1, 1, 0]]))
    torch.testing.assert_close(found, torch.tensor([right]))


def test_layers_of_sentence_transformers_that_are_unknown_are_refused(tmp_path):
    root = _sentence_folder(tmp_path, pooling_mode_mean_tokens=True)
    _written(root, modules=[*LAYERS, {**LAYERS[1], "type": "my.package.Router"}])
    with pytest.raises(UsageError, match="Router"):
        model_of_folder(str(root))
    _written(root, modules=LAYERS, **{"1_Pooling__config": {"pooling_mode": "secret"}})
    with pytest.raises(UsageError, match="secret"):
        model_of_folder(str(root))


@pytest.mark.parametrize("path", ["../../etc", "/etc"])
def test_a_layer_outside_its_folder_is_not_looked_at(folder, path):
    layers = [{**LAYERS[0], "path": path}]
    (folder / "modules.json").write_text(json.dumps(layers), encoding="utf-8")
    with pytest.raises(UsageError, match="does not begin with a transformer"):
        model_of_folder(str(folder))


def test_models_of_diffusers_say_the_way_out(folder):
    (folder / "config.json").write_text('{"_class_name": "UNet2DModel"}', encoding="utf-8")
    with pytest.raises(UsageError, match="a UNet2DModel of diffusers") as refused:
        model_of_folder(str(folder))
    assert "a function in a file" in refused.value.advice
    (folder.parent / "model_index.json").write_text("{}", encoding="utf-8")
    assert is_folder_word(str(folder.parent))
    with pytest.raises(UsageError, match="a pipeline of diffusers") as refused:
        model_of_folder(str(folder.parent))
    assert str(folder) in refused.value.advice
