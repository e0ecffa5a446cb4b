"""OpenVINO: IR made of graphs exported from PyTorch, on Intel's CPUs, GPUs and NPUs."""

from accelbench.engines.openvino.runtime import OpenvinoRuntime

__all__ = ["OpenvinoRuntime"]
