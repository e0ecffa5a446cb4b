"""A series alone, which the program tells of many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from accelbench.judge.history import HistoryPoint, Series, every_series
from accelbench.judge.verdicts import Metric


def series_of(
    row: Mapping[str, Any], metric: Metric, points: Iterable[HistoryPoint], least: float
) -> Series:
    """A series and what happened in it."""
    return every_series([(row, metric, points)], least)[0]
