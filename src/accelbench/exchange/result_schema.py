"""The JSON Schema of result files and JSON exports, generated from the registry.

`python -m accelbench.exchange.result_schema > docs/result-schema.json` publishes it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from accelbench.core.columns import COLUMNS, Column, Kind

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
_SAMPLES = {
    "description": "raw samples of each phase in nanoseconds, in the order they were taken",
    "type": "object",
    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
}
_SAMPLING = {
    "description": "of each phase how its samples were timed, and how many steps each covers",
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "timing": {"type": "string"},
            "steps": {"type": "array", "items": {"type": "integer"}},
        },
    },
}


def result_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a document with results."""
    properties = {column.name: property_of(column) for column in COLUMNS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Results of accelbench",
        "type": "object",
        "required": ["schema", "results"],
        "properties": {
            "schema": {"const": SCHEMA_ID},
            "run": {"description": "the run as it started", "type": "object"},
            "runs": {
                "description": "of an export: whose machine each run was on, and which commit",
                "type": "object",
                "additionalProperties": {"type": "object"},
            },
            "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
        },
        "$defs": {
            "result": {
                "type": "object",
                "required": list(properties),
                "properties": {**properties, "samples": _SAMPLES, "sampling": _SAMPLING},
                "additionalProperties": False,
            }
        },
    }


def property_of(column: Column) -> dict[str, Any]:
    """Return a column as JSON Schema."""
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
    limits = {"exclusiveMinimum" if within.above else "minimum": within.least}
    if within.floor is not None:
        limits = {"minimum": within.floor}
    limits["maximum"] = within.most
    if column.kind == "floats":
        return {"items": {"type": "number", **limits}}
    return limits


def text() -> str:
    """Return the schema as it is published."""
    return json.dumps(result_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
