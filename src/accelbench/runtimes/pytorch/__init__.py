"""PyTorch: cpu, cuda, rocm and mps by the same code."""

from accelbench.runtimes.pytorch.runtime import PytorchRuntime

__all__ = ["PytorchRuntime"]
