"""Matrix products and attention."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from accelbench.runtimes.jax.lowering.chance import dropped
from accelbench.runtimes.jax.lowering.reductions import safe_softmax
from accelbench.runtimes.jax.lowering.table import each, op

each(dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), jnp.matmul), "default")


@op("addmm.default", "baddbmm.default")
def _addmm(bias: Array, x: Array, y: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    product = jnp.matmul(x, y)
    return (bias if beta == 1 else bias * beta) + (product if alpha == 1 else product * alpha)


@op("linear.default")
def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    product = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))
    return product if bias is None else product + bias


@op("scaled_dot_product_attention.default", random=True)
def _attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, dropout: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    key: Array | None = None,
) -> Array:  # fmt: skip
    """Scores and softmax in fp32, as torch's kernels have them, whatever the inputs are."""
    if enable_gqa:
        k, v = (jnp.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = jnp.einsum("...qd,...kd->...qk", q, k, preferred_element_type=jnp.float32) * scale
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
        chances = safe_softmax(scores, -1)
    else:
        chances = jax.nn.softmax(scores, -1)
    chances = dropped(chances.astype(q.dtype), dropout, key)
    return jnp.einsum("...qk,...kd->...qd", chances, v)


@op("transformers.grouped_mm_fallback.default", "_grouped_mm.default")
def _grouped_mm(x: Array, weight: Array, ends: Array) -> Array:
    sizes = jnp.diff(ends, prepend=0).astype(jnp.int32)
    return lax.ragged_dot(x, weight, sizes)
