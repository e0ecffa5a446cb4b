"""`recommend` and `predict` say whose measurements their figures are, or rest on."""

from __future__ import annotations

from pathlib import Path

import pytest
from recommend_world import CARD, DB, answer
from stored_rows import store

from accelbench.predict import traces

TIMM = {"provenance": "imported", "conditions": {"source": {"name": "timm"}}}
_SENTENCE = "imported: measured by others (timm), not here."


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    store(tmp_path / DB, {}, {**CARD, **TIMM})


def line_of(out: str, name: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if name in line.split()[:2])


@pytest.mark.usefixtures("imported")
def test_a_table_calls_imported_what_others_measured(recommend):
    _, out, _ = recommend("bert-tiny", "--hardware", "cpu,cuda")
    assert "imported" in line_of(out, "cuda")
    assert "measured" not in line_of(out, "cuda")
    assert "measured" in line_of(out, "cpu")
    assert _SENTENCE in out
    found = answer(recommend, "bert-tiny", "--hardware", "cpu,cuda")
    assert found["all_scores"]["cuda"]["provenance"] == "imported"


@pytest.mark.usefixtures("imported")
def test_limits_ranks_and_lists_say_it_too(recommend):
    _, out, _ = recommend("bert-tiny", "--max-latency-ms", "5")
    assert "imported" in out
    assert _SENTENCE in out
    _, out, _ = recommend("--task", "embedding", "--hardware", "cuda")
    assert "imported" in line_of(out, "1")
    assert _SENTENCE in out
    _, out, _ = recommend("bert-tiny", "--batch-size", "1,2", "--hardware", "cuda")
    assert _SENTENCE in out


def test_what_was_measured_here_alone_has_no_such_words(tmp_path, recommend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    store(tmp_path / DB, {}, CARD)
    for words in (("bert-tiny",), ("bert-tiny", "--max-latency-ms", "5")):
        _, out, _ = recommend(*words)
        assert "imported" not in out
        assert "others" not in out.replace("others may", "")


def test_a_prediction_says_who_measured_what_it_is_learned_from(tmp_path, command, monkeypatch):
    monkeypatch.setattr(traces, "torch_is_here", lambda: False)
    monkeypatch.setenv("COLUMNS", "200")
    predict = command("predict")
    rows = [{"batch_size": batch, "series_key": f"s{batch}", "latency_p50_ms": 4.0 + batch}
            for batch in (1, 4, 16)]  # fmt: skip
    store(tmp_path / DB, *({**row, **(TIMM if row["batch_size"] == 4 else {})} for row in rows))
    _, out, _ = predict("bert-tiny", "--batch-sizes", "1,4,8")
    assert "learned from 3 measured cases, 1 of them measured by others." in out
    assert "this case, measured by others" in out
    found = predict.json("bert-tiny", "--batch-sizes", "1,4,8")
    assert (found["learned_from"], found["learned_imported"]) == (3, 1)
    by_batch = {one["batch_size"]: one for one in found["predictions"]}
    assert by_batch[1]["measured_provenance"] == "measured"
    assert (by_batch[4]["measured_provenance"], by_batch[4]["measured_source"]) == (
        "imported", "timm",
    )  # fmt: skip
    assert [by_batch[batch]["rests_on"] for batch in (1, 4, 8)] == [
        ["measured"], ["imported"], ["measured", "imported"],
    ]  # fmt: skip
