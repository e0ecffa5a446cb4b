"""Parquet comes in by queries: as it went out, once, and refused by column and row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import GOOD, bring

from accelbench.evidence.launches import launches_of
from accelbench.exchange.imports.reading import read_import
from accelbench.exchange.imports.records import MalformedError
from accelbench.judge.questions import AXES
from accelbench.judge.sides import ways_of
from accelbench.store.database import Database
from exported import export

LINE: dict[str, Any] = {
    "source": "somebody", "source_commit": "abc", "license": "MIT", "model": "net_a",
    "family": "net", "params_m": 5.5, "gmacs": 0.5, "hardware_name": "A phone",
    "hardware_kind": "qualcomm-npu", "framework": "qai-hub", "runtime": "tflite",
    "precision": "float", "batch_size": 2, "img_size": 224, "seq_len": None, "mode": "inference",
    "latency_ms": 2.5, "throughput": 800.0, "throughput_unit": "inferences/s", "memory_mb": 18.0,
    "extra": '{"job_id": "j1", "date": "2025-12-01T17:50:14-08:00"}',
}  # fmt: skip
TIMM = {
    **LINE, "hardware_name": "A card", "hardware_kind": "cuda", "framework": "pytorch",
    "runtime": "torch 2.4.0 inductor", "precision": "amp", "extra": '{"layout": "nhwc"}',
}  # fmt: skip
NCNN = {
    **LINE, "hardware_kind": "mobile-cpu", "framework": "ncnn", "runtime": "ncnn cpu",
    "img_size": None, "extra": '{"num_threads": 4, "powersave": 2}',
}  # fmt: skip


def write(path: Path, *lines: dict[str, Any], **types: pa.DataType) -> Path:
    table = pa.Table.from_pylist(list(lines))
    for name, kind in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    pq.write_table(table, path)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "a.duckdb")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Results of every kind, as an export of ours."""
    whole = tmp_path_factory.mktemp("exported")
    here = Database(whole / "here.duckdb")
    for number, good in enumerate(GOOD):
        folder = whole / str(number)
        folder.mkdir()
        for name, text in {**good.beside, good.name: good.text}.items():
            (folder / name).write_text(text)
        bring(here, good.kind, folder / good.name)
    rows = here.results()
    export(whole / "out.parquet", rows, "parquet")
    return whole / "out.parquet", rows


def test_what_went_out_comes_in_as_it_was_and_once(database, exported):
    path, rows = exported
    assert bring(database, "parquet", path) == len(rows)
    assert database.results() == rows
    assert bring(database, "parquet", path) == 0


def test_what_was_measured_elsewhere_is_imported_here(database, exported, tmp_path):
    table = pq.read_table(exported[0])
    words = ["measured", "simulated", *["imported"] * (table.num_rows - 2)]
    column = table.column_names.index("provenance")
    pq.write_table(table.set_column(column, "provenance", pa.array(words)), tmp_path / "m.parquet")
    bring(database, "parquet", tmp_path / "m.parquet", source="the lab")
    by_id = {row["result_id"]: row for row in database.results()}
    first, second, third = (by_id[i.as_py()] for i in table["result_id"][:3])
    assert (first["provenance"], first["conditions"]["source"]) == ("imported", {"name": "the lab"})
    assert second["provenance"] == "simulated"
    assert third["conditions"]["source"]["name"] != "the lab"


