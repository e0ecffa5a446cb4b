"""Code of an owner's in a repository: what tests of commits share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import ModelSpec
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import model_of_code
from accelbench.run.plan.request import Plan, Planned
from accelbench.run.process.other_interpreter import Checkout

BENCH = "from mylib import work\n\n\ndef step():\n    return work()\n\n\nstep.example_inputs = ()\n"


def git(folder: Path, *words: str) -> None:
    about = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *about, *words], cwd=folder, check=True, capture_output=True)


def looked_at(word: str) -> ModelSpec:
    code = code_word(word)
    assert code is not None
    return model_of_code(code)


def plan_of(model: ModelSpec) -> Plan:
    case = Case(model, Target("cpu", "python"), "fp32", Shapes(1))
    return Plan((Planned(case, None),))


def answer_of(model: ModelSpec, checkout: Checkout) -> str:
    """What it returns in a process of the arm."""
    code = model.code
    assert code is not None
    ask = (
        "import sys; from accelbench.models.code_models.loading import load;"
        "from accelbench.core.model import CodeKind, ModelCode;"
        "print(load(ModelCode(CodeKind.CALLABLE, *sys.argv[1:6], tuple(sys.argv[7:]),"
        " sys.argv[6])).subject())"
    )
    said = (code.module, code.attribute, code.path, code.folder, code.digest, code.made_by)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ask, *said, *code.sources],
        cwd=checkout.working, env={**os.environ, **checkout.variables},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()
