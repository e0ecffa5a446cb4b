"""A plan file as it is written: YAML, TOML or JSON, by its suffix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.visible import in_quotes
from accelbench.exchange.plans.reading import SUFFIXES


def write_plan(file: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain values to a file that is not there yet.

    Raises:
        UsageError: its suffix is of no plan, or it exists.
        SurroundingsError: it cannot be written.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{in_quotes(str(file))} does not end as a plan file does.",
            "Use .yaml, .toml or .json.",
        )
    writers = {".json": _json, ".toml": _toml}
    text = writers.get(suffix, _yaml)(document)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        message = f"{in_quotes(str(file))} exists already."
        raise UsageError(message, "Name another file, or remove it.") from error
    except OSError as error:
        raise SurroundingsError(
            f"The plan {in_quotes(str(file))} cannot be written: {error.strerror or error}.",
            "Choose a folder that can be written.",
        ) from error


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _yaml(document: Mapping[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    return text


def _toml(document: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then lists of tables: two levels are all that a plan has."""
    plain, tables = list[str](), list[str]()
    for name, value in document.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_key(name)}]", *_lines(value)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for entry in value:
                tables += ["", f"[[{_key(name)}]]", *_lines(entry)]
        else:
            plain += _lines({name: value})
    return "\n".join([*plain, *tables]).strip() + "\n"


def _lines(table: Mapping[str, Any]) -> Sequence[str]:
    return [f"{_key(name)} = {_toml_value(value)}" for name, value in table.items()]


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _toml_value(value: Any) -> str:
    """As JSON has it, which TOML reads but for a character that only it wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