@pytest.mark.parametrize(
    ("name", "column", "row", "why"),
    [
        ("result_id", None, None, "the column is missing"),
        ("latency_mean_ms", pa.array(["fast"] * 14), None, "VARCHAR, and DOUBLE is expected"),
        ("model", pa.array(["m"] * 4 + [None] * 10), 5, "it is missing"),
        (
            "provenance",
            pa.array(["imported"] * 13 + ["rumour"]),
            14,
            "'rumour' is not one of measured,",
        ),
        ("latency_mean_ms", pa.array([1.0] * 5 + [-1.0] * 9), 6, "-1 is not above 0"),
        ("batch_size", pa.array([None, 0] + [1] * 12, pa.int64()), 2, "0 is not above 0"),
        ("load_ms", pa.array([0.0, float("nan")] + [0.0] * 12), 2, "nan is not a finite number"),
        ("load_ms", pa.array([0.0, -1.0] + [0.0] * 12), 2, "-1 is below 0"),
        ("mode", pa.array(["training"] * 13 + ["x"]), 14, "'x' is not one of inference"),
        ("conditions", pa.array(["{}", "{"] + ["{}"] * 12), 2, "it is not a JSON"),
    ],
)
def test_an_export_that_is_not_one_is_refused_by_column_and_row(
    exported, tmp_path, name, column, row, why
):
    table = pq.read_table(exported[0])
    assert table.num_rows == 14
    index = table.column_names.index(name)
    table = table.remove_column(index) if column is None else table.set_column(index, name, column)
    path = tmp_path / "broken.parquet"
    pq.write_table(table, path)
    with pytest.raises(MalformedError, match=why) as caught:
        read_import("parquet", path)
    assert (caught.value.field, caught.value.line) == (name, row)


def test_what_is_no_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text("model,latency")
    for kind in ("parquet", "tidy"):
        with pytest.raises(MalformedError, match="it is not a Parquet file"):
            read_import(kind, path)


def test_a_tidy_line_is_a_row_of_ours(database, tmp_path):
    path = write(tmp_path / "tidy.parquet", LINE, TIMM, NCNN)
    assert bring(database, "tidy", path) == 3
    rows = {row["runtime"]: row for row in database.results()}
    phone, card, board = rows["tflite"], rows["pytorch"], rows["ncnn"]
    wanted = {
        "model": "net_a", "hardware": "qnn", "device_name": "A phone", "precision": "float",
        "batch_size": 2, "image_size": 224, "mode": "inference", "scenario": "single_stream",
        "compiled": False, "world_size": 1, "options": {}, "status": "ok", "provenance": "imported",
        "family": "vision", "parameters": 5_500_000, "latency_mean_ms": 2.5, "throughput": 800.0,
        "throughput_unit": "inferences/s", "memory_peak_mb": 18.0, "flops": 2e9,
        "started_at": "2025-12-02T01:50:14.000000Z", "launch": 1, "arm": "",
    }  # fmt: skip
    assert {name: phone[name] for name in wanted} == wanted
    assert phone["conditions"]["source"] == {"name": "somebody", "commit": "abc", "licence": "MIT"}
    assert phone["conditions"]["kin"] == "net"
    assert phone["conditions"]["said"]["job_id"] == "j1"
    assert (card["hardware"], card["precision"], card["compiled"]) == ("cuda", "amp-fp16", True)
    assert card["options"] == {"layout": "nhwc"}
    assert card["conditions"]["engine"] == "torch 2.4.0 inductor"
    assert (board["hardware"], board["threads"], board["family"]) == ("cpu", 4, None)
    assert board["options"] == {"powersave": "2"}


def test_a_rate_of_several_nodes_is_of_all_their_accelerators(database, tmp_path):
    """Four nodes of eight cards, "32xH100", were an "8x" box beside others of eight cards."""
    cards = {"hardware_name": "8x A card", "hardware_kind": "cuda"}
    lines = [
        {
            **LINE,
            **cards,
            "latency_ms": None,
            "throughput": rate,
            "extra": f'{{"Nodes": {nodes}, "a#": 8}}',
        }
        for nodes, rate in ((1, 30.0), (4, 120.0))
    ]
    assert bring(database, "tidy", write(tmp_path / "tidy.parquet", *lines)) == 2
    found = {(row["device_name"], row["world_size"]) for row in database.results()}
    assert found == {("8x A card", 1), ("32x A card", 32)}
    assert len({row["device_fingerprint"] for row in database.results()}) == 2


