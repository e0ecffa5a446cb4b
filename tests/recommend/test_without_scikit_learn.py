"""Choosing in an environment that has no scikit-learn: the same questions, the same answers.

The environment is a real one: a Python of its own, with links to everything that is installed
here but what learns, what makes tables of data, and what measures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from choosing_world import result, stored

import accelbench

#: How what is installed for them is called, in lower case.
ABSENT = ("accelbench_ncnn", "sklearn", "scikit_learn", "scikit-learn", "pandas", "scipy", "torch")
MODULES = ("sklearn", "pandas", "scipy", "torch")

ASKED = """
import json, sys
from accelbench import HardwareSelector

assert not {"duckdb", "numpy", "pyarrow", "sklearn"} & sys.modules.keys()
chosen = HardwareSelector("results.duckdb")
ask = chosen.select_hardware
print(json.dumps({
    "measured": ask("embedding", "model-1", 1),
    "another batch": ask("embedding", "model-1", 4),
    "rule": ask("vision", "unseen", 1),
    "nothing": HardwareSelector("empty").select_hardware(
        "text_generation", "gpt2", 1, available_hardware=["cpu", "cuda"]),
    "limits": chosen.best_under({"max_latency_ms": 50, "memory_mb": 200}, model_name="model-1"),
    "every model": chosen.select_for_all_models(),
    "ranks": chosen.rank_models("embedding", ["cpu"]),
    "map": chosen.create_hardware_selection_map()["model_families"],
}, allow_nan=False))
"""


@dataclass(frozen=True)
class Python:
    """An interpreter, started where the stored results are, on the package under test."""

    program: Path
    folder: Path
    source: Path

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """How it ended, and what it said."""
        environment = {k: v for k, v in os.environ.items() if k[:6] not in ("PYTHON", "ACCELB")}
        done = subprocess.run(
            [str(self.program), *words],
            cwd=self.folder,
            env={**environment, "PYTHONPATH": str(self.source), "PYTHONNOUSERSITE": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        # DuckDB's bindings list what lives at the end of the process, by its address.
        said = [
            line
            for line in done.stderr.splitlines(keepends=True)
            if not line.startswith(("nanobind: leaked ", " - leaked ", " - ... skipped"))
        ]
        return done.returncode, done.stdout, "".join(said)

    def finds(self, *modules: str) -> list[str]:
        """Those that can be imported."""
        code = (
            "import importlib.util, sys\n"
            "print(*(m for m in sys.argv[1:] if importlib.util.find_spec(m) is not None))"
        )
        ended, said, complaint = self("-c", code, *modules)
        assert ended == 0, complaint
        return said.split()


def installed() -> dict[str, Path]:
    """What can be imported here from installed packages, and what is written about them."""
    places = [Path(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    return {
        entry.name: entry.resolve()
        for place in reversed(places)  # what comes first on the path is what is imported
        for entry in place.iterdir()
        # A file that leads to other places would bring along all that is there.
        if entry.suffix != ".pth" and entry.name not in ("accelbench", "__pycache__")
    }


def bare(place: Path) -> Path:
    """Makes the environment; its Python."""
    venv.create(place, symlinks=os.name != "nt", with_pip=False)
    at = {"base": str(place), "platbase": str(place)}
    packages = Path(sysconfig.get_path("purelib", "venv", at))
    for name, path in installed().items():
        if not name.lower().startswith(ABSENT):
            (packages / name).symlink_to(path)
    return Path(sysconfig.get_path("scripts", "venv", at), "python" + Path(sys.executable).suffix)


@dataclass(frozen=True)
class Both:
    """The same question, asked without scikit-learn and in the environment that is here."""

    without: Python
    here: Python

    def __call__(self, *words: str) -> tuple[int, str]:
        """How both ended, and what both said."""
        answers = [python(*words) for python in (self.without, self.here)]
        assert answers[0] == answers[1]
        ended, said, complaint = answers[0]
        assert ended in (0, 4), complaint
        return ended, said

    def recommend(self, *words: str) -> tuple[int, str]:
        return self("-m", "accelbench", "recommend", *words, "--db", "results.duckdb")

    def answer(self, *words: str) -> Any:
        (one,) = json.loads(self.recommend(*words, "--json")[1])["recommendations"]
        return one


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    place = tmp_path_factory.mktemp("without")
    # By a link of its own: beside the package there may be all others, or none.
    (place / "source").mkdir()
    (place / "source" / "accelbench").symlink_to(Path(accelbench.__file__).resolve().parent)
    programs = (bare(place / "environment"), Path(sys.executable))
    pythons = []
    for name, program in zip(("bare", "here"), programs, strict=True):
        (place / name / "empty").mkdir(parents=True)
        database(place / name / "results.duckdb")
        pythons.append(Python(program, place / name, place / "source"))
    made = Both(*pythons)
    assert made.without.finds(*MODULES, "duckdb", "accelbench") == ["duckdb", "accelbench"]
    return made


def database(path: Path) -> Path:
    """Ten models, measured at two batches on two platforms, and one that is in the catalogue."""
    ten = [
        result(
            model=f"model-{n}", hardware=hardware, flops=1e6 * n, parameters=1000 * n,
            latency_p50_ms=(1.0 + n) * share * batch**0.5, batch_size=batch,
        )
        for n in range(1, 11)
        for hardware, share in (("cpu", 3.0), ("cuda", 1.0))
        for batch in (1, 16)
    ]  # fmt: skip
    return stored(path, result(), result(batch_size=16, latency_p50_ms=64.0), *ten)


def test_there_is_no_scikit_learn_there(both):
    ended, said, complaint = both.without("-c", "import sklearn")
    assert (ended, said) == (1, "")
    assert "No module named 'sklearn'" in complaint


def test_every_rung_answers_from_python(both):
    ended, said = both("-c", ASKED)
    answers = json.loads(said)
    assert ended == 0
    for basis in ("measured", "rule"):
        scores = answers[basis]["all_scores"]
        assert scores[answers[basis]["primary_recommendation"]]["basis"] == basis
    assert answers["nothing"]["primary_recommendation"] == "cuda"
    assert answers["limits"]["best"]["hardware"] == "cuda"
    assert set(answers["every model"]) == {"bert-tiny", *(f"model-{n}" for n in range(1, 11))}
    assert answers["ranks"][0]["model"] == "model-1"
    assert "embedding" in answers["map"]


def test_the_command_answers_and_keeps_limits(both):
    scores = both.answer("bert-tiny")["all_scores"]
    assert (scores["cpu"]["basis"], scores["cpu"]["predictions"]["latency"]) == ("measured", 8.0)
    found = both.answer("model-1", "--max-latency-ms", "50", "--memory-mb", "200")
    assert (found["best"]["hardware"], found["best"]["batch_size"]) == ("cuda", 16)
    assert len(found["fits"]) > 1
