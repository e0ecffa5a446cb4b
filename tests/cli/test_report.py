"""`accelbench report` and `run --create-report`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from shells import QUICK
from stored_rows import store

from accelbench.cli.services import report_files
from accelbench.present.charts import draw

DB = "accelbench.duckdb"


def some(folder: Path) -> None:
    launches = [{"case_id": "c1", "launch": n, "latency_p50_ms": 8.0 + n / 10} for n in range(3)]
    card = {"case_id": "c2", "hardware": "cuda"}
    fast = [{**one, **card, "latency_p50_ms": 2.0 + one["launch"] / 1000} for one in launches]
    store(folder / DB, *launches, *fast, run="r1", about={"command": "accelbench run bert-tiny"})


def test_it_is_one_html_file(tmp_path, report):
    some(tmp_path)
    code, out, _ = report()
    assert (code, out) == (0, "report.html\n")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        "bert-tiny, inference, batch 1: pytorch on cuda in fp32, 2.00 ms a step; pytorch on cpu in"
        " fp32 takes 4.05× as long (95 % interval"
    ) in page
    assert "accelbench run bert-tiny" in page
    assert page.count("<svg ") > 2


def test_it_names_the_database_as_it_was_typed(tmp_path, report, monkeypatch):
    """It began with /home/jane/work/accelbench.duckdb, a name to pass on with it."""
    some(tmp_path)
    for number, (typed, said) in enumerate(
        [((), DB), (("--db", f"./{DB}"), DB), (("--db", str(tmp_path / DB)), f"~/{DB}")]
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert report(*typed, "--output", f"{number}.html")[0] == 0
        page = (tmp_path / f"{number}.html").read_text(encoding="utf-8")
        assert f"16 GiB) · {said}</bdi>" in page
        assert str(tmp_path) not in page


def test_what_a_request_drops_is_said(tmp_path, report):
    some(tmp_path)
    code, out, err = report("--hardware", "cpu", "--precision", "fp32,int8")
    said = "Not shown: precision int8: no result has it beside the rest of what was asked for."
    assert (code, out, err) == (0, "report.html\n", f"{said}\n")


def test_what_is_there_is_not_written_over(tmp_path, report):
    some(tmp_path)
    assert report("--output", "mine.html")[0] == 0
    before = (tmp_path / "mine.html").read_bytes()
    code, _, err = report("--output", "mine.html")
    assert (code, "mine.html already exists" in err) == (2, True)
    assert (tmp_path / "mine.html").read_bytes() == before


@pytest.mark.parametrize(
    ("command_of", "words"),
    [
        ("report", ("--output", "taken.html")),
        ("matrix", ("-o", "taken.html")),
        ("compare", ("-o", "taken.csv")),
        ("recommend", ("bert-tiny", "-o", "taken.json")),
        ("predict", ("bert-tiny", "--output", "taken.json")),
        ("plot", ("--chart", "pareto", "-o", "taken.html")),
    ],
)
def test_a_name_that_is_taken_is_refused_before_any_work(tmp_path, command, command_of, words):
    """There is no database here: whoever looks for one first says that."""
    (tmp_path / words[-1]).touch()
    code, _, err = command(command_of)(*words)
    assert (code, f"{words[-1]} already exists" in err) == (2, True), err


@pytest.mark.parametrize(
    ("command_of", "words", "formats"),
    [
        ("compare", ("-o", "x.txt"), (".csv", ".json", ".md")),
        ("matrix", ("-o", "x.csv"), (".json", ".md", ".html", ".txt")),
        ("recommend", ("bert-tiny", "-o", "x.md"), (".json",)),
        ("predict", ("bert-tiny", "--output", "x.csv"), (".json",)),
    ],
)
def test_a_suffix_of_another_format_is_refused_with_the_formats(
    tmp_path, command, command_of, words, formats
):
    code, _, err = command(command_of)(*words)
    assert code == 2
    assert words[-1] in err
    assert [form for form in formats if form not in err] == []
    assert not (tmp_path / words[-1]).exists()


def test_markdown_has_its_pictures_beside_it(tmp_path, report):
    some(tmp_path)
    code, out, _ = report("--output", "there/mine.md")
    assert code == 0
    text = (tmp_path / "there" / "mine.md").read_text(encoding="utf-8")
    assert (
        "![Hardware: latency: how fast each platform is](mine-charts/hardware-latency.png)" in text
    )
    for line in out.splitlines():
        assert (tmp_path / line).is_file()
    assert (tmp_path / "there/mine-charts/hardware-latency.png").read_bytes()[:4] == b"\x89PNG"


def test_it_is_narrowed_down(tmp_path, report):
    some(tmp_path)
    assert report("--hardware", "cpu", "--output", "cpu.html")[0] == 0
    assert "on cuda" not in (tmp_path / "cpu.html").read_text(encoding="utf-8")
    assert report("--format", "pdf")[0] == 2
    code, _, err = report("--hardware", "rocm", "--output", "rocm.html")
    assert (code, (tmp_path / "rocm.html").exists()) == (4, False), err


def test_other_machines_and_sources_are_named_with_their_reports(tmp_path, report):
    some(tmp_path)
    card = {"environment": {"machine": "lab", "cpu": "Another", "cpus_logical": 8}}
    early = {"started_at": "2025-01-01T00:00:00.000000Z"}
    store(tmp_path / DB, {**early, "case_id": "c9"}, run="r0", about=card)
    code, _, _ = report("--format", "markdown", "--output", "all.md")
    text = (tmp_path / "all.md").read_text(encoding="utf-8")
    assert code == 0
    (other,) = re.findall(r"Not in this report: (.*)", text)
    assert re.fullmatch(
        r"lab \(Another, 8 CPUs, .*\) \(1 result of 1 model\): accelbench report --machine \w+",
        other,
    )
    word = other.split()[-1]
    assert report("--format", "markdown", "--output", "one.md", "--machine", word)[0] == 0
    assert "Another" in (tmp_path / "one.md").read_text(encoding="utf-8").splitlines()[2]


def test_it_is_of_a_run_by_its_label(tmp_path, report):
    some(tmp_path)
    later = {"case_id": "c1", "model": "vit-tiny", "started_at": "2026-02-01T00:00:00.000000Z"}
    store(tmp_path / DB, later, run="r2", about={"label": "pr"})
    assert report("--run", "pr")[0] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ("vit-tiny" in page, "bert-tiny" in page) == (True, False)
    assert report("--run", "nobody", "--output", "x.html")[0] == 2


def test_the_same_again_is_the_same(tmp_path, report):
    """Whatever order the store hands results out in: the same cells, the same choices."""
    cells = [
        {
            "case_id": f"{m}{n}",
            "model": m,
            "runtime": r,
            "latency_p50_ms": 1.0 + n,
            "launch": 0,
            "started_at": f"2026-01-02T03:0{n}:{len(m):02d}.000000Z",
        }
        for m in ("bert-tiny", "resnet-tiny", "vit-tiny")
        for n, r in enumerate(("pytorch", "jax", "onnxruntime", "openvino"))
    ]
    for number, order in enumerate((cells, cells[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        store(folder / DB, *order, run="r1")
        out = folder / "r.md"
        assert report("--db", folder / DB, "--output", out, "--title", "x")[0] == 0
    first, second = (
        re.sub(r"(Made|/)[^\n]*", "", (tmp_path / n / "r.md").read_text(encoding="utf-8"))
        for n in "01"
    )
    assert first == second


def test_an_export_of_several_runs_says_what_the_database_does(tmp_path, report, command):
    some(tmp_path)
    later = {"case_id": "c1", "latency_p50_ms": 5.0, "latency_mean_ms": 5.0}
    launches = [
        {**later, "launch": n, "started_at": f"2026-02-01T00:00:0{n}.000000Z"} for n in range(3)
    ]
    store(tmp_path / DB, *launches, run="r2", about={"command": "accelbench run again"})
    assert command("db")("export", "all.json")[0] == 0
    assert report("--output", "db.md")[0] == 0
    assert report("--json-path", "all.json", "--output", "files.md")[0] == 0
    of_db, of_files = (
        (tmp_path / f"{n}.md").read_text(encoding="utf-8").partition("## Results")[2]
        .partition("## Verification")[0].replace(f"{n}-charts", "charts")
        for n in ("db", "files")
    )  # fmt: skip
    # Of files nothing is learned: predictions are of a database.
    predicted = "## Predicted against measured"
    assert predicted in of_db
    assert predicted not in of_files
    before, _, section = of_db.partition(predicted)
    of_db = before + section[section.index("## ") :]
    assert "| 5 |" in of_db
    assert of_files == of_db
    whole = (tmp_path / "files.md").read_text(encoding="utf-8")
    assert "lab (A processor, 2 CPUs, 16 GiB)" in whole


def test_a_report_is_of_files_or_of_a_database_and_has_a_name(tmp_path, report):
    some(tmp_path)
    for words in (("--json-path", "a.json", "--db", DB), ("--output", "x.pdf"), ("--output", "-")):
        assert report(*words)[0] == 2
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(("x", "-"))] == []


def test_a_run_leaves_its_report_and_its_charts(shell):
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--output-dir", "out", "--create-report",
                 *QUICK)  # fmt: skip
    (page,) = shell.work.glob("out/report-*.html")
    assert f"Report: {page}" in done.stdout
    assert "bert-tiny" in page.read_text(encoding="utf-8")
    assert (shell.work / "out/visualizations/latency-by-batch.png").is_file()


def test_a_run_without_a_database_has_one_too(shell):
    shell("bert-tiny", "--batch-sizes", "1", "--no-database", "--create-report", *QUICK)
    (page,) = shell.work.glob("report-*.html")
    assert "bert-tiny" in page.read_text(encoding="utf-8")


def test_what_cannot_be_drawn_is_refused_before_it_is_measured(monkeypatch):
    monkeypatch.setattr(draw, "find_spec", lambda name: None)
    with pytest.raises(Exception, match="--create-report needs the package vl-convert-python"):
        report_files.refuse_undrawable()
    assert importlib.util.find_spec("vl_convert") is not None  # here it is
