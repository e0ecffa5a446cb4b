"""Units of throughput."""

import duckdb
import pytest

from accelbench.core.model import ModelSpec
from accelbench.core.result_statistics import (
    ITEMS,
    common_times,
    common_unit,
    differing_unit,
    throughput_unit,
    unit_kind,
    unit_kind_sql,
)

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
def test_a_column_says_the_unit_that_all_of_its_rates_have(rows, unit):
    assert common_unit(rows) == unit


def test_units_of_headings():
    beside = [differing_unit(row, ITEMS) for row in (TOKENS, IMAGES, NAMELESS, RATELESS)]
    assert beside == ["tokens/s", "", "", ""]
    assert differing_unit(TOKENS, "tokens/s") == ""
    stored = {"throughput": 2.0, "throughput_unit": "samples/s"}
    assert (
        throughput_unit(stored)
        == common_unit([stored, {**stored, "throughput_unit": ITEMS}])
        == ITEMS
    )
    assert ModelSpec.__dataclass_fields__["item"].default == "items"
    assert unit_kind("Images/s") == unit_kind("inferences/s") == ""
    assert unit_kind("Tokens/s") == unit_kind("token/sec") == "token"


@pytest.mark.parametrize(
    "unit",
    ["batches/s", "ksamples/s", "samples/s/gpu", "ms", "iterations/s", "audio s/s", "steps per s"],
)
def test_what_is_no_item_of_the_batch_is_of_a_kind_of_its_own(unit):
    """A rate of 2 batches of 64 a second is no rate of 2 items, nor a step of 32 seconds."""
    assert unit_kind(unit)
    row = {"throughput": 2.0, "throughput_unit": unit, "batch_size": 64}
    assert common_times([row], [row | {"throughput_unit": "samples/s"}]) is None


@pytest.mark.parametrize(
    "unit", [None, "", "n/a", "Samples/s", "fps", "images per second", "tokens/s", "k%_'s/s", "ms"]
)
def test_units_are_told_apart_alike_in_sql(unit):
    with duckdb.connect() as asked:
        ((found,),) = asked.execute(f"SELECT {unit_kind_sql('$1::VARCHAR')}", [unit]).fetchall()
    assert found == unit_kind(unit or "")
