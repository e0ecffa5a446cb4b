"""`accelbench plot` as people and machines meet it, from a store or from files to pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from shells import Command
from stored_rows import store

from accelbench.present.charts import CHARTS
from made_up_calibration import calibrated_store, made_calibration, with_collectives

pytest.importorskip("vl_convert")

#: Charts that a result alone is not enough for.
ONE_RESULT = [name for name in CHARTS if name != "compatibility"]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Two models on two platforms, in two batches."""
    path = tmp_path / "results.duckdb"
    changes: list[dict[str, Any]] = [
        {
            "model": model,
            "architecture": architecture,
            "hardware": hardware,
            "batch_size": batch,
            "latency_p50_ms": 8.0 * batch / faster,
            "latency_mean_ms": 8.0 * batch / faster,
            "throughput": 125.0 * faster,
            "sample_count": 30,
            "case_id": f"{model} {hardware} {batch}",
            "series_key": f"{model} {hardware} {batch}",
            "launch": 0,
        }
        for model, architecture in (("bert-tiny", "encoder-only"), ("resnet-tiny", "vision"))
        for hardware, faster in (("cpu", 1), ("cuda", 10))
        for batch in (1, 8)
    ]
    store(path, *changes)
    return path


@pytest.fixture
def files(tmp_path: Path, db: Path, command: Callable[..., Command]) -> Path:
    """The same as a folder with a result file."""
    folder = tmp_path / "out"
    folder.mkdir()
    code, _, err = command("db")("export", folder / "all.json", "--db", db)
    assert code == 0, err
    return folder


def test_every_chart_with_a_content_is_drawn(plot, db, tmp_path):
    code, out, err = plot("--db", db)
    assert code == 0
    names = [Path(line).stem for line in out.splitlines()]
    assert names[:3] == ["hardware-latency", "hardware-throughput", "hardware-memory"]
    assert {"latency-by-batch", "architecture", "compatibility"} <= set(names)
    for name in names:
        found = (tmp_path / "visualizations" / f"{name}.png").read_bytes()
        assert found.startswith(b"\x89PNG")
    assert err.startswith("Nothing to show: ")
    assert "precision" in err


def test_three_formats_in_a_folder_of_ones_own(plot, db, tmp_path):
    forms = ("--format", "png,svg", "--format", "html")
    code, out, _ = plot("--db", db, "--chart", "pareto", *forms, "--output-dir", "a/b")
    assert (code, out.split()) == (0, ["a/b/pareto.png", "a/b/pareto.svg", "a/b/pareto.html"])
    ElementTree.parse(tmp_path / "a" / "b" / "pareto.svg")
    assert "vegaEmbed" in (tmp_path / "a" / "b" / "pareto.html").read_text(encoding="utf-8")


def test_one_chart_goes_into_a_file_that_is_named(plot, db, tmp_path):
    one = ("--db", db, "--chart", "pareto")
    assert plot(*one, "--output", "new/mine.svg")[:2] == (0, "new/mine.svg\n")
    ElementTree.parse(tmp_path / "new" / "mine.svg")
    assert plot(*one, "--format", "svg", "-o", "folder")[1] == "folder/pareto.svg\n"
    assert "already exists" in refused(plot, 2, *one, "-o", "new/mine.svg")
    assert "is no png" in refused(plot, 2, *one, "-o", "b.svg", "--format", "png")
    assert "one file, and 2 charts" in refused(plot, 2, *one, "--chart", "trend", "-o", "b.svg")
    assert "Leave out one" in refused(plot, 2, *one, "-o", "b.svg", "--output-dir", "c")


def test_a_second_drawing_replaces_the_first(plot, db, tmp_path):
    for _ in range(2):
        assert plot("--db", db, "--chart", "pareto", "--format", "svg")[0] == 0
    assert [one.name for one in (tmp_path / "visualizations").iterdir()] == ["pareto.svg"]


def test_machines_are_told_the_files_and_what_was_empty(plot, db):
    found = plot.json("--db", db, "--chart", "pareto,precision", "--format", "svg")
    assert found == {
        "files": ["visualizations/pareto.svg"],
        "nothing_to_show": ["precision"],
        "not_shown": [],
    }
    found = plot.json("--db", db, "--chart", "precision")
    assert found == {"files": [], "nothing_to_show": ["precision"], "not_shown": []}


