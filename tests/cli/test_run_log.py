"""The log of a run: beside its journal, without what is nobody's business, never in the way."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shells import QUICK, Shell

from accelbench.run.conduct import run_record
from accelbench.run.conduct.run_record import RunLog, recorded
from accelbench.run.process.worker_client import Observer, SilentObserver

RUN = "20260102-030405-0123456789"
CASE = ("bert-tiny", "--batch-sizes", "1")


def log_of(shell: Shell) -> str:
    (journal,) = shell.journals()
    return journal.with_suffix(".log").read_text(encoding="utf-8")


def test_a_run_leaves_what_happened_when(shell):
    done = shell(*CASE, *QUICK)
    said = log_of(shell)
    for part in (
        "command: accelbench run bert-tiny --batch-sizes 1",
        "machine: ",
        "packages: accelbench ",
        "device cpu:0: ",
        "1 measurements are planned",
        "[1/1] begins: bert-tiny",
        "ok, p50 1 ms, fixed, launch 1",
        "warning: Only 5 samples",
        "end of what was measured now: 1 ok",
    ):
        assert part in said
    assert "Log:" not in done.stdout  # nothing failed


def test_a_failure_is_told_with_what_the_worker_printed_and_where_the_log_is(shell):
    shell.script(faults=[{"how": "abort", "when": "step"}])
    done = shell(*CASE, *QUICK, code=1)
    (journal,) = shell.journals()
    assert f"Log: {journal.with_suffix('.log')}" in done.stdout
    said = log_of(shell)
    assert "failed (crash)" in said
    assert "INFO accelbench.run.process.worker_pool: what the worker printed: " in said


def test_an_error_in_a_worker_has_its_traceback(shell):
    shell.script(faults=[{"how": "raise", "when": "step", "message": "the dog ate it"}])
    shell(*CASE, *QUICK, code=1)
    said = log_of(shell)
    assert "Traceback (most recent call last)" in said
    assert "RuntimeError: the dog ate it" in said


def test_secrets_and_home_folders_stay_at_home(shell, monkeypatch):
    home = shell.folder / "people" / "anna"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HF_TOKEN", "hf_0123456789")
    shell.script(
        faults=[
            {"how": "raise", "when": "step", "message": f"hf_0123456789 in {home}/x, /home/bob/y"}
        ]
    )
    shell(*CASE, "--label", "s3://key:hush@host/x", *QUICK, code=1)
    said = log_of(shell)
    assert "$HF_TOKEN in ~/x, ~/y" in said
    assert "s3://…@host/x" in said
    for secret in ("hf_0123456789", "hush", str(home), "bob"):
        assert secret not in said


def test_debug_logs_what_is_detected_and_fallen_back_on(shell):
    shell(*CASE, "--debug", *QUICK, env={"ACCELBENCH": ""})  # pytest has settled logging here
    assert "DEBUG accelbench." in log_of(shell)
    (journal,) = shell.journals()
    journal.unlink()
    journal.with_suffix(".log").unlink()
    shell(*CASE, *QUICK)
    assert "DEBUG accelbench." not in log_of(shell)


def test_a_run_that_is_resumed_goes_on_with_its_log(shell):
    shell(*CASE, *QUICK)
    (journal,) = shell.journals()
    shell("--resume", journal.stem)
    assert "command: accelbench run --resume" in log_of(shell)
    assert "[1/1] begins" in log_of(shell)


def test_a_run_that_is_refused_leaves_none(shell):
    shell.refused("bert-tny", *QUICK, code=2)
    assert not list(shell.work.rglob("*.log"))


# -- the file itself


@contextmanager
def logged(folder: Path) -> Iterator[Observer]:
    with recorded() as log:
        yield log.of_run(folder, RUN, SilentObserver(), {}, "accelbench run")


def log_in(folder: Path) -> RunLog:
    log = RunLog()
    log.of_run(folder, RUN, SilentObserver(), {}, "accelbench run")
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "journals"
    made.mkdir()
    (made / f"{RUN}.jsonl").touch()
    return made


def test_old_ones_go_and_what_is_no_log_of_a_run_stays(folder):
    for day in range(1, 28):
        (folder / f"202512{day:02}-000000-0123456789.log").touch()
    (folder / "mine.log").touch()
    log = log_in(folder)
    log.say("a line")
    log.close()
    kept = sorted(path.name for path in folder.glob("2*.log"))
    assert len(kept) == run_record.KEPT
    assert kept[-1] == f"{RUN}.log"
    assert kept[0] == "20251209-000000-0123456789.log"
    assert (folder / "mine.log").exists()


def test_it_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(run_record, "MOST_BYTES", 2_000)
    for _ in range(2):  # what is there already counts
        log = log_in(folder)
        for number in range(50):
            log.say(f"line {number} " + "x" * 50)
            log.flush()
        log.close()
    text = (folder / f"{RUN}.log").read_text()
    assert len(text) < 2_200
    assert "line 0 " in text
    assert "The log is full" in text


def test_of_what_a_worker_printed_the_end_is_kept(folder):
    log = log_in(folder)
    log.say("the beginning" + "\n" * 10 + "x" * 20_000 + "the end")
    log.close()
    text = (folder / f"{RUN}.log").read_text()
    assert "the beginning" not in text
    assert text.endswith("the end\n")


def test_nothing_is_written_while_something_is_measured(folder):
    with logged(folder) as watch:
        logging.getLogger("accelbench.x").warning("in between")
        assert not (folder / f"{RUN}.log").exists()
        watch.case_finished({"status": "ok"})
        assert "in between" in (folder / f"{RUN}.log").read_text()


def test_without_a_journal_there_is_none(tmp_path):
    with logged(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("lies_there", [_a_folder, _a_link])
def test_where_it_cannot_be_written_the_run_does_not_notice(folder, lies_there):
    lies_there(folder / f"{RUN}.log")
    with logged(folder) as watch:
        watch.note("heard")
        watch.case_finished({"status": "ok"})
    assert not (folder / "elsewhere").exists()


def test_a_full_disk_ends_the_log_alone(folder, monkeypatch):
    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with logged(folder) as watch:
        watch.case_finished({"status": "ok"})


def test_an_error_that_ends_a_run_is_in_it_and_goes_on(folder):
    def end() -> None:
        with logged(folder):
            raise ValueError("unforeseen")

    with pytest.raises(ValueError, match="unforeseen"):
        end()
    assert "was ended by ValueError: unforeseen" in (folder / f"{RUN}.log").read_text()


def test_warnings_that_nobody_else_takes_are_still_printed(folder, monkeypatch, capfd):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    before = logging.getLogger("accelbench").level
    with logged(folder):
        logging.getLogger("accelbench.x").warning("look here")
        logging.getLogger("accelbench.x").info("not here")
    said = capfd.readouterr().err
    assert "look here" in said
    assert "not here" not in said
    assert logging.getLogger("accelbench").level == before
