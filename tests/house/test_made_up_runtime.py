"""A runtime of another package is known everywhere by its card: nothing else has to name it."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.benchmark import Printed
from accelbench.core import devices, plausible_values, plugins
from accelbench.core.model import FileFormat
from accelbench.core.plausible_values import reason_subject
from accelbench.core.vocabulary import Belongs
from accelbench.engines.shared.names import known_runtimes, runtime_named
from accelbench.hardware.common import colour_of
from accelbench.hardware.environment import describe_environment
from accelbench.hardware.installing import installed_extras
from accelbench.judge.versions import changes, engine_version
from accelbench.models.file_models import kinds
from accelbench.present.charts.by_batch import way_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "accelbench"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULE = '''
from dataclasses import replace

from accelbench.core.vocabulary import Belongs
from accelbench.engines.scripted import ScriptedRuntime


class GizmoRuntime(ScriptedRuntime):
    """Follows the script, under a card of its own."""

    info = replace(
        ScriptedRuntime.info,
        name="gizmo",
        title="Gizmo Engine",
        short="gz",
        aliases=("gzm",),
        engine_packages=("gizmo-engine",),
        dashes=(8, 1),
        reasons={"gizmo_jammed": Belongs.MACHINE},
    )
'''
ENTRY = "[accelbench.engines]\ngizmo = accelbench_gizmo:GizmoRuntime\n"
ASKED = (
    *("bert-tiny", "--framework", "gzm", "--hardware", "cpu", "--batch-sizes", "1"),
    *("--iterations", "3", "--warmup", "1"),
)
#: What is asked once for the whole process.
REMEMBERED = (
    devices.cards,
    devices.card_of,
    devices.engine_packages,
    plugins.own_runtimes,
    plausible_values.known_reasons,
)


def forget() -> None:
    for one in REMEMBERED:
        one.cache_clear()


@pytest.fixture
def gizmo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its package, as an installer would leave it."""
    site = tmp_path / "site"
    about = site / "gizmo_engine-4.5.6.dist-info"
    about.mkdir(parents=True)
    (site / "accelbench_gizmo.py").write_text(MODULE, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gizmo-engine\nVersion: 4.5.6\n")
    (about / "entry_points.txt").write_text(ENTRY)
    monkeypatch.syspath_prepend(str(site))
    forget()
    yield site
    sys.modules.pop("accelbench_gizmo", None)
    forget()


def test_a_runtime_is_named(gizmo):
    # It is named as any other.
    assert "gizmo" in known_runtimes()
    assert runtime_named("gzm") == runtime_named("GIZMO") == "gizmo"
    assert "gizmo" not in plugins.own_runtimes()
    # Its version is recorded and told.
    there = describe_environment(gizmo)["packages"]
    assert there["gizmo-engine"] == "4.5.6"
    row = {"runtime": "gizmo", "conditions": {"packages": there}}
    assert engine_version(row) == "gizmo-engine 4.5.6"
    before = (("packages.abacus", "1"), ("packages.gizmo-engine", "4"))
    after = (("packages.abacus", "2"), ("packages.gizmo-engine", "5"))
    assert changes(before, after) == ["gizmo-engine 4 → 5", "abacus 1 → 2"]
    # A card that names no package has the one it is read by recorded.
    bare = MODULE.replace('engine_packages=("gizmo-engine",)', 'package="gizmo_engine"')
    (gizmo / "accelbench_gizmo.py").write_text(bare, encoding="utf-8")
    assert describe_environment(gizmo)["packages"]["gizmo-engine"] == "4.5.6"
    # Charts give its lines the dashes of its card and its platforms colour.
    ways = way_of(
        [
            {"line": "one", "hardware": "cuda", "runtime": "gizmo"},
            {"line": "two", "hardware": "cpu", "runtime": "pytorch"},
        ]
    )
    assert ways["strokeDash"]["scale"]["range"] == [[8, 1], [1, 0]]
    assert ways["color"]["scale"]["range"] == [colour_of("cuda"), colour_of("cpu")]

    # What the api prints has its title.
    class Asked:
        case_id = "a"
        target = type("Target", (), {"runtime": "gizmo"})
        shapes = type("Shapes", (), {"batch": 1})

    said = io.StringIO()
    absent = type("Place", (), {"hardware": "cpu", "reason": "none"})
    Printed(said, {"a": "bert-tiny"}, {"a": absent}).case_started(Asked(), 0, 1, 1)  # type: ignore[arg-type, dict-item]
    assert "Gizmo Engine Benchmark: bert-tiny\n" in said.getvalue()
    assert reason_subject("gizmo_jammed") is Belongs.MACHINE
    forget()


def test_it_runs_by_another_name_and_is_in_every_table(gizmo):
    (gizmo / "script.json").write_text(json.dumps({"step_ns": 1_000_000}))
    work = gizmo / "work"
    work.mkdir()
    path = os.pathsep.join(filter(None, (str(gizmo), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", "run", *ASKED],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path, "ACCELBENCH_SCRIPT": str(gizmo / "script.json")},
        cwd=work,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gz/cpu" in done.stdout
    (journal,) = work.rglob("*.jsonl")
    assert '"gizmo-engine":"4.5.6"' in journal.read_text(encoding="utf-8")


# -- and nobody keeps a list beside the cards --


#: Names that are runtimes' alone, and no platforms'.
ALONE = frozenset(("pytorch", "onnxruntime", "jax", "browser", "scripted"))
#: What other projects call engines is said where their files are read.
OTHERS_WORDS = ("exchange/imports/", "engines/")


def listed(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Where a literal has the names of several runtimes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            parts: list[Any] = [*node.keys]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = node.elts
        else:
            continue
        words = {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
        if len(words & ALONE) > 1:
            yield node.lineno, words & ALONE


def test_no_room_has_a_list_of_runtimes():
    found = {
        f"{path.relative_to(SOURCE)}:{line}": names
        for path in SOURCE.rglob("*.py")
        if not path.relative_to(SOURCE).as_posix().startswith(OTHERS_WORDS)
        for line, names in listed(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


#: Engines that are packages of their own, by the group's entry points.
OF_PLUGINS = {
    name
    for path in ROOT.glob("plugins/*/pyproject.toml")
    for name in tomllib.loads(path.read_text(encoding="utf-8"))["project"]["entry-points"][
        "accelbench.engines"
    ]
}


def test_runtimes_of_our_own():
    # Our own runtimes are what the project registers.
    named = PROJECT["entry-points"]["accelbench.engines"]
    assert sorted(named) == sorted(plugins.own_runtimes())
    assert set(named) <= set(devices.cards()) <= {*named, *OF_PLUGINS}
    # Plugins of this repository have extras of their names.
    assert set(installed_extras().engine_packages) == OF_PLUGINS
    assert OF_PLUGINS & set(devices.cards()) <= set(FileFormat.all_formats())
    assert set(kinds._OF_PLUGINS.values()) == OF_PLUGINS
    # The dashes of our own tell them apart.
    cards = devices.cards()
    drawn = [card.dashes for card in cards.values() if card.dashes]
    assert len(drawn) == len(set(drawn)) == len(cards) - 1  # one is for tests
    # Every engine of our own comes with what the tests need.
    asked = " ".join(PROJECT["optional-dependencies"]["dev"])
    brought = {
        name for part in re.findall(r"accelbench\[([^\]]+)\]", asked) for name in part.split(",")
    }
    extras = {card.extra for name, card in devices.cards().items() if name not in OF_PLUGINS}
    assert extras - {""} <= brought
