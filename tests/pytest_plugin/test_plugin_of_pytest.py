"""The plugin as a project that uses it meets it: what its tests come to, and what is shown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import accelbench.present.terminal.documents  # noqa: F401
from accelbench.api.result import Result
from accelbench.core.errors import UsageError
from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.pytest_plugin import fixture, gate  # noqa: F401
from accelbench.store.journal import Journal
from accelbench.store.opening import open_store
from asked_rows import row

pytest_plugins = ["pytester"]

# An inner run forgets what it was first to import, and libraries in C++ abort at a second time.
import_module("duckdb")
import_module("pyarrow")

ROOT = Path(__file__).parents[2]
NAME = "test_it.py::test_it"
TIMES = (8.0, 8.01, 7.99, 8.02, 7.98, 8.0)
CALL = """
    def test_it(accelbench):
        accelbench(len, {arguments})
"""


def store(
    path: Path, launches: Sequence[Mapping[str, Any]], run: str, machine: str = "lab", **about: Any
) -> None:
    """A run in the journals of a database, as a measurement leaves it."""
    database = open_store(str(path))
    database.ensure()
    environment = {"machine": machine, "cpu": "A processor", "cpus_logical": 2}
    with Journal.create(database.journals, run) as journal:
        began = {"started_at": "2026-01-01T00:00:00Z", "environment": environment, **about}
        journal.append(Fact(RUN_STARTED, run, began))
        for launch in launches:
            result = row(**{"run_id": run, **launch})
            journal.append(Fact(RESULT, f"{run}-{launch['launch']}", result))


class Project:
    """A project whose measurements come out as they are told to."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.asked: list[Mapping[str, Any]] = []
        self.changes: dict[str, Any] = {}
        self.factor = 1.0
        self.stores = False

    def benchmark(self, model: Any, inputs: Any = None, **how: Any) -> Result:
        self.asked.append({"model": model, "inputs": inputs, **how})
        if model == "refused":
            raise UsageError("It is refused.", "Do otherwise.")
        run = f"run-{len(self.asked)}"
        if self.stores:
            self.stored(run, self.factor, day=9, name=how["name"], label=how["label"])
            open_store(how["db"]).fill()
        made = self.launches(self.factor, 9, how["name"])
        return Result(run, [row(**{"run_id": run, **launch}) for launch in made])

    def launches(self, factor: float, day: int, name: str | None) -> list[dict[str, Any]]:
        return [
            {
                "model": name or "bert-tiny",
                "case_id": "c",
                "series_key": "s",
                "launch": n,
                "latency_p50_ms": ms * factor,
                "throughput": 1e3 / (ms * factor),
                "started_at": f"2026-01-{day:02d}T03:04:0{len(self.asked)}.000000Z",
                **self.changes,
            }
            for n, ms in enumerate(TIMES)
        ]

    def stored(self, run: str, factor: float, day: int, *, name: str = NAME, **about: Any) -> None:
        """A run in the database, from where on every run gets there."""
        self.stores = True
        place = self.pytester.path / "accelbench.duckdb"
        store(place, self.launches(factor, day, name), run, **about)

    def run(self, *words: str, source: str = "", arguments: str = "") -> pytest.RunResult:
        self.pytester.makepyfile(test_it=source or CALL.format(arguments=arguments))
        # By its module, whether or not an installed entry point names it.
        plugin = ("-p", "accelbench.pytest_plugin.plugin", "-p", "no:accelbench")
        quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider")
        return self.pytester.runpytest_inprocess(*plugin, *quiet, *words)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    made = Project(pytester)
    monkeypatch.setattr(fixture, "benchmark", made.benchmark)
    return made


def test_a_limit_that_is_kept_passes_and_is_shown(project):
    done = project.run(arguments="max_latency_ms=9")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        [
            "measured * p50 ms * 95 % * answer",
            "test_it.py::test_it pytorch/cpu fp32 batch 1* 8.00 *±0.2% * 6  within 9 ms",
            f"1 run in {project.pytester.path / 'accelbench.duckdb'}",
        ]
    )


def test_what_a_test_says_goes_on_to_benchmark(project):
    project.run("--accelbench-label", "pr-12", arguments="[1], iterations=4, seed=3")
    (asked,) = project.asked
    assert asked == {
        "model": len,
        "inputs": [1],
        "iterations": 4,
        "seed": 3,
        "label": "pr-12",
        "launches": 5,
        "batch_sizes": "given",
        "name": NAME,
        "db": str(project.pytester.path / "accelbench.duckdb"),
    }


