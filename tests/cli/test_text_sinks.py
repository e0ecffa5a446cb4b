"""Every place that text goes to, with the same hostile names: none of them acts anywhere.

Commands, formats, charts and forms are taken from their registries: a new one that is not walked
here fails the test of its registry.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shells import ended
from stored_rows import store

from accelbench.api.benchmark import Printed
from accelbench.cli import main
from accelbench.cli.commands import report
from accelbench.core.protocols import Absent, Device
from accelbench.core.safe_text import visible, visible_lines
from accelbench.exchange import guide_csv
from accelbench.exchange.result_file import result_file_name, safe_name
from accelbench.hardware.doctor.world import Finding, Health
from accelbench.present.charts.palette import respelled
from accelbench.present.table_export import FORMATS, REPORTS, TABLES
from accelbench.present.terminal import watch
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.hardware import doctor_document, hardware_document
from accelbench.present.terminal.summary import print_profiles, print_summary, trust
from accelbench.present.terminal.terminal import Guarded, print_lines
from accelbench.store.database import Database
from exported import export
from hostile_names import ACTING, NAMES

ROWS = 4


def rows() -> list[dict[str, Any]]:
    """Of each name two platforms, a run more and what failed."""
    found: list[dict[str, Any]] = []
    for name in NAMES:
        asked = {"model": name, "family": name, "task": name, "weights": name, "precision": "fp32"}
        words = {
            "device_name": name, "throughput_unit": name, "quality": name, "warnings": [name],
            "workarounds": [name], "conditions": {"versions": {name: name}}, "verification": "ok",
            "series_key": name, "case_id": name, "device_fingerprint": name, "scenario": name,
            "latency_ci_low_ms": 7.9, "latency_ci_high_ms": 8.1, "launch": 0,
        }  # fmt: skip
        lost = {"status": "failed", "reason": name, "message": name, "advice": name}
        found += [
            {**asked, **words},
            {**asked, **words, "hardware": "cuda", "latency_p50_ms": 4.0, "batch_size": 1},
            {**asked, "runtime": name, "hardware": name, "options": {"scripted.o": name}},
            {**asked, **lost, "batch_size": 2},
        ]
    return found


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "names.duckdb"
    for run in ("first", "second"):
        about = {"command": NAMES[0], "label": NAMES[1], "git_branch": NAMES[2], "git_commit": "c"}
        store(path, *rows(), run=run, about=about, machine=NAMES[1])
    Database(path).fill()
    return path


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal on which no name is broken in two."""
    monkeypatch.setenv("COLUMNS", "3000")
    monkeypatch.chdir(tmp_path)


def assert_only_text(said: str) -> None:
    """No character of it acts or is unseen, and no line is one that a name has brought."""
    assert visible_lines(said) == said
    assert not [line for line in said.splitlines() if line.strip().startswith("bert-base cpu")]


#: What each command is asked, of a database `DB` in which all names are hostile.
ASKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "run": (("run", NAMES[0], "--dry-run"), ("run", "--hardware", NAMES[1])),
    "fleet": (
        ("fleet", NAMES[0]),
        ("fleet", "join", NAMES[1]),
        ("fleet", "run", "bert-tiny", "--address", NAMES[0]),
        ("fleet", "run", "--resume", NAMES[1], "--address", "127.0.0.1:1", "--launches", "2"),
    ),
    "hardware": (("hardware", NAMES[1]),),
    "matrix": tuple(
        ("matrix", "--db", "DB", *more)
        for more in ((), ("--explain",), ("--format", "markdown"), ("--format", "html"))
    ),
    "compare": (("compare", "--db", "DB"), ("compare", "--db", "DB", "--by", "run")),
    "recommend": (
        *(("recommend", name, "--db", "DB") for name in NAMES[:2]),
        ("recommend", NAMES[0], "--db", "DB", "--max-latency-ms", "100"),
        ("recommend", "--task", NAMES[1]),
    ),
    "predict": (
        ("predict", NAMES[0]),
        ("predict", "bert-tiny", "--db", "DB"),
        ("predict", "bert-tiny", "--hardware", NAMES[1], "--db", "DB"),
        ("predict", "--evaluate", "--db", "DB"),
        ("predict", "--evaluate", "--train", NAMES[0], "--test", NAMES[1]),
    ),
    "check": (
        ("check", "--db", "DB", "--baseline", "first", "--run", "second"),
        ("check", "--db", "DB", "--baseline", NAMES[0]),
    ),
    "history": (("history", "--db", "DB", "--all"), ("history", "--db", "DB", NAMES[1])),
    "report": (("report", "--db", "DB", "--format", NAMES[1]),),
    "plot": (("plot", NAMES[0], "--db", "DB"), ("plot", "--chart", "list")),
    "dashboard": (("dashboard", "--db", f"{NAMES[1]}.duckdb"),),
    "publish": (("publish", "public", "--db", f"{NAMES[1]}.duckdb"),),
    "models": (("models", NAMES[0]), ("models", "--category", NAMES[1])),
    "doctor": (("doctor", NAMES[1]),),
    "setup": (("setup", NAMES[0]), ("setup", NAMES[1])),
    "db": (
        ("db", "status", "--db", "DB"),
        ("db", "sql", "SELECT * FROM benchmark_results", "--db", "DB"),
        ("db", "sql", "SELECT model, message FROM benchmark_results", "--db", "DB"),
        ("db", "sql", f"SELECT '{NAMES[1]}' x", "--db", "DB"),
        ("db", "import", "json", NAMES[0]),
    ),
}


