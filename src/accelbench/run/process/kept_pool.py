"""A pool whose warm templates serve one run after another, as those of one run serve its cases."""

from __future__ import annotations

import shutil

from accelbench.core.protocols import Runtime
from accelbench.run.process.worker_pool import Template, WorkerPool

#: Templates that stay at most: a sleeping one of PyTorch holds about 200 MB.
_MOST = 6


class KeptWorkerPool(WorkerPool):
    """Everything that is kept running between runs; empty after `end`.

    The n-th launch of every run comes from the same template, another one than the other
    launches: as in one run of all of their cases.
    """

    def __init__(self) -> None:
        super().__init__()
        self._launch = 1
        self._by_launch: dict[tuple[str, int | None, int], Template] = {}  # the last used last

    def begin_launch(self, number: int) -> None:
        self._launch = number

    def retire_templates(self) -> None:
        for template in self._by_launch.values():
            template.close()
        self._by_launch.clear()

    def close(self) -> None:
        """A run is over: its workers and its files go, the templates stay."""
        templates = {template.pid for template in self._by_launch.values()}
        for process in [p for p in self._started if p.pid not in templates]:
            process.kill()
            process.wait()
            self._started.remove(process)
        for path in self._scratch.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".log" and not path.name.startswith("fork-"):
                path.unlink(missing_ok=True)
        self._launch = 1

    def end(self) -> None:
        """Leave no process and no file behind."""
        super().close()

    def _template(self, runtime: Runtime, threads: int | None) -> Template:
        key = (runtime.info.name, threads, self._launch)
        template = self._by_launch.pop(key, None)
        if template is None:
            while len(self._by_launch) >= _MOST:
                self._by_launch.pop(next(iter(self._by_launch))).close()
            template = Template(self, runtime, threads)
        self._by_launch[key] = template
        return template
