"""How the page and the worker talk: a line of JSON and the arrays it speaks of, in one message.

    4 bytes: length of the JSON │ JSON, padded to 8 │ array │ padding │ array │ …

Arrays begin at multiples of eight, so that the page can look at them where they lie; the JSON
names their types and shapes under "arrays".
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]

_ALIGNED = 8
_LONGEST = 2**31  # side of an array: no page holds more
#: What both sides know; the page's list is in wire.mjs.
DTYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"})


def _padding(length: int) -> bytes:
    return b"\0" * (-length % _ALIGNED)


def packed(body: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """A message as bytes.

    Raises:
        ValueError: the page knows no such type or number.
    """
    named = {name: _plain(name, array) for name, array in (arrays or {}).items()}
    described = [
        {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in named.items()
    ]
    head = json.dumps({**body, "arrays": described}, allow_nan=False).encode()
    # Arrays as they are: a model's inputs are copied once.
    parts: list[Any] = [struct.pack("<I", len(head)), head, _padding(4 + len(head))]
    for array in named.values():
        parts += [array, _padding(array.nbytes)]
    return b"".join(parts)


def _plain(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In one piece and with the low byte first; a scalar stays one."""
    if array.dtype.name not in DTYPES:
        raise ValueError(f"a page cannot be given {name}: it is of {array.dtype}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """A message's body and its arrays, which lie in `data`.

    Raises:
        ValueError: it is no such message.
    """
    if len(data) < 4:
        raise ValueError("a message of the page ends before its length")
    (length,) = struct.unpack_from("<I", data)
    at = 4 + length
    if len(data) < at:
        raise ValueError("a message of the page ends before its words")
    body = json.loads(data[4:at])
    described = body.pop("arrays", []) if isinstance(body, dict) else None
    if not isinstance(described, list):
        raise ValueError("a message of the page has no words")
    arrays = {}
    for entry in described:
        name, dtype, shape = _described(entry)
        at += -at % _ALIGNED
        count = math.prod(shape)
        if at + count * dtype.itemsize > len(data):
            raise ValueError(f"a message of the page ends before {name} does")
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return body, arrays


def _described(entry: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    try:
        name, dtype, shape = str(entry["name"]), entry["dtype"], tuple(entry["shape"])
        # A size of −1 would stand for all that is left.
        known = dtype in DTYPES and all(type(s) is int and 0 <= s < _LONGEST for s in shape)
    except (TypeError, KeyError) as error:
        raise ValueError("a message of the page describes an array badly") from error
    if not known:
        raise ValueError(f"a message of the page has {name} of {dtype} and shape {shape}")
    return name, np.dtype(dtype), shape
