"""One ratio: whatever sets two figures beside each other says the same of the same rows.

The platform that is quicker at the median is slower on average: whoever compares latencies by
another figure than the median names the other one. Rates, and what is recommended by them, are by
the mean.
"""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import pytest
from asked_store import keys_of, said
from dashboard_world import result, store, visitor

from accelbench.judge.points import points
from accelbench.judge.run_noise import Histories
from accelbench.judge.summary import summary
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Subject, picture
from accelbench.present.dashboard import details
from accelbench.present.terminal.summary import compared as frameworks
from accelbench.store.database import Database

CALM = {"latency_p50_ms": 8.0, "latency_mean_ms": 8.2}
WILD = {"latency_p50_ms": 7.0, "latency_mean_ms": 10.0}
RATIO = 8.0 / 7.0
BY_MEANS = 8.2 / 10.0
#: Launches of each side: their geometric mean is what was said of them, their median is not.
APART = {8.0: (0.998, 0.999, 1 / (0.998 * 0.999)), 7.0: (0.97, 0.98, 1 / (0.97 * 0.98))}
GPU = {"hardware": "cuda", "device_name": "A card", "device_fingerprint": "f2"}


def launches(number: int, figures: dict[str, float], **changes: Any) -> list[dict[str, Any]]:
    """Of one cell, a little apart, with rates that go with their means."""
    found = []
    for n in range(number):
        taken = {
            name: value * (APART[figures["latency_p50_ms"]][n] if number > 1 else 1.0)
            for name, value in figures.items()
        }
        rate = 1e3 / taken["latency_mean_ms"]
        ends = {
            f"latency_ci_{end}_ms": taken["latency_p50_ms"] * by
            for end, by in (("low", 0.99), ("high", 1.01))
        }
        ends |= {"latency_std_ms": 0.4, "effective_sample_count": 30.0}
        found.append(result(launch=n, **taken, **ends, throughput=rate, **changes))
    return found


@pytest.fixture(scope="module", params=[1, 3], ids=["one launch", "three launches"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Database:
    made = Database(tmp_path_factory.mktemp("ratio") / "ratio.duckdb")
    made.ensure()
    rows = launches(request.param, CALM) + launches(request.param, WILD, **GPU)
    store(made, "r", *rows)
    return made


def rows_of(database: Database) -> list[dict[str, Any]]:
    _, found = database.query("SELECT result_id FROM benchmark_results")
    return details.launches_in(database, [key for (key,) in found])


def test_compare_says_it_to_people_machines_and_tables(database, tmp_path):
    _, gpu = json.loads(said(database, "compare", "--json"))["comparisons"]
    assert gpu["speedup"] == pytest.approx(RATIO)
    assert gpu["speedup_by_means"] == pytest.approx(BY_MEANS)
    assert gpu["baseline_item_ms"] / gpu["item_ms"] == pytest.approx(RATIO)
    assert gpu["throughput"] / gpu["baseline_throughput"] == pytest.approx(BY_MEANS)
    assert gpu["latency_ms"] == pytest.approx(7.0, rel=0.01)
    told = " ".join(said(database, "compare").split())
    assert f"{RATIO:.2f}× (" in told
    assert f"({BY_MEANS:.2f}×)" in told
    said(database, "compare", "-o", str(tmp_path / "c.csv"))
    with (tmp_path / "c.csv").open(newline="", encoding="utf-8") as stream:
        assert float([*csv.DictReader(stream)][1]["speedup"]) == pytest.approx(RATIO)


def test_one_ratio_everywhere(database):
    # A page says it.
    page = visitor(database)
    first, second = keys_of(database)
    text = page.get(f"/compare?cell={first}&cell={second}").text
    assert f"<strong>{RATIO:.2f}×</strong>" in text
    assert f"({BY_MEANS:.2f}×)" in text
    # A page and the table have one interval.
    _, gpu = json.loads(said(database, "compare", "--json"))["comparisons"]
    page = visitor(database)
    first, second = keys_of(database)
    text = page.get(f"/compare?cell={first}&cell={second}").text
    assert f"{gpu['speedup_low']:.2f}× to {gpu['speedup_high']:.2f}×" in text
    # A report says it.
    rows = rows_of(database)
    (line,) = [
        one for one in summary(rows, points(rows), Histories()) if one.startswith("bert-tiny")
    ]
    assert f"pytorch on cpu in fp32 takes {RATIO:.2f}× as long" in line
    assert f"({BY_MEANS:.2f}×)" in line
    # A matrix says it.
    whole = json.loads(said(database, "matrix", "--json"))
    text = json.dumps(whole)
    assert any(
        float(one) == pytest.approx(BY_MEANS, rel=1e-3)
        for one in re.findall(r'"speed[a-z_]*": ([0-9.]+)', text)
    ), text[:400]
    # Two frameworks of a run are held against each other by it.
    renamed = [
        {**row, "runtime": "jax", "hardware": "cpu"} if row["hardware"] == "cuda" else row
        for row in rows_of(database)
    ]
    (line,) = frameworks(renamed, ("pytorch", "jax"))
    assert f"jax takes {1 / RATIO:.2f} times as long as pytorch" in line
    # A recommendation orders by the means.
    whole = json.loads(said(database, "recommend", "bert-tiny", "--hardware", "cpu,cuda", "--json"))
    (one,) = whole["recommendations"]
    cpu, cuda = (one["all_scores"][name]["predictions"] for name in ("cpu", "cuda"))
    assert cuda["throughput"] / cpu["throughput"] == pytest.approx(BY_MEANS, rel=1e-3)
    assert cpu["latency"] / cuda["latency"] == pytest.approx(BY_MEANS, rel=1e-3)
    assert one["primary_recommendation"] == "cpu"


@pytest.mark.parametrize(
    ("chart", "power", "ratio"),
    [("hardware-throughput", 1, BY_MEANS), ("hardware-latency", -1, RATIO)],
)
def test_a_chart_draws_it(database, chart, power, ratio):
    made = picture(CHARTS[chart], Subject(points(rows_of(database))))
    assert made is not None
    values = {one["hardware"]: one["value"] for one in made.records}
    assert (values["cuda"] / values["cpu"]) ** power == pytest.approx(ratio)
