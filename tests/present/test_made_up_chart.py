"""A chart is a declaration and a line: commands, reports and pages have it by that alone."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_world import result, store, visitor

from accelbench.cli.main import main
from accelbench.present import charts
from accelbench.store.database import Database

MADE_UP = replace(
    charts.CHARTS["pareto"],
    name="made-up",
    title="A made-up chart",
    answers="what a made-up chart answers",
    needs="three results",
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(charts.CHARTS, MADE_UP.name, MADE_UP)  # type: ignore[arg-type]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.chdir(tmp_path)
    batches = [
        result(runtime=engine, batch_size=n, latency_mean_ms=4.0 + n, throughput=1e3 * n / (4 + n))
        for engine, n in (("pytorch", 1), ("pytorch", 2), ("openvino", 1), ("openvino", 4))
    ]
    store(Database(tmp_path / "accelbench.duckdb"), "r1", *batches)

    def asked(*words: str) -> str:
        stream = io.StringIO()
        monkeypatch.setattr(sys, "argv", ["accelbench", *words])
        with redirect_stdout(stream), pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return stream.getvalue()

    return asked


def test_plot_lists_and_draws_it(said, tmp_path):
    assert "made-up" in said("plot", "--chart", "list")
    said("plot", "--chart", "made-up", "--format", "svg", "--output-dir", str(tmp_path / "p"))
    assert "A made-up chart" in (tmp_path / "p" / "made-up.svg").read_text(encoding="utf-8")


def test_a_report_and_a_page_have_it(said, tmp_path):
    said("report", "--output", "r.html")
    assert "A made-up chart" in (tmp_path / "r.html").read_text(encoding="utf-8")
    page = visitor(Database(tmp_path / "accelbench.duckdb")).get("/charts").text
    assert "A made-up chart" in page
