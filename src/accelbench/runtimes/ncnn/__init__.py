"""ncnn: networks of a .param and a .bin, by its own kernels on the CPU."""

from accelbench.runtimes.ncnn.runtime import NcnnRuntime

__all__ = ["NcnnRuntime"]