def test_a_limit_that_is_missed_fails_with_a_sentence_alone(project):
    done = project.run(arguments="max_latency_ms=5")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"{NAME} pytorch/cpu * p50 latency 8 ms is above 5"])
    done.stdout.fnmatch_lines(["test_it.py::test_it * above 5 ms"])
    done.stdout.no_fnmatch_line("*accelbench(len*")


@pytest.mark.parametrize(
    ("words", "setting", "outcomes"),
    [
        ((), "", {"passed": 1, "warnings": 1}),
        (("--accelbench-cant-tell=fail",), "", {"failed": 1}),
        ((), "skip", {"skipped": 1}),
        (("--accelbench-cant-tell=warn",), "fail", {"passed": 1, "warnings": 1}),
    ],
)
def test_what_cannot_be_told_does_what_is_set(project, words, setting, outcomes):
    project.pytester.makeini(f"[pytest]\naccelbench_cant_tell = {setting}\n")
    done = project.run("-rs", *words, arguments="max_latency_ms=8")
    done.assert_outcomes(**outcomes)
    done.stdout.fnmatch_lines(
        ["*Can't tell: test_it.py::test_it *may be above 8: its interval is*"]
    )


def test_a_change_of_a_baseline_is_judged_as_check_judges_it(project):
    project.stored("before", 1.0, day=1, label="main")
    project.factor = 1.06
    done = project.run(arguments="baseline='main'")
    done.assert_outcomes(passed=1, warnings=1)  # two runs without a history may differ by it
    done.stdout.fnmatch_lines(["*runs of this differ by so much where nothing changed*"])
    for night in range(8):
        project.stored(f"night-{night}", 1.0 + 0.002 * (night % 2), day=2)
    done = project.run(arguments="baseline='main'")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["run-2 against main, on lab*", "*median*8 → 8.48*+6.0%*worse*", "Worse than the baseline*"]
    )
    project.factor = 0.5
    done = project.run(arguments="baseline='main'")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["test_it.py::test_it * better against main"])


def test_a_baseline_that_does_not_exist_fails(project):
    project.stored("before", 1.0, day=1, label="main")
    done = project.run(arguments="baseline='mian'")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*There is no file, run, label or branch 'mian'*", "*--accelbench-new-baseline*"]
    )
    done.stdout.fnmatch_lines(["test_it.py::test_it * no baseline mian"])


def test_a_baseline_that_has_nothing_of_the_test_cannot_be_told(project):
    project.stored("before", 1.0, day=1, name="another", label="main")
    done = project.run(arguments="baseline='main'")
    done.assert_outcomes(passed=1, warnings=1)


def test_a_new_baseline_is_created_only_if_there_is_none(project):
    project.stores = True
    new, arguments = "--accelbench-new-baseline", "baseline='main', threshold=0.3"
    done = project.run(new, arguments=arguments)
    done.assert_outcomes(passed=1, warnings=0)
    done.stdout.fnmatch_lines(["test_it.py::test_it * new baseline main"])
    assert project.asked[-1]["label"] == "main"
    done = project.run(new, arguments=arguments)  # now there is one, and it is judged
    done.assert_outcomes(passed=1, warnings=0)
    done.stdout.fnmatch_lines(["test_it.py::test_it * no change shown against main"])
    assert project.asked[-1]["label"] is None
    project.factor = 3.0
    project.run(new, arguments=arguments).assert_outcomes(failed=1)
    done = project.run(new, "--accelbench-label", "pr", arguments=arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_a_new_baseline_of_a_second_test_has_the_same_name(project):
    project.stored("before", 1.0, day=1, name="another", label="main")
    project.run("--accelbench-new-baseline", arguments="baseline='main'")
    assert project.asked[-1]["label"] == "main"


@pytest.mark.parametrize(
    ("word", "about"), [("trunk", {"git_branch": "trunk"}), ("gone.csv", {}), ("before", {})]
)
def test_a_label_hides_no_branch_run_or_file(project, word, about):
    project.stored("before", 1.0, day=1, name="another", **about)
    project.run("--accelbench-new-baseline", arguments=f"baseline={word!r}")
    assert project.asked[-1]["label"] is None


def test_a_baseline_of_another_machine_cannot_be_told(project):
    project.stores = True
    name = project.pytester.path / "accelbench.duckdb"
    store(name, project.launches(1.0, 1, NAME), "before", label="main", machine="other")
    done = project.run(arguments="baseline='main'")
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*The baseline is of other*"])


def test_a_changed_source_is_compared_unless_it_is_not_allowed(project):
    project.changes = {"weights_digest": "before"}
    project.stored("before", 1.0, day=1, label="main")
    project.changes = {"weights_digest": "now"}
    done = project.run(arguments="baseline='main', threshold=0.3")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["test_it.py::test_it * no change shown against main"])
    done = project.run(arguments="baseline='main', threshold=0.3, allow=()")
    done.stdout.fnmatch_lines(["*Can't tell: against main: not alike: weights*"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            "max_latency=5",
            "accelbench has no argument 'max_latency'. Did you mean max_latency_ms *",
        ),
        ("max_latency_ms='5'", "max_latency_ms takes a number, not '5'.*"),
        ("baseline='gone.csv'", "*gone.csv*"),
        ("baseline='main', threshold=40", "40 is no threshold. 0.1 stands for 10 %."),
        ("baseline='main', allow='all'", "There is nothing 'all' to allow. Known: weights*"),
    ],
)
def test_a_slip_fails_with_a_sentence_alone(project, arguments, says):
    done = project.run(arguments=arguments)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([says])
    done.stdout.no_fnmatch_line("*accelbench(len*")


