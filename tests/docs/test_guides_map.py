"""Holds docs/from-the-guides.md: nothing is missing, and what it says works does.

A `works` line is believed only as far as it can be checked: its commands are run
for real, on the small variants of the models they name and with few iterations,
its columns hold something then, its options are used, and whatever else it names in backticks must
be there. Of the commands that measure, `map_cover` names those that stand for each kind; the others
are measured in `make test-full`. A line that `refuses rightly here` is run too, and has to end
with a refusal where its platform is absent, with a figure where it is present.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from guides_map import COMMANDS, LACKING, LINES, MAP, REFUSED, WORKS
from map_checks import check_what_came, check_what_was_refused
from map_commands import AS_DOCUMENTED, SMALL, places_in, spoken
from map_cover import FILLING, MEASURED, RUNS, kinds_in
from map_filled import ABSENT_COLUMNS, COLUMNS, OF_REFUSALS, REFUSED_SOMEWHERE, filled, results_of
from map_folder import prepare
from map_head import made, parts_of, write
from map_names import checked
from map_running import in_process, on_its_own
from map_trials import Trials, manner_of

from accelbench.core.columns import ENERGY_COLUMNS
from warm_start import warm_engine

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

# -- nothing is missing -----------------------------------------------------------------


@pytest.mark.parametrize("document", INVENTORY)
def test_everything_the_document_names_has_a_line(document):
    said = {line.says for line in LINES if line.document == document}
    missing = [e["says"] for e in INVENTORY[document] if e["says"] not in said]
    assert not missing, f"no line in {MAP.name} under {document!r} for: {missing}"


def test_the_inventory_is_not_empty_and_nothing_is_listed_twice():
    keys = [(line.document, line.says) for line in LINES]
    assert len(keys) == len(set(keys))
    assert {line.document for line in LINES} == set(INVENTORY)
    assert all(len(entries) > 50 for entries in INVENTORY.values())


def test_every_state_is_one_of_three():
    allowed = {WORKS, *LACKING.values(), *(f"due with {piece}" for piece in PIECES)}
    wrong = [(line.document, line.says, line.state) for line in LINES if line.state not in allowed]
    assert not wrong


def test_the_head_says_how_many_lines_there_are_and_what_is_swapped():
    if os.environ.get("ACCELBENCH_GOLDEN") == "write":
        write()
    assert parts_of(MAP.read_text(encoding="utf-8")) == made(), "write it: ACCELBENCH_GOLDEN=write"


def test_what_is_refused_here_is_no_command_that_works():
    """A line for absent hardware alone shows a refusal; one for more says what is refused."""
    silent = []
    for line in LINES:
        named = [set(places_in(one)) for one in line.commands]
        if line.works:  # a prediction is of hardware that nothing was measured on
            named = [
                places
                for places, command in zip(named, line.commands, strict=True)
                if shlex.split(command)[1] != "predict"
            ]
            assert not [one for one in named if one and one <= set(LACKING)], line.says
            if any(one & set(LACKING) for one in named) and "refused" not in line.form:
                silent.append(line.says)
        elif line.lacks:
            asked = [shlex.split(one)[1:] for one in line.commands]
            assert asked, f"{line.says}: no command shows the refusal"
            assert all(
                {line.lacks} == places or words == ["hardware", line.lacks]
                for places, words in zip(named, asked, strict=True)
            ), line.says
    assert not silent, "these do not say what is refused"


# -- what works is there ----------------------------------------------------------------


def test_every_works_line_names_something_that_is_there():
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


def test_every_model_that_a_works_line_names_is_known():
    from accelbench.models.find import find

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


def test_the_tables_hold_what_was_measured(prepared):
    tables = sorted({r[6:] for ln in LINES if ln.works for r in ln.references if r[:6] == "table "})
    assert len(tables) >= 4
    query = " UNION ALL ".join(
        f"SELECT '{one}' AS name, count(*) AS n FROM {one}" for one in tables
    )
    done = in_process(prepared, "db", "sql", query, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert sorted(row["name"] for row in rows) == tables
    assert all(row["n"] > 0 for row in rows)


@pytest.fixture(scope="module")
def trials(request: pytest.FixtureRequest) -> Trials:
    return Trials(request)


def test_at_least_one_command_of_each_kind_is_measured():
    assert kinds_in(MEASURED) == kinds_in(RUNS)
    assert len(MEASURED) < len(RUNS)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, marks=[pytest.mark.full] if one in RUNS and one not in MEASURED else [])
        for one in COMMANDS
    ],
)
def test_the_command_works(command, trials, present):
    check_what_came(command, trials.of(command, manner_of(command)), present)


@pytest.mark.parametrize("command", sorted(REFUSED))
def test_the_command_is_refused_where_its_platform_is_absent(command, trials, present):
    tried, platform = trials.of(command, in_process), REFUSED[command]
    assert platform is not None
    if platform in present:
        check_what_came(command, tried, present)
    else:
        check_what_was_refused(command, tried, platform)


def test_every_column_that_a_line_names_is_filled_by_a_measurement(trials):
    measured = results_of(trials, FILLING)
    assert {one["status"] for one in measured} == {"ok"}
    refused = filled(results_of(trials, REFUSED_SOMEWHERE)) & OF_REFUSALS
    found = filled(measured)
    # Energy takes a meter: tests/cli/test_run_energy.py fills its columns on one that is made up.
    metered = {column.name for column in ENERGY_COLUMNS}
    assert COLUMNS - found - refused - metered == set()
    assert ABSENT_COLUMNS & found == set(), "something here fills them: these lines work"


def test_every_option_that_a_line_names_is_used_by_a_command_that_is_run():
    asking = [one for one in COMMANDS if shlex.split(one)[1] == "recommend"]
    used = {
        kind: {option for one in commands for option in spoken(one)}
        for kind, commands in (("option", MEASURED), ("asks", asking))
    }
    named = [r.split(" ") for line in LINES if line.works for r in line.references if " --" in r]
    idle = [(kind, name) for kind, name, *_ in named if name not in used.get(kind, {name})]
    assert not idle, "no command that is run uses them"


#: What is run in this process above: here everything is imported already that a process of its own
#: would have to import. `make test` starts one each for those that import the most.
IN_PROCESS = [one for one in COMMANDS if manner_of(one) is in_process]
FIRST = {shlex.split(one)[1]: one for one in reversed(IN_PROCESS) if one not in RUNS}
COLD = [FIRST[name] for name in ("plot", "predict", "recommend")]


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[] if one in COLD else [pytest.mark.full]) for one in IN_PROCESS],
)
def test_the_command_works_in_a_process_of_its_own(command, trials, present):
    check_what_came(command, trials.of(command, on_its_own), present)


@pytest.mark.full
@pytest.mark.parametrize("command", AS_DOCUMENTED)
def test_the_command_works_as_documented(command, trials, present):
    """With the documents' own models and counts."""
    assert command in RUNS
    check_what_came(command, trials.as_documented(command), present)
