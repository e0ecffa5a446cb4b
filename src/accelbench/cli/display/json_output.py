"""JSON documents of commands: indented, or a line for each thing in them where they are long."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

#: More records than people read: each is written in a line, in an eighth of the time.
_MANY = 1000


def print_document(whole: Mapping[str, Any]) -> None:
    """Print it; lists of objects a line each. Indented throughout, it takes ten times as long."""
    parts = ",\n".join(f" {json.dumps(name)}: {_lines(value)}" for name, value in whole.items())
    sys.stdout.write(f"{{\n{parts}\n}}\n")


def print_json(content: Any) -> None:
    """One document on standard output, as `json_text` has it."""
    sys.stdout.write(json_text(content))


def json_text(content: Any) -> str:
    """A document as JSON, indented; of a list of more than a thousand each record is a line."""
    if not isinstance(content, dict) or not any(map(_is_long, content.values())):
        return json.dumps(content, indent=2, allow_nan=False) + "\n"
    entries = (f"  {json.dumps(key)}: {_indented(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(value) > _MANY


def _indented(value: Any) -> str:
    if _is_long(value):
        return _a_line_each(value, "  ", "  ")
    # No text of JSON has a line break within it.
    return json.dumps(value, indent=2, allow_nan=False).replace("\n", "\n  ")


def _lines(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return json.dumps(value, allow_nan=False)
    return _a_line_each(value, " ", " ")


def _a_line_each(records: Iterable[Any], margin: str, step: str) -> str:
    """A list whose bracket closes at a margin, its records a step further in."""
    encode = json.JSONEncoder(allow_nan=False).encode
    inner = ",\n".join(f"{margin}{step}{encode(record)}" for record in records)
    return f"[\n{inner}\n{margin}]"
