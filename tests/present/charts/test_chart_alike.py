"""Like with like in pictures: bars and lines of one software, or each says its own."""

from __future__ import annotations

from typing import Any

from accelbench.judge.points import points
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Picture, Subject, picture
from asked_rows import row

OLD, NEW = {"torch": "2.4", "cuda": "12.4"}, {"torch": "2.9", "cuda": "12.8"}


def card(name: str, ms: float, conditions: dict[str, str], **changes: Any) -> dict[str, Any]:
    theirs = {"provenance": "imported", "weights_digest": None, "run_id": "import-1"}
    return row(
        hardware="cuda",
        device_name=name,
        latency_p50_ms=ms,
        conditions=conditions,
        **{**theirs, **changes},
    )


def drawn(chart: str, *rows: dict[str, Any]) -> Picture:
    made = picture(CHARTS[chart], Subject(points(rows)))
    assert made is not None
    return made


def test_bars_and_lines_are_of_one_software():
    # Bars are of the software that both cards ran.
    made = drawn(
        "hardware-latency",
        card("RTX 3090", 12.0, OLD),
        card("RTX 4090", 8.0, OLD),
        card("RTX 4090", 7.0, NEW),
    )
    assert [one["value"] for one in made.records] == [8.0, 12.0]
    assert "2.4" not in str(made.spec["concat"])
    # Bars of other software say which.
    made = drawn(
        "hardware-latency",
        card("RTX 3090", 12.0, OLD),
        card("RTX 4090", 8.0, OLD),
        card("RTX 4090", 4.0, NEW, compiled=True),
    )
    names = str(made.spec["concat"])
    assert "RTX 4090 · compiled · torch 2.9" in names
    assert "RTX 3090 · not compiled · torch 2.4" in names
    # A line is of one software.
    made = drawn(
        "latency-by-batch",
        *(card("RTX 4090", 8.0 * n, OLD, batch_size=n) for n in (1, 2, 4)),
        *(card("RTX 4090", 4.0 * n, NEW, batch_size=n) for n in (4, 8)),
    )
    assert [(one["batch"], one["value"]) for one in made.records] == [
        *((1, 8.0), (2, 16.0), (4, 32.0))
    ]
    # Most of what ran was the oldest, all of it useless, and each of its places has a better.
    oldest = {"torch": "2.0", "cuda": "11.8"}
    made = drawn(
        "latency-by-batch",
        *(card("RTX 4090", 9.0 * n, oldest, batch_size=n, quality="unusable") for n in (1, 2, 4)),
        *(card("RTX 4090", 8.0 * n, OLD, batch_size=n) for n in (1, 2)),
        card("RTX 4090", 28.0, NEW, batch_size=4),
    )
    assert [(one["batch"], one["value"]) for one in made.records] == [(1, 8.0), (2, 16.0)]


def test_rates_are_no_latencies():
    # A rate or a percentile is on no axis of latencies.
    nothing = {"latency_p50_ms": None, "latency_mean_ms": None}
    rows = [
        row(**nothing, throughput=rate, hardware=name, device_name=name, scenario="offline")
        for name, rate in (("cpu", 100.0), ("cuda", 900.0))
    ]
    assert picture(CHARTS["hardware-latency"], Subject(points(rows))) is None
    made = drawn("hardware-throughput", *rows)
    assert sorted(one["value"] for one in made.records) == [100.0, 900.0]
    # A rate of tokens is no rival of one of images.
    made = drawn(
        "hardware-throughput",
        card("RTX 3090", 12.0, OLD, throughput=80.0, throughput_unit="images/s"),
        card("RTX 4090", 8.0, OLD, throughput=120.0, throughput_unit="images/s"),
        card("RTX 4090", 7.0, NEW, throughput=900.0, throughput_unit="tokens/s"),
    )
    assert sorted((one["device"], one["value"]) for one in made.records) == [
        ("RTX 3090", 80.0),
        ("RTX 4090", 120.0),
    ]
