"""Inputs like an example: their numbers differ, their types, shapes and ranges do not.

A function with an example of its own is always called with the same values. Other values show
whether it computes its answers or keeps them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

#: Floats become smaller by these shares, so that they stay within [0, 1] or [-1, 1]. The least is
#: twice what bf16 rounds by.
_LESS = 2**-7, 2**-6


def make_similar(example: Any, seed: int) -> Any:
    """Return an example with other numbers; itself if it has none that can be changed.

    Floats change by about a hundredth. The elements of an integer array change their places, unless
    they are sorted: sorted ones may be offsets. Text, other integers and objects stay.
    """
    return _changed(example, np.random.default_rng(seed))


def _changed(value: Any, draw: np.random.Generator) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        return _changed_array(value, draw)
    if kind is float:
        return float(_smaller(np.asarray(value), draw))
    if kind in (list, tuple):
        new = [_changed(part, draw) for part in value]
        is_same = all(a is b for a, b in zip(new, value, strict=True))
        return value if is_same else kind(new)
    if kind is dict:
        changed = {key: _changed(part, draw) for key, part in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor and value.layout is torch.strided:
        return _changed_tensor(torch, value, draw)
    return value


def _changed_array(array: Any, draw: np.random.Generator) -> Any:
    if array.dtype.kind in "fc":
        return _smaller(array, draw) if array.any() else array
    flat = array.ravel()
    if array.dtype.kind not in "iu" or flat.size < 2 or (flat[1:] >= flat[:-1]).all():
        return array
    return draw.permutation(flat).reshape(array.shape)


def _smaller(array: Any, draw: np.random.Generator) -> Any:
    return (array * (1 - draw.uniform(*_LESS, array.shape))).astype(array.dtype)


def _changed_tensor(torch: Any, tensor: Any, draw: np.random.Generator) -> Any:
    held = tensor.detach()
    if held.is_floating_point():
        less = torch.from_numpy(draw.uniform(*_LESS, tuple(held.shape)))
        return (held - held * less.to(held)).requires_grad_(tensor.requires_grad)
    if held.is_complex() or held.dtype is torch.bool or held.is_quantized:
        return tensor
    array = held.cpu().numpy()
    changed = _changed_array(array, draw)
    return tensor if changed is array else torch.from_numpy(changed).to(held.device)