def test_what_benchmark_refuses_fails_with_its_sentence(project):
    done = project.run(source="def test_it(accelbench):\n    accelbench('refused')\n")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["It is refused. Do otherwise."])


def test_a_launch_that_fails_fails_the_test(project):
    project.changes = {"status": "failed", "reason": "crashed", "message": "it crashed"}
    done = project.run(arguments="max_latency_ms=9, baseline='main'")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [f"{NAME} pytorch/cpu fp32 batch 1*: failed: it crashed", "*no data * not measured"]
    )


def test_the_nearest_mark_says_most_and_the_call_more(project):
    source = """
        import pytest

        pytestmark = pytest.mark.accelbench(launches=2, seed=7, max_latency_ms=1)

        @pytest.mark.accelbench(launches=3, max_latency_ms=9)
        def test_it(accelbench):
            accelbench(len, launches=4)
    """
    project.run("--strict-markers", source=source).assert_outcomes(passed=1)
    assert (project.asked[0]["launches"], project.asked[0]["seed"]) == (4, 7)


def test_a_test_that_measures_twice_names_what_it_measures(project):
    source = """
        def test_it(accelbench):
            accelbench(len)
            accelbench(max, name="second")
            accelbench(min)
    """
    done = project.run(source=source)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["A test that measures more than once says what it measures.*"])
    assert [asked["name"] for asked in project.asked] == [NAME, "second"]
    done.stdout.fnmatch_lines(["2 runs in *"])


def test_parameters_are_part_of_the_name_as_one_word(project):
    source = """
        import pytest

        @pytest.mark.parametrize("size", ["1, 2"])
        def test_it(accelbench, size):
            accelbench(len)
            accelbench("bert-tiny")
    """
    project.run(source=source).assert_outcomes(passed=1)
    assert [asked["name"] for asked in project.asked] == [f"{NAME}[1_2]", None]


def test_what_is_measured_in_place_is_not_kept(project):
    done = project.run("--accelbench-label", "pr", arguments="isolate=False, max_latency_ms=9")
    done.assert_outcomes(passed=1)
    assert {"db", "label", "launches"}.isdisjoint(project.asked[0])
    done.stdout.no_fnmatch_line("* in *.duckdb")
    done = project.run(arguments="isolate=False, baseline='main'")
    done.stdout.fnmatch_lines(["isolate=False keeps no results, of which none is compared with*"])


PLAIN = CALL.format(arguments="") + "\n    def test_plain(): pass\n"


@pytest.mark.parametrize(("words", "passed"), [("accelbench", 1), ("not accelbench", 1)])
def test_tests_that_measure_are_chosen_by_their_mark(project, words, passed):
    done = project.run("-m", words, "--strict-markers", source=PLAIN)
    done.assert_outcomes(passed=passed, deselected=1)
    assert bool(project.asked) is (words == "accelbench")


def test_a_run_that_measures_nothing_shows_nothing(project):
    done = project.run("-m", "not accelbench", source=PLAIN)
    done.stdout.no_fnmatch_line("*= accelbench =*")
    assert not (project.pytester.path / "accelbench.duckdb").exists()


@pytest.mark.parametrize(
    ("body", "warnings"), [("pass", 1), ("assert not 1", 0), ("accelbench(len)", 0)]
)
def test_a_test_that_never_measured_is_warned_of(project, body, warnings):
    done = project.run(source=f"def test_it(accelbench):\n    {body}\n")
    done.assert_outcomes(**{"failed" if "not" in body else "passed": 1}, warnings=warnings)
    told = "It never called its fixture accelbench: nothing was measured." in done.stdout.str()
    assert told == bool(warnings)


