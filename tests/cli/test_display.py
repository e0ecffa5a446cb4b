"""What people see: figures in words, lines for logs, and a bar that never wraps."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest
from rich.table import Table
from rich.text import Text

from accelbench.cli.arguments import resolved_values
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.columns import step_ms
from accelbench.core.formatting import format_value
from accelbench.core.protocols import Absent, Device
from accelbench.models.selection import choose
from accelbench.present.terminal.console import console, in_whole_figures
from accelbench.present.terminal.summary import compared, print_summary, trust
from accelbench.present.terminal.watch import (
    LiveWatch,
    PlainWatch,
    QuietWatch,
    case_line,
    watch_for,
)
from accelbench.present.terminal.words import duration, shapes, spread
from accelbench.run.process.worker_client import Progress

MODEL = choose(["bert-tiny"], None, (), (), all_models=False)[0]
CASE = Case(MODEL, Target("pytorch", "cpu"), "fp32", Shapes(128, 512), options={"compile": True})
ROW: dict[str, Any] = {
    "model": "bert-tiny", "runtime": "pytorch", "hardware": "cpu", "precision": "fp32",
    "batch_size": 8, "sequence_length": 128, "status": "ok", "latency_p50_ms": 12.3456,
    "latency_ci_low_ms": 12.0, "latency_ci_high_ms": 12.5, "throughput": 648.1,
    "throughput_unit": "sequences/s", "memory_peak_mb": 99.5, "quality": "converged",
    "warnings": ["The machine is busy."],
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "no data"),
        (0, "0"),
        (0.00012, "0.000120"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (123.4, "123"),
        (1234.5, "1,234"),
        (1e7, "10,000,000"),
        (-3.21, "-3.21"),
    ],
)
def test_figures(value, shown):
    assert format_value(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (185, "3 min 5 s"),
        (7800, "2 h 10 min"),
        (72_915_060, "844 days"),
    ],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_words_of_figures():
    # A spread is half the interval in percent.
    assert spread(ROW) == "±2.0%"
    assert spread({**ROW, "latency_ci_low_ms": None}) == ""
    lopsided = {**ROW, "latency_ci_low_ms": 12.2, "latency_ci_high_ms": 125.0}
    assert spread(lopsided) == "12.2 … 125"
    assert "p50 12.3 ms 12.2 … 125 ms ·" in case_line(lopsided)[0]
    ends = {"latency_ci_low_ms": 9.8, "latency_ci_high_ms": 10.3}
    blocks = {**ROW, **ends, "latency_p50_ms": None, "latency_mean_ms": 10.0}
    assert spread(blocks) == "±2.5%"
    assert step_ms(blocks) == 10.0
    # Shapes in words.
    assert shapes(ROW) == "seq 128"
    assert shapes({"image_size": 64}) == "64px"
    assert shapes({"prompt_tokens": 32, "new_tokens": 8, "image_size": 64}) == "32+8 tok"
    assert shapes({"audio_seconds": 30}) == "30 s"
    heard = {"audio_seconds": 30, "prompt_tokens": 4, "new_tokens": 32}
    assert shapes(heard) == "30 s+32 tok"
    assert shapes({"image_size": 512, "denoising_steps": 4}) == "512px × 4"
    assert shapes({}) == ""
    # A log has a line an event.
    stream = io.StringIO()
    watch = PlainWatch(stream)
    watch.devices([Device("cpu", "a processor"), Absent("cuda", "no driver", "install one")])
    watch.started("r1", 2, None)
    watch.note("batch 32 left out")
    watch.case_started(CASE, 2, 2, 2)
    watch.progress(Progress("warm-up"))
    watch.case_finished(ROW)
    watch.case_finished({**ROW, "status": "failed", "message": "it broke", "advice": "mend it"})
    assert stream.getvalue().splitlines() == [
        "Device: a processor",
        "  Type: cpu",
        "  Available: yes",
        "Device: cuda",
        "  Type: cuda",
        "  Available: no",
        "  Reason: no driver",
        "Run r1: 2 measurements",
        "Note: batch 32 left out",
        "[2/2] bert-tiny · pytorch/cpu · fp32 · batch 128 · seq 512 · compiled · launch 2",
        (
            "  bert-tiny pytorch/cpu fp32 batch 8 seq 128: p50 12.3 ms ±2.0% · 648 sequences/s"
            " · 99.5 MB · converged"
        ),
        "  bert-tiny pytorch/cpu fp32 batch 8 seq 128: failed — it broke",
        "    → mend it",
    ]


def test_lines_of_cases():
    # One measurement is one.
    stream = io.StringIO()
    PlainWatch(stream).started("r1", 1, None)
    assert stream.getvalue() == "Run r1: 1 measurement\n"
    # Where only the mean is known it is called the mean.
    stream = io.StringIO()
    PlainWatch(stream).case_finished({**ROW, "latency_p50_ms": None, "latency_mean_ms": 0.002})
    assert "mean 0.00200 ms" in stream.getvalue()
    assert "p50" not in stream.getvalue()
    # A case that was not timed has no figures and says what it has.
    untimed = {name: None for name in ROW if name.startswith(("latency", "throughput", "memory"))}
    row = {**ROW, **untimed, "quality": None, "warnings": []}
    assert case_line(row)[0].endswith(": not timed; it is the reference itself")
    held = {**row, "verification_error": 3.14e-5, "verification_tolerance": 2e-4}
    assert case_line(held) == [
        case_line(row)[0].partition(": ")[0] + ": not timed; outputs 3.1e-05 off, 0.0002 allowed"
    ]
    stream = io.StringIO()
    print_summary([held], stream)
    assert "not timed" in stream.getvalue()
    assert "None" not in stream.getvalue()


@contextmanager
def terminal(columns: int) -> Iterator[tuple[IO[str], int]]:
    """A stream on a terminal so wide, and the other end of it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = termios.tcgetattr(slave)
    settings[1] &= ~termios.OPOST  # bytes as they are written
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream, master
    os.close(master)


