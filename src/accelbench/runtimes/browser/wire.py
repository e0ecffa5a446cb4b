"""How the page and the worker talk: a line of JSON and the arrays it speaks of, in one message.

    4 bytes: length of the JSON │ JSON, padded to 8 │ array │ padding │ array │ …

Arrays begin at multiples of eight, so that the page can look at them where they lie; the JSON
names their types and shapes under "arrays".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]

_ALIGNED = 8


def _padding(length: int) -> bytes:
    return b"\0" * (-length % _ALIGNED)


def packed(body: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """A message as bytes."""
    named = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    described = [
        {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in named.items()
    ]
    head = json.dumps({**body, "arrays": described}).encode()
    parts = [struct.pack("<I", len(head)), head, _padding(4 + len(head))]
    for array in named.values():
        parts += [array.tobytes(), _padding(array.nbytes)]
    return b"".join(parts)


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """A message's body and its arrays, which lie in `data`.

    Raises:
        ValueError: it is no such message.
    """
    if len(data) < 4:
        raise ValueError("a message of the page ends before its length")
    (length,) = struct.unpack_from("<I", data)
    body = json.loads(data[4 : 4 + length])
    at = 4 + length
    arrays = {}
    for one in body.pop("arrays", ()):
        at += -at % _ALIGNED
        dtype, shape = np.dtype(one["dtype"]), tuple(one["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        arrays[one["name"]] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return body, arrays
