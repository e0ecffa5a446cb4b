"""Bencher Metric Format: a benchmark's measures, each with its bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.exchange.series import MEASURES, newest, value


def write_bencher(path: Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write one benchmark a question; how many."""
    found = {}
    for name, launches in newest(rows):
        measures = {
            f"{one.name} ({one.unit})": {
                "value": known.median,
                "lower_value": known.low,
                "upper_value": known.high,
            }
            for one in MEASURES
            if (known := value(launches, one)) is not None
        }
        if measures:
            found[name] = measures
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(found)
