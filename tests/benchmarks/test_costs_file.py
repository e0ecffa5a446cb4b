"""The program that counts the catalogue: its file is up to date."""

import json
from dataclasses import replace

import pytest

from accelbench.models.cost import COSTS_FILE
from accelbench.models.find import find
from costs import entry, main, render

#: Counted anew here: of each kind of pass one, those that take seconds.
CHECKED = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")


@pytest.mark.parametrize("name", CHECKED)
def test_the_file_is_up_to_date(name):
    kept = json.loads(COSTS_FILE.read_text())
    assert entry(find(name)) == kept[name], "run: make costs"


def test_the_file_reads_well():
    assert render(json.loads(COSTS_FILE.read_text())) == COSTS_FILE.read_text()


def test_the_command_says_whether_it_is_up_to_date(monkeypatch, tmp_path, capsys):
    file = tmp_path / "costs.json"
    monkeypatch.setattr("costs.COSTS_FILE", file)
    monkeypatch.setattr("costs.every_model", lambda: (find("vit-tiny"),))
    assert main([]) == 1
    assert "out of date" in capsys.readouterr().out
    assert main(["--write"]) == 0
    assert main([]) == 0
    assert json.loads(file.read_text())["vit-tiny"]["config"] == find("vit-tiny").config_digest


def test_a_cost_without_an_exact_rule_is_of_the_default_sizes_alone():
    """Along an image size that is no multiple of the stride, sides are rounded."""
    spec = find("resnet-tiny")
    config = {**spec.config, "hidden_sizes": [16, 32, 64, 128, 256], "depths": [1] * 5}
    crooked = replace(spec, config=config, training=None)
    assert entry(crooked)["forward"]["along"] is None
