"""Every model of the catalogue, from `catalogue.jsonc`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.core.model import ModelSpec
from accelbench.core.serial import model_from_json

_FILE = Path(__file__).with_name("catalogue.jsonc")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
#: Fields that another size of a model does not share with it.
_UNSHARED: dict[str, Any] = {"aliases": (), "hub_ids": (), "small_variant": None, "sets": ()}


def _read_models() -> tuple[ModelSpec, ...]:
    entries: dict[str, Any] = json.loads(_COMMENT.sub("", _FILE.read_text(encoding="utf-8")))
    for name, entry in entries.items():
        if (base := entry.pop("size_of", None)) is not None:
            entries[name] = _merge({**entries[base], **_UNSHARED}, entry)
    return tuple(_read_model(name, entry) for name, entry in entries.items())


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merge(base[key], value) if both else value
    return merged


def _read_model(name: str, entry: Mapping[str, Any]) -> ModelSpec:
    fields = {"id": name, **entry}
    if "generation" in fields:
        fields["generation"] = {"inputs": fields["inputs"], **fields["generation"]}
    return model_from_json(fields)


MODELS = _read_models()
