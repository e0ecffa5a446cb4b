"""Models files: the document's example, models of one's own, and every mistake with its place."""

import json
import re
import subprocess
import sys

import pytest

from accelbench.core.errors import MissingExtraError, SurroundingsError, UsageError
from accelbench.core.serial import model_from_json
from accelbench.core.vocabulary import Architecture
from accelbench.models import own
from accelbench.models.find import find
from accelbench.models.selection import choose, models_in
from described_here import described_here

#: As the document has it, word for word.
DOCUMENT = """{
  "bert_tiny": {
    "name": "prajjwal1/bert-tiny",
    "family": "embedding",
    "size": "tiny",
    "modality": "text"
  },
  "t5_small": {
    "name": "t5-small",
    "family": "text_generation",
    "size": "small",
    "modality": "text"
  }
}
"""


def written(folder, content):
    path = folder / "models.json"
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_documents_example(tmp_path):
    bert, t5 = models_in(written(tmp_path, DOCUMENT)).models
    assert [bert.id, t5.id] == ["bert-tiny", "t5-small"]
    assert "bert_tiny" in bert.aliases
    assert bert.config_digest == find("bert-tiny").config_digest
    chosen = choose(set_name="custom", models_file=written(tmp_path, DOCUMENT))
    assert [spec.id for spec in chosen] == ["bert-tiny", "t5-small"]

    path = written(
        tmp_path, '\ufeff{ // mine\n "x": {"name": "BERT" /* base */, "size": "large"} }'
    )
    (bert,) = models_in(path).models
    assert (bert.id, bert.size) == ("bert-base", "large")


# -- models of one's own

BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "transformers_version": "5.0.0",
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
    "vocab_size": 100, "max_position_embeddings": 64,
}  # fmt: skip
TEXT = {"family": "embedding", "size": "tiny", "modality": "text"}
WRITES = {"family": "text_generation", "size": "tiny", "modality": "text"}
OWN = {
    "reader": {"name": "our-encoder", "path": "ours", **TEXT},
    "writer": {
        "name": "our-decoder", "class": "GPT2LMHeadModel",
        "config": {"n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 100, "n_positions": 96},
        **WRITES,
    },
    "both": {
        "name": "our-t5", "class": "T5ForConditionalGeneration",
        "config": {
            "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2,
            "vocab_size": 100, "decoder_start_token_id": 0,
        },
        **WRITES,
    },
    "sees": {
        "name": "our-vit", "class": "ViTForImageClassification",
        "config": {
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 64, "image_size": 32, "patch_size": 8, "num_channels": 1,
        },
        "family": "vision", "size": "tiny", "modality": "vision",
    },
    "hears": {
        "name": "our-wav2vec2", "class": "Wav2Vec2ForCTC",
        "config": {
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 64, "conv_dim": [16] * 7,
        },
        "family": "audio", "size": "tiny", "modality": "audio",
    },
    "offset": {
        "name": "our-roberta", "class": "RobertaModel",
        "config": {**BERT, "max_position_embeddings": 66, "pad_token_id": 1}, **TEXT,
    },
    "bert_tiny": {"name": "bert-tiny"},
}  # fmt: skip


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "ours").mkdir()
    (folder / "ours" / "config.json").write_text(json.dumps(BERT))
    with described_here("selection"):
        return {spec.id: spec for spec in models_in(written(folder, OWN)).models}


def test_own_models_keep_their_place_and_run(ours):
    assert list(ours) == [entry["name"] for entry in OWN.values()]
    assert [spec.aliases[-1] for spec in ours.values()] == list(OWN)

    import torch

    from accelbench.core.case import Shapes
    from accelbench.models.build import build, parameter_count
    from accelbench.models.inputs import make_inputs

    torch.set_num_threads(1)
    for spec in ours.values():
        shapes = Shapes(batch=2, audio=1 if spec.audio else None)
        module = build(spec, seed=0)
        assert parameter_count(module) == spec.parameters, spec.id
        arrays = make_inputs(spec, shapes, seed=0)
        with torch.no_grad():
            outputs = module(**{name: torch.from_numpy(a) for name, a in arrays.items()})
        assert all(torch.isfinite(t).all() for t in outputs.values() if torch.is_tensor(t)), spec.id

    import torch

    from accelbench.core.case import Shapes
    from accelbench.models.build import build
    from accelbench.models.inputs import make_inputs

    longest = {name: ours[name].max_sequence for name in ("our-encoder", "our-roberta")}
    assert longest == {"our-encoder": 64, "our-roberta": 64}
    for name, sequence in longest.items():
        arrays = make_inputs(ours[name], Shapes(batch=1, sequence=sequence), seed=0)
        with torch.no_grad():
            build(ours[name], seed=0)(**{key: torch.from_numpy(a) for key, a in arrays.items()})


