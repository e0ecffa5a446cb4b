"""Run against run: a check, as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from dashboard_world import OTHER, store, stored_in, visitor
from entity_store import FIVE, answers, launches, rows_of, text

from accelbench.core.formatting import format_digits
from accelbench.judge.baselines import BaselineQuery, baseline_of_run
from accelbench.judge.run_names import UnknownRunError
from accelbench.store.database import Database


def run_pair(tmp_path: Path) -> Database:
    """Two nights: one question became slower, one stayed, one is gone."""
    database = stored_in(tmp_path)
    for night, slower in (("night-0", 1.0), ("night-1", 1.5)):
        store(
            database,
            night,
            *launches(8.0 * slower, FIVE),
            *launches(5.0, FIVE, batch_size=4),
            *(launches(3.0, batch_size=8) if night == "night-0" else ()),
        )
    return database


def checked(database: Database, *more: str) -> dict[str, Any]:
    """What `accelbench check --json` prints."""
    from typer.testing import CliRunner

    from accelbench.cli.commands.check import app

    words = ["--run", "night-1", "--baseline", "night-0", "--json", "--db", str(database.path)]
    answer = CliRunner().invoke(app, [*words, *more])
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def test_run_against_run_is_the_verdict_of_check(tmp_path):
    database = run_pair(tmp_path)
    document = checked(database)
    page = visitor(database).get("/runs/compare?a=night-0&b=night-1").text
    assert document["outcome"] == "worse"
    assert answers(page).startswith("worse Worse than the baseline: 1 worse")
    lines = rows_of(page, "Table of figures")
    figures = [
        (question, figure) for question in document["questions"] for figure in question["figures"]
    ]
    assert len(lines) == len(figures)
    for line, (question, figure) in zip(lines, figures, strict=True):
        shown = line if len(line) == 6 else line[2:]
        if len(line) == 8:
            assert line[0] == question["what"]
            assert line[1].startswith(question["outcome"])
        assert shown[1:3] == [format_digits(figure["before"]), format_digits(figure["now"])]
        assert shown[3].startswith(f"{figure['now'] / figure['before'] - 1.0:+.1%}")
        assert shown[5] == f"{figure['launches_before']}, {figure['launches_now']}"
    assert "1 of the baseline was not measured now" in text(page)


def test_runs_of_two_machines_are_refused_until_somebody_allows_it(tmp_path):
    database = stored_in(tmp_path, *launches(8.0), run="here")
    store(database, "there", *launches(8.0), machine=OTHER)
    site = visitor(database)
    page = site.get("/runs/compare?a=here&b=there").text
    assert answers(page).startswith("The baseline is of lab")
    assert "allow=machine" in page
    allowed = site.get("/runs/compare?a=here&b=there&allow=machine").text
    assert "Table of figures" in allowed
    assert site.get("/runs/compare?a=here&b=there&allow=everything").status_code == 400


def test_a_run_by_the_name_of_a_file_opens_none(tmp_path):
    """An address names runs: a path, a database or a URL is none of the store's."""
    database = run_pair(tmp_path)
    (tmp_path / "b.csv").write_text("model\n", encoding="utf-8")
    site = visitor(database)
    for word in (str(tmp_path / "b.csv"), str(database.path), "s3://bucket/lake", "nobody"):
        answer = site.get(f"/runs/compare?{urlencode({'a': word, 'b': 'night-1'})}")
        assert answer.status_code == 404
        assert "There is no run" in text(answer.text)
    with pytest.raises(UnknownRunError):
        baseline_of_run(database, str(tmp_path / "b.csv"), BaselineQuery({}, ("night-1",)))


def test_the_page_names_the_level_of_the_intervals_that_it_shows(tmp_path):
    database = run_pair(tmp_path)
    levels = {
        figure["interval_level"]
        for question in checked(database)["questions"]
        for figure in question["figures"]
        if figure["worse_by_low"] is not None
    }
    assert levels == {0.98}, "between two runs each end is the limit of a one-sided test at 1 %"
    page = visitor(database).get("/runs/compare?a=night-0&b=night-1").text
    assert "98 % interval" in page
    assert "99 %" not in page