def drawn(columns: int) -> list[str]:
    """Every state of the line, through a whole run."""
    with terminal(columns) as (stream, master):
        watch = LiveWatch(stream)
        watch.started("20260101-000000-0123456789", 12, None)
        text = b""
        for number in (1, 2, 11):
            watch.case_started(CASE, 3, number, 12)
            for phase in ("loading", "first inference", "steady state", "average memory"):
                watch.progress(Progress(phase))
            watch.progress(Progress("steady state", 1920, 123456789.0, 1.184e8, 1.285e8))
            watch.case_finished(ROW)
            end = f"\n[{number}]\n"
            stream.write(end)
            stream.flush()
            while not text.endswith(end.encode()):  # the terminal hands it over as it likes
                text += os.read(master, 1 << 16)
    frames = re.split(r"\r\x1b\[2K", text.decode())
    return [frame.partition("\n")[0] for frame in frames if "━" in frame or "╌" in frame]


@pytest.mark.parametrize("columns", [80, 120, 40, 20, 5])
def test_the_bar_never_wraps(columns):
    frames = drawn(columns)
    assert len(frames) >= 15
    assert max(map(len, frames)) < columns


def test_the_bar():
    # Of a narrow line the name gives way not the state.
    frames = drawn(80)
    assert any("1920 samples · 123 ms ±4.1%" in frame for frame in frames)
    assert any("left" in frame for frame in frames)
    # A lopsided interval is no plus or minus on the bar either.
    with terminal(120) as (stream, master):
        watch = LiveWatch(stream)
        watch.case_started(CASE, 1, 1, 1)
        watch.progress(Progress("steady state", 60, 1.8e6, 1.05e6, 23.2e6))
        shown = b""
        while b"samples" not in shown:  # the terminal hands it over as it likes
            shown += os.read(master, 1 << 16)
    assert "60 samples · 1.80 ms 1.05 … 23.2 ms" in shown.decode()
    assert max(map(len, drawn(0))) < 80
    # Finished cases stay above the bar.
    with terminal(80) as (stream, master):
        watch = LiveWatch(stream)
        watch.case_started(CASE, 1, 1, 2)
        watch.case_finished(ROW)
        text = ""
        while "converged" not in text:  # a terminal hands over what it has, not all at once
            text += os.read(master, 1 << 16).decode()
    assert "\r\x1b[2K  bert-tiny pytorch/cpu" in text
    assert text.endswith(("converged", "converged\n"))


def test_the_rest_is_reckoned_from_this_runs_own_cases(monkeypatch):
    """After a resume, what was done before took no time of this run."""
    from accelbench.present.terminal import watch as module

    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    watch = LiveWatch(stream)
    watch.case_started(CASE, 1, 9, 12)  # eight were there already
    now[0] += 10.0
    watch.case_finished(ROW)
    watch.case_started(CASE, 1, 10, 12)
    assert "about 30 s left" in stream.getvalue()


