"""Sentences by their codes: each is in its catalogue, is used, and gets the values it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from accelbench.present.texts import catalogue, phrase

SOURCES = Path(__file__).parents[2] / "src" / "accelbench"
CATALOGUES = SOURCES / "present" / "texts"
SUBJECTS = sorted(file.stem for file in CATALOGUES.glob("*.toml"))
#: Tables of labels, not of templates.
LABELS = {"chart_labels", "column_labels", "explore_labels", "question_forms"}


def calls() -> Iterator[tuple[str, set[str], str]]:
    """Every code that the program names, with the names of its values and its place."""
    for file in sorted(SOURCES.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "phrase(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "phrase":
                code = ast.literal_eval(node.args[0])
                values = {str(keyword.arg) for keyword in node.keywords}
                yield code, values, f"{file.relative_to(SOURCES)}:{node.lineno}"


def templates(entry: str | list[str]) -> list[str]:
    """The template of a code, or one for a count of 1 and one for others."""
    return [entry] if isinstance(entry, str) else entry


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_codes_and_templates():
    # Every code is in its catalogue and gets the values that its template names.
    for code, values, place in calls():
        subject, _, name = code.partition(".")
        assert name in catalogue(subject), (code, place)
        for template in templates(catalogue(subject)[name]):
            assert fields(template) == values, (code, place)
    # A code that is not there is an error.
    assert phrase("charts.own-axes") == "Panels have axes of their own."
    with pytest.raises(KeyError):
        phrase("charts.no-such-sentence")


@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name not in LABELS])
def test_every_template_is_used_and_there_is_no_second_one_of_its_text(subject):
    used = {code for code, _, _ in calls()}
    assert {f"{subject}.{name}" for name in catalogue(subject)} <= used
    every = [text for entry in catalogue(subject).values() for text in templates(entry)]
    assert len(set(every)) == len(every)
