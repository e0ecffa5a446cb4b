"""Intervals: do launch-level 95 % intervals cover no change when nothing changed?

Launches of one and the same case are made one after the other, A B B A …, and cut into
disjoint comparisons of K pairs each. Every comparison asks whether A and B
differ, and its interval should hold a ratio of 1 in 95 % of cases. Templates
are executed anew every few launches, as they are for verdicts.

    python benchmarks/intervals.py [--comparisons 200] [--pairs 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from accelbench.measure.launch_verdicts import aa_noise, abba_order, paired_interval
from accelbench.run.plan import expand
from keeping import keep, verdict

LIMIT = 0.93


def launches(model: str, batch: int, count: int, renew: int) -> Iterator[float]:
    """The reported medians of so many launches, each a fresh worker."""
    from accelbench.core.facts import new_run_id
    from accelbench.core.run_options import RunSettings
    from accelbench.hardware.detect import detect_all
    from accelbench.models.find import find
    from accelbench.run.conduct.conductor import asked_of
    from accelbench.run.conduct.launch import GroupLaunch
    from accelbench.run.conduct.launch_context import LaunchContext, Surroundings
    from accelbench.run.plan import run_forecast
    from accelbench.run.plan.request import Request
    from accelbench.run.plan.run_forecast import Budget
    from accelbench.run.process.worker_client import SilentObserver
    from accelbench.run.process.worker_pool import WorkerPool
    from accelbench.store.journal import Journal

    runtimes = expand.installed_runtimes()
    request = Request((find(model),), ("cpu",), batch_sizes=(batch,), options={"threads": 1})
    plan = expand.plan_for(request, detect_all(), runtimes)
    workshop = WorkerPool()
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = RunSettings(run_id=new_run_id(), threads=1)
        journal = Journal.create(Path(folder), settings.run_id)

        def append(fact: object) -> None:
            journal.append(fact)
            found.append(fact.body["latency_p50_ms"])

        context = LaunchContext(
            settings=settings,
            workshop=workshop,
            runtimes=runtimes,
            append=append,
            observer=SilentObserver(),
            budget=Budget(None, count),
            surroundings=Surroundings(),
            estimate=run_forecast.memory,
            free=run_forecast.free,
            cost=lambda _: None,
            conditions={},
        )
        try:
            for number in range(count):
                if number % renew == 0:
                    workshop.retire_templates()
                GroupLaunch(
                    context, asked_of(settings, number), plan.cases, number + 1, count
                ).run()
                yield found[-1]
        finally:
            workshop.close()
            journal.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="resnet-tiny")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--renew", type=int, default=40, help="launches of one template")
    asked = parser.parse_args()
    order = abba_order(asked.pairs)
    covered, widths, medians = [], [], []
    figures: dict[str, list[float]] = {"a": [], "b": []}
    stream = launches(asked.model, asked.batch, asked.comparisons * len(order), asked.renew)
    for number, median in enumerate(stream):
        medians.append(median)
        figures[order[number % len(order)]].append(median)
        if (number + 1) % len(order):
            continue
        interval = paired_interval(figures["a"], figures["b"])
        assert interval is not None
        covered.append(interval.low <= 1.0 <= interval.high)
        widths.append((interval.high - interval.low) / 2)
        figures = {"a": [], "b": []}
        if len(covered) % 20 == 0:
            share = sum(covered) / len(covered)
            print(f"  {len(covered)} comparisons: {share:.3f} cover no change", flush=True)
    share = sum(covered) / len(covered)
    reached = verdict("share of A/A intervals that cover no change", share, LIMIT, at_most=False)
    keep(
        "intervals",
        {
            "model": asked.model,
            "batch": asked.batch,
            "comparisons": len(covered),
            "pairs_each": asked.pairs,
            "launches": len(medians),
            "launches_per_template": asked.renew,
            "covered": share,
            "median_half_width": statistics.median(widths),
            "launch_noise": aa_noise(medians),
            "medians_ms": medians,
            "reached": reached,
        },
    )


if __name__ == "__main__":
    main()
