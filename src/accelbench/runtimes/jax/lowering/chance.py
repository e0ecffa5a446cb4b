"""Operators that draw. Each node gets a key of its own; without keys nothing is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from accelbench.runtimes.jax.lowering.table import op


def dropped(x: Array, p: float, key: Array | None) -> Array:
    """Some values are 0 by chance, the others larger by as much."""
    if p == 0 or key is None:
        return x
    if p >= 1:
        return jnp.zeros_like(x)
    kept = jax.random.bernoulli(key, 1 - p, x.shape)
    return jnp.where(kept, x / (1 - p), 0)


@op("dropout.default", random=True)
def _dropout(x: Array, p: float, train: bool, *, key: Array | None = None) -> Array:
    return dropped(x, p if train else 0, key)


@op("native_dropout.default", random=True)
def _native_dropout(
    x: Array, p: float, train: bool | None, *, key: Array | None = None
) -> tuple[Array, Array]:
    ones = dropped(jnp.ones(x.shape), 0 if train is False else p, key)
    return x * ones, ones > 0


def _drawn(key: Array | None, what: str) -> Array:
    """The key of a node that cannot do without: what it draws is no dropout."""
    if key is None:
        raise NotImplementedError(f"{what} outside training")
    return key


@op("bernoulli.p", random=True)
def _bernoulli(x: Array, p: float = 0.5, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.bernoulli(_drawn(key, "bernoulli"), p, x.shape)


@op("bernoulli.default", random=True)
def _bernoulli_each(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.bernoulli(_drawn(key, "bernoulli"), x)


@op("rand.default", random=True)
def _rand(size: Sequence[int], *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.uniform(_drawn(key, "rand"), size)


@op("rand_like.default", random=True)
def _rand_like(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.uniform(_drawn(key, "rand_like"), x.shape)


@op("randn.default", random=True)
def _randn(size: Sequence[int], *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.normal(_drawn(key, "randn"), size)


@op("randn_like.default", random=True)
def _randn_like(x: Array, *, key: Array | None = None, **_: Any) -> Array:
    return jax.random.normal(_drawn(key, "randn_like"), x.shape)
