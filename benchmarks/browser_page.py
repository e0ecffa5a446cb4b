"""The browser runtime: is the reported latency what a page written by hand finds?

One browser visits a page of ours, in which the case is measured as `accelbench run` does, and
the page of `bare_page.py` in turns; each visit has a process of its own.

    python benchmarks/browser_page.py [--models resnet-tiny,bert-tiny] [--pairs 40]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.browser import BrowserRuntime
from accelbench.engines.browser.session import BrowserSession
from accelbench.hardware.detect import detect
from accelbench.measure.loop import measure
from accelbench.models.find import find
from accelbench.run.worker.worker import rules_from_json
from bare_page import Site
from keeping import artefact, bounded, interleaved, keep

PROVIDERS = ("wasm", "webnn")
THREADS = "1"
LIMIT = 1.03
#: Samples of ours, each of so many steps as the clock needs; as many steps by hand.
SAMPLES, WARMUP = "60", "200"


def case(model: str, provider: str) -> list[str]:
    """What is asked of accelbench, but for the number of steps."""
    return [
        model, "--framework", "browser", "--hardware", provider, "--batch-sizes", "1",
        "--new-tokens", "0", "--threads", THREADS, "--benchmark-only",
    ]  # fmt: skip


class Nobody:
    """Who listens to a measurement and counts its memory: nobody."""

    def phase(self, name: str) -> None: ...

    def progress(self, samples: int, median_ns: float, interval: object) -> None: ...

    def reset(self) -> None: ...

    def sample(self, work: Callable[[], object]) -> None: ...

    def columns(self) -> Mapping[str, Any]:
        return {}


class Visits:
    """One browser, and two pages that it visits."""

    def __init__(self, model: str, provider: str, folder: Path) -> None:
        spec = find(model)
        shapes = Shapes(1, spec.sequence, spec.image)
        self._case = Case(spec, Target("browser", provider), "fp32", shapes)
        (device, *_) = detect(provider)
        assert isinstance(device, Device), device
        runtime = BrowserRuntime()
        job = Job(
            self._case, device, JobSettings(seed=0, threads=int(THREADS)), artefact=str(folder)
        )
        self._session = cast("BrowserSession", runtime.open(job))
        self._clock = runtime.clock()
        self._site = Site(provider, folder, int(THREADS), 1, int(WARMUP))
        self._statistic = "mean"
        self._site.back = f"{self._session._page.server.address}index.html"

    def ours(self) -> float:
        """Open the model in our page and measure it as `accelbench run` does."""
        self._session._visited()
        self._session._fed = None
        rules = rules_from_json({"iterations": int(SAMPLES), "warmup": int(WARMUP)})
        nobody = Nobody()
        found = measure(self._session, self._case, rules, self._clock, nobody, nobody)
        # As many by hand: a step becomes faster for a long time, as the browser compiles better.
        self._site.asked["steps"] = sum(found.sampling["step"].get("steps", [1] * int(SAMPLES)))
        median = found.metrics.get("latency_p50_ms")  # none of steps that are timed in blocks
        self._statistic = "mean" if median is None else "median"
        return float(found.metrics["latency_mean_ms"] if median is None else median)

    def theirs(self) -> float:
        """Leave for the other page, and come back with what it found."""
        page = self._session._page
        ours = page.server
        ours.leave()
        page.ask("go", seconds=10, address=self._site.address)
        found = self._site.found.get(timeout=300)
        ours.gone.clear()
        page.ask("surroundings", seconds=60, device_type="cpu")
        ours.gone.clear()
        return found[self._statistic]

    def close(self) -> None:
        self._session.close()


def compared(model: str, provider: str, folder: Path, pairs: int) -> dict[str, Any]:
    visits = Visits(model, provider, folder)
    try:
        visits.ours()  # says how many steps it takes
        return interleaved(visits.ours, visits.theirs, pairs)
    finally:
        visits.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="resnet-tiny,bert-tiny")
    parser.add_argument("--pairs", type=int, default=40)
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": model, "threads": int(THREADS)}
        reached = []
        for provider in PROVIDERS:
            folder = artefact(case(model, provider))
            print(f"{model}, {provider}: a by hand, b ours")
            figures[provider] = compared(model, provider, folder, asked.pairs)
            reached.append(bounded(f"{model}, {provider}", figures[provider], LIMIT))
        keep(f"browser-page-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()
