"""Intervals and ranges as views show them: a range below five launches, nothing too wide."""

import pytest

from accelbench.core.formatting import NOT_KNOWN, format_digits
from accelbench.core.result_statistics import (
    Spread,
    SpreadKind,
    changes_text,
    ends_document,
    ends_text,
    interval_text,
    read_spread,
    shown_ends,
)
from accelbench.measure.launch_verdicts import interval_of, spread_of


@pytest.mark.parametrize("values", [(0.21, 0.34), (2.0, 3.0, 2.5), (1.0, 1.1, 1.2, 1.3)])
def test_few_launches_have_a_range(values):
    spread = spread_of(values)
    assert spread == Spread(min(values), max(values), SpreadKind.RANGE, len(values))
    assert f"range of {len(values)} launches" in spread.text(2.0, format_digits)
    assert spread.sentence(format_digits).startswith("range of")


def test_intervals_and_ranges_of_launches():
    values = (2.0, 2.01, 1.99, 2.02, 1.98)
    spread = spread_of(values)
    assert (spread.low, spread.high) == interval_of(values)
    assert (spread.kind, spread.count) == (SpreadKind.INTERVAL, 5)

    spread = spread_of((0.01, 30.0, 5.0, 0.02, 900.0))
    assert (spread.low, spread.high) == (None, None)
    assert spread.text(1.9, format_digits) == NOT_KNOWN
    assert spread.absence_reason
    assert ends_document(spread)["why_no_ends"]
    assert shown_ends(1e-15, 5e15) == (None, None)
    assert shown_ends(0.0, 1.0) == (None, None)
    assert shown_ends(1.0, 100.0) == (1.0, 100.0)
    assert interval_text(0.01, 1.0, 1.5, format_digits) == NOT_KNOWN
    assert ends_text(0.01, 1.5, format_digits) == NOT_KNOWN
    assert changes_text(-0.99, 3.0, format_digits) == NOT_KNOWN
    assert changes_text(-0.5, 1.0, format_digits) == "-0.500 … 1.00"

    assert spread_of((2.0, 2.0)) is None
    assert spread_of((2.0,)) is None
    within = spread_of((2.0,), (1.9, 2.1))
    assert within == Spread(1.9, 2.1, SpreadKind.SAMPLES)
    spread = Spread(1.0, 2.0, SpreadKind.RANGE, 3)
    assert read_spread({**ends_document(spread), "count": 3}) == spread
    assert read_spread(ends_document(None)) is None