def test_every_command_is_walked():
    assert ASKED.keys() == main.COMMANDS.keys()


@pytest.mark.parametrize("words", [one for asked in ASKED.values() for one in asked], ids=" ".join)
def test_a_command(words, database, monkeypatch, capsys):
    ended(monkeypatch, *(str(database) if word == "DB" else word for word in words))
    out, err = capsys.readouterr()
    assert out or err
    if "DB" in words:
        assert "U+" in out + err
    assert "\\u" not in err
    assert_only_text(out + err)


@pytest.mark.parametrize("command", main.COMMANDS)
def test_an_option_that_does_not_exist(command, monkeypatch, capsys):
    assert ended(monkeypatch, command, f"--no{NAMES[1]}") == 2
    assert_only_text("".join(capsys.readouterr()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run\u202e",), "'run<U+202E>'"),
        (("ru'\\n\n",), '"ru\'\\n<U+000A>"'),
        (("run", "bert-tiny", "--precision", "fp\u202e32"), "'fp<U+202E>32'"),
        (("run", "bert-tiny", "--batch-sizes", "1\x1b"), "'1<U+001B>'"),
        (("plot", "--chart", "a\x1b"), "'a<U+001B>'"),
    ],
)
def test_what_was_typed_is_quoted_in_one_way(words, said, monkeypatch, capsys):
    assert ended(monkeypatch, *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("debug", [(), ("--debug",)], ids=repr)
@pytest.mark.parametrize("name", ACTING)
def test_an_error_that_nobody_expected(name, debug, monkeypatch, capsys):
    def fails(*arguments: Any, **named: Any) -> None:
        logging.getLogger("accelbench.test").debug("of %s", name)
        raise RuntimeError(name.replace("\n", " "))

    monkeypatch.setattr(main, "app", fails)
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers.clear()
    try:
        assert ended(monkeypatch, "models", *debug) == 3
    finally:
        root.handlers[:], root.level = before, level
    out, err = capsys.readouterr()
    assert visible(name.replace("\n", " ")) in err
    assert not debug or f"of {visible(name)}" in err
    assert_only_text(out + err)


def device(name: str) -> Device:
    return Device(hardware=name, ordinal=0, name=name, driver=name, details={name: name})


def case(name: str) -> dict[str, Any]:
    body = {"audio_seconds": None, "denoising_steps": None, "image_size": None, "launch": 0}
    return {**body, "new_tokens": None, "sequence_length": 8, **rows()[0], "model": name,
            "hardware": name, "runtime": name, "batch_size": 1, "mode": "inference",
            "status": "ok", "provenance": "measured", "options": {"scripted.o": name},
            "latency_p50_ms": 8.0, "warnings": [name], "quality": name}  # fmt: skip


def profile(name: str) -> dict[str, Any]:
    kind = {"kind": name, "calls": 1, "total_ms": 1.0, "share": 0.5, "where": name}
    return {**case(name), "why_not": None, "profiler": name, "steps": 1, "wall_ms": 1.0,
            "explained": 0.5, "walls_ms": [1.0], "remark": name, "kinds": [kind],
            "emulated": False}  # fmt: skip


def lost(name: str) -> dict[str, Any]:
    return {**case(name), "status": "failed", "message": name, "advice": name}


def watched(name: str, stream: io.StringIO) -> None:
    seen = watch.PlainWatch(stream)
    seen.devices([device(name), Absent(name, name, name)])
    seen.note(name)
    for one in (case(name), lost(name)):
        seen.case_finished(one)


def drawn(name: str, stream: io.StringIO) -> None:
    live = watch.LiveWatch(stream)
    live.case_started(name, 0, 1, 2)  # type: ignore[arg-type]  # only spelled
    text = stream.getvalue()
    stream.seek(0)
    stream.truncate()
    stream.write(text.removeprefix("\r\x1b[2K") + "\n")


def printed(name: str, stream: io.StringIO) -> None:
    seen = Printed(stream, {}, {})
    seen.note(name)
    seen.case_finished(lost(name))
    seen.ended(1, name, interrupted=False)


#: What prints names while nothing is asked of a database.
PRINTERS: dict[str, Callable[[str, io.StringIO], None]] = {
    "a run": watched,
    "a live run": drawn,
    "the API's run": printed,
    "the end of a run": lambda name, stream: print_summary([case(name), lost(name)], stream),
    "what to trust": lambda name, stream: print_lines(
        trust([{**case(name), "verification": "ok", "workarounds": [name]}]), stream
    ),
    "a profile": lambda name, stream: print_profiles([profile(name)], stream),
    "the hardware": lambda name, stream: show(
        hardware_document(
            {name: [device(name), Absent(name, name, name)]},
            {name: [name]},
            {name: name},
            verbose=True,
        ),
        stream,
    ),
    "the doctor": lambda name, stream: show(
        doctor_document([(name, Finding(name, health, name, name)) for health in Health]), stream
    ),
    "a library": lambda name, stream: Guarded(stream).writelines([name.replace("\n", " "), "\n"]),
}


@pytest.mark.parametrize("name", ACTING)
@pytest.mark.parametrize("printer", PRINTERS)
def test_a_printer(printer, name):
    stream = io.StringIO()
    PRINTERS[printer](name, stream)
    assert "<U+" in stream.getvalue()
    assert_only_text(stream.getvalue())


@pytest.fixture(scope="module")
def results(database: Path) -> list[dict[str, Any]]:
    return Database(database).results()


#: They carry values to programs, which spell control characters themselves.
LEFT_ALONE = {"json", "parquet", "arrow"}


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in LEFT_ALONE])
def test_an_export(name, results, tmp_path):
    assert set(TABLES) > LEFT_ALONE
    assert not LEFT_ALONE & REPORTS.keys()
    export(tmp_path / "out", results, name)
    assert_only_text((tmp_path / "out").read_text(encoding="utf-8"))