def test_a_tidy_figure_is_one_wherever_it_stands_and_a_later_one_is_another(database, tmp_path):
    newer = {**LINE, "source_commit": "def", "latency_ms": 2.4}
    path = write(tmp_path / "tidy.parquet", LINE, LINE)
    assert bring(database, "tidy", path) == 1
    again = write(tmp_path / "later.parquet", {**LINE, "source_commit": "def"}, newer)
    assert bring(database, "tidy", again) == 1
    first, second = database.results()
    for name in ("case_id", "series_key", "device_fingerprint"):
        assert first[name] == second[name]
    assert first["run_id"] != second["run_id"]


def test_a_table_without_the_rest_is_taken(database, tmp_path):
    needed = ("source", "model", "hardware_name", "hardware_kind", "framework", "runtime")
    needed += ("precision", "batch_size", "mode", "latency_ms", "throughput")
    path = write(tmp_path / "tidy.parquet", {name: LINE[name] for name in needed})
    assert bring(database, "tidy", path, measured_at="2026-01-02") == 1
    (row,) = database.results()
    assert (row["image_size"], row["parameters"], row["memory_peak_mb"]) == (None, None, None)
    assert row["started_at"] == "2026-01-02T00:00:00.000000Z"
    assert row["conditions"]["source"]["name"] == "somebody"


@pytest.mark.parametrize(
    ("changed", "field", "row"),
    [
        ({"latency_ms": -1.0}, "latency_ms", 2),
        ({"throughput": float("inf")}, "throughput", 2),
        ({"model": None}, "model", 2),
        ({"extra": "{"}, "extra", 2),
        ({"throughput": 8000.0}, "throughput", 2),
        ({"extra": '{"date": "2999-01-02"}'}, "extra", 2),
    ],
)
def test_a_tidy_line_that_is_wrong_is_named(changed, field, row, tmp_path):
    path = write(tmp_path / "tidy.parquet", LINE, {**LINE, **changed})
    with pytest.raises(MalformedError) as caught:
        read_import("tidy", path)
    assert (caught.value.field, caught.value.line) == (field, row)


def test_scenarios_are_spelt_as_ours(database, tmp_path):
    """A query of MultiStream has eight samples: its latency is not one of a single item."""
    lines = [
        LINE | {"model": said, "batch_size": None, "extra": f'{{"Scenario": "{said}"}}', **more}
        for said, more in (
            ("SingleStream", {"throughput": None}),
            ("MultiStream", {"throughput": None}),
            ("Offline", {"latency_ms": None}),
        )
    ]
    bring(database, "tidy", write(tmp_path / "t.parquet", *lines))
    _, rows = database.query(
        "SELECT model, scenario, batch_size, latency_mean_ms, latency_p90_ms, latency_p99_ms"
        " FROM benchmark_results ORDER BY model"
    )
    assert rows == [
        ("MultiStream", "multi_stream", 8, None, None, 2.5),
        ("Offline", "offline", None, None, None, None),
        ("SingleStream", "single_stream", 1, None, 2.5, None),
    ]


@pytest.mark.parametrize("said", ["Offline", "Server", "Interactive"])
def test_no_latency_is_the_result_of_a_scenario_of_rates(said, tmp_path):
    path = write(tmp_path / "t.parquet", LINE, LINE | {"extra": f'{{"Scenario": "{said}"}}'})
    with pytest.raises(MalformedError, match=r"line 2, 'latency_ms': the result of that scenario"):
        read_import("tidy", path)


def test_a_latency_that_is_derived_from_a_rate_is_none(database, tmp_path):
    """It says nothing that the rate has not said; the rate stays."""
    lines = [
        LINE | {"model": model, "extra": f'{{"latency_is_derived": {derived}}}'}
        for model, derived in (("derived", "true"), ("measured", "false"))
    ]
    bring(database, "tidy", write(tmp_path / "t.parquet", *lines))
    _, rows = database.query(
        "SELECT model, latency_mean_ms, throughput FROM benchmark_results ORDER BY model"
    )
    assert rows == [("derived", None, 800.0), ("measured", 2.5, 800.0)]


