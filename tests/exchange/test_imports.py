"""What others measured comes in whole, once, and says whose it is; what is malformed stays out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bodies import body
from foreign_files import (
    BAD,
    GOOD,
    GUIDE,
    MLPERF,
    PERF,
    TIMM,
    TIMM_HEADER,
    Good,
    bring,
    results,
    table,
)

from accelbench.core.errors import UsageError
from accelbench.evidence.launches import launches_of
from accelbench.exchange.imports.reading import IMPORT_FORMATS, find_files, find_format, read_import
from accelbench.exchange.imports.records import MalformedError, Record
from accelbench.exchange.imports.result_row import Source, build_result
from accelbench.exchange.result_file import build_document, to_row
from accelbench.store.body_to_row import step_samples
from accelbench.store.database import Database
from exported import export


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def put(folder: Path, good: Good) -> Path:
    for name, text in good.beside.items():
        write(folder, name, text)
    return write(folder, good.name, good.text)


def rows(path: Path, kind: str, **more: str) -> list[Mapping[str, Any]]:
    return [to_row(body) for body in read_import(kind, path, **more).bodies]


def stored(database: Database) -> list[dict[str, Any]]:
    return database.results(samples=True)


each_good = pytest.mark.parametrize("good", GOOD, ids=lambda one: f"{one.kind}-{one.name}")


@each_good
def test_what_a_file_says_is_in_the_columns(good, tmp_path):
    found = rows(put(tmp_path, good), good.kind)
    assert len(found) == len(good.rows)
    for row, wanted in zip(found, good.rows, strict=True):
        for name, value in wanted.items():
            near = pytest.approx(value) if isinstance(value, float) else value
            assert row[name] == near, name
        assert row["warnings"] is None  # nothing was set aside
    assert good.conditions.items() <= found[0]["conditions"].items()


@each_good
def test_every_row_says_whose_it_is_and_may_be_compared(good, tmp_path):
    path = put(tmp_path, good)
    source = {"source": "somebody", "commit": "abc", "licence": "MIT"}
    told = {"name": "somebody", "commit": "abc", "licence": "MIT"}
    for row in rows(path, good.kind, **source):
        assert row["provenance"] == "imported"
        assert launches_of([row])[0]["comparable"]
        assert row["conditions"]["source"] == told


@each_good
def test_a_second_import_adds_nothing_wherever_the_file_lies(good, tmp_path):
    database = Database(tmp_path / "a.duckdb")
    assert bring(database, good.kind, put(tmp_path / "a", good)) == len(good.rows)
    whole = stored(database)
    assert bring(database, good.kind, put(tmp_path / "b", good), commit="later") == 0
    assert stored(database) == whole
    assert database.status()["tables"]["benchmark_runs"] == 1


def test_what_a_sample_covers_goes_out_and_comes_in_again(tmp_path):
    """A sample of 26 steps without that number is 26 times as slow."""
    told = body(
        result_id="r1",
        samples={"step": [26_000_000, 13_000_000]},
        sampling={"step": {"timing": "whole", "steps": [26, 13]}},
    )
    written = tmp_path / "run.json"
    written.write_text(json.dumps(build_document({"run_id": "r"}, [told])), encoding="utf-8")
    database = Database(tmp_path / "a.duckdb")
    bring(database, "json", written)
    assert step_samples(database, ["r1", "none"]) == {"r1": [1.0, 1.0]}
    path = tmp_path / "out.json"
    export(path, database.results(samples=True), "json", samples=True)
    other = Database(tmp_path / "b.duckdb")
    bring(other, "json", path)
    assert other.results(samples=True)[0]["sampling"] == told["sampling"]


@each_good
@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_came_in_goes_out_and_comes_in_elsewhere_as_it_was(good, form, tmp_path):
    here, there = Database(tmp_path / "a.duckdb"), Database(tmp_path / "b.duckdb")
    bring(here, good.kind, put(tmp_path, good))
    samples = form == "json"
    path = tmp_path / f"out.{form}"
    export(path, here.results(samples=samples), form, samples=samples)
    assert bring(there, form, path) == len(good.rows)
    assert there.results(samples=samples) == here.results(samples=samples)
    assert bring(here, form, path) == 0


each_bad = pytest.mark.parametrize("bad", BAD, ids=lambda one: f"{one.kind}-{one.why[:24]}")


@each_bad
def test_a_malformed_file_is_refused_by_file_line_and_field(bad, tmp_path):
    path = write(tmp_path, bad.name, bad.text)
    with pytest.raises(MalformedError) as caught:
        rows(path, bad.kind)
    error = caught.value
    assert (error.file, error.line, error.field) == (path, bad.line, bad.named)
    assert bad.why in error.message
    assert str(path) in error.message
    assert error.exit_code == 2


@pytest.mark.parametrize(("form", "text"), [("json", results()), ("csv", table())])
def test_what_our_writer_can_produce_is_taken(form, text, tmp_path):
    (row,) = rows(write(tmp_path, f"r.{form}", text), form)
    assert (row["memory_peak_mb"], row["warnings"]) == (0.0, None)


def test_of_others_any_precision_is_taken(tmp_path):
    text = results(precision="w8a8", provenance="imported")
    assert rows(write(tmp_path, "r.json", text), "json")[0]["precision"] == "w8a8"


def test_an_error_of_an_import_says_that_nothing_came_in(tmp_path):
    path = write(tmp_path, "a.json", '{"schema": 99, "results": []}')
    with pytest.raises(MalformedError) as caught:
        rows(path, "json")
    assert caught.value.advice == "Upgrade accelbench. Nothing was imported."


@pytest.mark.parametrize("word", ["", " ", "lab\n", "a\x1bb", "a\tb"])
def test_a_source_has_a_name_that_can_be_shown(word, tmp_path):
    with pytest.raises(UsageError):
        rows(write(tmp_path, "r.json", results()), "json", source=word)


def test_nothing_was_measured_in_the_future(tmp_path):
    path = write(tmp_path, TIMM, TIMM_HEADER)
    today = datetime.now(UTC)
    for moment in (today + timedelta(days=2), today + timedelta(days=400)):
        with pytest.raises(UsageError, match="is in the future"):
            rows(path, "timm", measured_at=moment.date().isoformat())
    assert rows(path, "timm", measured_at=today.date().isoformat()) == []


def test_a_folder_is_read_whole_or_not_at_all(tmp_path):
    write(tmp_path / "one", "perf.yaml", PERF)
    other = write(tmp_path / "two", "perf.yaml", PERF.replace("2.5", "soon"))
    write(tmp_path / "two", "else.yaml", "- not ours\n")
    with pytest.raises(MalformedError) as caught:
        rows(tmp_path, "aihub")
    assert caught.value.file == other
    other.write_text(PERF, encoding="utf-8")
    assert [row["model"] for row in rows(tmp_path, "aihub")] == ["one", "one", "two", "two"]


def test_what_a_run_makes_of_its_results_is_no_file_of_results(tmp_path):
    for name in ("raw_results/a.json", "processed_results/aggregated.json", "profiles/p.json"):
        (tmp_path / "out" / name).parent.mkdir(parents=True)
        (tmp_path / "out" / name).write_text("{}", encoding="utf-8")
    files = find_files(IMPORT_FORMATS["json"], tmp_path / "out")
    assert [file.name for file in files] == ["a.json"]
    assert find_files(IMPORT_FORMATS["json"], tmp_path / "out" / "profiles")[0].name == "p.json"


def test_what_is_no_text_is_told_with_its_line(tmp_path):
    path = tmp_path / TIMM
    path.write_bytes(TIMM_HEADER.encode() + b"\xff\n")
    with pytest.raises(MalformedError, match="line 2: it is not text in UTF-8"):
        rows(path, "timm")


def test_a_model_that_did_not_run_is_passed_over(tmp_path):
    assert rows(write(tmp_path, TIMM, TIMM_HEADER + "net,448,,,,1,2,3\n"), "timm") == []


def test_an_open_entry_is_of_the_network_that_was_used(tmp_path):
    """Of one name were 169 entries on one device, from 27 to 4,380 samples/s."""
    opened = {**MLPERF, "Category": "open"}
    entries = [{**opened, "UsedModel": "net_a"}, {**opened, "UsedModel": "resnet"}, opened]
    path = tmp_path / "summary_results.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    found = [row["model"] for row in rows(path, "mlperf")]
    assert found == ["resnet-open/net_a", "resnet-open", "resnet-open"]


def test_the_same_question_is_one_case_and_another_source_another_series(tmp_path):
    line = "net,224,1000,256,256,5.5,0.39,2.04\n"
    newer = TIMM.replace("pt240-cu124", "pt291-cu128")
    old = rows(write(tmp_path, TIMM, TIMM_HEADER + line), "timm")[0]
    new = rows(write(tmp_path, newer, TIMM_HEADER + line.replace("1000,256", "1100,233")), "timm")[
        0
    ]
    ours = rows(tmp_path / TIMM, "timm", source="us")[0]
    assert old["case_id"] == new["case_id"] == ours["case_id"]
    assert old["series_key"] == new["series_key"] != ours["series_key"]
    assert len({row["result_id"] for row in (old, new, ours)}) == 3


def test_images_of_other_numbers_of_steps_are_other_cases():
    """4 denoising steps and 50 were one case, and one was "12x as fast" as the other."""
    asked = {"model": "sd", "hardware": "cuda", "device_name": "A card", "runtime": "pytorch"}
    at = Record(Path("a.csv"), 2, {})
    few, many, unsaid = (
        build_result(
            Source("us"), {**asked, "denoising_steps": steps, "latency_mean_ms": 5.0}, at=at
        )
        for steps in (4, 50, None)
    )
    assert len({row["case_id"] for row in (few, many, unsaid)}) == 3
    assert len({row["series_key"] for row in (few, many, unsaid)}) == 3


def test_white_space_makes_no_other_thing_of_a_name(tmp_path):
    """Two rows that looked the same were of two models."""
    line = "net b,224,1000,256,256,5.5,0.39,2.04\n"
    (plain,) = rows(write(tmp_path, TIMM, TIMM_HEADER + line), "timm")
    odd = TIMM_HEADER + line.replace("net b", " net\u00a0 b ")
    (spaced,) = rows(write(tmp_path, TIMM, odd), "timm")
    assert spaced == plain
    assert spaced["model"] == "net b"


def test_a_moment_that_the_file_does_not_say_is_taken_from_who_imports(tmp_path):
    path = write(tmp_path, TIMM, TIMM_HEADER + "net,224,1000,256,256,5.5,0.39,2.04\n")
    assert rows(path, "timm")[0]["started_at"] is None
    said = rows(path, "timm", measured_at="2026-08-08T07:44:52-07:00")[0]
    assert said["started_at"] == "2026-08-08T14:44:52.000000Z"
    guide = write(tmp_path, "b.csv", GUIDE)
    own = rows(guide, "guide-csv", measured_at="2020-01-01")[0]
    assert own["started_at"] == "2026-05-01T12:00:00.000000Z"
    with pytest.raises(UsageError, match="'soon' is not a date"):
        rows(path, "timm", measured_at="soon")


def test_a_moment_that_is_given_afterwards_doubles_nothing(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    path = write(tmp_path, TIMM, TIMM_HEADER + "net,224,1000,256,256,5.5,0.39,2.04\n")
    assert bring(database, "timm", path) == 1
    assert bring(database, "timm", path, measured_at="2026-08-08") == 0


@pytest.mark.parametrize(("most", "known"), [("0", None), ("7", 7.0)])
def test_memory_that_was_not_seen_is_not_known(most, known, tmp_path):
    path = write(tmp_path, "perf.yaml", PERF.replace("max: 12", f"max: {most}"))
    assert rows(path, "aihub")[0]["memory_peak_mb"] == known


def test_measured_results_of_ours_become_imported_and_others_stay_what_they_are(tmp_path):
    common = {
        "result_id": "r", "case_id": "c", "model": "bert-tiny", "hardware": "cpu",
        "runtime": "pytorch", "status": "ok", "latency_mean_ms": 2.0,
    }  # fmt: skip
    results = [
        {**common, "result_id": f"r{n}", "provenance": one}
        for n, one in enumerate(("measured", "imported", "predicted", "simulated"))
    ]
    path = write(tmp_path, "r.json", json.dumps({"results": results}))
    found = rows(path, "json", source="the other machine")
    assert [row["provenance"] for row in found] == [
        *("imported", "imported", "predicted", "simulated")
    ]
    assert found[0]["conditions"]["source"] == {"name": "the other machine"}
    results[0]["provenance"] = "rumour"
    path.write_text(json.dumps({"results": results}))
    with pytest.raises(MalformedError, match="'rumour' is not one"):
        rows(path, "json")


def test_a_column_of_the_wrong_kind_is_refused(tmp_path):
    one = {"result_id": "r", "case_id": "c", "model": "m", "hardware": "cpu", "runtime": "r"}
    one |= {"status": "ok", "provenance": "measured", "latency_mean_ms": "fast"}
    path = write(tmp_path, "r.json", json.dumps({"results": [one]}, indent=0))
    with pytest.raises(MalformedError) as caught:
        rows(path, "json")
    assert (caught.value.line, caught.value.field) == (11, "latency_mean_ms")


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(UsageError, match="no kind named 'timn'"):
        find_format("timn")
    with pytest.raises(UsageError, match="There is no"):
        find_files(find_format("timm"), tmp_path / "none")
    with pytest.raises(UsageError, match=r"There is no benchmark-\*\.csv in"):
        find_files(find_format("timm"), tmp_path)


def test_kinds_and_sources():
    # Every kind has files that are right and files that are wrong.
    tables = {"parquet", "tidy"}  # held in test_imports_parquet.py
    assert {one.kind for one in GOOD} | {"json", "csv"} | tables == set(IMPORT_FORMATS)
    assert {one.kind for one in BAD} | {"csv"} | tables == set(IMPORT_FORMATS)
    assert Source("a").to_dict() == {"name": "a"}


@pytest.mark.parametrize(
    ("software", "engine"),
    [
        ("TensorRT 10.11, CUDA 12.9", "tensorrt"),
        ("Mango LLMBoost AI Enterprise Platform, ROCm 6.12", "llmboost"),
        ("TheStageAI", "other"),
    ],
)
def test_every_mlperf_figure_has_an_engine(tmp_path, software, engine):
    path = write(tmp_path, "summary_results.json", json.dumps([{**MLPERF, "Software": software}]))
    (row,) = rows(path, "mlperf")
    assert row["runtime"] == engine
