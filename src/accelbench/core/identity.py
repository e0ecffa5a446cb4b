"""Identity: canonical JSON, hashed, versioned.

Nothing that drifts between two runs on one machine (a frequency, bogomips, a
temperature) may ever be hashed here.
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


def said(value: Any) -> Any:
    """As `plain`, without what a dataclass holds by default.

    Identities are made of this: a field that is added later, with a default,
    leaves every identity as it was.
    """
    return plain(value, defaults=False)


def plain(value: Any, defaults: bool = True) -> Any:
    """Reduce dataclasses, enums, tuples and mappings to what JSON holds."""
    if type(value) in _PLAIN:  # of a result's hundreds of values nearly all are
        return value
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: plain(getattr(value, f.name), defaults)
            for f in fields(value)
            if defaults or getattr(value, f.name) != _default(f)
        }
    if isinstance(value, Mapping):
        return {str(k): plain(v, defaults) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, defaults) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v, defaults) for v in value)
    return value


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def canonical(value: Any) -> str:
    """One spelling per value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(
        plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def digest(value: Any, length: int = 16) -> str:
    """A short, stable hash of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:length]
