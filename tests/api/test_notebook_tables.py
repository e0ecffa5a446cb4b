"""Comparisons and histories in a notebook: what they hold, how they look, what a script does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import accelbench
from accelbench.api.comparing import ComparisonTable
from accelbench.core.errors import UsageError
from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_STARTED, Fact
from accelbench.store.database import Database
from accelbench.store.journal import Journal

DOCS = Path(__file__).parents[2] / "docs"
MACHINE = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 2**34}


def launch(night: int, number: int, engine: str, ms: float, batch: int) -> dict[str, Any]:
    step = ms * (1 + 0.002 * number)
    return {
        "model": "bert-tiny", "family": "embedding", "hardware": "cpu",
        "device_name": "A processor", "device_fingerprint": "f", "runtime": engine,
        "precision": "fp32", "batch_size": batch, "sequence_length": 128, "mode": "inference",
        "scenario": "single_stream", "threads": 2, "launch": number, "status": "ok",
        "provenance": "measured", "quality": "converged", "verification": "ok",
        "weights_digest": "w", "latency_p50_ms": step, "latency_mean_ms": step,
        "throughput": 1e3 * batch / step, "throughput_unit": "sequences/s", "memory_peak_mb": 100.0,
        "case_id": f"{engine}/{batch}", "series_key": f"{engine}/{batch}@f",
        "started_at": f"2026-01-{night + 2:02}T03:04:{number:02}.000000Z",
    }  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Six nights of two engines; one of them takes half as long again from the fourth on."""
    made = Database(tmp_path_factory.mktemp("notebook") / "lab.duckdb")
    made.ensure()
    for night in range(6):
        with Journal.create(made.journals, f"night-{night}") as journal:
            started = {"started_at": f"2026-01-{night + 2:02}T00:00:00Z", "environment": MACHINE}
            journal.append(Fact(RUN_STARTED, f"s{night}", {**started, "run_id": f"night-{night}"}))
            for engine, ms in (("pytorch", 8.0 if night < 3 else 12.0), ("onnxruntime", 4.0)):
                for batch in (1, 8):
                    for number in range(5):
                        row = launch(night, number, engine, ms * batch, batch)
                        fact = f"{night}-{engine}-{batch}-{number}"
                        journal.append(Fact(RESULT, fact, row))
            journal.append(Fact(RUN_FINISHED, f"e{night}", {"status": "finished"}))
    made.fill()
    return made


def without_script(page: str) -> str:
    found = re.findall(r"<script>.*?</script>", page, re.DOTALL)
    assert len(found) == 1
    return page.replace(found[0], "")


def test_tables_of_a_notebook(database):
    # A comparison is lines a frame and a chart.
    sides = accelbench.compare(
        "bert-tiny", by="runtime", baseline="pytorch", batch_sizes=1, db=database.path
    )
    faster = {line["runtime"]: line["speedup"] for line in sides}
    assert faster == {"pytorch": 1.0, "onnxruntime": pytest.approx(3.0)}
    assert list(sides.to_pandas()["runtime"]) == [line["runtime"] for line in sides]
    page = without_script(sides._repr_html_())
    assert "3×" in page
    assert page.count("<circle") == 2
    assert sides.plot()._repr_svg_().startswith("<svg")
    # A history is lines a frame and a chart.
    told = accelbench.history(db=database.path, framework="pytorch", batch_sizes=1)
    (line,) = told
    assert (line["point_count"], line["answer"]) == (6, "worse")
    assert len(told.to_pandas()) == 1
    page = without_script(told._repr_html_())
    assert page.count("<polyline") == 1
    assert "12.05" in page
    assert told.plot()._repr_svg_().startswith("<svg")
    # What is not known is refused in a sentence.
    with pytest.raises(UsageError, match="There is no axis"):
        accelbench.compare(by="runtimes", db=database.path)
    with pytest.raises(UsageError, match="No metric is called"):
        accelbench.history(metric="speed", db=database.path)
    with pytest.raises(UsageError, match="Nothing to allow"):
        accelbench.compare(allow="all", db=database.path)
    with pytest.raises(UsageError, match="has results at two values"):
        accelbench.compare(by="hardware", db=database.path)
    with pytest.raises(UsageError, match="of no store"):
        ComparisonTable([]).plot()
    # A comparison as text has the reason of a side that is not compared.
    line = {"model": "m", "hardware": "cpu", "latency_ms": 5.0, "figure": "p50"}
    table = ComparisonTable([{**line, "refused": "unusable, like its baseline"}])
    assert repr(table).endswith("not compared: unusable, like its baseline")
    assert "not compared" not in repr(ComparisonTable([{**line, "speedup": 2.0}]))


def test_the_example_of_the_page_runs(database, monkeypatch):
    (code, *_) = re.findall(r"```python\n(.*?)```", (DOCS / "notebooks.md").read_text(), re.DOTALL)
    monkeypatch.chdir(database.path.parent)
    names: dict[str, Any] = {}
    exec(code, names)
    assert len(names["sides"]) == 4
    assert len(names["told"]) == 4
