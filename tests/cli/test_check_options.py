"""What the options of `accelbench check` may be, and how it ends where they are off."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_rows import store

from accelbench.judge.stored_results import NOISE

DB = "accelbench.duckdb"


@pytest.fixture
def both(tmp_path: Path) -> None:
    store(tmp_path / DB, {}, run="r1", about={"label": "main"})
    store(
        tmp_path / DB,
        {"started_at": "2026-02-01T00:00:00Z"},
        run="r2",
        about={"label": "two\nlines"},
    )


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hardware", "cuad"), "Did you mean cuda"),
        (("--framework", "pytroch"), "Did you mean pytorch"),
        (("--precision", "fp99"), "Did you mean fp32"),
        (("BERT_TINY", "--machine", "nobody"), "There are no results of a machine 'nobody'"),
        (("--run", "r2", "bert-tiny"), "bert-tiny is a model: models come before the options."),
    ],
)
def test_a_slip_is_no_lack_of_results(check, words, said):
    code, out, err = check(*words, "--baseline", "main")
    assert (code, out, said in err) == (2, "", True), err


@pytest.mark.usefixtures("both")
def test_what_is_to_be_measured_is_what_was_asked_for(check):
    code, _, err = check("bert-base", "--baseline", "main", "--batch-sizes", "8")
    assert (code, "`accelbench run bert-base --batch-sizes 8`" in err) == (4, True), err


def test_an_unknown_baseline_is_one_whatever_the_database_holds(tmp_path, check):
    store(tmp_path / "imports.duckdb", {}, run="import-1", source={"name": "timm"})
    store(tmp_path / "noise.duckdb", {}, run="n", about={"label": NOISE})
    store(tmp_path / "none.duckdb")
    for name in ("imports", "noise", "none"):
        for baseline, said in (
            ("x", "There is no file, run, label or branch 'x'"),
            ("x.csv", "x.csv cannot be read"),
            ("x.duckdb", "There is no database at x.duckdb"),
            (tmp_path, f"{tmp_path} is a folder with no lake in it. There is a database in it"),
            ("file:///nolake", "There is no lake at file:///nolake."),
        ):
            code, out, err = check("--baseline", baseline, "--db", f"{name}.duckdb")
            assert (code, out, said in err) == (2, "", True), err


def test_a_database_that_is_not_there_ends_as_with_other_commands(tmp_path, check, command):
    (tmp_path / "empty.duckdb").touch()
    (tmp_path / "folder").mkdir()
    for place, said in (
        ("nope.duckdb", "There is no database at"),
        ("empty.duckdb", "There is no database at"),
        ("folder", "no lake in it"),
        ("file:///nolake", "There is no lake at /nolake"),
    ):
        for ask in ((check, "--baseline", "main"), (command("compare"),), (command("history"),)):
            code, out, err = ask[0](*ask[1:], "--db", place)
            assert (code, out, said in err) == (3, "", True), err
    code, _, err = command("db")("status", "--db", "empty.duckdb")
    assert (code, "There is no database at" in err) == (3, True)


@pytest.mark.parametrize(
    "words",
    [
        ("--baseline", "main"),
        ("--threshold", "0.1"),
        ("--run", "r1"),
        ("--machine", "lab"),
        ("--allow", "missing"),
        ("--rerun",),
        ("--markdown", "s.md"),
    ],
)
def test_what_means_nothing_beside_noise_is_refused(tmp_path, check, words):
    code, out, err = check("--noise", "5", *words)
    assert (code, out) == (2, "")
    assert f"where {words[0]} would mean nothing" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [("--hardware", "cuad"), ("--framework", "nope"), ("--precision", "fp99")]
)
def test_a_slip_beside_noise_measures_nothing(tmp_path, check, words):
    code, out, err = check("--noise", "5", *words)
    assert (code, out, words[1] in err) == (2, "", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize(
    ("name", "words", "option"),
    [
        ("check", ("--baseline", ""), "--baseline"),
        ("check", ("--baseline=",), "--baseline"),
        ("check", ("--baseline", "main", "--db", ""), "--db"),
        ("check", ("--baseline", "main", "--markdown", " "), "--markdown"),
        ("compare", ("--output", ""), "--output"),
        ("history", ("--machine", "", "--json"), "--machine"),
    ],
)
def test_an_empty_value_is_said_to_be_empty(command, name, words, option):
    code, out, err = command(name)(*words)
    assert (code, out, f"What follows {option} is empty." in err) == (2, "", True), err


@pytest.mark.usefixtures("both")
def test_a_label_of_two_lines_is_shown_in_one(tmp_path, check, command):
    out = check("--baseline", "main", "--markdown", "s.md")[1]
    assert "r2 (two<U+000A>lines) against main" in out
    assert "two\nlines" not in (tmp_path / "s.md").read_text()
    assert "against two<U+000A>lines" in check("--run", "main", "--baseline", "two\nlines")[1]
    assert "r2 (two<U+000A>lines)" in command("compare")("--by", "run")[1]
    assert "r2 (two<U+000A>lines)" in check("--baseline", "nobody")[2]


def test_a_label_that_cannot_be_shown_is_refused(command):
    for label in ("two\nlines", "a\x1b[2Jb"):
        code, out, err = command("run")("bert-tiny", "--label", label, "--dry-run")
        assert (code, out, "characters that cannot be shown" in err) == (2, "", True)
    assert command("run")("bert-tiny", "--label", "naïve — 1", "--dry-run")[0] == 0


@pytest.mark.usefixtures("both")
def test_advice_names_the_option_that_chose_the_place(tmp_path, check, command):
    (tmp_path / "file").touch()
    for ask, advice in (
        ((command("compare"), "--by", "run", "--output", "file/x.csv"), "choose another path."),
        ((command("db"), "export", "file/x.csv"), "choose another path."),
        ((check, "--baseline", "main", "--markdown", "file/x.md"), "with --markdown PATH."),
        ((command("db"), "init", "--db", "file/x.duckdb"), "with --db PATH."),
    ):
        code, _, err = ask[0](*ask[1:])
        assert (code, err.rstrip().endswith(advice)) == (3, True), err
