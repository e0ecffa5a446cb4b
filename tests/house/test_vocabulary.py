"""Each word of `docs/vocabulary.md` has its module, and each class a name of its own."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "accelbench"
#: Names that two modules share: of one protocol in two engines, or not told apart yet. The list may
#: only become shorter.
SHARED = {
    *("Denoise", "Forward", "Opened", "Procedure", "Train"),  # PyTorch's and JAX's
    *("Profile",),  # an engine's own, and what all of them become
    *("Cache", "Check", "Choice", "Drift", "Files", "Folder", "Line", "Outcome"),
    *("Programs", "Request", "Rule", "Rules", "Run", "Table", "Verdict"),
}


def classes() -> dict[str, list[str]]:
    """Each public class with the modules that define it."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(SOURCES)))
    return modules


def test_the_vocabulary():
    # A class has a name of its own.
    several = {name for name, modules in classes().items() if len(modules) > 1}
    assert several - SHARED == set()
    assert SHARED - several == set(), "a name that is shared no more leaves the list"
    # Each word has the module and the class that the page names.
    page = (ROOT / "docs" / "vocabulary.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    modules = classes()
    named = 0
    for row in rows:
        paths = re.findall(r"`([\w/]+\.py)`", row[3])
        for path in paths:
            assert (SOURCES / path).exists(), path
        for name in re.findall(r"`([A-Z]\w+)`", row[3]):
            assert set(modules.get(name, ())) & set(paths), f"{name} is not in {paths}"
            named += 1
    assert named > 50
