"""What pipelines and dashboards read: one value a question, of its newest run, nothing invented."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pyarrow.feather as feather
import pytest
from bodies import NASTY

from accelbench.core.columns import COLUMNS
from accelbench.evidence.measurements import merge_launches
from accelbench.exchange.series import LATENCY, MEMORY, measure_value, newest_entries
from accelbench.exchange.titles import format_title
from accelbench.present.table_export import REPORTS, export_report, format_for
from exported import export


def row(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = dict.fromkeys(column.name for column in COLUMNS)
    return whole | {
        "run_id": "r1",
        "result_id": "x",
        "model": "bert-tiny",
        "runtime": "pytorch",
        "hardware": "cpu",
        "device": "cpu:0",
        "precision": "fp32",
        "batch_size": 8,
        "sequence_length": 128,
        "mode": "inference",
        "scenario": "single_stream",
        "world_size": 1,
        "options": {},
        "launch": 0,
        "status": "ok",
        "provenance": "measured",
        "latency_p50_ms": 4.0,
        "latency_mean_ms": 4.5,
        "throughput": 2000.0,
        "memory_peak_mb": 100.0,
        "started_at": "2026-01-01T00:00:00.000000Z",
        **changes,
    }


NAME = "bert-tiny pytorch/cpu:0 fp32 batch 8 seq 128"
FAILED = {
    "status": "failed", "reason": "wrong_outputs", "message": "it computes something else",
    "advice": "Look at it.", "latency_p50_ms": None, "latency_mean_ms": None, "throughput": None,
    "memory_peak_mb": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, NAME),
        ({"mode": "training"}, f"{NAME} training"),
        ({"device": None, "sequence_length": None}, "bert-tiny pytorch/cpu fp32 batch 8"),
        ({"options": {"b": 2, "a": "x"}}, f"{NAME} a=x b=2"),
        ({"scenario": "offline", "world_size": 4}, f"{NAME} offline 4 processes"),
        ({"prompt_tokens": 16, "new_tokens": 8}, f"{NAME} prompt 16 new 8"),
    ],
)
def test_a_title_has_what_was_asked(changes, wanted):
    assert format_title(row(**changes)) == wanted


@pytest.mark.parametrize("name", ["run_id", "latency_p50_ms", "started_at", "launch", "status"])
def test_a_title_stays_when_it_is_measured_again(name):
    assert format_title(row(**{name: None})) == NAME


def test_which_launches_are_shown():
    # Launches of the newest run count.
    rows = [
        row(latency_p50_ms=9.0),
        *(
            row(run_id="r2", started_at="2026-01-02", launch=n, latency_p50_ms=ms)
            for n, ms in enumerate((5.0, 7.0, 6.0))
        ),
    ]
    ((name, _, found),) = newest_entries(rows)
    one = measure_value(found, LATENCY)
    assert one is not None
    assert name == NAME
    assert (one.median, one.low, one.high, one.launches) == (6.0, 5.0, 7.0, 3)
    # A mean stands in where steps were too short.
    one = measure_value(merge_launches([row(latency_p50_ms=None)]), LATENCY)
    assert one is not None
    assert one.median == 4.5
    # A time that is unusable is no point of a trend.
    rows = [
        row(launch=n, latency_p50_ms=ms, quality=q)
        for n, (ms, q) in enumerate([(5.0, "fixed"), (50.0, "unusable"), (7.0, "converged")])
    ]
    one = measure_value(merge_launches(rows), LATENCY)
    assert one is not None
    assert (one.median, one.launches) == (6.0, 2)
    assert measure_value(merge_launches(rows[1:2]), LATENCY) is None
    assert measure_value(merge_launches(rows[1:2]), MEMORY) is not None


PHONES = [row(device_name=name, series_key=name) for name in ("A phone", "B phone")]


def named(*rows: dict[str, Any]) -> dict[str, int]:
    """The entries' names with how many launches each has."""
    return {name: len(launches) for name, launches, _ in newest_entries(rows)}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"device_name": "A phone"}, ["", "A phone"]),
        ({"threads": 4}, ["1 thread", "4 threads"]),
        ({"compiled": True}, ["", "compiled"]),
        ({"device_fingerprint": "f" * 16}, ["device 00000000", "device ffffffff"]),
        (
            {"provenance": "imported", "conditions": {"source": {"name": "others"}}},
            ["", "of others"],
        ),
    ],
)
def test_each_device_and_number_of_threads_is_an_entry(changes, names):
    first = row(threads=1, device_fingerprint="0" * 16)
    found = named(first, {**first, "started_at": "2026-01-02", **changes})
    assert list(found) == [f"{NAME} ({name})" if name else NAME for name in names]
    assert set(found.values()) == {1}


