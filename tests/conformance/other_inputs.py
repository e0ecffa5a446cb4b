"""Inputs of each runtime with other values: what they change, outputs have to show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np


def other_numbers(inputs: Any) -> Any:
    """Scripted inputs with other values."""
    return dataclasses.replace(inputs, values=tuple(v + 1.0 for v in inputs.values))


def other_named(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs by name with other ids, pixels, sounds and noise, whoever's arrays; masks stay."""
    changed = dict(inputs)
    for name in {"input_ids", "pixel_values", "input_features", "sample"} & set(changed):
        value = changed[name]
        turned = value.flip(-1) if hasattr(value, "flip") else value[..., ::-1]
        turned = turned + (0 if name == "input_ids" else 1)
        changed[name] = np.ascontiguousarray(turned) if isinstance(turned, np.ndarray) else turned
    return changed


def other_bound(inputs: Any) -> Any:
    """OpenVINO's inputs with other ids or other pixels; masks stay."""
    first, *rest = inputs.arrays
    changed = np.ascontiguousarray(np.flip(first, -1)) + (first.dtype.kind == "f")
    return dataclasses.replace(inputs, arrays=(changed.astype(first.dtype), *rest))


def other_matrices(inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What ncnn was fed with, one larger: in matrices of its own, as a layer may work in place."""
    ncnn = import_module("ncnn")
    changed = [
        {name: matrix.numpy(batch_index=0) + np.float32(1) for name, matrix in fed.items()}
        for fed in inputs
    ]
    return [
        {
            name: ncnn.Mat(array, 0) if len(array) > 1 else ncnn.Mat(array[0]).clone()
            for name, array in fed.items()
        }
        for fed in changed
    ]
