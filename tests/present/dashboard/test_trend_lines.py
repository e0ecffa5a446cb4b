"""Which lines a trend shows: by what was judged already the same as by reading and judging all."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from dashboard_world import MACHINE, OTHER, result, store, stored_in

from accelbench.judge.history import Series
from accelbench.present.dashboard import cells, details, history_changes, pictures
from accelbench.present.dashboard.cells import Cell
from accelbench.present.dashboard.history_changes import ChangesKeeper, judged_lines
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.snapshot import Snapshot, taken
from accelbench.store.database import Database

_LINES, _NIGHTS = 18, 9


def histories(path: Path, seed: int) -> Database:
    """Lines of any length, of which some step, some stand alone, some fail and some are alike."""
    chance = random.Random(seed)
    database = stored_in(path)
    kinds = [chance.choice(("steady", "same", "step", "off", "once")) for _ in range(_LINES)]
    factors = [chance.choice((0.5, 1.4, 1.4, 3.0)) for _ in range(_LINES)]
    begins = [chance.randrange(_NIGHTS - 1) for _ in range(_LINES)]
    for night in range(_NIGHTS):
        launches = []
        for line, (kind, factor, begin) in enumerate(zip(kinds, factors, begins, strict=True)):
            if night < begin or (kind == "once" and night != begin):
                continue
            changed = kind == "step" and night > _NIGHTS // 2
            changed = changed or (kind == "off" and night == _NIGHTS - 1)
            noise = 1.0 if kind == "same" else chance.uniform(0.995, 1.005)
            fails = chance.random() < 0.08
            figures = {
                "latency_p50_ms": None if fails else 8.0 * noise * (factor if changed else 1.0),
                "latency_mean_ms": None,
                "status": "failed" if fails else "ok",
                "reason": "out_of_memory" if fails else None,
            }
            launches.append(
                result(
                    model=f"model-{line}",
                    launch=0,
                    started_at=f"2026-01-{night + 2:02}T03:04:05.000000Z",
                    **figures,
                )
            )
        store(database, f"night-{night}", *launches, machine=MACHINE if seed % 2 else OTHER)
    return database


def answers(series: Sequence[Series]) -> list[tuple[object, ...]]:
    return [(one.row["key"], one.points, one.said, one.gap, one.course) for one in series]


def chosen_of(snapshot: Snapshot) -> list[Cell]:
    return list(cells.drawn(snapshot, PageQuery(), 240))


@pytest.mark.parametrize("seed", range(4))
def test_what_was_judged_chooses_the_same_lines_and_reads_few(tmp_path, seed, monkeypatch):
    """Of 48 long histories all were read to draw one."""
    monkeypatch.setattr(pictures, "_MOST_POINTS", 21)
    monkeypatch.setattr(history_changes, "_RUNS_AT_A_TIME", 30)
    database = histories(tmp_path / "many.duckdb", seed)
    snapshot = taken(database, "now")
    chosen = chosen_of(snapshot)
    slow = pictures.trend_lines(database, snapshot, chosen, ChangesKeeper(database))
    judged = judged_lines(database, snapshot, "latency")
    read: list[int] = []
    history_of = details.history_of

    def counted(*arguments: object) -> list[Series]:
        made = history_of(*arguments)  # type: ignore[arg-type]
        read.append(sum(one.row["runs"] > 1 for one in made))  # type: ignore[operator]
        return made

    monkeypatch.setattr(details, "history_of", counted)
    quick = pictures.drawn_lines(database, snapshot, chosen, judged)
    assert answers(quick) == answers(slow)
    assert sum(read) <= len(slow) < len(judged.ranks)


def test_pieces_are_judged_as_all_at_once(tmp_path, monkeypatch):
    database = histories(tmp_path / "pieces.duckdb", 11)
    snapshot = taken(database, "now")
    turns: list[int] = []
    whole = judged_lines(database, snapshot, "latency", turns.append)
    assert turns == [1]
    monkeypatch.setattr(history_changes, "_RUNS_AT_A_TIME", 12)
    assert judged_lines(database, snapshot, "latency", turns.append) == whole
    assert turns[1] > 3
    assert len(turns) == 1 + turns[1]
    assert whole.changed


def test_a_page_reads_before_a_long_judgement_goes_on(tmp_path, monkeypatch):
    """A page waited for it in vain, and then read beside it."""
    monkeypatch.setattr(history_changes, "_RUNS_AT_A_TIME", 12)
    monkeypatch.setattr(history_changes, "_PAGES_FIRST", 60.0)
    database = histories(tmp_path / "first.duckdb", 12)
    snapshot = taken(database, "now")
    began = threading.Event()
    history_of = details.history_of

    def seen(*arguments: object) -> list[Series]:
        began.set()
        return history_of(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(details, "history_of", seen)
    keeper = ChangesKeeper(database)
    with keeper.before_others(snapshot, "latency", 1.0) as known:
        assert known is None
        assert not began.wait(0.05)
    assert keeper.of(snapshot, "latency", 30.0) is not None
    assert began.is_set()


def test_an_older_judgement_chooses_nothing(tmp_path):
    """What it says of a line may no longer be so."""
    database = histories(tmp_path / "older.duckdb", 13)
    keeper = ChangesKeeper(database)
    first, second = (taken(database, moment) for moment in ("1", "2"))
    assert keeper.of(first, "latency", 30.0) is not None
    assert keeper.known(first, "latency") is not None
    assert keeper.known(second, "latency") is None
