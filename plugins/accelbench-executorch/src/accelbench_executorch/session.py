"""An ExecuTorch program opened, run, and asked what was handed to whom."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from accelbench.core.clock import Clock
from accelbench.core.protocols import Evidence, Job
from accelbench.engines.shared.arrays import ArraySession
from accelbench.engines.shared.engine import engine_error
from accelbench_executorch.program import plan_of

# Loaded after torch, which it links to.
engine: Any = import_module("executorch.extension.pybindings._C")

_METHOD, _TITLE = "forward", "ExecuTorch"
_TOLD = 8


class ExecutorchSession(ArraySession):
    """One method of one program."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._program: Any = None
        self._method: Any = None
        super().__init__(job, clock)

    def _open(self) -> None:
        if self._job.settings.threads is not None:
            # Its pool is the process's own, and is not told of a program's.
            engine._unsafe_reset_threadpool(self._job.settings.threads)
        try:
            self._program = engine._load_program(
                str(self.model_path), program_verification=engine.Verification.InternalConsistency
            )
            self._method = self._program.load_method(_METHOD)
        except Exception as error:
            raise engine_error(error, "session_failed", _TITLE) from error

    def _bind(self, arrays: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(torch.from_numpy(np.array(array)) for array in arrays.values())

    def _run(self, bound: tuple[Any, ...]) -> Any:
        try:
            # Results stay where the program puts them: a user's own loop copies none either.
            return self._method(bound, False)
        except Exception as error:
            raise engine_error(error, "run_failed", _TITLE) from error

    def _read(self, result: Any) -> list[Any]:
        return [np.array(value.numpy()) for value in result]

    def evidence(self) -> Evidence:
        plan = plan_of(self.model_path.read_bytes())
        left = sorted(plan.kernels.items(), key=lambda entry: -entry[1])
        return self._evidence(
            f"executorch {version('executorch')}",
            {
                "delegated_parts": plan.delegated,
                "delegated_to_xnnpack": plan.inside,
                "own_kernels": sum(plan.kernels.values()),
                "operators": ", ".join(f"{name} × {count}" for name, count in left[:_TOLD]),
                "threads": engine._threadpool_get_thread_count(),
            },
        )

    def close(self) -> None:
        self._method = self._program = None
