"""Holds docs/from-the-guides.md: nothing is missing, and what it says works does.

A `works` line is believed only as far as it can be checked: its commands are run
for real, on the small variants of the models they name and with few iterations,
and whatever else it names in backticks must be there. Of the commands that measure,
`map_cover` names those that stand for each kind; the others are measured in `make test-full`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from guides_map import COMMANDS, LINES, MAP, lines_with
from map_commands import SMALL, places_in, prints_results
from map_cover import MEASURED, RUNS, kinds_in
from map_folder import prepare
from map_names import checked
from map_running import in_process, on_its_own
from map_trials import Trials, Tried, manner_of
from warm_engine import warm_engine

INVENTORY = json.loads((Path(__file__).parent / "inventory.json").read_text(encoding="utf-8"))

PIECES = (
    "The measuring core",
    "Models and modes",
    "Runtimes",
    "The browser",
    "Knowing",
    "Seeing",
    "Choosing",
    "Predicting",
    "Fleets",
)
#: How a command may end: three iterations on a busy machine may well differ by more than a
#: tenth, and a check that says that one launch does not tell works. That something was judged at
#: all is seen in its table.
ENDS = {"check": (0, 1, 4)}

# -- nothing is missing -----------------------------------------------------------------


@pytest.mark.parametrize("document", INVENTORY)
def test_everything_the_document_names_has_a_line(document: str) -> None:
    said = {line.says for line in LINES if line.document == document}
    missing = [e["says"] for e in INVENTORY[document] if e["says"] not in said]
    assert not missing, f"no line in {MAP.name} under {document!r} for: {missing}"


def test_the_inventory_is_not_empty_and_nothing_is_listed_twice() -> None:
    keys = [(line.document, line.says) for line in LINES]
    assert len(keys) == len(set(keys))
    assert {line.document for line in LINES} == set(INVENTORY)
    assert all(len(entries) > 50 for entries in INVENTORY.values())


def test_every_state_is_works_or_due_with_a_named_piece() -> None:
    allowed = {"works", *(f"due with {piece}" for piece in PIECES)}
    wrong = [(line.document, line.says, line.state) for line in LINES if line.state not in allowed]
    assert not wrong


# -- what works is there ----------------------------------------------------------------


def test_every_works_line_names_something_that_is_there() -> None:
    absent, unproved = [], []
    for line in LINES:
        if not line.works:
            continue
        answers = {reference: checked(reference) for reference in line.references}
        absent += [(line.says, r) for r, answer in answers.items() if answer is False]
        if not any(answers.values()):
            unproved.append(line.says)
    assert not absent, "named, but not there"
    assert not unproved, "nothing on these lines can be checked"


def test_the_tables_exist_in_a_new_database(tmp_path: Path) -> None:
    tables = sorted({r[6:] for ln in LINES if ln.works for r in ln.references if r[:6] == "table "})
    assert len(tables) >= 4
    assert in_process(tmp_path, "db", "init").returncode == 0
    query = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
    done = in_process(tmp_path, "db", "sql", query, "--json")
    assert done.returncode == 0, done.stderr


def test_every_model_that_a_works_line_names_is_known() -> None:
    from accelbench.catalog.find import find

    named = {w for c in COMMANDS for w in shlex.split(c) if w in SMALL}
    assert named
    for name in named:
        small = find(SMALL[name])
        assert find(name).small_variant == small.id


# -- what works is run --------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine() -> Iterator[None]:
    with warm_engine():
        yield


@pytest.fixture(scope="module")
def prepared(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where something was measured: once, and copied for each command that looks at it."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.fixture(scope="module")
def trials(request: pytest.FixtureRequest) -> Trials:
    return Trials(request)


def check_results(shown: str, anywhere: bool) -> None:
    """A run is no proof where nothing ran: on the CPU, at least, there must be figures."""
    results = json.loads(shown)["results"]
    assert results
    for result in results:
        assert result["status"] in {"ok", "unsupported"}, result["message"]
        assert result["status"] == "ok" or (result["reason"] and result["advice"])
        assert result["status"] == "unsupported" or result["latency_mean_ms"] > 0
    if anywhere:
        assert any(r["status"] == "ok" and r["hardware"] == "cpu" for r in results)


def check_what_came(command: str, tried: Tried) -> None:
    """It ended well, and wrote and showed what the map says."""
    said, done = " ".join(tried.words), tried.done
    ended = ENDS.get(tried.words[0], (0,))
    if prints_results(command) and "unmeasured" in json.loads(done.stdout):
        ended = (3,)  # it names a platform that is not here
    assert done.returncode in ended, f"{said}\n{done.stdout}\n{done.stderr}"
    if tried.words[0] == "check":
        assert "latency, ms" in done.stdout, done.stdout
    if prints_results(command):
        named = places_in(shlex.join(["accelbench", *tried.words]))
        check_results(done.stdout, anywhere=not named or "cpu" in named)
    for name in lines_with(command, "writes"):
        assert list(tried.folder.glob(name)), f"{said} wrote no {name}"
    for word in lines_with(command, "prints"):
        shown = (done.stdout + done.stderr).lower()
        assert word.lower() in shown, f"{said} does not show {word}"


def test_at_least_one_command_of_each_kind_is_measured() -> None:
    assert kinds_in(MEASURED) == kinds_in(RUNS)
    assert len(MEASURED) < len(RUNS)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, marks=[pytest.mark.full] if one in RUNS and one not in MEASURED else [])
        for one in COMMANDS
    ],
)
def test_the_command_works(command: str, trials: Trials) -> None:
    check_what_came(command, trials.of(command, manner_of(command)))


#: What is run in this process above: here everything is imported already that a process of its own
#: would have to import. `make test` starts one for each name of a command.
IN_PROCESS = [one for one in COMMANDS if manner_of(one) is in_process]
COLD = {shlex.split(one)[1]: one for one in reversed(IN_PROCESS) if one not in RUNS}.values()


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[] if one in COLD else [pytest.mark.full]) for one in IN_PROCESS],
)
def test_the_command_works_in_a_process_of_its_own(command: str, trials: Trials) -> None:
    check_what_came(command, trials.of(command, on_its_own))
