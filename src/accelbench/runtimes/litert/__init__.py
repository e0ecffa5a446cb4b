"""LiteRT: TensorFlow Lite models, by XNNPACK or its own kernels on the CPU."""

from accelbench.runtimes.litert.runtime import LitertRuntime

__all__ = ["LitertRuntime"]