def test_what_own_models_read_and_write(ours):
    reader, writer, both = ours["our-encoder"], ours["our-decoder"], ours["our-t5"]
    assert (reader.sequence, reader.max_sequence, reader.generation) == (64, 64, None)
    assert reader.architecture is Architecture.ENCODER_ONLY
    assert writer.architecture is Architecture.DECODER_ONLY
    assert writer.generation.prompt_tokens + writer.generation.new_tokens <= 96
    assert writer.generation.max_tokens == 96
    assert both.architecture is Architecture.ENCODER_DECODER
    assert both.generation.kind == "encoder-decoder"
    sees, hears = ours["our-vit"], ours["our-wav2vec2"]
    assert sees.image == 32
    assert sees.inputs[0].shape == ("batch", 1, "image", "image")
    assert (hears.sampling_rate, hears.inputs[0].name) == (16_000, "input_values")


def test_own_models_train_where_their_class_tells_how(ours):
    import torch

    from accelbench.core.case import Shapes
    from accelbench.core.vocabulary import Mode
    from accelbench.models.build import build
    from accelbench.models.inputs import make_inputs
    from accelbench.models.losses import find_loss

    torch.set_num_threads(1)
    assert ours["our-encoder"].training is None
    assert ours["our-wav2vec2"].training is None
    for name in ("our-decoder", "our-t5", "our-vit"):
        spec = ours[name]
        assert spec.training is not None, name
        arrays = make_inputs(spec, Shapes(batch=2), seed=0, mode=Mode.TRAINING)
        fed = {key: torch.from_numpy(array) for key, array in arrays.items()}
        labels = {one.name for one in spec.training.labels}
        module = build(spec.training_variant, seed=0)
        outputs = module(**{key: value for key, value in fed.items() if key not in labels})
        loss = find_loss(spec.training.loss)(outputs, fed)
        loss.backward()
        assert torch.isfinite(loss), name
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        assert sum(float(g.abs().sum()) for g in gradients) > 0, name


def test_own_models_survive_the_journal(ours):
    from accelbench.core.identity import to_plain

    for spec in ours.values():
        again = model_from_json(json.loads(json.dumps(to_plain(spec))))
        assert again == spec
        assert again.config_digest == spec.config_digest


