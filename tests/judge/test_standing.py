"""Which launches stand for a question that was measured more than once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from accelbench.evidence.launches import launches_of, newest_run
from accelbench.evidence.measurements import RunMeasurement, current_measurements
from accelbench.judge.points import points
from accelbench.judge.versions import software
from asked_rows import row as asked


def row(**changes: Any) -> dict[str, Any]:
    (launch,) = launches_of([asked(**changes)])
    return {**launch}


def standing(rows: list[dict[str, Any]]) -> RunMeasurement:
    (current,) = current_measurements([rows])
    return current


def launches(count: int, day: int, **changes: Any) -> list[dict[str, Any]]:
    """Of one run."""
    return [
        row(run_id=f"r{day}", launch=n, started_at=f"2026-01-{day:02} 00:00:0{n}", **changes)
        for n in range(count)
    ]


def test_a_lone_noisy_launch_does_not_take_the_place_of_five():
    five, noisy = launches(5, 1), launches(1, 2, latency_p50_ms=454.0, quality="noise_limited")
    found = standing([*five, *noisy])
    assert (found.rows, found.older, found.newer) == (five, 0, 1)
    (point,) = points([*five, *noisy])
    assert point.rows == five


def test_of_as_good_evidence_the_newer_stands():
    old, new = launches(7, 1), launches(5, 2)
    found = standing([*old, *new])
    assert (found.rows, found.older, found.newer) == (new, 7, 0)


@pytest.mark.parametrize("quality", ["noise_limited", "unsteady", "unusable"])
def test_settled_launches_come_before_such_as_are_not(quality):
    old, new = launches(1, 1, quality="converged"), launches(1, 2, quality=quality)
    assert standing([*old, *new]).rows == old


def test_what_is_unusable_stands_only_where_there_is_nothing_else():
    wild = launches(5, 2, quality="unusable")
    assert standing([*launches(1, 1, quality="noise_limited"), *wild]).rows[0]["run_id"] == "r1"
    assert standing(wild).rows == wild


def test_of_other_software_the_newest_stands_however_few():
    old = launches(5, 1, conditions={"packages": {"torch": "2.12"}})
    new = launches(1, 2, conditions={"packages": {"torch": "2.13"}})
    assert standing([*old, *new]).rows == new


@pytest.mark.parametrize(("weights", "stands"), [("code", 1), ("file", 1), ("random", 5)])
def test_of_code_or_a_file_that_was_changed_the_newest_stands(weights, stands):
    """Weights that are drawn anew are no other model."""
    old = launches(5, 1, weights=weights, weights_digest="before")
    new = launches(1, 2, weights=weights, weights_digest="now")
    assert len(standing([*old, *new]).rows) == stands
    again = launches(1, 3, weights=weights, weights_digest="before")
    assert standing([*old, *new, *again]).rows == old


def test_how_long_was_measured_is_no_software():
    one, two = (
        row(conditions={"packages": {"torch": "2.13"}, "rules": {"iterations": n}}) for n in (1, 2)
    )
    assert software(one) == software(two) == (("packages.torch", "2.13"),)


def test_of_an_import_of_many_releases_the_newest_day_speaks():
    old = row(run_id="import-a", started_at="2026-01-01 23:00:00")
    new = [row(run_id="import-a", started_at=f"2026-02-01 0{n}:00:00") for n in (1, 2)]
    assert newest_run([old, *new]) == new


def test_a_run_of_ours_may_pass_midnight():
    several = [row(started_at=f"2026-01-0{n} 00:00:00") for n in (1, 2)]
    assert newest_run(several) == several


def test_a_launch_of_no_use_is_left_out_beside_such_as_are():
    good = launches(4, 1, quality="converged")
    wild = row(run_id="r1", launch=4, latency_p50_ms=800.0, quality="unusable")
    found = standing([*good, wild])
    assert (list(found.rows), list(found.unusable_rows)) == (good, [wild])
    (point,) = points([*good, wild])
    assert list(point.rows) == good


def test_of_runs_at_one_moment_the_later_name_stands_whatever_their_order():
    both = [row(run_id=name, started_at="2026-01-01 00:00:00") for name in ("a", "b")]
    assert standing(both).rows[0]["run_id"] == standing(both[::-1]).rows[0]["run_id"] == "b"


def test_variables_and_limits_are_no_other_software():
    packages = {"packages": {"torch": "2.13"}, "python": "3.11", "kernel": "6"}
    old = launches(5, 1, conditions={**packages, "governor": "powersave"})
    new = launches(
        1, 2, conditions={**packages, "governor": "performance"}, quality="noise_limited"
    )
    assert standing([*old, *new]).rows == old


def test_of_an_import_each_version_stands_beside_others_and_of_our_runs_the_newest():
    """A run of ours that came in by its files is ranked as where it was measured."""
    both = [{"conditions": {"packages": {"torch": torch}}} for torch in ("2.4", "2.9")]
    for run, points_there in (("import-1", 2), ("r1", 1)):
        brought = [row(**one, run_id=run, provenance="imported") for one in both]
        assert len(points(brought)) == points_there


#: Nothing of it tells one way of running from another.
_SAYS_NOTHING = {
    "cases_before_in_worker": 3, "effective_memory": "8 GiB", "effective_cpus": 2,
    "rules": {"iterations": 7}, "variables": {"A": "b"}, "commit": "c", "source": {"name": "s"},
    "said": {"file": "f"}, "kin": "k", "job_id": "j", "ID": 4,
}  # fmt: skip


@pytest.mark.parametrize("run", ["import-1", "r1"])
def test_versions_of_an_import_differ_by_their_software(run):
    said: list[dict[str, Any]] = [
        {},
        _SAYS_NOTHING,
        {"packages": {"torch": "2.4"}},
        {"packages": {"torch": "2.4"}, **_SAYS_NOTHING},
        {"packages": {"torch": "2.9"}, "governor": None},
        {"packages": {"torch": "2.9"}},
        {"packages": {"torch": "2.9"}, "governor": "powersave"},
    ]
    rows = launches_of([asked(run_id=run, conditions=one) for one in said])
    found = [one["import_version"] for one in rows]
    ours = [software(one) if run.startswith("import-") else None for one in rows]
    for (a, left), (b, right) in itertools.combinations(zip(found, ours, strict=True), 2):
        assert (a == b) == (left == right)


def test_of_an_import_that_names_no_software_the_newest_day_stands():
    """Two jobs of one day are no better evidence than a newer one of what may be other software."""
    old = {"latency_p50_ms": 2.0, "started_at": "2024-11-01 00:00:00"}
    new = {"latency_p50_ms": 3.0, "started_at": "2025-04-25 00:00:00"}
    both = (old, old, new)
    brought = [row(**one, run_id="import-1", conditions={}) for one in both]
    assert [one["latency_p50_ms"] for one in standing(brought).rows] == [3.0]
    named = {"run_id": "import-1", "conditions": {"packages": {"torch": "2.4"}}}
    named = [row(**one, **named) for one in both]
    assert [one["latency_p50_ms"] for one in standing(named).rows] == [2.0, 2.0]


def test_a_stand_in_has_no_figures_whoever_measured_it():
    for provenance in ("measured", "imported"):
        (only,) = points([row(emulated=True, provenance=provenance)])
        assert only.kind == "emulated"
    (only,) = points([row(emulated=True, provenance="simulated")])
    assert only.kind == "simulated"