def test_the_list_names_every_chart_and_needs_no_database(plot):
    code, out, _ = plot("--chart", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(CHARTS)


def test_the_documents_spellings(plot, db):
    asked = ("--db-path", db, "--model-id", "bert-tiny", "--format", "svg")
    code, out, err = plot(*asked, "--architecture-comparison")
    assert (code, out) == (2, "")
    assert "architecture needs models of two architectures" in err
    found = plot.json("--db", db, "--architecture-comparison", "--format", "svg")
    assert found["files"] == ["visualizations/architecture.svg"]


@pytest.mark.parametrize(
    ("narrowed", "there", "gone"),
    [
        (("bert-tiny",), "bert-tiny", "resnet-tiny"),
        (("--model-id", "resnet-tiny"), "resnet-tiny", "bert-tiny"),
        (("--hardware", "cpu"), "cpu", "cuda"),
        (("--batch-sizes", "8"), "batch 8", "batch 1"),
    ],
)
def test_narrowed_down(plot, db, tmp_path, narrowed, there, gone):
    charts = "pareto,hardware-latency,latency-by-batch"
    found = plot.json(*narrowed, "--db", db, "--format", "svg", "--chart", charts)
    said = "".join((tmp_path / one).read_text(encoding="utf-8") for one in found["files"])
    assert there in said
    assert gone not in said


# -- result files ----------------------------------------------------------------------------


def test_of_a_folder_of_result_files(plot, files, tmp_path):
    asked = ("--chart", "hardware-latency", "--format", "svg")
    found = plot.json("--input-dir", files, *asked)
    assert found["files"] == ["visualizations/hardware-latency.svg"]
    said = (tmp_path / found["files"][0]).read_text(encoding="utf-8")
    assert "8 configurations from 8 launches" not in said
    assert "4 configurations from 4 launches" in said
    assert "lab" in said


def test_what_a_run_derives_is_not_read_again(plot, files):
    derived = files / "processed_results" / "aggregated_benchmarks.json"
    derived.parent.mkdir(exist_ok=True)
    derived.write_text("{}", encoding="utf-8")
    assert plot("--input-dir", files, "--chart", "hardware-latency")[0] == 0


# -- what can be wrong -----------------------------------------------------------------------


def refused(plot: Command, code: int, *words: object) -> str:
    """One line, and nothing is written."""
    found, out, err = plot(*words)
    assert (found, out) == (code, ""), err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not Path("visualizations").exists()
    return err


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (
            2,
            ("--db", "results.duckdb", "--chart", "pie"),
            "no chart 'pie'. Charts: hardware-latency",
        ),
        (2, ("--db", "results.duckdb", "--format", "pdf"), "Formats: png, svg, html."),
        (
            2,
            ("bert-tiny", "--db", "results.duckdb", "--chart", "trend"),
            "There is nothing to draw. trend needs",
        ),
        (3, ("--db", "elsewhere.duckdb"), "elsewhere.duckdb"),
        (4, ("gpt2-tiny", "--db", "results.duckdb"), "measure first"),
        (2, ("--db", "results.duckdb", "--machine", "attic"), "no results of a machine 'attic'"),
        (3, ("--db", "results.duckdb", "--output-dir", "taken"), "taken"),
        (2, ("--input-dir", "empty"), "no result files in empty"),
        (2, ("--json-path", "a.json"), "a.json"),
        (2, ("--json-path", "gone.json"), "gone.json"),
    ],
)
@pytest.mark.usefixtures("db")
def test_what_is_refused(plot, tmp_path, code, words, said):
    (tmp_path / "taken").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert said in refused(plot, code, *words)


def test_nothing_to_draw_of_all_charts_is_still_one_short_sentence(plot, tmp_path):
    store(tmp_path / "results.duckdb", {})
    said = refused(plot, 2, "--db", tmp_path / "results.duckdb", "--chart", ",".join(ONE_RESULT))
    assert "accelbench plot --chart list" in said
    assert len(said) < 160


def test_only_failures_are_nothing_measured(plot, tmp_path):
    store(tmp_path / "results.duckdb", {"status": "failed", "latency_p50_ms": None})
    said = refused(plot, 4, "--db", tmp_path / "results.duckdb", "--chart", "pareto,roofline")
    assert "no result of what was asked for has a figure" in said


