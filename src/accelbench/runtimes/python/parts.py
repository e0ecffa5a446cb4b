"""What a value is made of where it is no plain array itself: sparse, masked, with fields."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

#: How a sparse tensor keeps what it holds, by its layout.
_OF_SPARSE = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


@dataclasses.dataclass(frozen=True)
class CompareInstead:
    """Another value that says all that a value holds."""

    value: Any


def parts_of(value: Any) -> Mapping[str, Any] | CompareInstead | None:
    """What is compared in a value's place, its parts by name; None where that is itself."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_tensor(torch, value)
    if isinstance(value, np.ma.MaskedArray):
        # What lies under a mask is no part of it.
        return {"values": value.filled(0), "mask": np.ma.getmaskarray(value)}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        kept = {**getattr(value, "__dict__", {})}
        return {**{name: getattr(value, name, None) for name in fields}, **kept}
    return None


def _of_tensor(torch: Any, value: Any) -> Mapping[str, Any] | CompareInstead | None:
    if getattr(value, "is_nested", False):
        return CompareInstead(list(value.detach().unbind()))
    layout = str(value.layout).removeprefix("torch.")
    if layout in _OF_SPARSE:
        held = value.detach()
        held = held.coalesce() if layout == "sparse_coo" else held
        shape = np.asarray(tuple(held.shape), np.int64)
        return {"shape": shape, **{name: getattr(held, name)() for name in _OF_SPARSE[layout]}}
    if value.layout is not torch.strided:  # that of oneDNN
        return CompareInstead(value.detach().to_dense())
    return CompareInstead(value.detach().dequantize()) if value.is_quantized else None


def _of_array(value: Any) -> Mapping[str, Any] | CompareInstead | None:
    kind = value.dtype.kind
    if value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if kind in "mM":
        return CompareInstead(np.ascontiguousarray(value).view(np.int64))
    if kind in "SU":
        shape = np.asarray(value.shape, np.int64)
        return {"shape": shape, "text": np.ascontiguousarray(value).tobytes()}
    if kind == "O":
        return CompareInstead(value.ravel().tolist())
    return None
