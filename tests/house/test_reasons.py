"""Every reason that a result may carry says where it belongs, in the table and in the docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from accelbench.core.devices import cards
from accelbench.core.plausible_values import SHARED_REASONS, known_reasons, reason_subject
from accelbench.core.vocabulary import Belongs

ROOT = Path(__file__).parents[2]

#: Who takes a reason, and at which place.
_TAKES = {"CaseError": 0, "Message": 0, "UnsupportedError": 0, "no": 0, "Refusal": 1, "Outcome": 1}
_TAKES |= {"failed": 0, "understood": 1, "in_words": 1, "engine_error": 1, "OutOfMemoryError": 2}


def given(tree: ast.AST) -> Iterator[str]:
    """The words that stand where a reason is taken."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in _TAKES:
            continue
        words = [*node.args[_TAKES[name] : _TAKES[name] + 1]]
        words += [one.value for one in node.keywords if one.arg == "reason"]
        for word in words:
            if isinstance(word, ast.Constant) and re.fullmatch("[a-z_]+", str(word.value)):
                yield str(word.value)


def test_reasons():
    # Every reason in the source has its place.
    found: set[str] = set()
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        found |= set(given(ast.parse(path.read_text(encoding="utf-8"))))
    assert len(found) > 50
    assert not found - set(known_reasons())
    # The docs have the table.
    text = (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")
    for where in Belongs:
        (line,) = re.findall(rf"^\| {where} \|(.*)\|$", text, flags=re.MULTILINE)
        told = set(re.findall("`([a-z_]+)`", line))
        assert told == {reason for reason, place in known_reasons().items() if place is where}
    told = [*SHARED_REASONS, *(reason for card in cards().values() for reason in card.reasons)]
    assert len(told) == len(set(told))
    # A reason that nobody knows is the cells.
    assert reason_subject("gremlins") is Belongs.CELL
    assert reason_subject("disk_full") is Belongs.MACHINE
    assert reason_subject("timeout") is Belongs.QUESTION
