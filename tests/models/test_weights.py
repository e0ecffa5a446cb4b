"""Real weights: what is loaded is what was saved; what is unsafe or another's is refused."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from accelbench.core.case import Shapes
from accelbench.core.errors import CaseError
from accelbench.models.build import build, parameter_count
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs
from accelbench.models.narrow import weights_digest


def save(name, folder):
    module = build(find(name), seed=4)
    module.save_pretrained(folder)
    return module


def reason(name, folder, **more):
    with pytest.raises(CaseError) as raised:
        build(find(name), seed=0, weights=str(folder), **more)
    assert raised.value.advice
    return raised.value.reason


def test_what_was_looked_for_in_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(CaseError) as raised:
        build(find("bert-tiny"), seed=0, weights=str(tmp_path))
    for word in ("model.safetensors", str(tmp_path)):
        assert word in raised.value.message
    assert "config.json" in raised.value.advice


@pytest.mark.parametrize(
    "name",
    [
        "bert-tiny",
        "resnet-tiny",
        "gpt2-tiny",
        "clip-tiny",
        "detr-tiny",
        "llava-tiny",
        "vit-gpt2-tiny",
    ],
)
def test_a_folder_gives_back_what_was_saved(name, tmp_path):
    spec = find(name)
    saved = save(name, tmp_path)
    loaded = build(spec, seed=0, weights=str(tmp_path))
    assert weights_digest(loaded) == weights_digest(saved)
    assert parameter_count(loaded) == spec.parameters
    assert not loaded.training
    inputs = {k: torch.from_numpy(v) for k, v in make_inputs(spec, Shapes(2), 0).items()}
    with torch.no_grad():
        for a, b in zip(saved(**inputs).values(), loaded(**inputs).values(), strict=True):
            assert not isinstance(a, torch.Tensor) or torch.equal(a, b)


def test_half_weights_are_loaded_in_fp32(tmp_path):
    build(find("bert-tiny"), seed=4).half().save_pretrained(tmp_path)
    loaded = build(find("bert-tiny"), seed=0, weights=str(tmp_path))
    assert all(p.dtype is torch.float32 for p in loaded.parameters())


def test_another_number_of_labels_is_loaded_and_counted(tmp_path):
    from transformers import ResNetConfig, ResNetForImageClassification

    spec = find("resnet-tiny")
    config = ResNetConfig(**{**spec.config, "num_labels": 10})
    ResNetForImageClassification(config).save_pretrained(tmp_path)
    loaded = build(spec, seed=0, weights=str(tmp_path))
    assert parameter_count(loaded) == spec.parameters - 990 * 129


def test_a_folder_whose_classes_have_names_is_loaded(tmp_path):
    """Its own config was compared with itself, and refused: JSON's keys are text."""
    folder = tmp_path / "fine-tuned"
    names = ["bad", "so", "good"]
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=16, id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )  # fmt: skip
    saved = transformers.BertForSequenceClassification(config)
    saved.save_pretrained(folder)
    said = json.loads((folder / "config.json").read_text())
    builder = "transformers:BertForSequenceClassification"
    loaded = build(replace(find("bert-tiny"), builder=builder, config=said), 0, str(folder))
    assert weights_digest(loaded) == weights_digest(saved)


def test_another_model_within_the_model_is_refused_by_name(tmp_path):
    save("clip-tiny", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["num_attention_heads"] = 4  # as many weights, put together otherwise
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CaseError, match=r"text_config\.num_attention_heads is 4 instead of 2"):
        build(find("clip-tiny"), seed=0, weights=str(tmp_path))


def test_habits_reach_the_configs_within_the_config(tmp_path):
    """Weights that were saved with a cache in mind are still run without one."""
    save("llava-tiny", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["text_config"]["use_cache"] = True
    (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = build(find("llava-tiny"), seed=0, weights=str(tmp_path))
    assert loaded.config.text_config.use_cache is False


@pytest.mark.parametrize("ending", ["bin", "pt", "pth", "pkl"])
def test_pickled_weights_are_refused_unopened(ending, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / f"pytorch_model.{ending}").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert reason("bert-tiny", tmp_path) == "unsafe_weights"


def drop_a_tensor(folder):
    file = folder / "model.safetensors"
    tensors = load_file(file)
    del tensors["pooler.dense.weight"]
    save_file(tensors, file, metadata={"format": "pt"})


def reshape_a_tensor(folder):
    file = folder / "model.safetensors"
    tensors = load_file(file)
    tensors["pooler.dense.bias"] = torch.zeros(7)
    save_file(tensors, file, metadata={"format": "pt"})


def widen(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))


def bring_code(folder):
    config = json.loads((folder / "config.json").read_text())
    extra = {"auto_map": {"AutoModel": "modeling_own.Own"}}
    (folder / "config.json").write_text(json.dumps({**config, **extra}))


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "weights_unavailable"),
        (lambda f: (f / "config.json").unlink(), "weights_unavailable"),
        (lambda f: (f / "config.json").write_text("{"), "weights_unreadable"),
        (lambda f: (f / "config.json").write_text("[]"), "weights_unreadable"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 100), "weights_unreadable"),
        (drop_a_tensor, "weights_incomplete"),
        (reshape_a_tensor, "weights_unreadable"),
        (widen, "weights_mismatch"),
        (bring_code, "remote_code"),
    ],
)
def test_a_spoiled_folder_is_refused(spoil, expected, tmp_path):
    save("bert-tiny", tmp_path)
    spoil(tmp_path)
    assert reason("bert-tiny", tmp_path) == expected


def test_another_model_or_no_folder_is_refused(tmp_path):
    save("bert-tiny", tmp_path)
    assert reason("vit-tiny", tmp_path) == "weights_mismatch"
    assert reason("bert-base", tmp_path) == "weights_mismatch"
    assert reason("bert-tiny", tmp_path / "nowhere") == "weights_unavailable"


def test_code_in_the_folder_runs_only_when_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m"))
    folder = tmp_path / "own_model"
    saved = save("bert-tiny", folder)
    bring_code(folder)
    witness = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(
        "from pathlib import Path\n"
        "from transformers import BertModel\n"
        f"Path({str(witness)!r}).write_text('yes')\n"
        "class Own(BertModel):\n"
        "    pass\n"
    )
    assert reason("bert-tiny", folder) == "remote_code"
    assert not witness.exists()
    loaded = build(find("bert-tiny"), 0, weights=str(folder), trust_remote_code=True)
    assert witness.exists()
    assert type(loaded).__name__ == "Own"
    assert weights_digest(loaded) == weights_digest(saved)


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """An empty cache, and a hub at a port where nobody listens: refused at once."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


def test_the_hub_out_of_reach(no_hub):
    with pytest.raises(CaseError, match="google-bert/bert-base-uncased") as raised:
        build(find("bert-base"), seed=0, weights="hub")
    assert raised.value.reason == "weights_unavailable"
    assert "--weights random" in raised.value.advice
    with pytest.raises(CaseError, match="of our own") as raised:
        build(find("vit-tiny"), seed=0, weights="hub")
    assert raised.value.reason == "weights_unavailable"


def test_the_hub_cache_is_used_without_a_network(no_hub, tmp_path):
    commit = "a" * 40
    repository = tmp_path / "models--prajjwal1--bert-tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    saved = save("bert-tiny", repository / "snapshots" / commit)
    loaded = build(find("bert-tiny"), seed=0, weights="hub")
    assert weights_digest(loaded) == weights_digest(saved)
