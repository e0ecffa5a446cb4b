"""Looking at the program must stay cheap: nothing heavy is imported before there is work for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from accelbench.cli.main import COMMANDS

PACKAGE = Path(__file__).parents[2] / "src" / "accelbench"

#: What executes models: seconds to import, and never in the process that conducts a run.
ENGINES = frozenset(
    {"torch", "transformers", "jax", "onnx", "onnxruntime", "openvino", "keras", "ray"}
)
#: From 30 ms (duckdb) to a second (pandas with altair) each.
HEAVY = ENGINES | {
    *("pandas", "polars", "duckdb", "pyarrow", "numpy", "scipy", "sklearn", "altair", "vl_convert"),
    "jinja2",
}
#: Help is written without it; tables and the live bar import it when they are drawn.
RENDERING = frozenset({"rich"})

ASK_FOR_HELP = """
import json, sys
from accelbench.cli.main import main
sys.argv = ["accelbench", *{words!r}]
try:
    main()
except SystemExit as end:
    code = end.code or 0
sys.stderr.write(json.dumps([code, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""

IMPORT = """
import importlib, json, sys
for name in {names!r}:
    importlib.import_module(name)
sys.stderr.write(json.dumps([0, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""


def imported_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded once `code` has run."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    exit_code, names = json.loads(done.stderr.splitlines()[-1])
    assert exit_code == 0, done.stdout
    return set(names)


def modules_of(room: str) -> list[str]:
    """Every module of a room, by dotted name."""
    files = sorted((PACKAGE / room).rglob("*.py"))
    dotted = [".".join(f.relative_to(PACKAGE.parent).with_suffix("").parts) for f in files]
    return [name.removesuffix(".__init__") for name in dotted if not name.endswith("__main__")]


def test_imports():
    assert "numpy" in imported_by(IMPORT.format(names=["numpy"])) & HEAVY
    assert not imported_by(IMPORT.format(names=["accelbench"])) & (HEAVY | RENDERING | {"typer"})
    # pytest loads it in every run of whoever has accelbench installed, whatever is tested.
    plugin = "accelbench.pytest_plugin.plugin"
    code = IMPORT.replace('name.split(".")[0] for name', "name for name")
    ours = {name for name in imported_by(code.format(names=[plugin])) if "accelbench" in name}
    assert ours == {"accelbench", "accelbench.pytest_plugin", plugin}
    loaded = imported_by(ASK_FOR_HELP.format(words=["--help"]))
    assert not loaded & (HEAVY | RENDERING)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy(command):
    loaded = imported_by(ASK_FOR_HELP.format(words=[command, "--help"]))
    assert not loaded & (HEAVY | RENDERING)


@pytest.mark.parametrize("command", ["run", "fleet"])
def test_the_help_of_a_command_imports_few_modules_of_ours(command):
    code = ASK_FOR_HELP.replace('name.split(".")[0]', "name").format(words=[command, "--help"])
    ours = [name for name in imported_by(code) if name.startswith("accelbench.")]
    assert len(ours) <= 30


@pytest.mark.parametrize("room", ["core", "hardware", "cli"])
def test_the_rooms_that_every_command_needs_import_nothing_heavy(room):
    assert not imported_by(IMPORT.format(names=modules_of(room))) & HEAVY


@pytest.mark.parametrize("room", ["store", "exchange", "measure", "run", "api"])
def test_conducting_a_run_imports_no_engine(room):
    assert not imported_by(IMPORT.format(names=modules_of(room))) & ENGINES
