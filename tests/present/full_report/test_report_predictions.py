"""A report's sections about predictions: with enough cases, in a line with too few."""

from __future__ import annotations

import pytest
from dashboard_world import result, store

from accelbench.present.document import ChartBlock, DocumentSection, Notes, Table
from accelbench.present.markdown import as_markdown
from accelbench.present.pages.document_page import as_html
from accelbench.present.prediction_evidence import PredictionEvidence, evidence_in
from accelbench.present.report_data import known_in
from accelbench.present.report_parts import predictions, report
from accelbench.store.database import Database

TITLES = ["Predicted against measured", "Batch scaling: predicted and measured"]
TEXT_MODELS = ("bert-tiny", "distilbert-tiny", "bert-base", "distilbert-base")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Four models at three batches."""
    made = Database(tmp_path_factory.mktemp("report") / "a.duckdb")
    made.ensure()
    rows = [
        result(model=model, batch_size=batch, latency_p50_ms=3.0 * number + batch)
        for number, model in enumerate(TEXT_MODELS, start=1)
        for batch in (1, 4, 16)
    ]
    store(made, "r", *rows)
    return made


def sections(database: Database, **filters: tuple[str, ...]) -> list[DocumentSection]:
    made = report(known_in(database, filters, None))
    return [section for section in made.sections if section.title in TITLES]


def test_predictions_in_a_report(database):
    # Both sections with picture and scores.
    against, scaling = sections(database)
    assert [section.title for section in (against, scaling)] == TITLES
    (figure,) = [block for block in against.blocks if isinstance(block, ChartBlock)]
    assert figure.name == "predicted-measured"
    assert figure.table.is_folded
    (scores,) = [block for block in against.blocks if isinstance(block, Table)]
    assert [row[:3] for row in scores.rows] == [
        ["latency", "all", "12"], ["latency", "pytorch/cpu", "12"],
        ["memory", "all", "12"], ["memory", "pytorch/cpu", "12"],
    ]  # fmt: skip
    (said, *_) = [block for block in against.blocks if isinstance(block, Notes)]
    assert "in no comparison" in said.sentences[0]
    (figure,) = [block for block in scaling.blocks if isinstance(block, ChartBlock)]
    kind = [column.label for column in figure.table.columns].index("kind")
    assert {row[kind] for row in figure.table.rows} == {"measured", "predicted"}
    # As html and as markdown.
    made = report(known_in(database, {}, None))
    page = as_html(made)
    assert page.count("<svg role") >= 2
    assert "12 cases" in page
    files = {"predicted-measured": "c/p.png", "batch-scaling": "c/b.png"}
    assert "(c/p.png)" in as_markdown(made, pictures=files)
    # A report of few models judges these and says that they are few.
    (section,) = sections(database, model=("bert-tiny", "distilbert-tiny"))
    (block,) = section.blocks
    assert isinstance(block, Notes)
    said = " ".join(block.sentences)
    assert "judged by 10 measured cases of 3 models or more; there are 6 cases of 2 models" in said
    # Predictions are in no other section.
    made = report(known_in(database, {}, None))
    others = [section for section in made.sections if section.title not in TITLES]
    tables = [block for section in others for block in section.blocks if isinstance(block, Table)]
    assert "predicted" not in {cell for table in tables for row in table.rows for cell in row}


def test_a_large_store_that_was_never_learned_from_is_not_fitted(database, monkeypatch):
    from accelbench.present import prediction_evidence

    monkeypatch.setattr(prediction_evidence, "MOST_FITTED", 11)
    evidence = evidence_in(database)
    assert "accelbench predict --retrain" in evidence.why
    assert evidence.picture is None


def test_where_nobody_asked_there_is_no_section(tmp_path):
    assert not list(predictions(None))
    (section,) = predictions(PredictionEvidence(why="Because."))
    (block,) = section.blocks
    assert isinstance(block, Notes)
    assert block.sentences == ["Because."]
    assert not list(tmp_path.iterdir())
