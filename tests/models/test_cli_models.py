"""`accelbench models`: a table of 80 columns, one model in full, one JSON document."""

import json

import pytest
from typer.testing import CliRunner

from accelbench.cli.commands.models import app
from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.models import selection
from accelbench.models.find import every_model, find


def run(*arguments):
    done = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(
        app, list(arguments), catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_fits_80_columns_and_has_every_model():
    table = run()
    assert max(len(line) for line in table.splitlines()) <= 80
    for spec in every_model():
        (line,) = (line for line in table.splitlines() if line.startswith(f"{spec.id} "))
        assert line.split()[1:3] == [spec.family, spec.architecture]
    bert = next(line for line in table.splitlines() if line.startswith("bert-base "))
    assert bert.split()[-3:] == ["109", "M", "22.4"]
    llama = next(line for line in table.splitlines() if line.startswith("llama-2-7b "))
    assert "6.74 B" in llama


def test_one_model_in_full_by_any_of_its_names():
    text = run("BERT_base")
    assert text == run("google-bert/bert-base-uncased")
    for part in ("bert-base", "109,482,240", "encoder-only", "bert-tiny", "sequence 128", "512"):
        assert part in text


def test_json_is_one_document_with_the_same_shape_for_one_and_for_all():
    every = json.loads(run("--json"))["models"]
    assert [m["model"] for m in every] == [s.id for s in every_model()]
    (one,) = json.loads(run("resnet50", "--json"))["models"]
    assert one == next(m for m in every if m["model"] == "resnet-50")
    assert one["parameters"] == 25_557_032
    assert one["flops_per_item"] == pytest.approx(8.2e9, rel=0.01)
    assert one["config_digest"] == find("resnet-50").config_digest


def test_filters_and_unknown_names():
    chosen = json.loads(run("--json", "--category", "vision,embedding", "--set", "small"))
    names = [m["model"] for m in chosen["models"]]
    assert {"bert-tiny", "vit-tiny", "resnet-tiny", "clip-tiny"} <= set(names)
    assert not {"bert-base", "gpt2-tiny", "whisper-mini"} & set(names)
    with pytest.raises(UsageError, match="resnet-50"):
        run("resnet-5")


def test_a_model_of_ones_own_is_shown_in_full(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(8, 4), torch.zeros(1, 8)\n"
    )
    text = run(f"{tmp_path}/net.py:make")
    assert text.startswith("net.py:make\n")
    assert "parameters    36\n" in text
    assert "input (batch × 8)" in text
    assert "Note: net.py:make is your own code, a torch module: net.py was run to look" in text
    (one,) = json.loads(run(f"{tmp_path}/net.py:make", "--json"))["models"]
    assert (one["model"], one["parameters"]) == ("net.py:make", 36)
    with pytest.raises(UsageError, match="there is no such file"):
        run("gone.onnx")


def test_a_name_of_a_packages_model_is_shown_or_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(selection, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"timm/resnet18 needs the package timm"):
        run("timm/resnet18")
    with pytest.raises(MissingExtraError, match=r"torchvision/resnet18 needs the package"):
        run("torchvision/resnet18")
