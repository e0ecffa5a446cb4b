"""Units of throughput."""

from __future__ import annotations

import pytest

from accelbench.core.rates import ITEMS, kind_of_unit, unit_beside, unit_of_all

TOKENS, IMAGES = ({"throughput": 9.0, "throughput_unit": unit} for unit in ("tokens/s", "images/s"))
NAMELESS = {"throughput": 9.0}
RATELESS = {"throughput_unit": "sequences/s"}


@pytest.mark.parametrize(
    ("rows", "unit"),
    [
        ([TOKENS, TOKENS], "tokens/s"),
        ([IMAGES, RATELESS], "images/s"),
        ([IMAGES, TOKENS], ITEMS),
        ([IMAGES, NAMELESS], ITEMS),
        ([], ITEMS),
    ],
)
def test_a_column_says_the_unit_that_all_of_its_rates_have(
    rows: list[dict[str, object]], unit: str
) -> None:
    assert unit_of_all(rows) == unit


def test_a_rate_of_other_things_than_its_column_says_its_own_unit() -> None:
    beside = [unit_beside(row, ITEMS) for row in (TOKENS, IMAGES, NAMELESS, RATELESS)]
    assert beside == ["tokens/s", "", "", ""]
    assert unit_beside(TOKENS, "tokens/s") == ""


def test_an_item_of_the_batch_is_the_same_by_any_name() -> None:
    assert kind_of_unit("Images/s") == kind_of_unit("inferences/s") == ""
    assert kind_of_unit("Tokens/s") == "tokens/s"
