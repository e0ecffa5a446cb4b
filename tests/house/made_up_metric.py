"""What the program makes of one more metric; `test_made_up_metric.py` starts it.

The metric is added before anything else of the program is imported, as an entry in
`judge/verdicts.py` would be. What each place makes of it is written as JSON to standard output.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from accelbench.judge import verdicts

verdicts.METRICS += (
    verdicts.Metric(
        "first-token", "ms", lambda row: row.get("ttft_ms"), "ttft_ms", columns=("ttft_ms",)
    ),
)

sys.path.append(str(Path(__file__).parents[1] / "cli"))
from stored_rows import store  # noqa: E402

from accelbench.cli.main import main  # noqa: E402


def said(*words: str) -> str:
    """What a command prints."""
    stream = io.StringIO()
    sys.argv = ["accelbench", *words]
    with redirect_stdout(stream), redirect_stderr(stream), suppress(SystemExit):
        main()
    return stream.getvalue()


def launches(ms: float, run: int) -> list[dict[str, Any]]:
    """Five launches of a run: the same steps, and another time to the first token."""
    moment = f"2026-01-0{run}T00:00:00.000000Z"
    same = {"case_id": "c", "series_key": "s", "started_at": moment}
    return [{**same, "launch": n, "ttft_ms": ms * (1 + n / 1000)} for n in range(5)]


def everything(folder: Path) -> dict[str, str]:
    """What each place makes of it."""
    os.chdir(folder)
    os.environ |= {"COLUMNS": "200", "NO_COLOR": "1"}
    for run, ms in ((1, 20.0), (2, 20.1), (3, 19.9), (4, 60.0)):
        store(folder / "accelbench.duckdb", *launches(ms, run), run=f"r{run}")
    check = said("check", "--baseline", "r3", "--run", "r4")
    return {
        "help": said("history", "--help"),
        "history": said("history", "--metric", "first-token"),
        "check": check,
        "json": said("check", "--baseline", "r3", "--run", "r4", "--json"),
    }


if __name__ == "__main__":
    print(json.dumps(everything(Path(sys.argv[1]))))
