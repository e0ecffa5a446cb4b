"""Sentences by their codes: each subject has one catalogue, a file of templates."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def catalogue(subject: str) -> dict[str, Any]:
    """Return the catalogue of a subject."""
    path = Path(__file__).with_name(f"{subject}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def phrase(code: str, /, **values: object) -> str:
    """Return the sentence of a code, such as "charts.panels-own-axes", with its values."""
    subject, _, name = code.partition(".")
    template: str = catalogue(subject)[name]
    return template.format(**values)
