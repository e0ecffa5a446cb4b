"""`accelbench run` as people type it: what it prints, writes, refuses, and how it ends."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest

from accelbench.cli import asked
from accelbench.cli import main as front
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.facts import RESULT
from accelbench.exchange.result_schema import result_schema
from accelbench.store.database import Database
from accelbench.store.journal import read

SCRIPTED = ("--framework", "scripted", "--hardware", "cpu")
QUICK = (*SCRIPTED, "--iterations", "5", "--warmup", "1")


class Shell:
    """A folder of its own, and accelbench run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (folder / "tmp").mkdir()
        self.script()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH")},
            "ACCELBENCH_SCRIPT": str(folder / "script.json"),
            "TMPDIR": str(folder / "tmp"),
        }

    def script(self, **script: Any) -> None:
        (self.folder / "script.json").write_text(json.dumps({"step_ns": 1_000_000, **script}))

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "accelbench", "run", *words],
            cwd=self.work,
            env={**self.environment, **more.pop("env", {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            **more,
        )

    def __call__(self, *words: str, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (process.returncode, out, err)
        assert "Traceback" not in out + err
        assert not self.left_behind()
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def left_behind(self) -> list[Path]:
        """torch keeps a folder of its own there; ours are all gone."""
        return list((self.folder / "tmp").glob("accelbench-*"))

    def refused(self, *words: str, code: int, **more: Any) -> str:
        """What is said by a command that is refused: one line, nothing measured or written."""
        before = self.listing()
        done = self(*words, code=code, **more)
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("accelbench: ")
        assert self.listing() == before
        return lines[0]

    def listing(self) -> dict[str, bytes]:
        return {
            str(p.relative_to(self.work)): p.read_bytes()
            for p in sorted(self.work.rglob("*"))
            if p.is_file()
        }

    def journals(self) -> list[Path]:
        return sorted(self.work.rglob("*.jsonl"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# -- what is asked


def planned(shell: Shell, *words: str) -> list[tuple[str, str, int]]:
    document = json.loads(shell(*words, "--dry-run", "--json").stdout)
    return [(c["model"], c["precision"], c["batch_size"]) for c in document["cases"]]


def test_lists_take_commas_spaces_and_repetition(shell: Shell) -> None:
    expected = [
        (model, precision, batch)
        for model in ("bert-tiny", "vit-tiny")
        for precision in ("fp32", "bf16")
        for batch in (1, 4, 8)
    ]
    for words in (
        "bert-tiny vit-tiny --batch-sizes 1,4,8 --precision fp32,bf16",
        "bert-tiny vit-tiny --batch-sizes 1 4 8 --precision float32 bfloat16",
        "bert-tiny,vit-tiny --batch-sizes 1 --batch-sizes 8 4 --precision fp32 --precision bf16",
        "--batch-sizes 1, 4, 8 --precision fp32 bf16 --model bert-tiny vit-tiny",
    ):
        assert planned(shell, *words.split(), *SCRIPTED) == expected, words


def test_the_documents_spellings_work(shell: Shell) -> None:
    done = shell(
        *("--device", "cpu", "--model-id", "bert-tiny", "--batch-size", "1", "--save"),
        *("--db-path", "mine.duckdb", "--framework", "scripted", "--json", "--quiet"),
    )
    (row,) = json.loads(done.stdout)["results"]
    assert (row["model"], row["batch_size"], row["status"]) == ("bert-tiny", 1, "ok")
    assert len(Database(shell.work / "mine.duckdb").results()) == 1


def test_a_dry_run_writes_nothing_and_says_what_would_be(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", "1", "8", "--dry-run", *SCRIPTED)
    assert not list(shell.work.iterdir())
    assert "batch 8" in done.stdout
    assert "2 cases" in done.stdout
    assert "estimated" in done.stdout


def test_a_limit_takes_the_first_cases_and_says_so(shell: Shell) -> None:
    document = json.loads(
        shell("bert-tiny", "--limit", "2", "--dry-run", "--json", *SCRIPTED).stdout
    )
    assert len(document["cases"]) == 2
    assert any("--limit 2" in note for note in document["notes"])


# -- what comes out


def test_json_is_one_document_and_nothing_else(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--json", *QUICK)
    document = json.loads(done.stdout)
    assert list(document) == ["run_id", "status", "results"]
    assert document["status"] == "finished"
    assert [list(row) for row in document["results"]] == [[c.name for c in COLUMNS]] * 2
    assert {row["run_id"] for row in document["results"]} == {document["run_id"]}
    assert "Run " in done.stderr
    rows = Database(shell.work / "accelbench.duckdb").results()
    assert [r["latency_p50_ms"] for r in rows] == [1.0, 2.0]


def test_people_get_devices_progress_a_table_and_every_path(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", "1", "--output-dir", "out", *QUICK)
    assert not done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Device: ")
    assert lines[1:3] == ["  Type: cpu", "  Available: yes"]
    assert "[1/1] bert-tiny" in done.stdout
    assert "Total configurations: 1 (1 ok)" in done.stdout
    (result,) = shell.work.glob("out/raw_results/bert-tiny_cpu_float32_*.json")
    for path in (shell.work / "accelbench.duckdb", *shell.journals()):
        assert str(path) in done.stdout
    assert result.name in done.stdout


def test_quiet_prints_nothing(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", "1", "--quiet", *QUICK)
    assert done.stdout == done.stderr == ""
    assert len(Database(shell.work / "accelbench.duckdb").results()) == 1


def test_quiet_json_is_the_document_alone(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", "1", "--quiet", "--json", *QUICK)
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["results"]) == 1
    assert len(done.stdout.splitlines()) == 1


def test_a_model_of_a_file_is_picked_by_its_key_and_called_as_typed(shell: Shell) -> None:
    models = {"mine": {"name": "bert-tiny"}, "other": {"name": "vit-tiny"}}
    (shell.work / "models.json").write_text(json.dumps(models))
    shell("mine", "--models-file", "models.json", "--batch-sizes", "1", "--output-dir", "out",
          *QUICK)  # fmt: skip
    (table,) = shell.work.glob("out/*.csv")
    lines = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [(one["model"], one["model_id"]) for one in lines] == [("mine", "bert-tiny")]


def test_result_files_fit_the_published_schema(shell: Shell) -> None:
    shell.script(faults=[{"how": "raise", "when": "step", "batch": 2}])
    shell(
        *("bert-tiny", "vit-tiny", "--batch-sizes", "1,2", "--output-dir", "out"),
        *("--output-ci", "ci/all.json", *QUICK),
        code=1,
    )
    files = [*shell.work.glob("out/raw_results/*.json"), shell.work / "ci" / "all.json"]
    assert len(files) == 3
    for path in files:
        document = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(document, result_schema())
    assert [row["status"] for row in document["results"]] == ["ok", "failed"] * 2
    assert document["results"][0]["samples"]["step"] == [1_000_000] * 5


def test_without_a_database_only_the_journal_is_kept(shell: Shell) -> None:
    shell("bert-tiny", "--batch-sizes", "1", "--no-database", *QUICK)
    assert [p.name for p in shell.work.iterdir()] == ["accelbench.journal"]
    assert len(shell.journals()) == 1


def test_an_encoding_that_lacks_a_sign_does_not_end_the_run(shell: Shell) -> None:
    done = shell(
        "bert-tiny", "--batch-sizes", "1", *QUICK, env={"PYTHONIOENCODING": "ascii:strict"}
    )
    assert "p50 1.00 ms" in done.stdout


def test_a_reader_that_goes_away_ends_the_run_as_ctrl_c_does(shell: Shell) -> None:
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


# -- how it ends


@pytest.mark.parametrize(
    ("faults", "code", "statuses"),
    [
        ([], 0, ["ok", "ok"]),
        ([{"how": "unsupported", "when": "step", "batch": 2}], 0, ["ok", "unsupported"]),
        ([{"how": "raise", "when": "step", "batch": 2}], 1, ["ok", "failed"]),
        ([{"how": "oom", "when": "step", "batch": 1}], 1, ["out_of_memory", "skipped"]),
    ],
)
def test_the_exit_code_tells_how_it_went(
    shell: Shell, faults: list[dict[str, Any]], code: int, statuses: list[str]
) -> None:
    shell.script(faults=faults)
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--json", *QUICK, code=code)
    assert [row["status"] for row in json.loads(done.stdout)["results"]] == statuses


def test_a_batch_that_no_machine_holds_is_out_of_memory_at_once(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", str(10**9), "--json", *QUICK, code=1)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["reason"]) == ("out_of_memory", "out_of_memory_estimated")
    assert "largest batch that fits" in row["advice"]


def test_hardware_that_is_not_here_is_unsupported_not_replaced(shell: Shell) -> None:
    done = shell(
        *("bert-tiny", "--framework", "scripted", "--hardware", "tpu", "--batch-sizes", "1"),
        "--json",
    )
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["hardware"], row["reason"]) == (
        *("unsupported", "tpu"),
        "hardware_absent",
    )
    assert row["advice"]


# -- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bert-tny"], "bert-tiny"),
        (["bert-tiny", "--batch-sizes", "0"], "--batch-sizes takes numbers from 1"),
        (["bert-tiny", "--batch-sizes", str(10**12)], "--batch-sizes takes numbers from 1"),
        (["bert-tiny", "--batch-sizes", "many"], "whole numbers"),
        (["bert-tiny", "--audio-seconds", "2.5"], "whole numbers, not 2.5."),
        (["bert-tiny", "--batch-sizes", "1", "vit-tiny"], "Models come before the options"),
        (["bert-tiny", "--precision", "fp7"], "fp32"),
        (["bert-tiny", "--mode", "dreaming"], "inference, training"),
        (["bert-tiny", "--hardware", "abacus"], "cpu"),
        (["bert-tiny", "--framework", "abacus"], "pytorch"),
        (["bert-tiny", "--framework", "browser"], "browser comes with a later piece of work"),
        (["bert-tiny", "--precision", "fp7"], "int8"),
        (["bert-tiny", "--verify", "never"], "--verify auto or require"),
        (["bert-tiny", "--verify-only", "--benchmark-only"], "contradict each other"),
        (["bert-tiny", "--data", "."], "holds no images, sound or text"),
        (["bert-tiny", "--data", "nowhere"], "There is nothing at nowhere"),
        (["bert-tiny", "--timeout", "soon"], "--timeout takes a duration"),
        (["bert-tiny", "--budget", "-3m"], "--budget takes a duration"),
        (["--resume", "last"], "was cut off"),
        (["--resume", "last", "--iterations", "3"], "--iterations cannot be given anew"),
        (["bert-tiny", "--resume", "last"], "a model cannot be given anew"),
        (["--resume", "last", "--dry-run"], "--dry-run cannot be given anew"),
        (["bert-tiny", "--db", "x.duckdb"], "contradict"),
        (["bert-tiny", "--pure", "--precision", "fp32,amp-bf16"], "--pure and amp-bf16"),
    ],
)
def test_words_that_are_off_are_refused_with_what_to_do(
    shell: Shell, words: list[str], said: str
) -> None:
    more = [] if "--resume" in words else ["--no-database"]
    assert said in shell.refused(*words, *more, code=2)


def test_the_runtime_of_tests_is_offered_only_where_it_is_scripted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value, offered in ((None, False), ("script.json", True)):
        monkeypatch.delenv("ACCELBENCH_SCRIPT", raising=False)
        if value:
            monkeypatch.setenv("ACCELBENCH_SCRIPT", value)
        with pytest.raises(UsageError) as caught:
            asked.runtimes(["abacus"])
        assert ("scripted" in caught.value.advice) == offered
        assert "later piece" not in caught.value.advice


def test_debug_shows_where_an_error_was_raised(shell: Shell) -> None:
    process = shell.start("bert-tny", "--debug")
    _, err = process.communicate(timeout=60)
    assert "Traceback" in err
    assert process.returncode != 0


def test_a_result_file_that_exists_is_refused_before_measuring(shell: Shell) -> None:
    (shell.work / "ci.json").write_text("mine")
    assert "exists already" in shell.refused("bert-tiny", "--output-ci", "ci.json", *QUICK, code=2)


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--output-dir", "a-file"),
        ("--output-dir", "a-file/below"),
        ("--output-dir", "/proc/accelbench"),
        ("--output-ci", "a-file/ci.json"),
        ("--db", "a-file/x.duckdb"),
        ("--db", "a-folder"),
        ("--db", "/proc/accelbench/x.duckdb"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_measuring(
    shell: Shell, option: str, place: str
) -> None:
    (shell.work / "a-file").write_text("mine")
    (shell.work / "a-folder").mkdir()
    more = () if option == "--db" else ("--no-database",)
    shell.refused("bert-tiny", option, place, *more, *QUICK, code=3)


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE theirs AS SELECT 42 AS answer")


def corrupt(path: Path) -> None:
    Database(path).ensure()
    path.write_bytes(path.read_bytes()[:5000])


def not_a_database(path: Path) -> None:
    path.write_text("once upon a time")


def newer(path: Path) -> None:
    Database(path).ensure()
    with duckdb.connect(str(path)) as con:
        con.execute("UPDATE store_meta SET schema_version = 999")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (foreign, "another program"),
        (corrupt, "x.duckdb"),
        (not_a_database, "not a DuckDB database"),
        (newer, "newer accelbench"),
    ],
)
def test_a_database_that_is_not_ours_to_write_is_left_byte_for_byte(
    shell: Shell, make: Callable[[Path], None], said: str
) -> None:
    make(shell.work / "x.duckdb")
    assert said in shell.refused("bert-tiny", "--db", "x.duckdb", *QUICK, code=3)


def test_an_unknown_run_cannot_be_resumed(shell: Shell) -> None:
    said = shell.refused("--resume", "20200101-000000-0000000000", code=3)
    assert "no journal of run" in said


# -- cut off half-way


def test_a_full_disk_ends_in_a_sentence_and_what_was_announced_is_kept(shell: Shell) -> None:
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


@pytest.mark.parametrize("which", ["conductor", "terminal", "SIGTERM"])
@pytest.mark.parametrize("after", ["[1/2]", "[2/2]"])
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(shell: Shell, which: str, after: str) -> None:
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


def test_ctrl_c_while_an_engine_is_being_imported_is_clean(shell: Shell) -> None:
    process = shell.start("bert-tiny", "--batch-sizes", "1", "--no-database", "--hardware", "cpu")
    out, err = press(process, "[1/1]", lambda: os.kill(process.pid, signal.SIGINT))
    assert process.returncode == 130, (out, err)
    assert err.startswith("Interrupted. Go on with")
    assert len(err.splitlines()) == 1
    assert "Traceback" not in out
    assert not shell.left_behind()


@pytest.mark.parametrize("where", ["prepare", "environment"])
def test_ctrl_c_before_the_first_case_is_clean(
    shell: Shell,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from accelbench.cli import running

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(shell.work)
    monkeypatch.setenv("ACCELBENCH_SCRIPT", shell.environment["ACCELBENCH_SCRIPT"])
    monkeypatch.setattr(running, where, interrupted)
    monkeypatch.setattr(sys, "argv", ["accelbench", "run", "bert-tiny", "--no-database", *QUICK])
    with pytest.raises(SystemExit) as caught:
        front.main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "accelbench: interrupted.\n"
    assert not shell.journals()


def test_an_interrupt_becomes_an_exit_code_whatever_typer_makes_of_it() -> None:
    import typer

    from accelbench.cli.run import termination_as_interrupt

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(typer.Exit) as caught, termination_as_interrupt():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_where_no_engine_can_start_it_is_the_surroundings_that_are_at_fault(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import dataclasses

    from accelbench.run import journey
    from accelbench.runtimes.scripted import ScriptedRuntime

    runtime = ScriptedRuntime({})
    runtime.info = dataclasses.replace(runtime.info, name="never-registered")
    monkeypatch.chdir(shell.work)
    monkeypatch.setattr(journey, "installed_runtimes", lambda: {"scripted": runtime})
    monkeypatch.setattr(sys, "argv", ["accelbench", "run", "bert-tiny", "--no-database", *QUICK])
    with pytest.raises(SystemExit) as caught:
        front.main()
    assert caught.value.code == 3
    out = capsys.readouterr().out
    assert "A worker process could not start" in out
    assert "4 failed" in out


def test_the_resume_hint_names_every_place(shell: Shell) -> None:
    from accelbench.cli.running import Places, resume_hint

    hint = resume_hint(
        "r1", Places(Path("a b.duckdb"), output_dir=Path("out"), output_ci=Path("ci.json"))
    )
    assert hint == (
        "Go on with: accelbench run --resume r1 --db 'a b.duckdb'"
        " --output-dir out --output-ci ci.json"
    )


# -- for real


def test_a_real_model_from_command_to_database(shell: Shell) -> None:
    began = time.monotonic()
    done = shell(
        *("bert-tiny", "--hardware", "cpu", "--batch-sizes", "1,2", "--sequence-lengths", "16"),
        *("--iterations", "3", "--warmup", "1", "--threads", "1", "--json"),
    )
    wall_ms = 1000 * (time.monotonic() - began)
    rows = json.loads(done.stdout)["results"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    for row in rows:
        assert row["provenance"] == "measured"
        assert row["runtime"] == "pytorch"
        assert row["threads"] == 1
        assert row["parameters"] == 4_385_920
        assert row["sample_count"] == 3
        assert row["warmup_steps"] == 1
        assert 0 < row["latency_min_ms"] <= row["latency_p50_ms"] <= row["latency_max_ms"]
        assert row["latency_max_ms"] < wall_ms
        assert row["evidence"]["devices"] == ["cpu:0"]
        assert row["evidence"]["details"]["weight_dtypes"] == ["float32"]
        assert row["memory_peak_mb"] > 0
        assert row["flops"] > 0
        assert row["warnings"]  # fixed, and fewer than thirty
    assert rows[0]["weights_digest"] == rows[1]["weights_digest"]
    stored = Database(shell.work / "accelbench.duckdb").results(samples=True)
    assert [len(row["samples"]["step"]) for row in stored] == [3, 3]
