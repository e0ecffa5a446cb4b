"""Which launches stand for a question that was measured more than once."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.analysis.points import points
from accelbench.analysis.standing import newest, software, standing
from asked_rows import row


def launches(count: int, day: int, **changes: Any) -> list[dict[str, Any]]:
    """Of one run."""
    return [
        row(run_id=f"r{day}", launch=n, started_at=f"2026-01-{day:02} 00:00:0{n}", **changes)
        for n in range(count)
    ]


def test_a_lone_noisy_launch_does_not_take_the_place_of_five() -> None:
    five, noisy = launches(5, 1), launches(1, 2, latency_p50_ms=454.0, quality="noise_limited")
    found = standing([*five, *noisy])
    assert (found.rows, found.older, found.newer) == (five, 0, 1)
    (point,) = points([*five, *noisy])
    assert point.rows == five


def test_of_as_good_evidence_the_newer_stands() -> None:
    old, new = launches(7, 1), launches(5, 2)
    found = standing([*old, *new])
    assert (found.rows, found.older, found.newer) == (new, 7, 0)


@pytest.mark.parametrize("quality", ["noise_limited", "unsteady", "unusable"])
def test_settled_launches_come_before_such_as_are_not(quality: str) -> None:
    old, new = launches(1, 1, quality="converged"), launches(1, 2, quality=quality)
    assert standing([*old, *new]).rows == old


def test_what_is_unusable_stands_only_where_there_is_nothing_else() -> None:
    wild = launches(5, 2, quality="unusable")
    assert standing([*launches(1, 1, quality="noise_limited"), *wild]).rows[0]["run_id"] == "r1"
    assert standing(wild).rows == wild


def test_of_other_software_the_newest_stands_however_few() -> None:
    old = launches(5, 1, conditions={"packages": {"torch": "2.12"}})
    new = launches(1, 2, conditions={"packages": {"torch": "2.13"}})
    assert standing([*old, *new]).rows == new


def test_how_long_was_measured_is_no_software() -> None:
    one, two = (
        row(conditions={"packages": {"torch": "2.13"}, "rules": {"iterations": n}}) for n in (1, 2)
    )
    assert software(one) == software(two) == (("packages.torch", "2.13"),)


def test_of_an_import_of_many_releases_the_newest_day_speaks() -> None:
    old = row(run_id="import-a", started_at="2026-01-01 23:00:00")
    new = [row(run_id="import-a", started_at=f"2026-02-01 0{n}:00:00") for n in (1, 2)]
    assert newest([old, *new]) == new


def test_a_run_of_ours_may_pass_midnight() -> None:
    several = [row(started_at=f"2026-01-0{n} 00:00:00") for n in (1, 2)]
    assert newest(several) == several


def test_a_launch_of_no_use_is_left_out_beside_such_as_are() -> None:
    good = launches(4, 1, quality="converged")
    wild = row(run_id="r1", launch=4, latency_p50_ms=800.0, quality="unusable")
    found = standing([*good, wild])
    assert (list(found.rows), list(found.unusable)) == (good, [wild])
    (point,) = points([*good, wild])
    assert list(point.rows) == good


def test_of_runs_at_one_moment_the_later_name_stands_whatever_their_order() -> None:
    both = [row(run_id=name, started_at="2026-01-01 00:00:00") for name in ("a", "b")]
    assert standing(both).rows[0]["run_id"] == standing(both[::-1]).rows[0]["run_id"] == "b"


def test_variables_and_limits_are_no_other_software() -> None:
    packages = {"packages": {"torch": "2.13"}, "python": "3.11", "kernel": "6"}
    old = launches(5, 1, conditions={**packages, "governor": "powersave"})
    new = launches(
        1, 2, conditions={**packages, "governor": "performance"}, quality="noise_limited"
    )
    assert standing([*old, *new]).rows == old
