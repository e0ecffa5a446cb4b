"""PyTorch: cpu, cuda, rocm and mps by the same code."""

from accelbench.engines.pytorch.runtime import PytorchRuntime

__all__ = ["PytorchRuntime"]