def test_describing_them_imports_no_engine_here(tmp_path):
    path = written(tmp_path, {"writer": OWN["writer"]})
    code = (
        "import sys; from pathlib import Path; from accelbench.models.selection import models_in;"
        f"models_in(Path({str(path)!r}));"
        "sys.exit(bool({'torch', 'transformers', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


# -- mistakes


def refused(folder, content):
    path = written(folder, content)
    with pytest.raises(UsageError) as caught:
        models_in(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    return said.removeprefix(str(path))


@pytest.mark.parametrize(
    ("entry", "line", "key", "says"),
    [
        ({"name": "t5-small", "familly": "x"}, 4, "familly", "Did you mean family?"),
        ({"family": "embedding"}, 2, "x", "no 'name'"),
        ({"name": ""}, 3, "name", "text"),
        ({"name": 5}, 3, "name", "text"),
        ({"name": "t5-small", "family": "embeding"}, 4, "family", "Did you mean embedding?"),
        ({"name": "t5-small", "family": "zzz"}, 4, "family", "Known: embedding"),
        ({"name": "t5-small", "size": "smal"}, 4, "size", "Did you mean small"),
        ({"name": "t5-small", "modality": "txt"}, 4, "modality", "Did you mean text?"),
        ({"name": "t5-smal"}, 3, "name", "Did you mean"),
        ({"name": "t5-small", "family": "vision"}, 4, "family", "text_generation, not vision"),
        ({"name": "t5-small", "modality": "vision"}, 4, "modality", "not of vision"),
        ({"name": "bert-tiny", "path": "x", **TEXT}, 3, "name", "catalogue's bert-tiny"),
        ({"name": "own", "path": "x", "family": "vision"}, 2, "x", "needs a 'size'"),
        ({"name": "own", "path": "nowhere", **TEXT}, 4, "path", "nowhere/config.json"),
        ({"name": "own", "class": "BertModel", **TEXT}, 2, "x", "'path' or a 'config'"),
        ({"name": "own", "config": [], **TEXT}, 4, "config", "'path' or a 'config'"),
        ({"name": "own", "config": {"a": 1}, **TEXT}, 4, "config", "no architecture"),
        ({"name": "own", "path": "x", "config": {"a": 1}, **TEXT}, None, "config", "not both"),
        ({"name": "own", "config": {**BERT, "auto_map": {}}, **TEXT}, 4, "config", "Python code"),
        (
            {"name": "own", "config": {**BERT, "quantization_config": {}}, **TEXT},
            4,
            "config",
            "quantised",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_key(tmp_path, entry, line, key, says):
    said = refused(tmp_path, {"x": entry})
    assert says in said
    assert f"'{key}'" in said
    found = re.match(r", line (\d+), ", said)
    assert found
    if line is not None:
        assert int(found[1]) == line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ", line 1: it is empty."),
        ("// nothing\n", ", line 1: it is empty."),
        ("{\n}", ", line 1: there is no model in it."),
        ('["bert"]', ", line 1: a models file is an object"),
        ('{\n"a": "bert"}', ", line 2, 'a': a model is an object"),
        ('{"a": {"name": "bert"},\n"a": {"name": "t5"}}', ", line 2: the key 'a' is there twice."),
        ('{"a": {"name": "bert",\n"name": "t5"}}', ", line 2: the key 'name' is there twice."),
        ('{"a": {"name": "bert"\n"size": "tiny"}}', ", line 2: a comma"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(tmp_path, content, says):
    assert refused(tmp_path, content).startswith(says)


def test_one_wrong_entry_does_not_stop_the_others(tmp_path):
    path = written(
        tmp_path,
        {
            "a": {"name": "bert-tiny"},
            "typo": {"name": "t5-smal"},
            "text": "bert",
            "unbuilt": {"name": "ours", "config": {**BERT, "auto_map": {}}, **TEXT},
            "again": {"name": "bert_tiny"},
            "b": {"name": "t5-small", "size": "medium"},
        },
    )
    found = models_in(path)
    assert [(one.id, one.size) for one in found.models] == [
        ("bert-tiny", "tiny"),
        ("t5-small", "medium"),
    ]
    assert list(found.wrong) == ["text", "unbuilt", "typo", "again"]
    assert "bert-tiny is in the file twice" in str(found.wrong["again"])
    heard = []
    chosen = choose(models_file=path, pass_over=heard.append)
    assert [one.id for one in chosen] == ["bert-tiny", "t5-small"]
    assert [str(one) for one in heard] == [str(one) for one in found.wrong.values()]
    # Of those that nobody named, nothing is said; one that is named is an error, as all are
    # where nobody hears of them.
    assert choose(["a"], models_file=path, pass_over=heard.append)[0].id == "bert-tiny"
    assert len(heard) == 4
    for names, hear in (((), None), (("typo",), heard.append)):
        with pytest.raises(UsageError, match=r"'text': a model is|'typo': there is no model"):
            choose(names, models_file=path, pass_over=hear)


def test_what_cannot_be_read_is_told(tmp_path):
    said = refused(tmp_path, {"x": {"name": "nobody-has-this"}})
    assert "accelbench models. A model of your own" in said

    with pytest.raises(UsageError, match=r"nowhere\.json cannot be read: No such file"):
        models_in(tmp_path / "nowhere.json")
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    with pytest.raises(UsageError, match="not text in UTF-8"):
        models_in(tmp_path / "latin.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"class": "BertModle"}, "has no BertModle"),
        ({"class": "BertTokenizer"}, "no model class"),
        ({"class": "ClapModel", "config": {}}, "reads more than text"),
        ({"class": "WhisperModel", "config": {}}, "reads input_features"),
        ({"config": {**BERT, "hidden_size": 33}}, "transformers cannot build it"),
    ],
)
def test_what_transformers_refuses_is_told_with_its_line(change, says, tmp_path):
    """Asked in this process, where torch is imported once for all."""
    entry = {"name": "own", "class": "BertModel", "config": BERT, **TEXT, **change}
    with described_here("selection"):
        said = refused(tmp_path, {"x": entry})
    assert said.startswith(", line 4, 'class' of 'x': ")
    assert says in said


def test_an_engine_that_is_missing_or_dies_is_told(monkeypatch):
    monkeypatch.setattr(own, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="accelbench setup torch"):
        own.describe([])
    monkeypatch.undo()
    monkeypatch.setattr(own.sys, "executable", sys.executable + "-that-is-not-there")
    with pytest.raises((SurroundingsError, OSError)):
        own.describe([])
