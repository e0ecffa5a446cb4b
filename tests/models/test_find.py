"""Names people type, sets, categories; all of it without anything heavy."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import ARCHITECTURES, FAMILIES
from accelbench.models.find import every_model, find, members, names_of, names_used
from accelbench.models.selection import choose

NAMES = {
    "bert-base": [
        "BERT", "bert", "bert_base", "Bert-Base", " bert-base ", "bert-base-uncased",
        "bert_base_uncased", "google-bert/bert-base-uncased",
    ],
    "bert-tiny": ["bert_tiny", "prajjwal1/bert-tiny", "google/bert_uncased_L-2_H-128_A-2"],
    "vit-base": [
        "vit", "ViT", "vit_b_16", "ViT-B/16", "vit-b-16", "vit-base-patch16-224",
        "google/vit-base-patch16-224",
    ],
    "vit-tiny": ["vit_tiny"],
    "resnet-50": ["resnet50", "ResNet-50", "resnet_50", "microsoft/resnet-50"],
    "resnet-tiny": ["resnet_tiny"],
    "gpt2": ["GPT-2", "gpt2", "gpt2-small", "openai-community/gpt2"],
    "gpt2-tiny": ["gpt2_tiny"],
    "distilbert-base": ["DistilBERT", "distilbert-base-uncased"],
    "t5-base": ["T5", "t5", "t5_base", "google-t5/t5-base"],
    "t5-small": ["t5-small", "t5_small", "google-t5/t5-small"],
    "llama-2-7b": ["LLaMA", "llama2", "Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"],
    "llama-3.2-1b": ["Llama-3.2-1B", "llama_3_2_1b"],
    "qwen2-7b": ["Qwen2", "qwen2-7b", "Qwen/Qwen2-7B"],
    "qwen2-0.5b": ["Qwen2-0.5B"],
    "mixtral-8x7b": ["Mixtral", "mixtral-8x7b-v0.1", "mistralai/Mixtral-8x7B-v0.1"],
    "mamba-130m": ["Mamba", "mamba-130m-hf", "state-spaces/mamba-130m-hf"],
}  # fmt: skip

#: As the guides name them: the thirteen key models.
KEY_MODELS = (
    "BERT", "CLAP", "CLIP", "DETR", "LLaMA", "LLaVA", "LLaVA-Next", "Qwen2", "T5", "ViT",
    "Wav2Vec2", "Whisper", "XCLIP",
)  # fmt: skip


@pytest.mark.parametrize(("expected", "typed"), [(m, n) for m, ns in NAMES.items() for n in ns])
def test_names_people_type(expected, typed):
    assert find(typed).id == expected


def test_every_name_finds_one_model():
    for spec in every_model():
        for name in names_of(spec):
            assert find(name) is spec, name

    def key(name):
        return re.sub(r"[^a-z0-9/]", "", name.lower())

    owners = {}
    for spec in every_model():
        for name in names_of(spec):
            owners.setdefault(key(name), set()).add(spec.id)
    assert [o for o in owners.values() if len(o) > 1] == []

    with pytest.raises(UsageError) as raised:
        find("opt-tiny")
    assert "Did you mean" not in raised.value.advice


@pytest.mark.parametrize(
    ("typed", "near"),
    [("resnet5", "resnet-50"), ("brt-base", "bert-base"), ("vit-bass", "vit-base")],
)
def test_a_slip_is_met_with_near_matches(typed, near):
    with pytest.raises(UsageError) as raised:
        find(typed)
    assert near in raised.value.advice
    assert "accelbench models" in raised.value.advice
    assert repr(typed) in raised.value.message


@pytest.mark.parametrize("typed", ["opt-tiny", "bert-large", "", "someone/bert-base-uncased"])
def test_another_model_is_unknown_not_replaced(typed):
    with pytest.raises(UsageError):
        find(typed)


@pytest.mark.parametrize("word", ["./missing", "../missing", "missing/", "/x/y", "~/missing"])
def test_a_path_that_leads_nowhere_is_no_name(word):
    with pytest.raises(UsageError, match="no file or folder") as refused:
        choose([word])
    assert word in refused.value.message
    assert refused.value.advice == "Check its path."


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(UsageError, match=r"has no config\.json"):
        choose([str(tmp_path)])


def test_sets_of_models():
    for spec in every_model():
        if spec.small_variant is not None:
            small = find(spec.small_variant)
            assert small.parameters < spec.parameters
            assert small.family is spec.family

    named = {find(name).id for name in KEY_MODELS}
    assert len(named) == 13
    assert named == {s.id for s in members("key")}
    every = members("architectures")
    assert named < {s.id for s in every}
    assert {s.architecture for s in every} == set(ARCHITECTURES)

    small = members("small")
    assert all(s.size == "tiny" for s in small)
    assert {find(s.small_variant or s.id).id for s in members("architectures")} <= {
        s.id for s in small
    }
    assert {s.architecture for s in small} == set(ARCHITECTURES)
    assert {s.family for s in small} == set(FAMILIES)
    with pytest.raises(UsageError, match="Known sets: key, architectures, small"):
        members("huge")


def ids(**asked):
    return [spec.id for spec in choose(**asked)]


def test_models_are_chosen_by_name_category_set_and_limit():
    assert ids(models=["gpt2", "bert", "GPT-2"]) == ["gpt2", "bert-base"]

    everything = every_model()
    assert ids(categories=["vision"]) == [
        s.id for s in everything if s.family == "vision" or "vision" in s.modalities
    ]
    assert {"vit-base", "clip-base", "detr-resnet-50"} <= set(ids(categories=["vision"]))
    assert ids(categories=["text"]) == [s.id for s in everything if "text" in s.modalities]
    writers = ids(categories=["text-generation"])
    assert {"gpt2", "t5-base", "mamba-tiny"} <= set(writers)
    assert "bert-base" not in writers
    small = ids(categories=["vision"], set_name="small")
    assert small[:2] == ["vit-tiny", "resnet-tiny"]
    assert "bert-tiny" not in small
    both = ids(categories=["vision", "embedding"], set_name="key")
    assert both[:2] == ["bert-base", "vit-base"]
    assert "llama-2-7b" not in both

    assert ids(set_name="small", specific=["bert"]) == ["bert-tiny"]
    assert ids(set_name="small", specific=["bert-tiny"]) == ["bert-tiny"]
    assert ids(set_name="small", specific=["bert", "t5"]) == ["bert-tiny", "t5-tiny"]
    assert ids(set_name="key", specific=["bert", "vit"]) == ["bert-base", "vit-base"]
    assert ids(all_models=True) == [spec.id for spec in every_model()]
    assert ids(all_models=True, limit=2) == ["bert-base", "bert-tiny"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"all_models": True, "limit": 0},
        {"categories": ["visoin"]},
        {"models": ["bert"], "categories": ["vision"]},
        {"models": ["gpt2"], "categories": ["audio"]},
    ],
)
def test_choosing_nothing_is_said(asked):
    with pytest.raises(UsageError):
        ids(**asked)


def test_finding_and_costing_import_nothing_heavy():
    program = (
        "import sys\n"
        "from accelbench.models.find import find\n"
        "from accelbench.models.cost import cost\n"
        "from accelbench.models.inputs import input_bytes\n"
        "from accelbench.core.case import Shapes\n"
        "assert cost(find('bert'), Shapes(1), 'fp32') and input_bytes(find('bert'), Shapes(1))\n"
        "heavy = {'torch', 'transformers', 'numpy', 'duckdb', 'pyarrow', 'pandas'}\n"
        "sys.exit(' '.join(heavy & sys.modules.keys()) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_specific_models_may_be_those_of_a_models_file(tmp_path):
    file = tmp_path / "models.json"
    file.write_text('{"mine": {"name": "bert-tiny"}, "other": {"name": "vit-tiny"}}')
    chosen = choose(set_name="custom", specific=["mine"], models_file=file)
    assert [spec.id for spec in chosen] == ["bert-tiny"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"models": ["mine"]}, ["bert-tiny"]),
        ({"models": ["bert"]}, ["vit-tiny"]),  # the file's before the catalogue's
        ({"models": ["t5-tiny", "mine"]}, ["t5-tiny", "bert-tiny"]),
        ({"models": ["t5-tiny"], "set_name": "custom"}, ["t5-tiny", "bert-tiny", "vit-tiny"]),
        ({}, ["bert-tiny", "vit-tiny"]),
        ({"set_name": "custom", "specific": ["bert"]}, ["vit-tiny"]),
    ],
)
def test_a_models_file_gives_names_and_where_none_is_said_its_models(tmp_path, asked, found):
    file = tmp_path / "models.json"
    file.write_text('{"mine": {"name": "bert-tiny"}, "bert": {"name": "vit-tiny"}}')
    assert ids(**asked, models_file=file) == found


def test_own_models_and_old_names():
    own = replace(find("bert-tiny"), id="me/mine", aliases=("k1",), hub_ids=(), sets=("custom",))
    assert find("ME/mine", [own]) is find("K-1", [own]) is own
    with pytest.raises(UsageError, match="Did you mean me/mine"):
        find("me/mime", [own])
    with pytest.raises(UsageError):
        find("me/mine")

    own = replace(find("vit-tiny"), id="x", aliases=("bert",), hub_ids=(), sets=("custom",))
    assert find("bert", [own, find("bert-base")]) is own
    chosen = [find("bert-base"), find("gpt2")]
    assert names_used(["BERT", "t5-small", "gpt_2"], chosen) == {
        "bert-base": "BERT",
        "gpt2": "gpt_2",
    }
    with pytest.raises(UsageError, match="--models-file"):
        choose(set_name="custom")
