"""Tensors of torch as arrays of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

#: Of torch's types: what JAX calculates in. Its 64-bit types are off unless a whole process asks.
DTYPES = {
    torch.float64: jnp.float32,
    torch.float32: jnp.float32,
    torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16,
    torch.int64: jnp.int32,
    torch.int32: jnp.int32,
    torch.int16: jnp.int16,
    torch.int8: jnp.int8,
    torch.uint8: jnp.uint8,
    torch.bool: jnp.bool_,
}


def host_array(tensor: torch.Tensor) -> Any:
    """The same bits in NumPy, 64-bit types narrowed to what JAX calculates in."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:  # NumPy has none of its own
        return tensor.view(torch.int16).numpy().view(jnp.bfloat16)
    return np.asarray(tensor.numpy(), DTYPES[tensor.dtype])


def array(tensor: torch.Tensor, device: Any = None) -> jax.Array:
    """A copy on a device: what a step writes over must not be torch's own memory.

    `jax.device_put` would share it on a CPU, also where it is told not to.
    """
    return jnp.array(host_array(tensor), device=device)
