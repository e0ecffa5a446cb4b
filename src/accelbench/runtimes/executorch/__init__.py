"""ExecuTorch: programs of torch.export, by XNNPACK or its own kernels on the CPU."""

from accelbench.runtimes.executorch.runtime import ExecutorchRuntime

__all__ = ["ExecutorchRuntime"]
