"""Bencher Metric Format: a benchmark's measures, each with its bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.left_out import Entries, entries
from accelbench.exchange.series import MEASURES, Value, newest, value


def write_bencher(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one benchmark a question; how many, and what is in none."""
    benchmarks, without = {}, []
    for name, launches in newest(rows):
        measures = {
            f"{measure.name} ({measure.unit})": _metric(known)
            for measure in MEASURES
            if (known := value(launches, measure)) is not None
        }
        if measures:
            benchmarks[name] = measures
        else:
            without.append(launches)
    path.write_text(json.dumps(benchmarks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return entries(len(benchmarks), without, rows)


def _metric(known: Value) -> dict[str, float]:
    """The value, and around it the ends of its range: both are optional there."""
    ends = {"lower_value": known.low, "upper_value": known.high}
    return {"value": known.median, **{name: end for name, end in ends.items() if end is not None}}
