"""The picker of `accelbench run`: on a terminal alone, by numbers and by parts of names."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest
from stored_rows import store

from accelbench.cli.services import before_run
from accelbench.cli.services.before_run import ModelChoice, answer_of, search

CHOICES = [
    ModelChoice("mine.onnx", "file here"),
    ModelChoice("bert-tiny", "embedding · 4.37 M parameters", ("prajjwal1/bert-tiny",)),
    ModelChoice("bert-base", "embedding · 109 M parameters", ("bert", "google-bert/bert-base")),
    ModelChoice("gpt2-tiny", "text generation · 2.2 M parameters"),
]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2\n", ["bert-tiny"]),
        (" 1, 4 \n", ["mine.onnx", "gpt2-tiny"]),
        ("2,bert-tiny\n", ["bert-tiny"]),
        ("BERT-BASE", ["bert-base"]),
        ("gpt", ["gpt2-tiny"]),  # no other has it in its name
        ("prajjwal1/", ["bert-tiny"]),
        ("bert", None),  # of two
        ("0", None),
        ("5", None),
        ("bert,gpt", None),
        ("./nets/deep.onnx", ["./nets/deep.onnx"]),
        ("model.py:make", ["model.py:make"]),
    ],
)
def test_a_line_names_models_or_searches(line, words):
    assert answer_of(line, CHOICES, CHOICES) == words


def test_a_search_looks_at_names_and_at_what_a_model_is():
    assert [choice.word for choice in search("bert", CHOICES)] == ["bert-tiny", "bert-base"]
    assert [choice.word for choice in search("Generation", CHOICES)] == ["gpt2-tiny"]
    assert [choice.word for choice in search("gpt, onnx", CHOICES)] == ["mine.onnx", "gpt2-tiny"]


def on_a_terminal(folder: Path, typed: str, *words: str) -> tuple[int, str]:
    """`accelbench run` with a terminal for its input and output: what it ended with and showed."""
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH")}
    with subprocess.Popen(
        [sys.executable, "-m", "accelbench", "run", *words],
        cwd=folder,
        env={**environment, "COLUMNS": "80"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        os.write(master, typed.encode())  # the terminal keeps lines until they are read
        # What waits for more lines than there are ends by the end of its input.
        os.write(master, b"\x04")
        shown = b""
        while process.poll() is None or select.select([master], [], [], 0)[0]:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                shown += os.read(master, 65536)
            except OSError:  # nobody has its other end any more
                break
        process.wait(timeout=120)
    os.close(master)
    return process.returncode, shown.decode().replace("\r\n", "\n")


def test_a_model_is_picked_by_search_and_number(tmp_path):
    (tmp_path / "mine.onnx").write_bytes(b"")
    more = ("--dry-run", "--batch-sizes", "1")
    code, shown = on_a_terminal(tmp_path, "no-such\nbert-t\nbert-tiny\n", *more)
    assert "   1  mine.onnx" in shown
    assert "No model has 'no-such' in its name." in shown
    assert "$ accelbench run bert-tiny --dry-run --batch-sizes 1" in shown
    assert "bert-tiny" in shown.partition("$ accelbench")[2].partition("\n")[2]
    assert code == 0, shown


@pytest.mark.parametrize("typed", ["\n", "\x04"])
def test_nothing_picked_is_the_error_that_it_was(tmp_path, typed):
    code, shown = on_a_terminal(tmp_path, typed)
    assert code == 2
    assert "Which model?" in shown
    assert "No model is named." in shown


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",)])
def test_nothing_is_asked_where_nobody_is(command, words):
    code, out, err = command("run")(*words)
    assert code == 2
    assert "No model is named." in err
    assert "Which model?" not in out + err


class Terminal:
    """A standard stream that is a terminal, and gives lines."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self._lines.pop(0) if self._lines else ""


class Sources:
    """A command's context in which some options were typed."""

    def __init__(self, *typed: str) -> None:
        self._typed = typed

    def get_parameter_source(self, name: str) -> object:
        source = "COMMANDLINE" if name in self._typed else "DEFAULT"
        return type("Source", (), {"name": source})


def test_what_was_measured_stands_before_the_catalogue(tmp_path, monkeypatch, capsys):
    path = tmp_path / "accelbench.duckdb"
    store(path, {"model": "whisper-tiny"}, {"model": "unknown-to-the-catalogue"})
    monkeypatch.setenv("ACCELBENCH_DB", str(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(before_run.sys, "stdin", Terminal("1\n"))
    monkeypatch.setattr(before_run.sys.stdout, "isatty", lambda: True)
    assert before_run.picked_models({}, Sources()) == ["whisper-tiny"]
    out = capsys.readouterr().out
    assert "   1  whisper-tiny" in out
    assert "measured before" in out
    assert "unknown-to-the-catalogue" not in out


@pytest.mark.parametrize(
    ("typed", "source"),
    [
        ({"set_name": "small"}, ()),
        ({"every": True}, ()),
        ({"resume": "last"}, ()),
        ({"models_file": "models.json"}, ()),
        ({"hardware": ["cpu"]}, ("hardware",)),  # means every model
    ],
)
def test_who_says_which_models_is_not_asked(typed, source, monkeypatch):
    monkeypatch.setattr(before_run.sys, "stdin", Terminal("1\n"))
    monkeypatch.setattr(before_run.sys.stdout, "isatty", lambda: True)
    assert before_run.picked_models(typed, Sources(*source)) == []
