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
    """Return the sentence of a code, such as "charts.panels-own-axes", with its values.

    Of two templates the first is for a `count` of 1.
    """
    subject, _, name = code.partition(".")
    template: str | list[str] = catalogue(subject)[name]
    if isinstance(template, list):
        template = template[values["count"] != 1]
    return template.format(**values)
