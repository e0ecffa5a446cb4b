"""Whose results may be compared with others."""

import pytest

from accelbench.core.unusable_reasons import simulation_of
from accelbench.core.vocabulary import Provenance
from accelbench.evidence.launches import launches_of


@pytest.mark.parametrize("word", [*(one.value for one in Provenance), "dreamt", None])
def test_only_measured_results_are_compared(word):
    (row,) = launches_of([{"provenance": word}])
    assert row["comparable"] is (word in ("measured", "imported"))


@pytest.mark.parametrize(
    "conditions", [None, {}, {"rules": {}}, {"simulation": None}, "simulation", {"simulation": 1}]
)
def test_what_was_not_calculated_has_no_simulation(conditions):
    assert simulation_of({"provenance": "simulated", "conditions": conditions}) is None


def test_what_was_calculated_tells_from_what():
    row = {"conditions": {"simulation": {"device": "a card"}}}
    assert simulation_of(row) == {"device": "a card"}
