"""Identities: hashes of canonical JSON, with a version.

Never hash a value that drifts between two runs on one machine, such as a frequency or a
temperature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

IDENTITY_VERSION = 2


_PLAIN = frozenset({str, int, float, bool, type(None)})


def non_default_values(value: Any) -> Any:
    """Return `to_plain` without values that equal a dataclass's default.

    Identities are made of this: adding a field with a default keeps every identity.
    """
    return to_plain(value, defaults=False)


def to_plain(value: Any, defaults: bool = True) -> Any:
    """Reduce dataclasses, enums, tuples and mappings to what JSON holds."""
    if type(value) in _PLAIN:  # nearly all of a result's hundreds of values
        return value
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: to_plain(getattr(value, f.name), defaults)
            for f in fields(value)
            if defaults or getattr(value, f.name) != _default(f)
        }
    if isinstance(value, Mapping):
        return {str(k): to_plain(v, defaults) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v, defaults) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(to_plain(v, defaults) for v in value)
    return value


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def canonical_json(value: Any) -> str:
    """Return JSON with one spelling per value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(
        to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def digest(value: Any, length: int = 16) -> str:
    """Return a short, stable hash of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
