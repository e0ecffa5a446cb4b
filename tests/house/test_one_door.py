"""Processes are started in one place, where each is tied to the process that started it.

Looked for in the syntax of every source: a name that starts processes may not even be mentioned
elsewhere, so that it cannot be handed on. Annotations may name the classes. The user's own browser,
which `webbrowser` opens, is no helper of ours and stays open.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: `make check` and the wheels know no other sources; examples are what others start from.
FOLDERS = ("src", "examples", "plugins")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
DOOR = {
    ROOT / "src/accelbench/core/processes.py",
    ROOT / "src/accelbench/core/child_launcher.py",  # the program that ties
}
#: Of each module, what starts a process; a star is all that begins so.
STARTERS = {
    "subprocess": ("Popen", "run", "call", "check_*", "get*"),
    "os": ("fork*", "spawn*", "posix_spawn*", "exec*", "system", "popen", "startfile"),
    "pty": ("fork", "spawn"), "_posixsubprocess": ("*",), "asyncio": ("create_subprocess_*",),
    "multiprocessing": ("Process", "Pool", "Manager", "get_context"),
    "torch.multiprocessing": ("Process", "Pool", "Manager", "get_context", "spawn", "start_*"),
    "concurrent.futures": ("ProcessPoolExecutor",), "psutil": ("Popen",),
}  # fmt: skip


def starts(dotted: str) -> bool:
    """Whether a dotted name is one that starts processes."""
    for module, names in STARTERS.items():
        for name in names:
            whole = f"{module}.{name}"
            if dotted == whole or (name.endswith("*") and dotted.startswith(whole[:-1])):
                return True
    return False


def without_annotations(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that is executed: what annotations say is not."""
    for field, value in ast.iter_fields(tree):
        if field in {"annotation", "returns"}:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield node
                yield from without_annotations(node)


def imported(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for, wherever in the file it is imported."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                bound = one.asname or one.name.partition(".")[0]
                names[bound] = one.name if one.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                names[one.asname or one.name] = f"{node.module}.{one.name}"
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """What an expression such as `sub.run` stands for, where it begins with an import."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and (above := dotted(node.value, names)) is not None:
        return f"{above}.{node.attr}"
    return None


def started_in(text: str) -> list[str]:
    """Where a source mentions something that starts a process."""
    tree = ast.parse(text)
    names = imported(tree)
    return [
        f"{node.lineno}: {found}"
        for node in without_annotations(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and (found := dotted(node, names)) is not None
        and starts(found)
    ]


def test_one_place_starts_processes():
    # Only one place starts processes.
    found = {
        str(path.relative_to(ROOT)): places
        for path in SOURCES
        if path not in DOOR and (places := started_in(path.read_text(encoding="utf-8")))
    }
    assert not found, "start it by accelbench.core.processes, so that it dies with its parent"
    assert all(started_in(path.read_text(encoding="utf-8")) for path in DOOR)
    # Naming the class in an annotation starts nothing.
    assert not started_in(
        "import subprocess\n"
        "def f(one: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:\n"
        "    try:\n        one.wait(1)\n"
        "    except subprocess.TimeoutExpired:\n        pass\n"
        "    return one\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['ls'])",
        "import subprocess as s\ns.Popen(['ls'])",
        "from subprocess import check_output as ask\nask(['ls'])",
        "def f():\n    from os import fork\n    fork()",
        "import os\nstart = os.posix_spawnp",
        "import os.path\nos.execv('ls', ['ls'])",
        "import functools, subprocess\nfunctools.partial(subprocess.call)",
        "import asyncio\nasyncio.create_subprocess_exec('ls')",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
        "from multiprocessing import Pool\nPool()",
    ],
)
def test_the_check_itself_sees_each_way(text):
    assert started_in(text)