def test_a_median_beside_a_mean_is_a_median_and_the_rate_is_of_the_mean(database, tmp_path):
    lines = [
        LINE | {"model": "ours", "throughput": 800.0, "extra": '{"mean_ms": 2.6}'},
        LINE | {"model": "theirs", "throughput": 790.0, "extra": '{"mean_ms": 2.6}'},
    ]
    bring(database, "tidy", write(tmp_path / "t.parquet", *lines))
    _, rows = database.query(
        "SELECT model, latency_p50_ms, latency_mean_ms, throughput FROM benchmark_results"
        " ORDER BY model"
    )
    # 800 is 2 items in 2.5 ms; 790 is what somebody measured.
    assert rows == [("ours", 2.5, 2.6, pytest.approx(2e3 / 2.6)), ("theirs", 2.5, 2.6, 790.0)]


@pytest.mark.parametrize("said", ['"soon"', "-2.0"])
def test_a_mean_that_is_none_is_refused(tmp_path, said):
    path = write(tmp_path / "t.parquet", LINE | {"extra": f'{{"mean_ms": {said}}}'})
    with pytest.raises(MalformedError, match="mean_ms"):
        read_import("tidy", path)


def test_of_a_derived_latency_no_single_request_was_timed(database, tmp_path):
    path = write(tmp_path / "t.parquet", LINE | {"extra": '{"latency_is_derived": true}'})
    bring(database, "tidy", path)
    _, rows = database.query("SELECT scenario FROM benchmark_results")
    assert rows == [("offline",)]


def test_an_open_entry_is_not_the_model_it_is_named_after(database, tmp_path):
    extras = (
        '{"Category": "closed"}',
        '{"Category": "open"}',
        '{"Category": "open", "ID": "5.1-2", "Accuracy": "acc: 75.760"}',
        '{"Category": "open", "ID": "5.1-3", "Accuracy": "acc: 74.046 "}',
        '{"Category": "open", "ID": "5.1-4", "Accuracy": "ROUGE1: 44.5561  ROUGE2: 22.1"}',
        '{"Category": "open", "ID": "5.1-5"}',
    )
    lines = [LINE | {"model": "resnet", "extra": extra} for extra in extras]
    bring(database, "tidy", write(tmp_path / "t.parquet", *lines))
    _, rows = database.query("SELECT model FROM benchmark_results ORDER BY model")
    assert [model for (model,) in rows] == [
        "resnet",
        *("resnet-open", "resnet-open/5.1-5", "resnet-open/ROUGE1-44.5561"),
        *("resnet-open/acc-74.046", "resnet-open/acc-75.760"),
    ]


def test_submissions_that_ran_alike_are_no_launches_of_one_thing(database, tmp_path):
    """On 8x H200 ten of one model lay a factor of twenty apart, and were averaged."""
    lines = [
        LINE
        | {"throughput": rate, "latency_ms": None, "batch_size": None}
        | {"extra": f'{{"Scenario": "Offline", "Submitter": "{name}", "hardware": 1}}'}
        for name, rate in (("Somebody", 200.0), ("Somebody else", 4000.0))
    ]
    bring(database, "tidy", write(tmp_path / "t.parquet", *lines))
    _, found = database.query("SELECT * FROM benchmark_results")
    names = [about for about, *_ in database.query("DESCRIBE benchmark_results")[1]]
    rows = [dict(zip(names, row, strict=True)) for row in found]
    for row in rows:
        row["conditions"] = json.loads(row["conditions"])
    (ways,) = ways_of([launches_of(rows)], AXES["hardware"])
    assert {way.rows[0]["throughput"] for way in ways} == {200.0, 4000.0}


def test_white_space_makes_no_other_thing_of_a_name(database, tmp_path):
    """“GPU Y” and “GPU Y ” were two devices, in two rows that look the same."""
    odd = {"hardware_name": " A\u00a0 phone\t", "model": "net_a ", "precision": "float\n"}
    lines = [LINE, {**LINE, **odd, "latency_ms": 2.0, "throughput": 1000.0}]
    bring(database, "tidy", write(tmp_path / "a.parquet", *lines))
    names = ("device_name", "model", "precision", "device_fingerprint", "series_key")
    first, second = ([row[name] for name in names] for row in database.results())
    assert first == second
    assert first[:3] == ["A phone", "net_a", "float"]
