"""Which figure stands for a result, and which launches for a side."""

from __future__ import annotations

import math
from typing import Any

import pytest

from accelbench.analysis.questions import AXES
from accelbench.analysis.sides import Basis, Side, newest, sides, time_of
from asked_rows import row

NOTHING = {"latency_p50_ms": None, "latency_mean_ms": None}


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({}, (8.0, Basis.MEDIAN)),
        ({"latency_p50_ms": None}, (9.0, Basis.MEAN)),
        ({**NOTHING, "throughput": 500.0, "latency_p90_ms": 9.0}, (2.0, Basis.RATE)),
        ({**NOTHING, "throughput": 500.0, "batch_size": 8}, (16.0, Basis.RATE)),
        ({**NOTHING, "latency_p90_ms": 9.0, "latency_p99_ms": 12.0}, (9.0, Basis.P90)),
        ({**NOTHING, "latency_p99_ms": 12.0}, (12.0, Basis.P99)),
        ({**NOTHING, "latency_p90_ms": 9.0, "latency_p90_rough": True}, None),
        ({"latency_p50_ms": 0.0}, (9.0, Basis.MEAN)),
        ({"latency_p50_ms": 0.0, "latency_mean_ms": 0.0}, None),
        (NOTHING, None),
    ],
)
def test_the_figure_that_says_most_stands_for_a_result(
    figures: dict[str, Any], expected: tuple[float, Basis] | None
) -> None:
    assert time_of(row(**figures)) == expected


def test_a_side_of_two_figures_is_called_by_the_one_that_says_less() -> None:
    side = Side(("cpu",), [row(), row(latency_p50_ms=None)])
    assert (side.basis, side.latency_ms) == (Basis.MEAN, pytest.approx(math.sqrt(8.0 * 9.0)))


def test_an_items_time_gives_a_throughput_where_none_is_known() -> None:
    assert Side(("cpu",), [row(batch_size=4)]).throughput == pytest.approx(500.0)


def test_of_an_import_of_many_releases_the_newest_day_speaks() -> None:
    old = row(run_id="import-a", started_at="2026-01-01 23:00:00")
    new = [row(run_id="import-a", started_at=f"2026-02-01 0{n}:00:00") for n in (1, 2)]
    assert newest([old, *new]) == new


def test_a_run_of_ours_may_pass_midnight() -> None:
    launches = [row(started_at=f"2026-01-0{n} 00:00:00") for n in (1, 2)]
    assert newest(launches) == launches


def test_what_failed_or_has_no_figure_answers_nothing() -> None:
    assert sides([row(status="failed"), row(**NOTHING)], AXES["hardware"]) == []


class _Spoken(dict[str, object]):
    """As a file's reader makes one, to know its line."""


def test_options_of_a_file_are_alike_with_those_of_the_store() -> None:
    told = row(options=_Spoken(compile=True), batch_size=4)
    stored = row(options={"compile": True}, batch_size=1)
    found = sides([told, stored], AXES["batch"])
    assert [len(places) for places in found] == [2]


def test_what_is_of_no_use_is_fastest_only_where_there_is_nothing_else() -> None:
    ways = [row(), row(runtime="jax", latency_p50_ms=2.0, quality="unusable")]
    (found,) = sides(ways, AXES["hardware"])
    (side,) = found.values()
    assert (side.row["runtime"], side.others) == ("pytorch", ("jax",))
    (found,) = sides(ways[1:], AXES["hardware"])
    (side,) = found.values()
    assert not side.usable
