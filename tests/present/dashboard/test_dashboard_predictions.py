"""The page of predictions: calculated when it is opened, marked, and nothing beside the store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dashboard_world import result, store, stored_in, visitor
from starlette.testclient import TestClient

from accelbench.present.dashboard import questions as prediction_pages
from accelbench.store.database import Database

TEXT = {"sequence_length": 128, "image_size": None}
IMAGE = {"sequence_length": None, "image_size": None, "family": "vision"}
MODELS = {"bert-tiny": TEXT, "distilbert-tiny": TEXT, "vit-tiny": IMAGE, "resnet-tiny": IMAGE}


def measured(path: Path, *batches: int) -> Database:
    """A store with four models at some batches."""
    database = stored_in(path)
    rows = [
        result(model=model, batch_size=batch, latency_p50_ms=3.0 * number + batch, **sizes)
        for number, (model, sizes) in enumerate(MODELS.items(), start=1)
        for batch in batches
    ]
    store(database, "r", *rows)
    return database


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return visitor(measured(tmp_path_factory.mktemp("judged") / "a.duckdb", 1, 4, 16))


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_too_few_cases_are_one_line(site):
    said = text(site.get("/predictions").text)
    assert "Predictions are judged by 10 measured cases of 3 models or more; there are" in said
    assert site.get("/predictions/predicted-measured.svg").status_code == 404


def test_predictions_of_a_store(judged):
    # It has scores by engine and both pictures.
    page = judged.get("/predictions")
    assert page.status_code == 200
    said = text(page.text)
    assert "latency all 12" in said
    assert "latency pytorch/cpu 12" in said
    assert "memory all 12" in said
    assert "they are in no comparison" in said
    for name in ("predicted-measured", "batch-scaling"):
        assert f'src="/predictions/{name}.svg"' in page.text
        picture = judged.get(f"/predictions/{name}.svg")
        assert picture.headers["content-type"] == "image/svg+xml"
        assert "default-src 'none'" in picture.headers["content-security-policy"]
        assert picture.text.startswith("<svg")
    # Batch scaling goes beyond what was measured and marks both.
    page = judged.get("/predictions").text
    rows = page.partition("Batch scaling")[2].partition("<tbody>")[2]
    kinds = re.findall(r"<bdi>(\d+)</bdi></td><td><bdi>(measured|predicted)</bdi>", rows)
    assert {int(batch) for batch, kind in kinds if kind == "measured"} == {1, 4, 16}
    assert {int(batch) for batch, kind in kinds if kind == "predicted"} == {
        1, 2, 4, 8, 16, 32, 64
    }  # fmt: skip
    # A picture is kept as a file where that is asked for.
    answer = judged.get("/predictions/batch-scaling.png?download=1")
    assert answer.headers["content-disposition"] == 'attachment; filename="batch-scaling.png"'
    assert answer.content.startswith(b"\x89PNG")
    assert judged.get("/predictions/batch-scaling.pdf").status_code == 404
    assert judged.get("/predictions/nothing.svg").status_code == 404
    # It is of the whole store and its address carries no filters.
    page = judged.get("/results?model=bert").text
    assert '<a href="/predictions">' in page
    assert '<a href="/charts?model=bert">' in page


def test_nothing_is_written_beside_the_store(tmp_path):
    page = visitor(measured(tmp_path / "a.duckdb", 1, 4, 16)).get("/predictions")
    assert "pytorch/cpu" in page.text
    assert not [path for path in tmp_path.iterdir() if "prediction" in path.name]


def test_no_other_page_waits_for_it_and_it_is_judged_once(tmp_path, monkeypatch):
    database = measured(tmp_path / "a.duckdb", 1, 4, 16)
    judged: list[Any] = []
    evidence_in = prediction_pages.evidence_in

    def counted(database: Database) -> Any:
        judged.append(database)
        return evidence_in(database)

    monkeypatch.setattr(prediction_pages, "evidence_in", counted)
    pages = visitor(database)
    for address in ("/", "/results", "/charts", "/matrix", "/history", "/runs", "/chart/pareto"):
        assert pages.get(address).status_code == 200
    assert not judged
    for address in ("/predictions", "/predictions/predicted-measured.svg", "/predictions"):
        assert pages.get(address).status_code == 200
    assert len(judged) == 1
