"""JAX: torch modules lowered to XLA, on cpu, cuda, rocm, tpu and mps."""

from accelbench.engines.jax.runtime import JaxRuntime

__all__ = ["JaxRuntime"]