def cells_of(text: str) -> list[str]:
    return [cell for line in csv.reader(io.StringIO(text, newline="")) for cell in line]


def assert_no_formula(text: str) -> None:
    for cell in cells_of(text):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            float(cell)  # or it is no number


def test_cells_of_exports(results, tmp_path):
    export(tmp_path / "ours.csv", results, "csv")
    assert_no_formula((tmp_path / "ours.csv").read_text(encoding="utf-8"))
    lines = [guide_csv.guide_result(row, str(row["model"]), NAMES[6]) for row in results]
    text = guide_csv.encode(lines, header=True).decode()
    assert_no_formula(text)
    assert_only_text(text)


def test_cells_of_a_comparison(database, tmp_path, monkeypatch):
    path = tmp_path / "sides.csv"
    assert ended(monkeypatch, "compare", "--db", database, "--output", path) == 0
    text = path.read_text(encoding="utf-8")
    assert_no_formula(text)
    assert_only_text(text)


def test_a_check_as_a_comment(database, tmp_path, monkeypatch):
    path = tmp_path / "comment.md"
    words = ("--baseline", "first", "--run", "second", "--markdown", path)
    ended(monkeypatch, "check", "--db", database, *words)
    assert_only_text(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", report._SUFFIXES)
def test_a_report(form, database, tmp_path, monkeypatch):
    path = tmp_path / f"report{report._SUFFIXES[form]}"
    words = ("--format", form, "--output", path, "--title", NAMES[1])
    assert ended(monkeypatch, "report", "--db", database, *words) == 0
    for one in [path, *tmp_path.rglob("*.svg")]:
        assert_only_text(one.read_text(encoding="utf-8"))
    assert all(one.name.isascii() for one in tmp_path.rglob("*"))


def test_charts(database, tmp_path, monkeypatch):
    words = ("--db", database, "--output-dir", tmp_path / "made", "--format", "svg")
    assert ended(monkeypatch, "plot", *words) == 0
    made = sorted((tmp_path / "made").iterdir())
    assert len(made) >= 3
    for one in made:
        assert_only_text(one.read_text(encoding="utf-8"))


def test_labels_and_tooltips_of_any_chart():
    """Whatever a chart forgets: all that a picture says is in its specification."""
    told = {"data": {"values": [{name: name, "n": 1.5} for name in NAMES]}, "title": [*NAMES]}
    assert_only_text("\n".join(strings_of(respelled(told, visible))))


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from (name, *strings_of(one))
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_that_name(name):
    import datetime

    made = result_file_name(name, name, name, datetime.datetime.now(datetime.UTC))
    for one in (made, safe_name(name)):
        assert one.isascii()
        assert one.isprintable()
        assert not set(one) & set("/\\:*?\"<>|$`'")
        assert not one.startswith((".", "-"))
