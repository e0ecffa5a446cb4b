"""No module imports itself by way of others, be it at the top or within a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def modules() -> dict[str, Path]:
    found = {}
    for path in (SOURCE / "accelbench").rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a file imports; what only type checkers see is none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.dump(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                within = f"{node.module}.{alias.name}"
                yield within if within in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


def test_there_is_no_import_circle():
    known = modules()
    graph = {
        name: {one for one in imported(path, known) if one in known} for name, path in known.items()
    }
    graph["accelbench"] = set()  # the names of the API are looked up when they are asked for
    assert circles({name: there - {name} for name, there in graph.items()}) == []
