"""JAX: torch modules lowered to XLA, on cpu, cuda, rocm, tpu and mps."""

from accelbench.runtimes.jax.runtime import JaxRuntime

__all__ = ["JaxRuntime"]
