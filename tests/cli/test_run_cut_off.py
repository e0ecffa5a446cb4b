"""`accelbench run` cut off half-way: how it says so, what is kept, and how it goes on."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shells import QUICK, SCRIPTED, ended

from accelbench.core.facts import RESULT
from accelbench.store.database import Database
from accelbench.store.journal import read


def test_a_reader_that_goes_away_ends_the_run_as_ctrl_c_does(shell):
    process = shell.start("bert-tiny", "--batch-sizes", "1,2", *QUICK)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in said
    assert process.wait(60) == 130
    # With the way to go on where a journal had been begun when it was noticed.
    assert "nterrupted." in said
    assert ("Go on with" in said) == bool(shell.journals())


def test_a_full_disk_ends_in_a_sentence_and_what_was_announced_is_kept(shell):
    words = ("bert-tiny", "--batch-sizes", "1,2,3,4", "--no-database", *QUICK)
    shell(*words, "--quiet")
    (journal,) = shell.journals()
    lines = journal.read_bytes().splitlines(keepends=True)
    second = [i for i, fact in enumerate(read(journal)) if fact.kind == RESULT][1]
    room = len(b"".join(lines[: second + 1])) + 200  # two results and a little
    journal.unlink()

    def fill_up() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = shell(*words, code=3, preexec_fn=fill_up)
    (said,) = done.stderr.splitlines()
    assert "no room left" in said
    announced = done.stdout.count("p50")
    assert announced >= 1
    (journal,) = shell.journals()
    assert sum(fact.kind == RESULT for fact in read(journal)) == announced
    assert f"accelbench run --resume {journal.stem} --no-database" in said

    resumed = shell("--resume", journal.stem, "--no-database", "--json")
    rows = json.loads(resumed.stdout)["results"]
    assert [(r["batch_size"], r["status"]) for r in rows] == [(b, "ok") for b in (1, 2, 3, 4)]
    ids = [fact.id for fact in read(journal) if fact.kind == RESULT]
    assert len(ids) == len(set(ids)) == 4


def press(process: subprocess.Popen[str], after: str, how: Callable[[], None]) -> tuple[str, str]:
    """Wait for a piece of output, then press; all that was printed."""
    assert process.stdout is not None
    heard = ""
    while after not in heard:
        line = process.stdout.readline()
        assert line, heard
        heard += line
    how()
    rest, err = process.communicate(timeout=60)
    return heard + rest, err


SLOW = (*SCRIPTED, "--iterations", "400", "--warmup", "1", "--batch-sizes", "1,2")


@pytest.mark.parametrize(
    ("which", "after"), [("conductor", "[2/2]"), ("terminal", "[1/2]"), ("SIGTERM", "[2/2]")]
)
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(shell, which, after):
    shell.script(real=True, step_ns=3_000_000)
    process = shell.start("bert-tiny", *SLOW, "--db", "mine.duckdb", start_new_session=True)

    def how() -> None:
        if which == "terminal":  # reaches every process of the group, as a terminal's does
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(process.pid, signal.SIGTERM if which == "SIGTERM" else signal.SIGINT)

    out, err = press(process, after, how)
    assert process.returncode == 130, (out, err)
    (journal,) = shell.journals()
    hint = f"Go on with: accelbench run --resume {journal.stem} --db mine.duckdb"
    assert err == f"Interrupted. {hint}\n"
    assert "Traceback" not in out
    done = 0 if after == "[1/2]" else 1
    database = Database(shell.work / "mine.duckdb")
    assert len(database.results()) == done
    assert not shell.left_behind()

    shell.script()
    resumed = shell("--resume", "last", "--db", "mine.duckdb", "--json")
    rows = json.loads(resumed.stdout)["results"]
    assert [r["batch_size"] for r in rows] == [1, 2]
    assert len({r["result_id"] for r in database.results()}) == len(database.results()) == 2

    again = shell("--resume", journal.stem, "--db", "mine.duckdb")
    assert "nothing is left to measure" in again.stdout
    assert len(database.results()) == 2


def test_ctrl_c_while_an_engine_is_being_imported_is_clean(shell):
    process = shell.start("bert-tiny", "--batch-sizes", "1", "--no-database", "--hardware", "cpu")
    out, err = press(process, "[1/1]", lambda: os.kill(process.pid, signal.SIGINT))
    assert process.returncode == 130, (out, err)
    assert err.startswith("Interrupted. Go on with")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in out
    assert not shell.left_behind()


@pytest.mark.parametrize(
    "where", ["cli.services.running.prepare", "run.execute.describe_environment"]
)
def test_ctrl_c_before_the_first_case_is_clean(shell, where, monkeypatch, capfd):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(shell.work)
    monkeypatch.setenv("ACCELBENCH_SCRIPT", shell.environment["ACCELBENCH_SCRIPT"])
    monkeypatch.setattr(f"accelbench.{where}", interrupted)
    code = ended(monkeypatch, "run", "bert-tiny", "--no-database", *QUICK)
    assert code == 130
    assert capfd.readouterr().err == "accelbench: interrupted.\n"
    assert not shell.journals()


TERMINATED = """
import os, signal, typer
from accelbench.cli.commands.run import termination_as_interrupt

before = signal.getsignal(signal.SIGTERM)
try:
    with termination_as_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
except typer.Exit as end:
    assert signal.getsignal(signal.SIGTERM) == before
    print("exit code", end.exit_code)
"""


def test_an_interrupt_becomes_an_exit_code_whatever_typer_makes_of_it():
    # In a process of its own: tests that load OpenVINO themselves leave SIGTERM deadly in theirs.
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "exit code 130\n"), done.stderr


def test_the_resume_hint_names_every_place(shell):
    from accelbench.cli.services.running import OutputPlaces, resume_hint

    hint = resume_hint(
        "r1", OutputPlaces(Path("a b.duckdb"), output_dir=Path("out"), output_ci=Path("ci.json"))
    )
    assert hint == (
        "Go on with: accelbench run --resume r1 --db 'a b.duckdb'"
        " --output-dir out --output-ci ci.json"
    )
