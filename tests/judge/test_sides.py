"""Which figure stands for a result, and which launches for a side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from accelbench.core.result_statistics import Statistic
from accelbench.judge.questions import AXES
from accelbench.judge.sides import Side, sides
from asked_rows import row


def first(places: Iterable[Any]) -> Any:
    return min(places)


NOTHING = {"latency_p50_ms": None, "latency_mean_ms": None}


def test_a_side_is_timed_by_the_figure_that_all_its_launches_have():
    side = Side(("cpu",), [row(), row(latency_p50_ms=None, latency_mean_ms=4.0)])
    assert (side.statistic, side.step) == (Statistic.MEAN, (pytest.approx(6.0), Statistic.MEAN))
    medians = Side(("cpu",), [row(), row(latency_mean_ms=None, latency_p50_ms=2.0)])
    assert (medians.statistic, medians.times) == (Statistic.MEDIAN, (8.0, 2.0))
    apart = Side(("cpu",), [row(latency_p50_ms=None), row(latency_mean_ms=None)])
    assert (apart.statistic, apart.times, apart.step) == (Statistic.MEDIAN, (8.0,), None)


def test_a_throughput_is_said_or_of_a_mean():
    assert Side(("cpu",), [row(batch_size=4, latency_p50_ms=8.0)]).throughput == pytest.approx(
        4e3 / 9.0
    )
    assert Side(("cpu",), [row(latency_mean_ms=None)]).throughput is None


def test_what_failed_or_has_no_figure_answers_nothing():
    assert sides([row(status="failed"), row(**NOTHING)], AXES["hardware"], first) == []


@pytest.mark.parametrize("axis", ["run", "date"])
def test_versions_that_an_import_brings_at_once_are_no_launches_of_one_thing(axis):
    """Three versions of an engine, brought in as one run, were averaged as three launches."""
    theirs = {"provenance": "imported", "run_id": "import-1"}
    versions = [
        row(**theirs, latency_p50_ms=ms, conditions={"torch": torch})
        for torch, ms in (("1.13", 40.0), ("2.4", 20.0), ("2.9", 24.0))
    ]
    (found,) = sides(versions, AXES[axis], first)
    (side,) = found.values()
    assert [one["latency_p50_ms"] for one in side.rows] == [20.0]
    launches = [row(launch=launch) for launch in range(3)]
    (found,) = sides(launches, AXES[axis], first)
    (side,) = found.values()
    assert len(side.rows) == 3


def test_days_that_an_import_brings_at_once_are_no_launches_of_its_run():
    """Forty releases of one table were averaged."""
    theirs = {"provenance": "imported", "run_id": "import-1"}
    days = [row(**theirs, started_at=f"2026-01-0{n} 00:00:00") for n in range(1, 5)]
    (found,) = sides([*days, {**days[-1], "launch": 1}], AXES["run"], first)
    (side,) = found.values()
    assert ([one["started_at"] for one in side.rows], side.older) == (
        ["2026-01-04 00:00:00"] * 2,
        3,
    )
    ours = [row(run_id="r", started_at=f"2026-01-0{n} 23:59:00") for n in (1, 2)]
    (found,) = sides(ours, AXES["run"], first)
    assert len(found["r",].rows) == 2


class _Spoken(dict[str, object]):
    """As a file's reader makes one, to know its line."""


def test_options_of_a_file_are_alike_with_those_of_the_store():
    told = row(options=_Spoken(compile=True), batch_size=4)
    stored = row(options={"compile": True}, batch_size=1)
    found = sides([told, stored], AXES["batch"], first)
    assert [len(places) for places in found] == [2]


def test_what_is_of_no_use_is_fastest_only_where_there_is_nothing_else():
    ways = [row(), row(runtime="jax", latency_p50_ms=2.0, quality="unusable")]
    (found,) = sides(ways, AXES["hardware"], first)
    (side,) = found.values()
    assert (side.row["runtime"], side.others) == ("pytorch", ("jax",))
    (found,) = sides(ways[1:], AXES["hardware"], first)
    (side,) = found.values()
    assert not side.usable