def test_nothing_is_measured_beside_other_tests(project, monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    done = project.run("-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*measures nothing beside other tests: run it with -n 0*"])
    project.run("--accelbench-parallel").assert_outcomes(passed=1)


def test_the_database_is_the_one_that_is_named_nearest(project, monkeypatch):
    folder = project.pytester.path
    monkeypatch.setenv("ACCELBENCH_DB", "environment.duckdb")
    project.run()
    project.pytester.makeini("[pytest]\naccelbench_db = set/up.duckdb\n")
    (folder / "set").mkdir()
    project.run()
    project.run("--accelbench-db", "option.duckdb")
    project.run("--accelbench-db", "option.duckdb", arguments="db='call.duckdb'")
    names = ("environment", "set/up", "option", "call")
    assert [asked["db"] for asked in project.asked] == [str(folder / f"{n}.duckdb") for n in names]


def test_a_run_is_compared_with_a_baseline_and_no_outcome_changes(project):
    project.stored("before", 1.0, day=1, label="main")
    project.factor = 3.0
    done = project.run("--accelbench-compare=main")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        ["*- accelbench: against main -*", "run-1 against main, on lab*", "Worse than*: 1 worse."]
    )
    done = project.run("test_it.py", "--accelbench-compare")
    done.stdout.fnmatch_lines(["run-2 against earlier runs, on lab*", "*24 → 24*"])


def test_a_comparison_that_has_nothing_before_says_so(project):
    project.stores = True
    done = project.run("test_it.py", "--accelbench-compare")
    done.stdout.fnmatch_lines(["Can't tell: None of it was measured before."])
    done = project.run("--accelbench-compare=mian")
    done.stdout.fnmatch_lines(["Can't tell: There is no file, run, label or branch 'mian'.*"])


@pytest.mark.parametrize(
    ("words", "setting", "says"),
    [
        (("--accelbench-compare", "test_it.py"), "", "*took 'test_it.py' for a baseline*"),
        (("--accelbench-compare", "."), "", "*took '.' for a baseline*"),
        ((), "accelbench_cant_tell = pass", "*takes warn, fail or skip, not 'pass'*"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(project, words, setting, says):
    project.pytester.makeini(f"[pytest]\n{setting}\n")
    done = project.run(*words)
    assert done.ret is pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([says])


REAL = """
    import sys

    def product(x):
        return x * 3

    def test_before():
        assert not {name for name in sys.modules if name.startswith("accelbench.")} - {
            "accelbench.pytest_plugin", "accelbench.pytest_plugin.plugin",
        }

    def test_it(accelbench):
        result = accelbench(
            product, (7,), max_latency_ms=1e4, launches=1, iterations=20, warmup=1, threads=1
        )
        assert result.ok
"""


def test_an_installed_plugin_measures_and_reports_through_other_processes(pytester, monkeypatch):
    """Its entry point as the project declares it; pytest-xdist; a real measurement."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (points,) = project["entry-points"]["pytest11"].items()
    installed = pytester.mkdir("installed")
    info = installed / "declared-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{' = '.join(points)}\n")
    monkeypatch.setenv("PYTHONPATH", f"{installed}:{ROOT / 'src'}")
    monkeypatch.delenv("ACCELBENCH_DB", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    # As a new project is set up: no search path leads to the file of its tests.
    pytester.makeini("[pytest]\naddopts = --import-mode=importlib\n")
    pytester.mkdir("checks")
    file = pytester.makepyfile(test_it=REAL)
    file.rename(pytester.path / "checks" / "test_it.py")
    quick = ("-p", "no:hypothesispytest", "-p", "no:anyio")  # seconds to import
    done = pytester.runpytest_subprocess(*quick, "-n1", "--accelbench-parallel", timeout=120)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        [
            "checks/test_it.py::test_it python/cpu:0 fp32 batch 1*calls/s* 1  *10000 ms*",
            "1 run in *",
        ]
    )
    rows = open_store(str(pytester.path / "accelbench.duckdb")).results()
    assert [row["model"] for row in rows] == ["checks/test_it.py::test_it"]
    without = pytester.runpytest_subprocess(*quick, "-p", "no:accelbench", "-k", "before")
    without.assert_outcomes(passed=1, deselected=1)


def test_what_is_shown_is_escaped(project):
    project.changes = {"model": "mine\x1b[31m"}
    done = project.run()
    assert "mine<U+001B>[31m" in done.stdout.str()
