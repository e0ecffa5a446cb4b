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
    found, without = {}, []
    for name, launches in newest(rows):
        measures = {
            f"{one.name} ({one.unit})": _metric(known)
            for one in MEASURES
            if (known := value(launches, one)) is not None
        }
        if measures:
            found[name] = measures
        else:
            without.append(launches)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return entries(len(found), without, rows)


def _metric(known: Value) -> dict[str, float]:
    """The value, and around it the ends of its range: both are optional there."""
    ends = {"lower_value": known.low, "upper_value": known.high}
    return {"value": known.median, **{name: end for name, end in ends.items() if end is not None}}
