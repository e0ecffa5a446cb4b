"""Perturbation: does measuring disturb what is measured?

Conductor, template and worker share one core, and are compared with a bare
process alone on that core, in turns A B B A. A conductor that spins, draws or
polls while a sample is taken would show here: the nearest peer reports
2.05-2.34 times the bare time in this very situation.

    python benchmarks/perturbation.py [--model bert-base] [--pairs 16]
"""

from __future__ import annotations

import argparse

from keeping import accelbench_median, bare_median, bounded, interleaved, keep


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-base")
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--steps", default="20")
    parser.add_argument("--cpu", type=int, default=0)
    asked = parser.parse_args()
    ours = [asked.model, "--hardware", "cpu", "--batch-sizes", "1", "--threads", "1"]
    ours += ["--iterations", asked.steps, "--warmup", "3"]
    theirs = [asked.model, "1", asked.steps, "3", "1", "cpu"]
    figures = interleaved(
        lambda: accelbench_median(ours, asked.cpu),
        lambda: bare_median(theirs, asked.cpu),
        asked.pairs,
    )
    reached = bounded("perturbation", figures)
    keep("perturbation", {"model": asked.model, **figures, "reached": reached})


if __name__ == "__main__":
    main()
