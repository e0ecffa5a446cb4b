"""Code of an owner's in a repository: what tests of commits share."""

from __future__ import annotations

import subprocess
from pathlib import Path

from accelbench.catalog.code_models.models import model_of_code
from accelbench.catalog.code_models.words import code_word
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import ModelSpec
from accelbench.run.plan.request import Plan, Planned

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