def test_without_its_engine_the_install_that_brings_it_is_named(plot, db, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    said = refused(plot, 3, "--db", db)
    assert "vl-convert-python, which is not installed" in said
    assert "accelbench setup charts" in said


def test_declaring_charts_brings_no_engine():
    """Help, and whatever else only looks, must stay cheap."""
    code = (
        "import sys, accelbench, accelbench.cli.commands.plot, accelbench.present.charts;"
        " sys.exit(bool({'vl_convert', 'altair', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_what_a_request_drops_is_said(plot, db):
    asked = ("--hardware", "cpu,cuda,rocm", "--chart", "pareto", "--db", str(db))
    said = "Not shown: hardware rocm: no result has it beside the rest of what was asked for."
    code, _, err = plot(*asked)
    assert (code, err) == (0, f"{said}\n")
    assert plot.json(*asked)["not_shown"] == [said]


def test_no_file_is_named_by_data(plot, tmp_path):
    names = ("../../etc/passwd", "<script>alert(1)</script>", "'; DROP TABLE", "\u202eexe", "🦙")
    path = tmp_path / "results.duckdb"
    store(
        path,
        *(
            {"model": name, "architecture": name, "hardware": hardware, "batch_size": batch}
            for name in names
            for hardware in ("cpu", "../../cuda")
            for batch in (1, 8)
        ),
    )
    before = {one for one in tmp_path.parent.rglob("*") if "visualizations" not in one.parts}
    found = plot.json("--db", path, "--format", "svg,html")
    assert {Path(one).stem for one in found["files"]} <= set(CHARTS)
    after = {one for one in tmp_path.parent.rglob("*") if "visualizations" not in one.parts}
    assert {one.name for one in after - before} <= {"results.duckdb.wal", "results.duckdb.lock"}


def test_samples_of_several_steps_are_drawn_as_milliseconds_of_one(plot, command, tmp_path):
    """From a store and from a file alike."""
    told = {
        "samples": {"step": [26_000_000, 52_000_000, 39_000_000]},
        "sampling": {"step": {"timing": "whole", "steps": [26, 26, 26]}}, "latency_p50_ms": None,
        "latency_mean_ms": 1.5, "throughput": 666.7, "launch": 0, "case_id": "short",
    }  # fmt: skip
    database = tmp_path / "short.duckdb"
    store(database, told)
    file = tmp_path / "short.json"
    for number, words in enumerate((("--db", database), ("--json-path", file))):
        if number:
            code, _, err = command("db")("export", file, "--samples", "--db", database)
            assert code == 0, err
        folder = tmp_path / str(number)
        chart = ("--chart", "latency-distribution", "--format", "html", "--output-dir", folder)
        code, _, err = plot(*words, *chart)
        assert code == 0, err
        page = (folder / "latency-distribution.html").read_text(encoding="utf-8")
        assert '"ms":2.0' in page.replace(" ", "")


def relaunched(folder: Path) -> Path:
    """Five launches of a model at two batches, and a lone newer one that says less."""
    path = folder / "again.duckdb"
    several = [
        {"case_id": f"c{batch}", "batch_size": batch, "launch": n, "latency_p50_ms": 82.0 * batch}
        for batch in (1, 8)
        for n in range(5)
    ]
    store(path, *several, run="five")
    lone = {"case_id": "c1", "launch": 0, "latency_p50_ms": 454.0, "quality": "noise_limited"}
    store(path, lone | {"started_at": "2026-03-04T00:00:00.000000Z"}, run="lone")
    return path


def test_a_chart_says_that_newer_launches_are_not_among_those_it_draws(plot, command, tmp_path):
    path = relaunched(tmp_path)
    code, *_ = plot("--chart", "latency-by-batch", "--format", "svg", "--db", path)
    drawn = (tmp_path / "visualizations" / "latency-by-batch.svg").read_text()
    assert (code, "1 newer launch set aside" in drawn, "10 launches" in drawn) == (0, True, True)
    assert command("report")("--db", path)[0] == 0
    said = "1 newer launch set aside, of the same software, that say less"
    assert said in (tmp_path / "report.html").read_text()


def test_of_a_run_alone_a_chart_is_drawn(plot, tmp_path):
    path = relaunched(tmp_path)
    asked = ("--chart", "latency-by-batch", "--format", "svg", "--db", path)
    assert plot("--run", "lone", *asked)[0] == 2  # one batch is no line
    assert plot("--run", "five", *asked)[0] == 0
    drawn = (tmp_path / "visualizations" / "latency-by-batch.svg").read_text()
    assert "set aside" not in drawn
    code, _, err = plot("--run", "sixth", *asked)
    assert (code, "There is no run, label or branch" in err, "sixth" in err) == (2, True, True)


def test_a_store_of_calibrations_alone_has_the_chart_of_collectives(plot, tmp_path):
    path = tmp_path / "calibrated.duckdb"
    calibrated_store(path, with_collectives(made_calibration()))
    words = ["--db", path, "--format", "svg"]
    code, out, err = plot(*words, "--chart", "collectives")
    assert code == 0, err
    assert out.strip().endswith("collectives.svg")
    code, _, err = plot(*words, "--model", "bert-tiny")
    assert code == 4
    assert "bert-tiny" in err
