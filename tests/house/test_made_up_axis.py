"""A further axis of sizes is one entry in `core/axes.py`: made up here, and seen everywhere.

Everything is made of the registry when it is imported, so the entry is added in a process of its
own, by `made_up_axis.py`, which tells what each place makes of it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.axes import AXES, Part
from accelbench.core.case import Shapes
from accelbench.core.columns import BY_NAME
from accelbench.core.model import Generation, ModelSpec
from accelbench.exchange.imports.result_row import Source, _build_ids
from accelbench.run.plan.request import Request

SOURCES = Path(__file__).parents[2] / "src"
PROGRAM = Path(__file__).with_name("made_up_axis.py")


def sources() -> Iterator[tuple[Path, str]]:
    for path in SOURCES.rglob("*.py"):
        yield path, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each place makes of the axis."""
    folder = tmp_path_factory.mktemp("axis")
    script = folder / "script.json"
    script.write_text("[]", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, PROGRAM, "told.json"],
        cwd=folder,
        env={**os.environ, "ACCELBENCH_SCRIPT": str(script), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    return found


def test_no_source_names_it():
    words = ("depth_of_field", "depth_slices", "depth-slices", "slices of one volume")
    for path, text in sources():
        assert not [word for word in words if word in text], path


def test_no_other_source_lists_the_sizes():
    """By columns, options or fields: who names most of them keeps a list of his own."""
    listing = {
        str(path.relative_to(SOURCES / "accelbench"))
        for path, text in sources()
        for names in ("column", "option", "option_key")
        if sum(f'"{getattr(axis, names)}"' in text for axis in AXES) > len(AXES) / 2
    }
    assert listing == {
        "core/axes.py",
        "exchange/imports/result_row.py",  # identities that are stored: it never changes
    }


def test_plans_and_tables_have_the_axis(told):
    # A plan has a case of each size.
    assert [case.rpartition(" · ")[2] for case in told["cases"]] == [
        *("2 slices", "2 slices", "4 slices", "4 slices")
    ]
    assert len(set(told["ids"])) == 4
    assert told["again"] == told["ids"]  # from a journal
    # The model has a size of its own and is fed with the one asked for.
    assert told["own"] == [8, 8, None, None]
    assert [fed["volume"] for fed in told["fed"]] == [
        *([1, 2, 64, 64], [4, 2, 64, 64]),
        *([1, 4, 64, 64], [4, 4, 64, 64]),
    ]
    assert told["null"] == [None] * 4 + ["the model takes no volume"] * 2
    assert told["store"] == "BIGINT"
    assert told["kept"] == [[2, 2], [4, 2], [None, 2]]
    headings = [line for line in told["table"].splitlines() if " slices" in line]
    assert headings == [f"vit-tiny · fp32 · 64px {n} slices · scripted/cpu" for n in (2, 4)]
    # Charts pages and titles tell sizes apart.
    assert told["chart"] == ["vit-tiny · depth slices 2", "vit-tiny · depth slices 4"]
    assert told["page"] == ["64 px · 2 slices", "64 px · 4 slices"]
    assert [title.partition("batch 1 ")[2] for title in told["title"]] == [
        *("64px 2 slices", "64px 4 slices")
    ]
    # Figures of others are other cases where they say it.
    without, *sizes = told["imported"]
    assert without == _build_ids(Source("a table"), {"model": "m"}, {})["case_id"]
    assert len({without, *sizes}) == 3
    # Exports have it.
    rows = [*csv.DictReader(io.StringIO(told["csv"]))]
    assert sorted(row["depth_slices"] for row in rows) == ["", "", "2", "2", "4", "4"]
    lines = json.loads(told["document"])["comparisons"]
    assert {line["depth_slices"] for line in lines if line["model"] == "vit-tiny"} == {2, 4}
    assert told["schema"]["type"] == ["integer", "null"]


def test_commands_take_the_axis(told):
    # Run takes its option.
    (line,) = (line for line in told["help"].splitlines() if "--depth-slices" in line)
    assert line.split("  ")[-1].strip() == "Slices of one volume."
    assert "--depth-slices changes nothing: no model of this run has such a size." in told["option"]
    # A plan file has its key.
    assert told["plan"] == {"depth_slices": [2, 4]}
    matrix = told["plan schema"]["properties"]["matrix"]["properties"]
    assert matrix["depth_slices"]["anyOf"][0]["minimum"] == 1
    # A selector is asked about it and names the option.
    assert told["selector"] == "depth_of_field"
    assert told["chosen for"] == "depth_slices"
    assert told["measured by"] == "--depth-slices"


def test_every_axis_has_its_fields_and_its_column():
    """Fields that code reads by their names are spelt out for their types: no more, no less."""
    assert {one.name for one in fields(Shapes)} == {"batch", *(axis.field for axis in AXES)}
    asked = {one.name for one in fields(Request)}
    of_model = {one.name for one in fields(ModelSpec)}
    of_request = {one.name for one in fields(Generation)}
    for axis in AXES:
        assert axis.option_key in asked
        assert axis.field in (of_request if axis.part is Part.REQUEST else of_model)
        assert BY_NAME[axis.column].doc == axis.unit
        assert axis.label.count("{}") == 1
