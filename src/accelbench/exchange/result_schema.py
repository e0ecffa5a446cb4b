"""The JSON Schema of result files and JSON exports, generated from the registry.

`python -m accelbench.exchange.result_schema > docs/result-schema.json` publishes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.columns import BY_NAME, COLUMNS, Column, Kind
from accelbench.core.jsonc import loads

SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:accelbench:result:{SCHEMA_VERSION}"

_TYPES: dict[Kind, dict[str, Any]] = {
    "text": {"type": ["string", "null"]}, "int": {"type": ["integer", "null"]},
    "float": {"type": ["number", "null"]}, "bool": {"type": ["boolean", "null"]},
    "time": {"type": ["string", "null"], "format": "date-time"}, "json": {},
    "list": {"type": ["array", "null"], "items": {"type": "string"}},
    "floats": {"type": ["array", "null"], "items": {"type": "number"}},
    "map": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
}  # fmt: skip


def load_schema(
    document: str, words: Mapping[str, Any], columns: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a kind of document.

    In its template, "@name" is replaced by one of `words`, or as a property by those of `columns`.
    "@all" is replaced by the names of all properties next to it.
    """
    file = Path(__file__).parent / "schemas" / f"{document}.json"
    schema: dict[str, Any] = _fill(loads(file.read_text(encoding="utf-8")), words, columns)
    return schema


def _fill(node: Any, words: Mapping[str, Any], columns: Mapping[str, Iterable[str]]) -> Any:
    if isinstance(node, list):
        return [_fill(entry, words, columns) for entry in node]
    if isinstance(node, str):
        return words.get(node.removeprefix("@"), node) if node.startswith("@") else node
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key.startswith("@"):
            made |= {name: describe_column(BY_NAME[name]) for name in columns[key[1:]]}
        else:
            made[key] = _fill(value, words, columns)
    if made.get("required") == "@all":
        made["required"] = list(made["properties"])
    return made


def result_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document with results."""
    names = [column.name for column in COLUMNS]
    return load_schema("result", {"id": SCHEMA_ID, "columns": names}, {"columns": names})


def describe_column(column: Column) -> dict[str, Any]:
    """Return the JSON Schema of a column."""
    about = dict(_TYPES[column.kind])
    if column.words:
        about["enum"] = [*column.words, None]
    about |= _limits(column)
    about["description"] = f"{column.doc} ({column.unit})" if column.unit else column.doc
    return about


def _limits(column: Column) -> dict[str, Any]:
    if column.range is None:
        return {}
    within = column.range
    limits = {"exclusiveMinimum" if within.excludes_least else "minimum": within.least}
    if within.floor is not None:
        limits = {"minimum": within.floor}
    limits["maximum"] = within.most
    if column.kind == "floats":
        return {"items": {"type": "number", **limits}}
    return limits


def format_schema() -> str:
    """Return the published text of the schema."""
    return json.dumps(result_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_schema())
