"""A file as a baseline: each form that there is, and what is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from foreign_files import GUIDE

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.errors import UsageError
from accelbench.exchange.aggregate import SCHEMA_ID as AGGREGATE
from accelbench.exchange.baselines import BaselineFile, read_baseline
from accelbench.exchange.imports.records import MalformedError
from accelbench.exchange.result_file import write_result_file
from accelbench.exchange.titles import LAUNCH_VALUES
from accelbench.judge.comparison import Compared, compared
from accelbench.judge.questions import AXES, ComparisonAxis
from accelbench.judge.run_noise import Histories
from accelbench.present.comparison import document
from accelbench.present.table_export import write_csv as export_csv
from accelbench.present.table_export import write_lines

BODY: dict[str, Any] = {
    "result_id": "i1", "case_id": "c1", "run_id": "r1", "model": "bert-tiny", "hardware": "cpu",
    "runtime": "pytorch", "device_name": "A processor", "precision": "fp32", "batch_size": 8,
    "mode": "inference", "threads": 2, "compiled": False, "options": {"hint": "latency"},
    "status": "ok", "provenance": "measured", "latency_p50_ms": 8.0, "latency_mean_ms": 8.5,
    "throughput": 940.0, "memory_peak_mb": 100.0, "workarounds": ["eager"],
}  # fmt: skip
ENVIRONMENT = {"machine": "lab", "cpu": "A processor"}


def test_a_result_file_says_all_that_was_asked_and_the_machine(tmp_path):
    write_result_file(tmp_path / "ci.json", {"run_id": "r1", "environment": ENVIRONMENT}, [BODY])
    found = read_baseline(tmp_path / "ci.json")
    assert (found.stated, found.environment) == (frozenset(CONFIGURATION_COLUMNS), ENVIRONMENT)
    (row,) = found.rows
    assert row == {**row, **BODY}


def test_an_export_keeps_every_value(tmp_path):
    export_csv(tmp_path / "all.csv", list(BODY), [BODY])
    found = read_baseline(tmp_path / "all.csv")
    assert found.rows == ({**BODY, "arm": ""},)
    assert found.stated == set(CONFIGURATION_COLUMNS) & set(BODY)
    assert found.environment is None


def comparison() -> list[list[Compared]]:
    sides = [
        {**BODY, "launch": n, "hardware": hardware, "latency_p50_ms": ms, "quality": "converged"}
        | {"latency_mean_ms": ms + 1, "throughput": 8e3 / (ms + 1), "memory_peak_mb": 100.0 + n}
        for hardware, times in (("cpu", (8.0, 8.2, 8.4)), ("cuda", (2.0, 2.1)))
        for n, ms in enumerate(times)
    ]
    return compared(sides, AXES["hardware"], known=Histories())


def write_csv(path: Path, found: Sequence[Sequence[Compared]], axis: ComparisonAxis) -> None:
    lines = document(found, axis)
    with path.open("x", encoding="utf-8", newline="") as stream:
        write_lines(stream, lines[0], (line.values() for line in lines))


def of_launches(read: BaselineFile, name: str) -> list[list[float]]:
    """The values of the launches of each platform."""
    sides: dict[str, list[float]] = {}
    for row in read.rows:
        sides.setdefault(str(row["hardware"]), []).append(row[name])
    return list(sides.values())


def test_a_comparison_keeps_the_launches_of_each_side(tmp_path):
    found = comparison()
    write_csv(tmp_path / "analysis.csv", found, AXES["hardware"])
    lines = document(found, AXES["hardware"])
    (tmp_path / "said.json").write_text(json.dumps({"comparisons": lines}))
    for name in ("analysis.csv", "said.json"):
        read = read_baseline(tmp_path / name)
        assert of_launches(read, "latency_p50_ms") == [[8.0, 8.2, 8.4], [2.0, 2.1]]
        assert of_launches(read, "latency_mean_ms") == [[9.0, 9.2, 9.4], [3.0, 3.1]]
        assert of_launches(read, "memory_peak_mb") == [[100.0, 101.0, 102.0], [100.0, 101.0]]
        assert of_launches(read, "launch") == [[0, 1, 2], [0, 1]]
        cpu = read.rows[0]
        assert (cpu["throughput"], cpu["quality"]) == (pytest.approx(8e3 / 9.0), "converged")
        assert cpu["options"] == {"hint": "latency"}
        assert (cpu["threads"], cpu["compiled"], cpu["status"]) == (2, False, "ok")
    assert read_baseline(tmp_path / "analysis.csv").stated == set(CONFIGURATION_COLUMNS) & set(
        lines[0]
    )


def test_a_comparison_of_an_older_version_is_one_launch_a_side(tmp_path):
    lines = document(comparison(), AXES["hardware"])
    older = [{name: v for name, v in line.items() if name != LAUNCH_VALUES} for line in lines]
    (tmp_path / "said.json").write_text(json.dumps({"comparisons": older}))
    read = read_baseline(tmp_path / "said.json")
    middles = [pytest.approx([8.2], rel=1e-3), pytest.approx([2.05], rel=1e-3)]
    assert of_launches(read, "latency_p50_ms") == middles
    cpu = read.rows[0]
    assert (cpu["memory_peak_mb"], cpu["throughput"]) == (
        pytest.approx(101.0, rel=1e-3), pytest.approx(8e3 / 9.2, rel=1e-3)
    )  # fmt: skip


@pytest.mark.parametrize(
    "values", ["{", "5", "[5]", '[{"latency_mean_ms": 5.0}]', '[{"launch": -1}]']
)
def test_launches_that_contradict_their_side_are_refused(tmp_path, values):
    write_csv(tmp_path / "good.csv", comparison(), AXES["hardware"])
    with (tmp_path / "good.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    lines[0][LAUNCH_VALUES] = values
    with (tmp_path / "bad.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    with pytest.raises(MalformedError):
        read_baseline(tmp_path / "bad.csv")


def test_the_guides_table_says_no_more_than_it_does(tmp_path):
    (tmp_path / "baseline.csv").write_text(GUIDE, encoding="utf-8")
    found = read_baseline(tmp_path / "baseline.csv")
    assert {"model", "runtime", "hardware", "batch_size", "precision"} <= found.stated
    assert not {"options", "scenario", "world_size"} & found.stated
    assert found.rows[0]["provenance"] == "measured"
    assert "source" not in found.rows[0]["conditions"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "x,y\n1,2\n", "line 1"),
        ("a.csv", "", "line 1"),
        ("a.json", '{"what": 1}', "'results'"),
        ("a.json", "[]", "an object"),
        ("a.json", '{"comparisons": [1]}', "an object"),
        ("a.txt", "x", "not a baseline"),
    ],
)
def test_what_is_none_is_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        read_baseline(tmp_path / name)


def test_a_figure_that_is_none_is_told_by_line_and_field(tmp_path):
    header = GUIDE.splitlines()[0].split(",")
    cells = dict.fromkeys(header, "")
    cells |= {"framework": "pytorch", "model": "bert", "device": "cpu", "dtype": "float32"}
    cells |= {"batch_size": "many", "latency_mean_ms": "1"}
    (tmp_path / "a.csv").write_text(",".join(header) + "\n" + ",".join(cells.values()) + "\n")
    with pytest.raises(MalformedError) as refused:
        read_baseline(tmp_path / "a.csv")
    assert (refused.value.line, refused.value.field) == (2, "batch_size")


@pytest.mark.parametrize("figure", ["-1", "0", "nan", "inf", "soon"])
@pytest.mark.parametrize(
    ("header", "cells", "field"),
    [
        ("axis,model,hardware,runtime,memory_mb,latency_ms", "hardware,bert,cpu,x,", "latency_ms"),
        ("framework,model,device,batch_size,dtype,latency_mean_ms", "x,bert,cpu,1,fp32",
         "latency_mean_ms"),
        ("result_id,case_id,model,hardware,runtime,status,provenance,latency_p50_ms",
         "r,c,bert,cpu,x,ok,imported", "latency_p50_ms"),
    ],
)  # fmt: skip
def test_a_time_that_no_step_takes_is_refused(tmp_path, header, cells, field, figure):
    (tmp_path / "a.csv").write_text(f"{header}\n{cells},{figure}\n")
    with pytest.raises(MalformedError) as refused:
        read_baseline(tmp_path / "a.csv")
    assert (refused.value.line, refused.value.field) == (2, field)
    assert "imported" not in refused.value.advice


@pytest.mark.parametrize("figure", ["-1", "0", '"soon"'])
def test_a_side_of_a_document_is_held_to_the_same(tmp_path, figure):
    (tmp_path / "a.json").write_text(f'{{"comparisons": [\n{{"latency_ms": {figure}}}]}}')
    with pytest.raises(MalformedError, match="line 2, entry 1, 'latency_ms'"):
        read_baseline(tmp_path / "a.json")


def test_what_is_made_of_results_is_no_baseline_and_says_what_is(tmp_path):
    path = tmp_path / "aggregated_benchmarks.json"
    path.write_text(json.dumps({"schema": AGGREGATE, "results": 3}))
    with pytest.raises(MalformedError, match="it summarises the result files") as refused:
        read_baseline(path)
    assert "raw_results" in refused.value.advice


def test_a_result_counts_once_however_often_a_file_has_it(tmp_path):
    export_csv(tmp_path / "all.csv", list(BODY), [BODY, BODY, {**BODY, "result_id": "i2"}])
    assert len(read_baseline(tmp_path / "all.csv").rows) == 2


def test_what_makes_figures_unlike_is_named_where_a_file_omits_it(tmp_path):
    export_csv(tmp_path / "all.csv", list(BODY), [BODY])
    assert read_baseline(tmp_path / "all.csv").omitted == ("weights", "emulated")


def test_a_comparison_of_runs_is_no_baseline(tmp_path):
    runs = [{**BODY, "run_id": run, "started_at": f"2026-01-0{n + 1} 00:00:00"}
            for n, run in enumerate(("r1", "r2"))]  # fmt: skip
    write_csv(tmp_path / "runs.csv", compared(runs, AXES["run"], known=Histories()), AXES["run"])
    with pytest.raises(MalformedError, match="several runs") as refused:
        read_baseline(tmp_path / "runs.csv")
    assert refused.value.field == "axis"


SIDES = [
    {**BODY, "launch": 0, "hardware": "cpu"},
    {**BODY, "launch": 0, "hardware": "cuda", "emulated": True, "weights_digest": "w"},
]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_comparison_says_what_its_sides_are_of(tmp_path, as_json):
    """In a build that went red, the figures of an emulated side stood for a baseline."""
    found = compared(SIDES, AXES["hardware"], known=Histories())
    if as_json:
        path = tmp_path / "analysis.json"
        lines = document(found, AXES["hardware"])
        path.write_text(json.dumps({"comparisons": lines}), encoding="utf-8")
    else:
        path = tmp_path / "analysis.csv"
        write_csv(path, found, AXES["hardware"])
    read = read_baseline(path)
    assert read.omitted == ()
    cpu, cuda = read.rows
    assert (cpu["emulated"], cuda["emulated"]) == (False, True)
    assert (cuda["weights_digest"], cuda["workarounds"]) == ("w", ["eager"])
    assert "refused_there" not in cuda


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        ("not alike: emulated", ["emulated"]),
        ("not alike: weights, workarounds", ["weights", "workarounds"]),
        ("its baseline was not measured", None),  # its own figures are what they are
        ("they have no figure in common", None),
    ],
)
def test_what_an_older_comparison_refused_is_known_where_it_does_not_say_of_what_it_is(
    tmp_path, refused, words
):
    lines = document(compared(SIDES, AXES["hardware"], known=Histories()), AXES["hardware"])
    names = [n for n in lines[1] if n not in ("weights_digest", "workarounds", "emulated")]
    export_csv(tmp_path / "older.csv", names, [{**lines[1], "refused": refused}])
    read = read_baseline(tmp_path / "older.csv")
    assert read.omitted == ("weights", "workarounds", "emulated")
    assert read.rows[0].get("refused_there") == words
