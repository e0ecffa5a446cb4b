"""A store of cards and models for the pages about them, and what is read of such a page."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dashboard_world import result, store, stored_in

from accelbench.store.database import Database

SLOW, FAST = "Slow card", "Fast card"
#: Milliseconds of a step: of each model on either device; the third is slower on the fast one.
TIMES = {"bert-tiny": (8.0, 2.0), "vit-tiny": (6.0, 3.0), "resnet-tiny": (4.0, 5.0)}
LAUNCHES = (0.99, 1.0, 1.02)
FIVE = (0.99, 1.0, 1.01, 1.0, 1.02)


def launches(ms: float, shares: Sequence[float] = LAUNCHES, **changes: Any) -> list[dict[str, Any]]:
    return [
        result(launch=number, latency_p50_ms=ms * share, throughput=1e3 / (ms * share), **changes)
        for number, share in enumerate(shares)
    ]


def card(name: str) -> dict[str, str]:
    return {"hardware": "cuda", "device_name": name, "device_fingerprint": name}


def filled(path: Path) -> Database:
    """Three models on two devices, one of them by two engines as well, and a lonely device."""
    database = stored_in(path)
    rows = [
        row
        for model, times in TIMES.items()
        for name, ms in zip((SLOW, FAST), times, strict=True)
        for row in launches(ms, model=model, **card(name))
    ]
    rows += launches(2.5, runtime="onnxruntime", **card(FAST))
    rows += launches(2.0, batch_size=4, **card(FAST))
    rows += [result(model="lonely", **card("Lonely card"), batch_size=3)]
    store(database, "r", *rows)
    return database


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def rows_of(page: str, region: str) -> list[list[str]]:
    """The cells of a table's lines, as text."""
    table = page.partition(f'aria-label="{region}"')[2].partition("</table>")[0]
    lines = table.partition("<tbody>")[2].split("<tr>")[1:]
    return [
        [text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]
        for line in lines
    ]


def answers(page: str) -> str:
    return " ".join(text(part) for part in re.findall(r'<p class="answer.*?</p>', page, re.DOTALL))


def asked(database: Database, sql: str, *values: object) -> list[Sequence[Any]]:
    return [*database.query(sql, list(values))[1]]


def version(name: str, engine: str, ms: float, model: str, **changes: Any) -> dict[str, Any]:
    """An import's only launch by a version of an engine, which names no moment."""
    said = {
        "conditions": {"engine": engine}, "provenance": "imported", "started_at": None,
        "finished_at": None, **dict.fromkeys(("latency_ci_low_ms", "latency_ci_high_ms")),
        **card(name), **changes,
    }  # fmt: skip
    return result(latency_p50_ms=ms, throughput=1e3 / ms, model=model, **said)
