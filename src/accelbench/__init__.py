"""accelbench: how fast, how large, how correct and how costly is this model on this hardware.

`accelbench.benchmark(model)` measures a model or a callable of your own. The names of the
Benchmarking guide are here, too: `from accelbench import BenchmarkConfig`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.api.benchmark import benchmark
    from accelbench.api.comparing import ComparisonTable, HistoryTable, compare, history
    from accelbench.api.config import BenchmarkConfig
    from accelbench.api.enhanced import EnhancedHardwareBenchmarkRunner
    from accelbench.api.result import Result, StoredTable, results
    from accelbench.api.running import (
        BenchmarkLogger,
        reset_memory_stats,
        run_benchmark_suite,
        run_inference_benchmark,
    )
    from accelbench.api.selector import HardwareSelector
    from accelbench.models.data import create_dataloader

__version__ = "0.1.0"

__all__ = [
    "BenchmarkConfig",
    "BenchmarkLogger",
    "ComparisonTable",
    "EnhancedHardwareBenchmarkRunner",
    "HardwareSelector",
    "HistoryTable",
    "Result",
    "StoredTable",
    "__version__",
    "benchmark",
    "compare",
    "create_dataloader",
    "history",
    "reset_memory_stats",
    "results",
    "run_benchmark_suite",
    "run_inference_benchmark",
]

#: Where each name lives. Imported when it is asked for: every command imports this
#: package, and most of them need none of it.
_HOMES = {
    "BenchmarkConfig": "accelbench.api.config",
    "BenchmarkLogger": "accelbench.api.running",
    "ComparisonTable": "accelbench.api.comparing",
    "EnhancedHardwareBenchmarkRunner": "accelbench.api.enhanced",
    "HardwareSelector": "accelbench.api.selector",
    "HistoryTable": "accelbench.api.comparing",
    "Result": "accelbench.api.result",
    "StoredTable": "accelbench.api.result",
    "benchmark": "accelbench.api.benchmark",
    "compare": "accelbench.api.comparing",
    "create_dataloader": "accelbench.models.data",
    "history": "accelbench.api.comparing",
    "reset_memory_stats": "accelbench.api.running",
    "results": "accelbench.api.result",
    "run_benchmark_suite": "accelbench.api.running",
    "run_inference_benchmark": "accelbench.api.running",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'accelbench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