def test_another_device_of_the_same_run_is_no_launch(tmp_path):
    export(tmp_path / "a.json", PHONES, "github-action-benchmark")
    entries = json.loads((tmp_path / "a.json").read_text())
    assert [(one["name"], one["extra"]) for one in entries] == [
        (f"{NAME} (A phone)", "1 launch of run r1"),
        (f"{NAME} (B phone)", "1 launch of run r1"),
    ]
    export(tmp_path / "b.json", PHONES, "bencher")
    assert len(json.loads((tmp_path / "b.json").read_text())) == 2


def of_version(torch: str, **changes: Any) -> dict[str, Any]:
    conditions = {"mean_ms": float(len(torch)), "torch": torch, "file": f"{torch}.csv"}
    return row(provenance="imported", started_at=None, conditions=conditions, **changes)


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (
            {"workarounds": ["static shapes", "opset 17"]},
            {},
            ["", "workarounds static shapes,opset 17"],
        ),
        (
            {"weights_digest": "sha256:1234abcd5678"},
            {"weights_digest": "ffff"},
            ["weights 1234abcd", "weights ffff"],
        ),
    ],
)
def test_launches_of_other_weights_or_workarounds_are_entries_by_name(one, other, names):
    """They were “(result 0ab2…)”, another name in every run, of one launch each."""
    every = [
        row(launch=n, series_key="s", result_id=f"{n}{kind}", **kind)
        for n in range(3)
        for kind in (one, other)
    ]
    assert named(*every) == {f"{NAME} ({name})" if name else NAME: 3 for name in names}
    lost = row(launch=3, series_key="s", result_id="lost", **FAILED)
    assert set(named(*every, lost).values()) == {4}


def test_entries_of_a_trend():
    # Versions in an import are entries not launches.
    assert named(of_version("1.13"), of_version("2.1.0"), of_version("2.4.0")) == {
        f"{NAME} (torch={torch})": 1 for torch in ("1.13", "2.1.0", "2.4.0")
    }
    same = [of_version("1.13", result_id=name) for name in "ab"]
    assert set(named(*same)) == {f"{NAME} (result a)", f"{NAME} (result b)"}
    # Of an import with many moments the newest counts.
    days = [row(provenance="imported", started_at=f"2026-01-0{day}") for day in (1, 3, 2)]
    ((name, (one,), _),) = newest_entries(days)
    assert (name, one["started_at"]) == (NAME, "2026-01-03")
    # Else a pipeline would go on showing what worked once.
    worked = [row(threads=n, device_name="A", series_key=f"s{n}") for n in (2, 4)]
    lost = row(device_name="A", run_id="r2", started_at="2026-01-05", **FAILED)
    worked[1]["started_at"] = "2026-01-02"
    found = {name: rows[0]["status"] for name, rows, _ in newest_entries([*worked, lost])}
    assert found == {f"{NAME} (2 threads)": "ok", NAME: "failed"}
    found = {name: rows[0]["status"] for name, rows, _ in newest_entries([worked[0], lost])}
    assert found == {NAME: "failed"}


@pytest.mark.parametrize("provenance", ["simulated", "predicted"])
def test_what_nobody_measured_is_not_told(provenance):
    assert list(newest_entries([row(provenance=provenance)])) == []
    assert list(newest_entries([row(emulated=True)])) == []


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [
        row(),
        row(launch=1, latency_p50_ms=5.0),
        row(model="broken", **FAILED),
        row(model="refused", **{**FAILED, "status": "unsupported", "reason": "precision"}),
        row(model="dreamt", provenance="simulated"),
    ]


def test_github_action_benchmark(tmp_path, rows):
    export(tmp_path / "a.json", rows, "github-action-benchmark")
    (entry,) = json.loads((tmp_path / "a.json").read_text())
    assert entry == {
        "name": NAME,
        "unit": "ms",
        "value": 4.5,
        "range": "4 - 5",
        "extra": "2 launches of run r1",
    }


