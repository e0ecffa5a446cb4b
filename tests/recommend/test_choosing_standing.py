"""Choosing reads the current measurements of a store."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from choosing_world import in_journal, result

from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import current_measurements
from accelbench.judge.points import points
from accelbench.measure.launch_verdicts import geometric_mean
from accelbench.recommend.evidence.reader import EvidenceStore
from accelbench.store.database import Database

Row = Mapping[str, Any]
QUALITIES = ("converged", "noise_limited", "unsteady", "unusable", "unusable", "fixed", None)
MODELS = ("bert-tiny", "vit-tiny", "resnet-tiny", OWN := "net.py:make")


def a_history(by: random.Random) -> list[tuple[str, list[dict[str, Any]]]]:
    """Runs of ours and imports of some days, of a few launches of some models by two versions."""
    runs = []
    for number in range(1, 9):
        imported = by.random() < 0.3
        packages = {"torch": by.choice(("2.12", "2.13"))}
        code = {"weights": "code", "weights_digest": by.choice(("one", "other"))}
        launches = [
            {
                **_launch(by, model, n, number + (by.choice((0, 1)) if imported else 0), packages),
                **(code if model == OWN else {}),
            }
            for model in MODELS
            if by.random() < 0.8
            for n in range(by.choice((1, 2, 5, 7)))
        ]
        for one in launches:
            if one["status"] == "failed":  # before its code was read
                one["weights_digest"] = None
        runs.append((f"import-{number}" if imported else f"r{number}", launches))
    return runs


def _launch(
    by: random.Random, model: str, number: int, day: int, packages: Mapping[str, str]
) -> dict[str, Any]:
    step = by.uniform(7.0, 9.0)
    return result(
        model=model,
        series_key=model,
        launch=number,
        started_at=f"2026-02-{day:02} 00:00:0{number}",
        status=by.choice(("ok",) * 7 + ("failed",)),
        verification=by.choice(("ok", "ok", "ok", None, "failed")),
        quality=by.choice(QUALITIES),
        effective_sample_count=by.choice((5.0, 50.0)),
        latency_ci_low_ms=step - 0.01,
        latency_ci_high_ms=step + by.choice((0.01, 1.0)),
        latency_p50_ms=step,
        latency_mean_ms=step + 0.1,
        conditions={"packages": packages, "rules": {"iterations": number}},
    )


def expected(rows: list[Row]) -> list[Row]:
    """The usable launches of the current measurement."""
    known = [row for row in launches_of(rows) if row["answered"]]
    return list(current_measurements([known])[0].usable_rows) if known else []


def test_the_launches_that_are_chosen_by_are_those_that_stand(tmp_path):
    nothing = aside = 0
    for seed in range(4):
        database = Database(tmp_path / f"{seed}.duckdb")
        database.ensure()
        for run, launches in a_history(random.Random(seed)):
            in_journal(database, *launches, run=run)
        database.fill()
        store = EvidenceStore(database)
        if seed % 2:
            store.expect_many()
        rows = database.results("true", ())
        for model in MODELS:
            mine = [row for row in rows if row["model"] == model]
            known = (expected(several) for several in _of_each_version(mine))
            each = {launched[0]["run_id"]: launched for launched in known if launched}
            found = [cell for cell in store.cells([model]) if cell.timed]
            assert len(found) == len(each)
            nothing += len(_of_each_version(mine)) - len(each)
            for cell in found:
                wanted = each[cell.row["run_id"]]
                steps = [row["latency_mean_ms"] for row in wanted]
                assert sorted(cell.latencies) == sorted(steps)
                assert cell.latency == pytest.approx(geometric_mean(steps))
                assert cell.row["run_id"] == wanted[0]["run_id"]
                aside += cell.row["run_id"] != max(mine, key=_moment)["run_id"]
    assert nothing > 0
    assert aside > 2


def _of_each_version(rows: list[Row]) -> list[list[Row]]:
    """Of an import each version is a cell of its own; what is ours is one."""
    found: dict[object, list[Row]] = {}
    for row in launches_of(rows):
        found.setdefault(row["import_version"], []).append(row)
    return list(found.values())


def _moment(row: Row) -> str:
    return str(row["started_at"])


def _of_an_import(step: float, moment: str | None, **said: Any) -> dict[str, Any]:
    """A row of a table: what its source says of each row beside the figures is told with it."""
    about = {"engine": "torch 2.1", "source": {"name": "theirs"}, "said": {"ms": step, **said}}
    return result(
        provenance="imported",
        series_key="s",
        latency_p50_ms=None,
        latency_mean_ms=step,
        throughput=None,
        started_at=moment,
        verification=None,
        conditions=about,
    )


def test_rows_of_an_import_are_launches_of_one_way_whatever_their_source_says_beside(tmp_path):
    files = [_of_an_import(step, None, file=f"{step}.csv") for step in (7.55, 9.04, 9.27, 9.93)]
    database = Database(tmp_path / "import.duckdb")
    database.ensure()
    in_journal(database, *files, run="import-1")
    database.fill()
    (cell,) = EvidenceStore(database).cells(["bert-tiny"])
    (point,) = points(database.results("true", ()))
    assert sorted(cell.latencies) == [7.55, 9.04, 9.27, 9.93]
    assert cell.latency == pytest.approx(8.90, abs=0.01)
    assert point.latency is not None
    assert cell.latency == pytest.approx(point.latency.value)


def test_of_an_import_of_years_the_newest_day_counts_and_other_engines_stay_apart(tmp_path):
    days = [
        _of_an_import(step, f"2024-0{month}-01 00:00:00", release=f"v0.{month}")
        for month, step in enumerate((0.394, 0.651, 0.576), 1)
    ]
    other = _of_an_import(0.9, "2024-01-01 00:00:00")
    other["conditions"] = {**other["conditions"], "engine": "torch 2.4"}
    database = Database(tmp_path / "import.duckdb")
    database.ensure()
    in_journal(database, *days, other, run="import-1")
    database.fill()
    cells = EvidenceStore(database).cells(["bert-tiny"])
    assert sorted(cell.latencies for cell in cells) == [(0.576,), (0.9,)]
    assert len({cell.way for cell in cells}) == 2
    shown = sorted(one.latency.value for one in points(database.results("true", ())) if one.latency)
    assert shown == pytest.approx([0.576, 0.9])
