"""PyTorch's templates without their imports: forked from a process that has them already.

Of a small run's six seconds of a core, four and a half are the imports of its template. What
`warm_start` does for scripted runs is done here for those of PyTorch, on one thread, which all
commands of the map are given: the library's threads are settled where it is loaded.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import pytest

from accelbench.run.process import template, worker_pool
from warm_start import NURSERY, Adopted, Nursery

_ENGINE = "pytorch"
_START = (
    "import runpy, sys; from accelbench.run.process import template;"
    f" template.preload(template.find_runtime({_ENGINE!r}));"
    f" runpy.run_path({str(NURSERY)!r}, run_name='__main__')"
)


def engine_nursery() -> Nursery:
    """The process that has imported what PyTorch's templates import."""
    runtime = template.find_runtime(_ENGINE)
    return Nursery("-c", _START, env=worker_pool.worker_environment(runtime, threads=1))


@contextlib.contextmanager
def warm_engine() -> Iterator[None]:
    """PyTorch's templates on one thread come from a nursery meanwhile, all others as always."""
    if sys.platform != "linux":
        yield
        return
    start_cold, nursery = worker_pool.start_process, engine_nursery()

    def start(
        arguments: Sequence[str], environment: Mapping[str, str], out: IO[bytes]
    ) -> Adopted | subprocess.Popen[bytes]:
        warm = (
            _ENGINE in arguments and "fork" in arguments and environment["OMP_NUM_THREADS"] == "1"
        )
        started = nursery.start if warm else start_cold
        return started(arguments, environment, out)

    with pytest.MonkeyPatch.context() as patch, contextlib.closing(nursery):
        patch.setattr(worker_pool, "start_process", start)
        yield
