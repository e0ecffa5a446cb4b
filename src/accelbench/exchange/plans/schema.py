"""The JSON Schema of plan files, made of their keys, for editors to complete and check by."""

from __future__ import annotations

from typing import Any

from accelbench.exchange.plans.keys import PlanKey, PlanKeys, PlanSection

#: A word may look like a number, as seconds do.
_TYPES: dict[str, Any] = {"text": ["string", "number"], "number": "integer", "truth": "boolean"}


def schema_of(keys: PlanKeys) -> dict[str, Any]:
    """The schema, by the keys."""
    matrix = {key.name: _property(key, listed=True) for key in keys.of(PlanSection.MATRIX)}
    models = {key.name: key for key in keys.of(PlanSection.SELECTION)}["models"]
    columns = {
        alias: {**_property(key, listed=True), "description": f"The same as {key.name}."}
        for key in (*keys.of(PlanSection.MATRIX), models)
        for alias in key.aliases
    }
    matrix_columns = {name: value for name, value in columns.items() if name not in models.aliases}
    entry = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {"models": _property(models, listed=True), **columns, **matrix},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan of accelbench",
        "description": "What `accelbench run plan.yaml` measures, and how.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string"},
            "name": {"type": "string", "description": "What the plan is called."},
            "description": {"type": "string", "description": "What it is for."},
            **{
                key.name: _property(key, listed=key.several)
                for key in keys.of(PlanSection.SELECTION)
            },
            "matrix": {
                "description": "Of each key its values: every combination is measured.",
                "type": "object",
                "additionalProperties": False,
                "properties": {**matrix, **matrix_columns},
            },
            "include": {
                "description": "Each entry is added to the combinations that have its values of"
                " the matrix; where none has, it is a combination of its own.",
                "type": "array",
                "items": entry,
            },
            "exclude": {
                "description": "Combinations that have all values of an entry are left out.",
                "type": "array",
                "items": entry,
            },
            "run": {
                "description": "What holds for the whole run.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    key.name: _property(key, listed=False) for key in keys.of(PlanSection.RUN)
                },
            },
        },
    }


def _property(key: PlanKey, listed: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"type": _TYPES[key.kind]}
    if key.kind == "number":
        if key.least is not None:
            value["minimum"] = key.least
        if key.most is not None:
            value["maximum"] = key.most
    about = {"description": key.help} if key.help else {}
    if not listed:
        return {**value, **about}
    several = {"type": "array", "items": value, "minItems": 1}
    return {"anyOf": [value, several], **about}
