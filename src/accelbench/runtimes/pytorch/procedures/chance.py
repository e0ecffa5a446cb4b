"""What a training step draws: seeded, given back, or done without."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

#: Of modules that are nothing but a dropout or a dropped path, torch's and torchvision's.
_PROBABILITY = "p"


def seed_all(seed: int) -> None:
    """Everything that a step draws from: dropout, and what models mask by NumPy and Python."""
    torch.manual_seed(seed)  # of every device
    np.random.seed(seed % 2**32)
    random.seed(seed)


@contextmanager
def chances_kept(device: torch.device) -> Iterator[None]:
    """What is drawn within is drawn again afterwards."""
    numbers, python = np.random.get_state(), random.getstate()
    own = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices=own, device_type=device.type if own else "cuda"):
            yield
    finally:
        np.random.set_state(numbers)
        random.setstate(python)


@contextmanager
def dropped_nothing(module: torch.nn.Module) -> Iterator[None]:
    """Within it every dropout, dropped path and dropped layer of a model has probability 0.

    Models keep these numbers in modules of torch, in attributes of their own and in
    configs, which some read at every step. All of them are called some kind of drop.
    One that a model's code has as a bare number is not reached.
    """
    kept: list[tuple[Any, str, float]] = []
    for owner in _owners(module):
        kept += [(owner, name, value) for name, value in vars(owner).items() if _drops(owner, name)]
    for owner, name, _ in kept:
        setattr(owner, name, 0.0)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def _owners(module: torch.nn.Module) -> list[Any]:
    """The modules and their configs, each once."""
    modules = list(module.modules())
    configs = [c for part in modules if (c := getattr(part, "config", None)) is not None]
    # Diffusers' configs are frozen mappings, which nothing is read from after building.
    plain = {id(c): c for c in configs if hasattr(c, "__dict__") and not isinstance(c, Mapping)}
    return [*modules, *plain.values()]


def _drops(owner: Any, name: str) -> bool:
    value = vars(owner)[name]
    named = "drop" in name.lower()
    bare = name == _PROBABILITY and "drop" in type(owner).__name__.lower()
    return (named or bare) and isinstance(value, float) and 0 < value <= 1
