"""`--prices`: what figures cost, where figures are shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from shells import QUICK
from stored_rows import store

DB = "accelbench.duckdb"
CPU: dict[str, Any] = {
    "throughput": 100.0,
    "throughput_unit": "sequences/s",
    "latency_mean_ms": 8.0,
}
GPU = {
    **CPU,
    "hardware": "cuda",
    "device_name": "A card",
    "latency_p50_ms": 2.0,
    "latency_mean_ms": 2.0,
}
PRICES = '{"per_hour": {"A card": 3.6, "cpu": 0.072}} // ours'


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(PRICES, encoding="utf-8")
    return path


def test_a_comparison_has_a_column_of_cost_and_says_by_which_prices(tmp_path, compare, prices):
    store(tmp_path / DB, CPU, {**GPU, "throughput": 400.0})
    code, out, _ = compare("--prices", prices)
    assert code == 0
    lines = out.splitlines()
    (head,) = [line for line in lines if "$/M" in line and "hardware" in line]
    (cpu,) = [line for line in lines if line.strip().startswith("cpu A")]
    (gpu,) = [line for line in lines if line.strip().startswith("cuda A")]
    assert "$/step" not in head
    assert "0.200" in cpu  # 0.072 / 3600 / 100 × 1e6
    assert "2.50" in gpu
    said = " ".join(out.split())
    assert "$/M: for a million sequences." in said
    assert "A card at $3.60 an hour; cpu at $0.072 an hour." in said


def test_training_has_the_cost_of_a_step(tmp_path, compare, prices):
    trained = {"mode": "training", "latency_mean_ms": 500.0}
    store(tmp_path / DB, {**CPU, **trained}, {**GPU, **trained})
    code, out, _ = compare("--prices", prices)
    assert code == 0
    assert "$/step" in out
    assert "0.000500" in out  # 3.6 / 3600 × 0.5


def test_without_prices_nothing_is_said_of_cost(tmp_path, compare):
    store(tmp_path / DB, CPU, GPU)
    code, out, _ = compare()
    assert code == 0
    assert "$" not in out


def test_json_and_csv_have_cost_currency_and_price(tmp_path, compare, prices):
    store(tmp_path / DB, CPU, {**GPU, "throughput": 400.0})
    found = compare.json("--prices", prices, "--output", "costs.csv")
    cpu, gpu = found["comparisons"]
    assert gpu["cost_per_million"] == pytest.approx(2.5)
    assert (gpu["currency"], gpu["price_per_hour"], gpu["priced_by"]) == ("USD", 3.6, "A card")
    assert (cpu["priced_by"], cpu["cost_per_step"]) == ("cpu", None)
    with (tmp_path / "costs.csv").open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [float(line["cost_per_million"]) for line in lines] == [
        cpu["cost_per_million"],
        gpu["cost_per_million"],
    ]


def test_a_comparison_with_costs_is_still_a_baseline(tmp_path, command, prices):
    gpu = {"hardware": "cuda", "device_name": "A card"}
    store(tmp_path / DB, {"latency_p50_ms": 8.0}, {**gpu, "latency_p50_ms": 2.0})
    assert command("compare")("--prices", prices, "--output", "base.csv")[0] == 0
    store(tmp_path / DB, {"latency_p50_ms": 30.0}, {**gpu, "latency_p50_ms": 6.0}, run="r2")
    code, out, err = command("check")("--baseline", "base.csv")
    assert (code, err) == (1, "")
    assert "slower" in out or "worse" in out


def test_the_variable_names_the_file_where_the_option_does_not(
    tmp_path, compare, prices, monkeypatch
):
    store(tmp_path / DB, CPU, GPU)
    monkeypatch.setenv("ACCELBENCH_PRICES", str(prices))
    assert "$/M" in compare()[1]


def test_a_price_by_the_machine_s_name(tmp_path, compare):
    store(tmp_path / DB, CPU, GPU)
    path = tmp_path / "lab.json"
    path.write_text('{"currency": "EUR", "per_hour": {"LAB": 0.36}}', encoding="utf-8")
    found = compare.json("--prices", path)["comparisons"]
    assert {(one["priced_by"], one["currency"]) for one in found} == {("LAB", "EUR")}
    assert [one["cost_per_million"] for one in found] == pytest.approx([1.0, 1.0])


def test_a_wrong_file_is_refused_by_every_command(tmp_path, command):
    store(tmp_path / DB, CPU, GPU)
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"per_hour": {"cpu": -1}}', encoding="utf-8")
    for name in ("compare", "plot", "report", "dashboard"):
        code, _, err = command(name)("--prices", wrong)
        assert (name, code) == (name, 2)
        assert "wrong.json, line 1, 'cpu': -1 is not a valid price." in err


def test_prices_of_nothing_here_are_told_with_what_is_here(tmp_path, command):
    pytest.importorskip("vl_convert")
    store(tmp_path / DB, CPU, GPU)
    path = tmp_path / "prices.json"
    path.write_text('{"per_hour": {"card": 1}}', encoding="utf-8")
    for name in ("plot", "report"):
        _, _, err = command(name)("--prices", path)
        assert "here are A card (cuda), A processor (cpu). Did you mean A card?" in err


def test_a_chart_and_a_section_of_the_report(tmp_path, command, prices):
    pytest.importorskip("vl_convert")
    store(tmp_path / DB, CPU, {**GPU, "throughput": 400.0})
    found = command("plot").json("--prices", prices, "--chart", "hardware-cost,cost-by-batch")
    assert found == {
        "files": ["visualizations/hardware-cost.png"],
        "nothing_to_show": ["cost-by-batch"],
        "not_shown": [],
    }
    code, _, err = command("report")("--prices", prices, "--output", "r.md")
    assert code == 0, err
    said = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "## Cost" in said
    assert "bert-tiny, inference: cheapest is cpu, \\$0.200 for a million sequences" in said
    assert "![Hardware: cost" in said


def test_files_have_costs_as_a_database_has(tmp_path, command, prices):
    pytest.importorskip("vl_convert")
    told = {"case_id": "c", "series_key": "s", "launch": 0, "latency_mean_ms": 10.0}
    fast = {"throughput": 400.0, "latency_mean_ms": 2.5}
    store(tmp_path / DB, {**CPU, **told}, {**GPU, **told, **fast})
    assert command("db")("export", "all.json")[0] == 0
    code, _, err = command("report")(
        "--prices", prices, "--json-path", "all.json", "--output", "f.md"
    )
    assert code == 0, err
    assert "\\$0.200 for a million" in (tmp_path / "f.md").read_text(encoding="utf-8")


def test_nothing_of_a_price_is_stored(tmp_path, compare, prices):
    from accelbench.store.database import Database

    store(tmp_path / DB, CPU, GPU)
    compare("--prices", prices)
    _, rows = Database(tmp_path / DB).query("SELECT DISTINCT cost_usd FROM benchmark_results")
    assert rows == [(None,)]


def test_a_run_refuses_prices_that_would_show_nowhere_and_wrong_ones_before_it_measures(
    shell, prices
):
    alone = shell.refused("bert-tiny", "--prices", str(prices), *QUICK, code=2)
    assert "--prices requires --compare or --create-report." in alone
    prices.write_text('{"per_hour": {"cpu": "cheap"}}', encoding="utf-8")
    wrong = shell.refused("bert-tiny", "--prices", str(prices), "--compare", *QUICK, code=2)
    assert "a price is a number" in wrong


def test_what_a_run_simulates_costs_nothing_even_with_prices(shell, prices):
    asked = ("bert-tiny", "--batch-sizes", "1,2", "--prices", str(prices), "--compare", "--json")
    done = shell(*asked, *QUICK)
    rows = json.loads(done.stdout)["results"]
    assert {row["provenance"] for row in rows} == {"simulated"}
    assert {row["cost_usd"] for row in rows} == {None}
