"""Any Python callable, timed as it is."""

from accelbench.runtimes.python.runtime import PythonRuntime

__all__ = ["PythonRuntime"]