def test_the_watch():
    # The watch fits where the lines go.
    assert type(watch_for(io.StringIO(), quiet=False)) is PlainWatch
    assert type(watch_for(io.StringIO(), quiet=True)) is QuietWatch
    with terminal(80) as (stream, _):
        assert type(watch_for(stream, quiet=False)) is LiveWatch
    # Quiet is quiet.
    stream = io.StringIO()
    watch = QuietWatch(stream)
    watch.started("r", 1, None)
    watch.case_started(CASE, 1, 1, 1)
    watch.case_finished(ROW)
    assert stream.getvalue() == ""


def test_the_table_fits_eighty_columns_and_takes_names_literally(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    odd = {
        **ROW,
        "model": "[red]a-model-with-quite-a-long-name[/red]",
        "options": {"compile": True},
    }
    heard = {**ROW, "model": "whisper-large-v3", "audio_seconds": 30, "new_tokens": 128}
    failed = {**ROW, "status": "out_of_memory"}
    print_summary([ROW, odd, heard, failed], stream)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "[red]" in text
    assert "30 s+128 tok" in text
    assert "out of memory" in text.replace("\n", " ") or "out of" in text
    assert "12.3" in text


def test_what_a_table_says():
    # What could not be verified is named with its reason.
    undone = {
        **ROW,
        "model": "noise.onnx", "runtime": "onnxruntime", "weights": "file",
        "verification": "not_done", "nulls": {"verification_error": "its outputs differ"},
    }  # fmt: skip
    counted, named = trust([{**undone, "verification": "ok"}, undone, {**undone, "batch_size": 9}])
    assert "1 of 3 (2 could not be)" in counted
    assert named == "Not verified: noise.onnx onnxruntime: its outputs differ"
    # Of a run without results no table is printed.
    stream = io.StringIO()
    print_summary([], stream)
    assert stream.getvalue() == ""


def test_no_word_of_the_table_is_broken_in_eighty_columns(monkeypatch):
    """An interval that is told by its ends, free sizes, and an engine that is its platform."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    wide = {
        **ROW,
        "model": "mlp.onnx", "runtime": "openvino", "hardware": "openvino", "quality": "unusable",
        "dimensions": "queries=5", "sequence_length": 16, "throughput": 100_000.0,
        "latency_p50_ms": 0.219, "latency_ci_low_ms": 0.139, "latency_ci_high_ms": 0.511,
    }  # fmt: skip
    print_summary([wide, {**wide, "status": "unsupported"}], stream)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for word in ("quality", "unusable", "unsupported", "openvino", "queries=5", "0.139", "0.511"):
        assert word in text.split(), text


EMULATED = {**ROW, "hardware": "qnn", "runtime": "qnn", "precision": "int8", "emulated": True}


def test_what_is_piped_is_as_wide_as_it_needs(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    name = "a-model-with-a-name-that-goes-on-and-on-and-on-and-on"
    print_summary([{**ROW, "model": name, "audio_seconds": 30, "new_tokens": 128}], stream)
    heading, line = stream.getvalue().splitlines()
    assert line.startswith(f"{name} ")
    assert line.rstrip().endswith(" converged")
    assert heading.rstrip().endswith("quality")


def test_the_time_of_an_emulation_is_never_shown_without_that_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "qnn/qnn int8 emulated batch 8" in case_line(EMULATED)[0]
    assert "emulated" not in case_line(ROW)[0]
    stream = io.StringIO()
    print_summary([EMULATED], stream)
    assert "emulated" in stream.getvalue()
    assert all(len(line) <= 80 for line in stream.getvalue().splitlines())


def test_what_is_compared_in_a_table():
    # An emulation is not compared by time.
    pair = ("pytorch", "qnn")
    rows = [{**ROW, "mode": "inference"}, {**EMULATED, "mode": "inference"}]
    same = {"hardware": "cpu", "precision": "fp32"}
    assert not list(compared([rows[0], {**rows[1], **same}], pair))
    assert list(compared([rows[0], {**rows[1], **same, "emulated": False}], pair))
    assert not list(compared([rows[0], {**rows[1], **same, "quality": "unusable"}], pair))
    # Frameworks and arms have the launches that decide.
    assert resolved_values.launches(None, ["both"]) == 5
    assert resolved_values.launches(None, ["pytorch"], "commit:main") == 5
    assert resolved_values.launches(None, ["pytorch", "jax"]) == 1
    assert resolved_values.launches(3, ["both"]) == 3
    # What is left of a mostly unusable run is not held against another.
    other = {**ROW, "mode": "inference", "runtime": "onnxruntime"}
    rows = [{**ROW, "mode": "inference"}, other]
    unusable = {**other, "quality": "unusable"}
    pair = ("pytorch", "onnxruntime")
    assert list(compared([*rows, other, unusable], pair))
    assert not list(compared([*rows, unusable, unusable], pair))
    assert not list(compared([rows[0], {**other, "verification": "failed"}], pair))


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (2.0, "jax takes 2.00 times as long as pytorch (95 % interval 1.9"),
        (0.5, "jax takes 0.50 times as long as pytorch (95 % interval 0.4"),
        (1.01, "which of pytorch and jax is faster cannot be told (95 % interval 0.9"),
    ],
)
def test_five_launches_of_two_frameworks_decide_or_do_not(factor, said):
    """Their interval decides, and is shown."""
    rows = [
        {**ROW, "mode": "inference", "runtime": name, "launch": n, "run_id": "r"}
        | {"latency_p50_ms": 12.0 * each * ms, "latency_mean_ms": 12.0 * each * ms}
        | {"throughput": 8e3 / (12.0 * each * ms)}
        for name, each in (("pytorch", 1.0), ("jax", factor))
        for n, ms in enumerate((1.0, 1.02, 0.98, 1.01, 0.99))
    ]
    (line,) = compared(rows, ("pytorch", "jax"))
    assert said in line
    assert line.endswith("5 launches a side)")
    (line,) = compared([row for row in rows if row["launch"] < 2], ("pytorch", "jax"))
    assert "2 launches a side, 5 decide" in line


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (60, ["a sentence_transformers/all-MiniLM-L6-v2 fp32"]),
        (24, ["a sentence_transformers/", "all-MiniLM-L6-v2 fp32"]),
        (16, ["a sentence_", "transformers/", "all-MiniLM-L6-v2", "fp32"]),
        (8, ["a", "sentence", "_", "transfor", "mers/", "all-Mini", "LM-L6-v2", "fp32"]),
    ],
)
def test_a_long_name_is_broken_where_it_has_a_separator(width, lines):
    drawn = io.StringIO()
    console(drawn, width=width).print("a sentence_transformers/all-MiniLM-L6-v2 fp32")
    assert [line.rstrip() for line in drawn.getvalue().splitlines()] == lines


def test_how_a_table_breaks():
    # What is broken keeps its style and figures stay whole.
    drawn = io.StringIO()
    name = Text("bert-base")
    name.append("-uncased", "red")
    console(drawn, width=12, force_terminal=True, color_system="standard").print(name)
    assert drawn.getvalue().splitlines() == ["bert-base\x1b[31m-\x1b[0m", "\x1b[31muncased\x1b[0m"]
    table = Table(box=None, pad_edge=False)
    table.add_column("figures", no_wrap=True)
    table.add_row("1,234.5-6,789.0")
    plain = io.StringIO()
    console(plain, width=40).print(table)
    assert "1,234.5-6,789.0" in plain.getvalue()
    # A mean of blocks is marked among medians.
    stream = io.StringIO()
    print_summary([ROW, MEAN], stream)
    head, median, mean = stream.getvalue().splitlines()
    assert "p50 ms" in head
    assert "12.3 " in median
    assert "mean" not in median
    assert "0.00512 mean" in mean
    # Where all are means of blocks the column is of means.
    stream = io.StringIO()
    failed = {**ROW, "status": "failed", "latency_p50_ms": None}
    print_summary([MEAN, failed], stream)
    head, mean, _ = stream.getvalue().splitlines()
    assert "mean ms" in head
    assert "p50" not in head
    assert "0.00512" in mean
    assert "mean" not in mean
    # A history read “mean latency 76.1” at the end of one line and “ms” in the next.
    text = "a  b, mean latency 76.1 ms, since 2025-10-29 20:47, of 3 runs"
    assert in_whole_figures(text, 24) == [
        "a  b, mean latency",
        "76.1 ms, since",
        "2025-10-29 20:47, of",
        "3 runs",
    ]
    assert in_whole_figures("5 items/s", 3) == ["5 items/s"]
    assert in_whole_figures("", 9) == [""]


def test_launches_of_one_configuration_say_which_they_are(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    print_summary([{**ROW, "launch": 1}, {**ROW, "launch": 2}], stream)
    heading, *lines = (line.split() for line in stream.getvalue().splitlines())
    assert heading[-1] == "launch"
    assert [line[-1] for line in lines] == ["1", "2"]


def test_the_arms_of_a_comparison_are_a_column(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    print_summary([{**ROW, "arm": "this"}, {**ROW, "arm": "threads=1"}], stream)
    heading, *lines = (line.split() for line in stream.getvalue().splitlines())
    assert heading[-1] == "arm"
    assert [line[-1] for line in lines] == ["this", "threads=1"]


MEAN = {**ROW, "latency_p50_ms": None, "latency_mean_ms": 0.00512, "latency_ci_low_ms": None}
