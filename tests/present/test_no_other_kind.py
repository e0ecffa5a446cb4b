"""No figure is made of another kind: what others published as a rate has no latency anywhere.

Every table, page, chart and export of such results is walked for the latency that their rates would
come to, in whatever way it may be written, and for their percentiles under another name.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asked_store import said
from dashboard_world import result, store, visitor

from accelbench.present.charts import CHARTS
from accelbench.store.database import Database

#: Queries and samples a second of many at once, and what a user would take for a latency of them.
RATES = (13579.0, 2468.0, 716283.0, 345678.0)
TAILS = (0.87654, 2.34567)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\w])")
NOTHING = dict.fromkeys(
    (
        *("latency_p50_ms", "latency_mean_ms", "latency_ci_low_ms", "latency_ci_high_ms"),
        *("sample_count", "samples", "throughput", "memory_peak_mb", "quality", "series_key"),
        *("batch_size", "launch"),
    )
)


def _theirs(**changes: Any) -> dict[str, Any]:
    about = {"provenance": "imported", "conditions": {"source": {"name": "mlperf"}}}
    return result(**{**NOTHING, **about, "runtime": "tensorrt", "model": "resnet50", **changes})


def _world(path: Path) -> Database:
    made = Database(path)
    made.ensure()
    cards = [{"hardware": "cuda", "device_name": f"8x Card {n}"} for n in "AB"]
    rows = [
        _theirs(**card, scenario=scenario, throughput=rate, throughput_unit=f"{unit}/s")
        for scenario, unit, rates in (
            ("offline", "samples", RATES[:2]),
            ("server", "queries", RATES[2:]),
        )
        for card, rate in zip(cards, rates, strict=True)
    ]
    rows += [
        _theirs(**card, scenario="single_stream", batch_size=1, latency_p90_ms=tail)
        for card, tail in zip(cards, TAILS, strict=True)
    ]
    store(made, "import-1", *rows)
    return made


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return _world(tmp_path_factory.mktemp("kinds") / "kinds.duckdb")


def numbers(text: str) -> Iterator[float]:
    for found in _NUMBER.finditer(text):
        yield float(found[0].replace(",", ""))


def made_up(text: str) -> list[float]:
    """Figures that are the latency of a rate: of single items, or of a thousand."""
    derived = [1e3 / rate for rate in RATES] + [1.0 / rate for rate in RATES]
    return [
        one
        for one in numbers(text)
        for latency in derived
        if one and abs(one - latency) <= 0.006 * latency
    ]


TERMINAL = (
    ("compare",),
    ("compare", "--json"),
    ("matrix",),
    ("matrix", "--json"),
    ("recommend", "resnet50"),
    ("recommend", "resnet50", "--json"),
    ("db", "status"),
)


@pytest.mark.parametrize("words", TERMINAL, ids=" ".join)
def test_no_table_makes_a_latency_of_a_rate(database, words):
    assert made_up(said(database, *words, codes=(0, 4))) == []


@pytest.mark.parametrize("form", ["csv", "json", "md"])
def test_no_export_makes_a_latency_of_a_rate(database, tmp_path, form):
    said(database, "db", "export", str(tmp_path / f"all.{form}"), codes=(0, 4))
    text = (tmp_path / f"all.{form}").read_text(encoding="utf-8")
    assert made_up(text) == []
    for rate in RATES:
        assert f"{rate:.0f}" in text.replace(",", "")


def test_nothing_makes_a_latency_of_a_rate(database):
    # No page makes a latency of a rate and a percentile is that percentile.
    site = visitor(database)
    page = site.get("/results?sort=hardware").text
    keys = list(dict.fromkeys(re.findall(r'href="/cell/([0-9a-f]{16})"', page)))
    assert len(keys) == len(RATES) + len(TAILS)
    both = "&".join(f"cell={key}" for key in keys)
    for address in (
        "/results",
        "/cells.csv",
        f"/compare?{both}",
        *(f"/cell/{key}" for key in keys),
    ):
        text = _visible(site.get(address).text)
        assert made_up(text) == [], address
    assert "0.877 p90" in " ".join(_visible(page).split())
    # No chart draws a latency of a rate.
    site = visitor(database)
    for name in CHARTS:
        found = site.get(f"/chart/{name}")
        assert made_up(_visible(found.text)) == [], name
    assert made_up(f"latency {1e3 / RATES[0]:.3g} ms") == [pytest.approx(1e3 / RATES[0], rel=0.01)]
    assert list(numbers("1,234.5 ms 2e-3, x12 v1.2.3")) == [1234.5, 0.002]


def test_no_report_tells_a_latency_of_a_rate(database, tmp_path):
    said(
        database, "report", "--format", "markdown", "--output", str(tmp_path / "r.md"), codes=(0, 4)
    )
    text = _text_of(tmp_path / "r.md")
    assert made_up(text) == []
    assert "0.8765 p90" in text


def _text_of(path: Path) -> str:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as whole:
            return "\n".join(whole.read(name).decode(errors="replace") for name in whole.namelist())
    return path.read_text(encoding="utf-8")


def _visible(page: str) -> str:
    """What a page says: not its styles, addresses and drawings."""
    for part in ("style", "script", "svg"):
        page = re.sub(rf"<{part}\b.*?</{part}>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", page)
