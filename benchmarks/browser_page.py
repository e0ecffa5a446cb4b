"""The browser runtime: is the reported latency what a page written by hand finds?

`accelbench run` of one case against `bare_page.py`, a fresh browser each, interleaved.

    python benchmarks/browser_page.py [--models resnet-tiny,bert-tiny] [--pairs 24]
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from keeping import accelbench_median, artefact, bare_median, bounded, interleaved, keep

PROVIDERS = ("wasm", "webnn")
THREADS = "1"
LIMIT = 1.03
STEPS, WARMUP = "400", "100"


def case(model: str, provider: str) -> list[str]:
    """What is asked of accelbench, but for the number of steps."""
    return [
        model, "--framework", "browser", "--hardware", provider, "--batch-sizes", "1",
        "--new-tokens", "0", "--threads", THREADS, "--benchmark-only",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="resnet-tiny,bert-tiny")
    parser.add_argument("--pairs", type=int, default=24)
    asked = parser.parse_args()
    for model in asked.models.split(","):
        figures: dict[str, Any] = {"model": model, "threads": int(THREADS)}
        reached = []
        for provider in PROVIDERS:
            folder = artefact(case(model, provider))
            ours = [*case(model, provider), "--iterations", STEPS, "--warmup", WARMUP]
            page = [provider, str(folder), THREADS, STEPS, WARMUP]
            print(f"{model}, {provider}: a by hand, b ours")
            figures[provider] = interleaved(
                partial(accelbench_median, ours, column="latency_mean_ms"),
                partial(bare_median, page, program="bare_page.py"),
                asked.pairs,
            )
            reached.append(bounded(f"{model}, {provider}", figures[provider], LIMIT))
        keep(f"browser-page-{model}", {**figures, "reached": all(reached)})


if __name__ == "__main__":
    main()
