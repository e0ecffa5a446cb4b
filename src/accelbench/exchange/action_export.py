"""For github-action-benchmark: latencies, as `customSmallerIsBetter` reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.launch_failures import launches_failed
from accelbench.core.nouns import counted
from accelbench.core.visible import visible
from accelbench.core.worth import answered
from accelbench.exchange.left_out import Entries, entries
from accelbench.exchange.series import LATENCY, newest, value


def write_action(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one entry a question; how many, and what is in none."""
    written, without = [], []
    for name, launches in newest(rows):
        latency = value(launches, LATENCY)
        if latency is None:
            without.append(launches)
            continue
        launched = counted(latency.launches, "launch", "launches")
        failed = launches_failed([row for row in launches if answered(row)])
        of_run = f"{launched} of run {launches[0].get('run_id')}"
        entry = {
            "name": name,
            "unit": LATENCY.unit,
            "value": latency.median,
            "extra": visible(", ".join(filter(None, (of_run, failed)))),
        }
        # Optional there; it stands behind the value in charts and comments.
        if latency.low is not None:
            entry["range"] = f"{latency.low:.6g} - {latency.high:.6g}"
        written.append(entry)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return entries(len(written), without, rows)
