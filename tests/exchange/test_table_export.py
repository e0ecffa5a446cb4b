from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from bodies import NASTY, body
from hypothesis import given
from hypothesis import strategies as st

from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.safe_text import csv_cell
from accelbench.exchange.result_file import to_entry
from accelbench.exchange.result_schema import result_schema
from accelbench.present.table_export import FORMATS, TABLES, format_for
from accelbench.store.database import Database
from exported import export

NAMES = [column.name for column in COLUMNS]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [
        to_entry(
            body(
                i,
                result_id=f"r{i:03d}",
                message=word,
                options={word: 1},
                extra={word: 0.1},
                warnings=[word],
                sampling={"step": {"timing": "each"}, "forward": {"steps": [i + 1]}},
            )
        )
        for i, word in enumerate(NASTY)
    ]


def test_csv_is_exact_and_empty_where_nothing_is_known(tmp_path, rows):
    path = tmp_path / "out.csv"
    export(path, rows, "csv")
    with path.open(encoding="utf-8", newline="") as stream:
        read = list(csv.DictReader(stream))
    assert list(read[0]) == NAMES
    assert [one["message"] for one in read] == list(map(csv_cell, NASTY))
    assert [float(one["latency_mean_ms"]) for one in read] == [r["latency_mean_ms"] for r in rows]
    assert [json.loads(one["options"]) for one in read] == [row["options"] for row in rows]
    assert {one["cost_usd"] for one in read} == {""}


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_csv_numbers_read_back_the_same(number):
    from accelbench.present.table_export import cell_text

    assert float(cell_text(number)) == number


def test_json_is_valid_and_the_same(tmp_path, rows):
    path = tmp_path / "out.json"
    export(path, rows, "json", samples=True)
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(document, result_schema(), jsonschema.Draft202012Validator)
    assert document["results"] == rows
    export(tmp_path / "bare.json", rows, "json")
    bare = json.loads((tmp_path / "bare.json").read_text(encoding="utf-8"))
    assert all(list(row) == NAMES for row in bare["results"])


def test_parquet_keeps_types(tmp_path, rows):
    path = tmp_path / "out.parquet"
    export(path, rows, "parquet", samples=True)
    table = pq.read_table(path)
    assert table.column_names == [*NAMES, "samples", "sampling"]
    read = table.to_pylist()
    assert [one["message"] for one in read] == list(NASTY)
    assert [one["batch_size"] for one in read] == [row["batch_size"] for row in rows]
    assert [dict(one["samples"]) for one in read] == [row["samples"] for row in rows]
    assert [json.loads(one["sampling"]) for one in read] == [row["sampling"] for row in rows]
    assert dict(read[0]["extra"]) == rows[0]["extra"]
    assert read[0]["started_at"].isoformat() == "2026-01-02T03:04:00.000005"


@pytest.mark.parametrize("name", list(TABLES))
def test_no_results_make_an_empty_file_with_its_columns(tmp_path, name):
    path = tmp_path / f"out.{name}"
    export(path, [], name, samples=True)
    if name == "csv":
        assert path.read_text() == ",".join([*NAMES, "samples", "sampling"]) + "\n"
    elif name == "json":
        assert json.loads(path.read_text())["results"] == []
    else:
        read = pq.read_table if name == "parquet" else feather.read_table
        assert read(path).shape == (0, len(NAMES) + 2)


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_file_that_is_there_stays(tmp_path, name):
    path = tmp_path / "mine"
    path.write_text("precious")
    with pytest.raises(UsageError, match="already exists"):
        export(path, [], name)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", TABLES)
def test_a_name_may_be_as_long_as_a_file_system_takes(tmp_path, name):
    """Two hundred bytes of it are fifty letters; cut at a hundred letters it was too long."""
    path = tmp_path / f"{'🚀' * 60}.{name}"
    export(path, [], name)
    assert path.exists()


@pytest.mark.parametrize("name", TABLES)
def test_no_room_is_said_of_the_file_that_was_named(tmp_path, name):
    rows = [body(n, result_id=f"r{n}", message=f"{n} " * 2000) for n in range(40)]
    path = tmp_path / f"out.{name}"
    asked = (
        "import resource, sys; from pathlib import Path;"
        "from accelbench.present.table_export import export_table;"
        "from accelbench.store.database import Database;"
        "database = Database(Path(sys.argv[1]));"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "export_table(Path(sys.argv[2]), database, sys.argv[3])"
    )
    database = Database(tmp_path / "rows.duckdb")
    database.bring_in("r", [], [{**row, "provenance": "simulated"} for row in rows])
    line = [sys.executable, "-c", asked, str(database.path), str(path), name]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert str(path) in done.stderr.splitlines()[-1]
    assert not list(tmp_path.glob(".out*"))
    assert not path.exists()


def test_the_format_is_asked_for_or_seen(tmp_path):
    assert format_for(Path("a.parquet"), None) == "parquet"
    assert format_for(Path("a.csv"), "JSON") == "json"
    for path, asked in ((Path("a.xls"), None), (Path("a"), None), (Path("a.csv"), "xml")):
        with pytest.raises(UsageError, match="csv, json, parquet"):
            format_for(path, asked)
