"""`accelbench run mine.py:attribute`: from the code to a verified row, and what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from shells import Command

from code_looked_at import look_here

NET = """
import torch
from torch import nn

def make():
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return net, torch.randn(2, 16)
"""
OPS = """
import numpy as np

def product(x, y):
    return x @ y

def summed(x, y):
    return np.einsum("ij,jk->ik", x, y)

def wrong(x, y):
    return x @ y + 1

def doubled(x):
    return [value + value for value in x]

def twice(x):
    return [2 * value for value in x]
twice.example_inputs = ([1.5, 2.5, 4.0],)
twice.reference = doubled

def more_than_twice(x):
    return [2 * value + 1 for value in x]
more_than_twice.example_inputs = ([1.5, 2.5, 4.0],)
more_than_twice.reference = doubled

class Sorter:
    example_inputs = (np.arange(50)[::-1].copy(),)
    def setup(self):
        open("up", "a").close()
        self.kind = "stable"
    def __call__(self, x):
        x.sort(kind=self.kind)
        return {"sorted": x, "words": ["a", 1]}

def lazy():
    return map(str, range(3))

def nothing(x=4):
    sum(range(x))
nothing.example_inputs = (99,)

def helped(x=4):
    from late_help import add
    return add(x)
helped.example_inputs = (99,)
"""
FEW = ("--iterations", "3", "--warmup", "0", "--threads", "1", "--batch-sizes", "2")
XY = ("--input", "x=float32[batch,8]", "--input", "y=float32[8,3]")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    Path("ops.py").write_text(OPS)
    look_here(monkeypatch)
    return Command("run", monkeypatch, capsys)


def ran(run: Command, *words: str) -> list[dict[str, Any]]:
    code, out, err = run(*words, "--json")
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(out)["results"]
    return rows


def test_a_module_is_measured_on_another_engine_and_verified(run):
    (row,) = ran(run, "net.py:make", "--framework", "onnxruntime", "--hardware", "cpu", *FEW)
    assert (row["status"], row["verification"]) == ("ok", "ok")
    assert row["weights"] == "code"
    assert row["weights_digest"]


def test_a_callable_is_timed_and_held_against_its_reference(run):
    words = ("ops.py:product", "--hardware", "cpu", *FEW, *XY, "--reference")
    (row,) = ran(run, *words, "summed")
    assert (row["runtime"], row["status"], row["verification"]) == ("python", "ok", "ok")
    assert row["self_check"] == "ok"
    assert row["steps_verified"] == "ok"
    code, out, _ = run(*words, "wrong", "--json")
    (row,) = json.loads(out)["results"]
    assert row["verification"] == "failed"
    assert code != 0


def test_a_reference_is_called_with_the_example_of_what_it_is_of(run):
    (row,) = ran(run, "ops.py:twice", "--hardware", "cpu", *FEW[:-2])
    assert (row["status"], row["verification"]) == ("ok", "ok"), row["nulls"]
    _, out, _ = run("ops.py:more_than_twice", "--hardware", "cpu", *FEW[:-2], "--json")
    (row,) = json.loads(out)["results"]
    assert (row["status"], row["verification"]) == ("failed", "failed")


def test_setup_is_called_and_each_call_has_its_own_arguments(run):
    (row,) = ran(run, "ops.py:Sorter", "--hardware", "cpu", *FEW[:-2])
    assert (row["status"], row["verification"]) == ("ok", "reference")
    assert Path("up").exists()
    changed = "The calls changed their inputs: each call began with the changes of the previous one"
    assert any(text.startswith(changed) for text in row["warnings"])


def test_what_returns_nothing_is_timed_and_nothing_of_it_is_checked(run):
    (row,) = ran(run, "ops.py:nothing", "--hardware", "cpu", *FEW[:-2])
    assert (row["status"], row["self_check"]) == ("ok", "not_done")


def test_what_is_imported_late_is_said_to_be_in_no_digest(run):
    Path("late_help.py").write_text("def add(x):\n    return x + 1\n")
    (row,) = ran(run, "ops.py:helped", "--hardware", "cpu", *FEW[:-2])
    late = "late_help.py was imported during a call: weights_digest does not cover it"
    assert any(text.startswith(late) for text in row["warnings"])
    (row,) = ran(run, "ops.py:nothing", "--hardware", "cpu", *FEW[:-2])
    assert not any("imported" in text for text in row["warnings"])


def test_work_that_is_not_done_on_return_is_refused(run):
    code, out, _ = run("ops.py:lazy", "--hardware", "cpu", *FEW[:-2], "--json")
    (row,) = json.loads(out)["results"]
    assert code == 1
    assert row["reason"] == "unfinished"
    assert "an iterator (map)" in row["message"]


def test_that_code_runs_is_said(run):
    _, out, _ = run("net.py:make", "--hardware", "cpu", "--dry-run")
    told = "net.py:make is your own code, a torch module: net.py was run to look at it, and runs"
    assert told in " ".join(out.split())


def test_a_plan_file_runs_no_code(run):
    Path("plan.yaml").write_text("models: [net.py:make]\n")
    code, _, err = run("plan.yaml", "--dry-run")
    assert code == 2
    assert "A plan file cannot name code" in err
    code, _, err = run("net.py:make", "--hardware", "cpu", "--save-plan", "saved.yaml")
    assert code == 2
    assert "A plan file cannot name code" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ops.py:product", "--hardware", "auto", *XY), "is your own code"),
        (("ops.py:product",), "nothing says what x is"),
        (("net.py:make", "--input", "z=0..3"), "has no input 'z'"),
    ],
)
def test_what_cannot_be_is_one_sentence(run, words, says):
    code, _, err = run(*words, "--dry-run")
    assert code == 2
    assert says in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("net.py:make", "--framework", "python"), "is no callable of your own"),
        (("ops.py:Sorter", "--framework", "pytorch"), "does not open Python callables"),
        (("net.py:make", "--mode", "training"), "does not say how it is trained"),
        (("ops.py:product", "--precision", "fp16", *XY), "does not run fp16"),
    ],
)
def test_a_case_that_cannot_be_says_why(run, words, says):
    _, out, _ = run(*words, "--hardware", "cpu", "--dry-run", "--json")
    reasons = [case["reason"] for case in json.loads(out)["cases"]]
    assert reasons
    assert all(says in reason for reason in reasons)


def test_a_factory_that_never_returns_ends_with_its_limit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = Command("run", monkeypatch, capsys)  # which looks at it in a process
    Path("slow.py").write_text("import time\ndef make():\n    time.sleep(600)\n")
    before = time.monotonic()
    code, _, err = run("slow.py:make", "--timeout", "3s")
    assert code == 2
    assert time.monotonic() - before < 60
    assert "3 s" in err
    assert "--timeout" in err
