"""ONNX Runtime: graphs exported from PyTorch, on the providers of the installed build."""

from accelbench.engines.onnxruntime.runtime import OnnxruntimeRuntime

__all__ = ["OnnxruntimeRuntime"]
