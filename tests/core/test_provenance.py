"""Whose figures may be compared with others: one rule, in Python and in SQL alike."""

from __future__ import annotations

import duckdb
import pytest

from accelbench.core.vocabulary import Provenance
from accelbench.core.worth import COMPARABLE_SQL, comparable, simulation_of


@pytest.mark.parametrize("word", [*(one.value for one in Provenance), "dreamt", None])
def test_only_what_somebody_measured_is_compared_in_python_and_in_sql(word: str | None) -> None:
    expected = word in ("measured", "imported")
    assert comparable({"provenance": word}) is expected
    row = "(SELECT ?::VARCHAR AS provenance, NULL AS arm)"
    sql = f"SELECT coalesce({COMPARABLE_SQL}, false) FROM {row}"
    assert duckdb.execute(sql, [word]).fetchall() == [(expected,)]


@pytest.mark.parametrize(
    "conditions", [None, {}, {"rules": {}}, {"simulation": None}, "simulation", {"simulation": 1}]
)
def test_what_was_not_calculated_has_no_simulation(conditions: object) -> None:
    assert simulation_of({"provenance": "simulated", "conditions": conditions}) is None


def test_what_was_calculated_tells_from_what() -> None:
    row = {"conditions": {"simulation": {"device": "a card"}}}
    assert simulation_of(row) == {"device": "a card"}
