"""The walk over public tables as they are: for whoever has them, in the folder that is named.

`ACCELBENCH_PUBLIC_TABLES=DIR pytest tests/present/walk/test_public_tables.py -rP`

Below it are `tidy/*.parquet`, in the tidy schema, and `raw/timm`, `raw/aihub` and `raw/mlperf…` as
their publishers have them. Each comes in whole. Exports and the list of cells are walked whole,
commands, pages, charts and reports of some models: those with most rows and others, evenly.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import source_rows
from carried import Carried, SourceRow
from small_tables import imported
from surfaces import cells, drawn, exports, pages, questions, reports, terminal
from walked import Walk

from accelbench.store.database import Database

_VARIABLE = "ACCELBENCH_PUBLIC_TABLES"
_MODELS = 3
#: Beyond so many rows the forms of export but one take minutes.
_MOST_ROWS = 20_000
#: A row of each of these tables is a figure; others lie beside them.
TIDY = ("timm", "timm_history", "aihub", "ncnn", "hailo", "mlperf_v51", "ryujaehun")
RAW: dict[str, tuple[str, str, Callable[[Path], Sequence[SourceRow]]]] = {
    "timm": ("timm", "*.csv", lambda path: list(source_rows.timm(path))),
    "aihub": ("aihub", "perf.yaml", lambda path: list(source_rows.aihub(path))),
    "mlperf": ("mlperf_v5.1", "summary_results.json", lambda path: list(source_rows.mlperf(path))),
}

pytestmark = pytest.mark.skipif(
    not os.environ.get(_VARIABLE),
    reason=f"public tables are no part of this project: {_VARIABLE}=DIR names their folder",
)


@pytest.mark.parametrize("name", TIDY)
def test_a_tidy_table(name, tmp_path):
    path = Path(os.environ[_VARIABLE]) / "tidy" / f"{name}.parquet"
    _walk(name, "tidy", path, list(source_rows.tidy(path)), tmp_path)


@pytest.mark.parametrize("kind", RAW)
def test_a_table_in_its_own_format(kind, tmp_path):
    folder, pattern, read = RAW[kind]
    path = Path(os.environ[_VARIABLE]) / "raw" / folder
    rows = [row for one in sorted(path.rglob(pattern)) for row in read(one)]
    _walk(kind, kind, path, rows, tmp_path)


def _walk(name: str, kind: str, path: Path, rows: list[SourceRow], folder: Path) -> None:
    database, walk, began = Database(folder / "walked.duckdb"), Walk(), time.perf_counter()
    imported(database, kind, path)
    whole = Carried(rows)
    small = len(rows) <= _MOST_ROWS
    walk.past(exports(database, folder, *(() if small else (("csv",),))), whole)
    walk.past(cells(database), whole)
    for model in _some([row.model for row in rows]):
        of_it = Carried([row for row in rows if row.model == model])
        alike = Carried([row for row in rows if model in row.model])  # a filter of letters
        walk.past(terminal(database, questions([model]), folder), of_it)
        walk.past(drawn(database, [model]), of_it)
        walk.past(reports(database, [model], folder), of_it)
        walk.past(pages(database, f"model={model}", most=4), alike)
    took = time.perf_counter() - began
    print(f"{name}: {len(rows):,} rows, {walk.said}, {took:.0f} s")
    for one in walk.strange[:40]:
        print(one)
    assert walk.strange == [], f"{len(walk.strange)} figures that no row carries"


def _some(models: list[str]) -> list[str]:
    """Those with most rows, and others, evenly."""
    ordered = sorted(Counter(models).items(), key=lambda one: (-one[1], one[0]))
    return [name for name, _ in ordered[:: max(1, len(ordered) // _MODELS)][:_MODELS]]
