"""ONNX Runtime: graphs exported from PyTorch, on the providers of the installed build."""

from accelbench.runtimes.onnxruntime.runtime import OnnxruntimeRuntime

__all__ = ["OnnxruntimeRuntime"]
