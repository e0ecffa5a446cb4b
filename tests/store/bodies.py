"""Result bodies for tests."""

from __future__ import annotations

from typing import Any

from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_STARTED, Fact

NASTY = (
    "emoji 😀👩‍👩‍👧",
    "rtl \u202e שלום \u202c",
    "quotes ' \" `",
    "'; DROP TABLE fact_result; --",
    "comma, semicolon; tab\t and\r\nbreaks",
    "back\\slash \\u0041 %s {} $1 ?",
    "",
    " ",
    "null",
    "nul \x00 inside",
    "\u2028\u2029\ufeff",
)


def body(number: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "case_id": f"case{number}", "launch": 0, "model": "bert-tiny", "hardware": "cpu",
        "runtime": "pytorch", "precision": "fp32", "batch_size": number + 1, "status": "ok",
        "provenance": "measured", "latency_mean_ms": 0.1 + number,
        "started_at": f"2026-01-02T03:04:{number % 60:02d}.000005Z",
        "finished_at": f"2026-01-02T03:05:{number % 60:02d}.000005Z",
        "samples": {"step": [1000 + number, 2000, 3000], "forward": [7]}, **more,
    }  # fmt: skip


def result(number: int, run: str = "r", **more: Any) -> Fact:
    return Fact(RESULT, f"{run}-{number}", body(number, run_id=run, **more))


def started(run: str = "r", **more: Any) -> Fact:
    about = {"started_at": "2026-01-02T03:04:05.000000Z", "command": "accelbench run", **more}
    return Fact(RUN_STARTED, run, about)


def finished(run: str = "r") -> Fact:
    about = {"finished_at": "2026-01-02T03:14:05.000000Z", "status": "complete"}
    return Fact(RUN_FINISHED, f"{run}/1", about)