def test_one_launch_has_no_range(tmp_path):
    """Of how launches differ it says nothing; a range of no width would say that they do not."""
    export(tmp_path / "a.json", [row()], "github-action-benchmark")
    (entry,) = json.loads((tmp_path / "a.json").read_text())
    assert "range" not in entry
    export(tmp_path / "b.json", [row()], "bencher")
    assert json.loads((tmp_path / "b.json").read_text())[NAME] == {
        "latency (ms)": {"value": 4.0},
        "throughput (items/s)": {"value": 2000.0},
        "memory (MB)": {"value": 100.0},
    }


def test_bencher(tmp_path, rows):
    export(tmp_path / "b.json", rows, "bencher")
    assert json.loads((tmp_path / "b.json").read_text()) == {
        NAME: {
            "latency (ms)": {"value": 4.5, "lower_value": 4.0, "upper_value": 5.0},
            "throughput (items/s)": {"value": 2000.0, "lower_value": 2000.0, "upper_value": 2000.0},
            "memory (MB)": {"value": 100.0, "lower_value": 100.0, "upper_value": 100.0},
        }
    }


def test_junit(tmp_path, rows):
    export(tmp_path / "c.xml", rows, "junit")
    suite = ET.parse(tmp_path / "c.xml").getroot()[0]
    assert {n: suite.get(n) for n in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    cases = {case.get("classname"): case for case in suite}
    assert cases["bert-tiny"].get("time") == "0.004500"
    (failure,) = cases["broken"].findall("failure")
    assert (failure.get("type"), failure.get("message")) == (
        *("wrong_outputs", "it computes something else"),
    )
    assert failure.text == "Look at it."
    assert len(cases["refused"].findall("skipped")) == 1
    assert cases["bert-tiny"].find("properties/property[@name='latency (ms)']") is not None


def test_junit_says_no_time_that_is_not_known(tmp_path):
    yields = {"latency_p50_ms": None, "latency_mean_ms": None}
    export(tmp_path / "c.xml", [row(**yields), row(model="broken", **FAILED)], "junit")
    suite = ET.parse(tmp_path / "c.xml").getroot()[0]
    assert [case.get("time") for case in suite] == [None, None]
    assert suite[0].find("properties/property[@name='throughput (items/s)']") is not None


def test_a_launch_that_failed_is_a_failure_though_others_did_not(tmp_path):
    export(tmp_path / "c.xml", [row(), row(launch=1, **FAILED)], "junit")
    suite = ET.parse(tmp_path / "c.xml").getroot()[0]
    assert suite.get("failures") == "1"


def test_junit_passes_nothing_whose_time_is_unusable(tmp_path):
    """It was an empty case that passes, though an older run had a time."""
    useless = {"run_id": "r2", "quality": "unusable", "started_at": "2026-01-02"}
    export(tmp_path / "c.xml", [row(), row(**useless)], "junit")
    suite = ET.parse(tmp_path / "c.xml").getroot()[0]
    assert {n: suite.get(n) for n in ("tests", "failures", "skipped")} == {
        "tests": "1",
        "failures": "0",
        "skipped": "1",
    }
    (skipped,) = suite[0].findall("skipped")
    assert skipped.get("message") == "unusable: interval wider than ±25 %"


NO_MEAN = {"latency_p50_ms": None, "latency_mean_ms": None}


def test_what_has_no_entry_is_counted_by_reason(tmp_path):
    """It said “Wrote 1 entry of 10 results”, and nothing of nine."""
    rows = [
        row(),
        row(model="rate", **NO_MEAN),
        row(model="tail", **NO_MEAN, throughput=None, latency_p90_ms=5.0),
        row(model="useless", quality="unusable"),
        row(model="failing"),
        *(row(model="failing", launch=n, status="failed", reason="crash") for n in (1, 2)),
        row(model="broken", **FAILED),
        row(model="no", status="unsupported"),
        row(model="guess", provenance="predicted"),
    ]
    action = export_report(tmp_path / "a.json", rows, "github-action-benchmark")
    assert action.written == 1
    assert action.told() == (
        "Left out: 1 known by a percentile alone, 1 known by a rate alone, 1 of which most launches"
        " failed, 1 predicted, 1 unsupported, 1 unusable, 1 with wrong outputs."
    )
    bencher = export_report(tmp_path / "b.json", rows, "bencher")
    assert "known by a rate alone" not in bencher.left_out
    assert export_report(tmp_path / "c.xml", rows, "junit").left_out == {"predicted": 1}
    assert export_report(tmp_path / "d.md", rows, "markdown").told() == ""


def test_markdown_is_a_table(tmp_path, rows):
    rows.append(row(latency_mean_ms=None, throughput=None, launch=2, emulated=True))
    export(tmp_path / "d.md", rows, "markdown")
    lines = (tmp_path / "d.md").read_text().splitlines()
    assert len(lines) == 2 + len(rows)
    assert lines[2] == f"| {NAME} | 4 | 4.5 | 2000 | 100 | 0 | ok | measured | r1 |"
    assert (
        "| no data | no data | no data | no data | 0 | failed: wrong_outputs | measured |"
        in lines[4]
    )
    assert lines[-1].endswith("| 4 | no data | no data | 100 | 2 | ok | measured, emulated | r1 |")


def test_markdown_says_of_an_unusable_figure_that_it_is(tmp_path):
    export(tmp_path / "d.md", [row(quality="unusable"), row(quality="fixed")], "markdown")
    lines = (tmp_path / "d.md").read_text().splitlines()
    assert "| ok, unusable | measured |" in lines[2]
    assert "| ok | measured |" in lines[3]


def test_markdown_names_wrong_outputs_of_a_result_that_says_ok(tmp_path):
    """Files of others may say so."""
    export(tmp_path / "d.md", [row(verification="failed")], "markdown")
    assert "| wrong outputs | measured |" in (tmp_path / "d.md").read_text().splitlines()[2]


def test_markdown_says_of_quantised_outputs_that_nobody_verified_them(tmp_path):
    """It read “ok”, as of any other figure."""
    rows = [
        row(result_id="a", precision="int8", verification="not_done"),
        row(result_id="b", precision="int8", launch=1, verification="ok", verification_error=0.6),
        row(result_id="c", precision="int8", launch=2, verification="ok", verification_error=0.01),
        row(result_id="d", verification="not_done"),
    ]
    export(tmp_path / "a.md", rows, "markdown")
    lines = (tmp_path / "a.md").read_text("utf-8").splitlines()[2:]
    said = [line.split(" | ")[6] for line in lines]
    assert sorted(said) == ["ok", "ok", "ok, error 0.6", "ok, outputs not verified"]


@pytest.mark.parametrize("word", NASTY)
@pytest.mark.parametrize("form", list(REPORTS))
def test_hostile_names_break_nothing(tmp_path, word, form):
    path = tmp_path / "out"
    export(path, [row(model=word, options={"x": word}), row(model=word, **FAILED)], form)
    text = path.read_text(encoding="utf-8")
    if form == "junit":
        assert len(ET.fromstring(text)[0]) == 2
    elif form == "markdown":
        assert len(text.splitlines()) == 4
        assert "<" not in text
    else:
        assert len(json.loads(text)) == 1


@pytest.mark.parametrize("form", list(REPORTS))
def test_no_results_make_a_report_of_nothing(tmp_path, form):
    export(tmp_path / "out", [], form)
    assert (tmp_path / "out").read_text().strip()


def test_arrow_holds_every_column(tmp_path):
    export(tmp_path / "e.arrow", [row()], "arrow")
    table = feather.read_table(tmp_path / "e.arrow")
    assert table.column_names == [column.name for column in COLUMNS]
    assert table["latency_p50_ms"].to_pylist() == [4.0]


def test_suffixes_name_formats():
    for name, form in (("a.md", "markdown"), ("a.xml", "junit"), ("a.feather", "arrow")):
        assert format_for(Path(name), None) == form


def test_a_pipeline_is_told_no_time_of_a_run_that_mostly_failed(tmp_path):
    lost = [row(launch=n, **{**FAILED, "reason": "crash"}) for n in (2, 3)]
    export(tmp_path / "a.json", [row(), row(launch=1), *lost[:1]], "github-action-benchmark")
    (entry,) = json.loads((tmp_path / "a.json").read_text())
    assert entry["extra"] == "2 launches of run r1, 1 of 3 launches failed"
    export(tmp_path / "b.json", [row(), *lost], "github-action-benchmark")
    assert json.loads((tmp_path / "b.json").read_text()) == []
