"""Any Python callable, timed as it is."""

from accelbench.engines.python.runtime import PythonRuntime

__all__ = ["PythonRuntime"]
