"""The type of a result row is the registry's."""

from pathlib import Path

from accelbench.core import row_types, rows


def test_rows_have_types():
    assert Path(rows.__file__).read_text() == row_types.source()

    row = {"threads": 2, "model": "bert", "emulated": True}
    assert rows.number(row, "threads") == 2
    assert rows.number(row, "model") is None
    assert rows.number(row, "emulated") is None
    assert rows.number(row, "absent") is None
    assert rows.text(row, "model") == "bert"
    assert rows.text(row, "absent") == ""

    conditions = {"python": "3.11"}
    row = {"warnings": ["noisy"], "conditions": conditions, "model": "bert", "options": None}
    assert rows.texts(row, "warnings") == ["noisy"]
    assert rows.texts(row, "model") == rows.texts(row, "absent") == []
    assert rows.record(row, "conditions") is conditions
    assert rows.record(row, "model") == rows.record(row, "options") == {}
