"""Planning, running, delivering and ending `accelbench run`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import typer

from accelbench.cli.services.against import against_of, exit_code, held, other_of
from accelbench.cli.services.forecasting import outlook
from accelbench.cli.services.opening import typed_command
from accelbench.cli.services.run_request import AskedRun
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_NO, EXIT_OK, SurroundingsError, UsageError
from accelbench.core.facts import RUN_STARTED, new_run_id
from accelbench.core.protocols import Absent, Device, Inventory, Runtime
from accelbench.core.run_options import RunSpec
from accelbench.evidence.launches import launches_of
from accelbench.exchange import profile_schema
from accelbench.exchange.prices import Prices, load_prices
from accelbench.exchange.writing import resolve_inside
from accelbench.hardware.machine import busy_warning, take_snapshot
from accelbench.predict.roofline import simulated
from accelbench.present.terminal.terminal import complain, print_line, print_lines
from accelbench.present.terminal.watch import watch_for
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun, RunResult
from accelbench.run.conduct.run_record import SUFFIX as LOG
from accelbench.run.conduct.run_record import recorded
from accelbench.run.execute import execute, go_on
from accelbench.run.plan import expand
from accelbench.run.plan.automatic import is_automatic, plan_chosen
from accelbench.run.plan.request import Plan, Request, joined, refuse_unused, united
from accelbench.run.plan.targets import (
    NAMED,
    MissingTarget,
    lacking,
    missing_places,
    named_by,
    nothing_measured,
)
from accelbench.run.process.worker_client import Observer
from accelbench.store.database import Database
from accelbench.store.journal import BARE_JOURNALS, SUFFIX, journal_path, read
from accelbench.store.opening import open_store

if TYPE_CHECKING:
    from accelbench.judge.regressions import Check
    from accelbench.recommend.selector import HardwareSelector
    from accelbench.run.conduct.lifecycle import RunResult


def comparisons(
    rows: Sequence[Mapping[str, Any]], prices: Prices | None, started: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Of a run's own results, by axis."""
    from accelbench.judge.comparison import along_every_axis
    from accelbench.judge.costs import with_costs
    from accelbench.judge.machines import machine_of

    run = str(started["run_id"])
    priced = with_costs(rows, prices, {run: machine_of(run, started.get("environment"))})
    return along_every_axis([row for row in launches_of(priced) if row["comparable"]])


def document_of_comparisons(by_axis: Mapping[str, Any], prices: Prices | None) -> dict[str, Any]:
    """The same in plain JSON."""
    from accelbench.judge.questions import AXES
    from accelbench.present.comparison import document

    return {name: document(lines, AXES[name], prices) for name, lines in by_axis.items()}


def print_comparisons(by_axis: Mapping[str, Any], prices: Prices | None, stream: IO[str]) -> None:
    """The tables."""
    from accelbench.judge.questions import AXES
    from accelbench.present.terminal.compare import comparison
    from accelbench.present.terminal.documents import show

    if not by_axis:
        print_lines(
            ("", "Nothing to compare: nothing was measured at two values of one axis."), stream
        )
    for name, lines in by_axis.items():
        print_line(stream=stream)
        show(comparison(lines, AXES[name], {}, prices), stream)


@dataclass
class ProfileFiles:
    """Writes each profile as it comes, and says where."""

    output_dir: Path
    written: list[tuple[str, Path]]

    def __call__(self, profile: Mapping[str, Any], record: Path | None) -> None:
        folder = resolve_inside(self.output_dir, profile_schema.FOLDER)
        first, *beside = profile_schema.write_profile(folder, profile, record)
        self.written.append(("Profile", first))
        self.written += [("Profiler's record", path) for path in beside]


@dataclass(frozen=True)
class OutputPlaces:
    """Where results go."""

    database: Path | None = None
    use_database: bool = True
    output_dir: Path | None = None
    csv_dir: Path | None = None  # for the guide's CSV only
    output_ci: Path | None = None
    report: bool = False  # of the run, when it has ended
    prices: Prices | None = None  # by which it, and what is compared, says costs
    profiles: list[tuple[str, Path]] = field(default_factory=list)  # written as the run goes on
    command: tuple[str, ...] = ("accelbench", "run")  # that goes on with a run

    def keep_profiles(self) -> ProfileFiles | None:
        return ProfileFiles(self.output_dir, self.profiles) if self.output_dir else None

    def open_database(self) -> Database | None:
        return open_store(self.database) if self.use_database else None

    def journals(self) -> Path:
        database = self.open_database()
        return database.journals if database else BARE_JOURNALS.absolute()

    def resume_hint(self, run_id: str) -> str:
        return resume_hint(run_id, self)

    def check(self) -> None:
        """Refuse before measuring what could not be written afterwards."""
        if self.report:
            from accelbench.cli.services.report_files import refuse_undrawable

            refuse_undrawable()
        if self.output_ci is not None and self.output_ci.exists():
            raise UsageError(
                f"{self.output_ci} already exists.", "Name another file, or remove it."
            )
        parent = self.output_ci.parent if self.output_ci else None
        for folder in (self.output_dir, self.csv_dir, parent):
            if folder is not None:
                _try_writing(folder)
        if self.output_dir is not None:
            from accelbench.exchange import tree

            tree.refuse_links(self.output_dir)
        database = self.open_database()
        if database is not None:
            database.ensure()


def places_of(spec: RunSpec) -> OutputPlaces:
    """Return where the results of a run go."""
    return OutputPlaces(
        database=None if spec.no_database else spec.db,
        use_database=not spec.no_database,
        output_dir=spec.output_dir,
        output_ci=spec.output_ci,
        report=spec.create_report,
        prices=load_prices(spec.prices) if spec.compare or spec.create_report else None,
    )


def _selector(places: OutputPlaces) -> HardwareSelector:
    """Return the selector for --hardware auto, with the run's database as its evidence."""
    from accelbench.recommend.selector import HardwareSelector

    database = places.open_database()
    # The usual one may well be missing, and nobody has named it.
    usable = database is not None and (database.exists or places.database is not None)
    return HardwareSelector(database_path=database.name if database and usable else None)


def prepare(
    asked: AskedRun, places: OutputPlaces, inventory: Inventory, runtimes: Mapping[str, Runtime]
) -> PlannedRun:
    """Plan on what is here: everything decided before the first case."""
    selector_here = cache(lambda: _selector(places))

    def chosen(request: Request) -> Plan:
        if not is_automatic(request):
            return expand.plan_for(request, inventory, runtimes)
        from accelbench.recommend.selector import LocalSelector

        here = LocalSelector(selector_here(), inventory, selector_here().database)
        plan, _ = plan_chosen(request, here.found, runtimes, here.select_hardware)
        return plan

    def planned(requests: Sequence[Request]) -> Plan:
        if any(map(is_automatic, requests)):
            plan = joined(map(chosen, requests))
        else:
            plan = expand.plan_of(requests, inventory, runtimes)
        cases = [entry.case for entry in plan.cases]
        refuse_unused(united(requests), cases, asked.given, asked.spec.weights)
        plan = Plan(plan.cases, (*asked.notes, *plan.notes))
        if asked.spec.limit is None or len(plan.cases) <= asked.spec.limit:
            return plan
        left_out = len(plan.cases) - asked.spec.limit
        note = f"{left_out} cases are left out by --limit {asked.spec.limit}."
        return Plan(plan.cases[: asked.spec.limit], (*plan.notes, note))

    against = against_of(asked.spec.against)
    requests = asked.parts
    plan, settings = planned(requests), asked.spec.with_values(run_id=new_run_id())
    other = other_of(against, requests, settings, plan, planned)
    about = {
        "command": typed_command(),
        "label": asked.spec.label,
        "names": dict(asked.names),
        NAMED: named_by(requests, asked.precisions, inventory, runtimes),
        **({"plan_files": asked.plans.about} if asked.plans.about else {}),
    }
    return PlannedRun(plan, settings, runtimes, about, simulated, other)


def new_run(asked: AskedRun, places: OutputPlaces, stream: IO[str], quiet: bool) -> RunResult:
    """Plan and run; the results are in the database when this returns."""
    with recorded() as log:

        def observe(spec: PlannedRun, inventory: Inventory, here: Mapping[str, Any]) -> Observer:
            run_id, shown = spec.settings.run_id, watch_for(stream, quiet)
            watch = log.of_run(places.journals(), run_id, shown, here, typed_command())
            watch.devices(_concerned(asked.parts, spec.plan, inventory))
            for note in spec.plan.notes:
                watch.note(note)
            total = spec.measurements
            busy = busy_warning(take_snapshot())
            if busy is not None and total:
                watch.note(busy)
            expected = outlook(spec, places.open_database(), fit=False)
            for note in expected.notes:
                watch.note(note)
            if expected.seconds.predicted:
                watch.note(f"how long it takes is {expected.rests_on}.")
            watch.started(run_id, total, (expected.seconds.low, expected.seconds.high))
            return watch

        (made,) = execute(lambda *here: [prepare(asked, places, *here)], places, observe)
        return made.result


def resume_run(run_id: str, places: OutputPlaces, stream: IO[str], quiet: bool) -> RunResult:
    """Go on with a run that was cut off."""
    folder = places.journals()
    if run_id == "last":
        run_id = lifecycle.last_unfinished(folder) or ""
        if not run_id:
            raise UsageError(f"No run in {folder} was cut off.", "Start a new one.")
    shown = watch_for(stream, quiet)
    if journal_path(folder, run_id).is_file():
        places.check()  # a run that is not there must not bring a database about
        shown.say(f"Resuming run {run_id}")
    with recorded() as log:

        def observe(here: Mapping[str, Any]) -> Observer:
            return log.of_run(folder, run_id, shown, here, typed_command())

        return go_on(run_id, places, observe, simulated)


def deliver(
    ended: RunResult,
    places: OutputPlaces,
    stream: IO[str],
    spec: RunSpec,
    lacks: Sequence[MissingTarget] = (),
) -> Check | None:
    """Write files, the table, every path and the JSON document; return the check of arms."""
    from accelbench.engines.shared.names import BOTH
    from accelbench.exchange.result_file import to_row
    from accelbench.present.check import presented
    from accelbench.present.terminal.documents import show
    from accelbench.present.terminal.summary import (
        accuracies,
        print_frameworks,
        print_profiles,
        print_summary,
        told,
        total_line,
        trust,
        warning_lines,
    )

    journal = places.journals() / f"{ended.run_id}{SUFFIX}"
    written = _stored(ended, places, journal)
    if not ended.interrupted:
        written += _result_files(ended, places, journal)
    written += places.profiles
    rows = [to_row(row) for row in ended.rows] if spec.as_json or spec.compare else []
    by_axis = comparisons(rows, places.prices, started_of(journal)) if spec.compare else {}
    arms = held(ended.rows, started_of(journal), spec.threshold)
    check = arms[0] if arms else None
    verdicts = presented(*arms) if arms else None
    if spec.as_json:
        document = {
            "run_id": ended.run_id,
            "status": "interrupted" if ended.interrupted else "finished",
            "results": rows,
            "warnings": told(ended.rows),
            **(
                {"unmeasured": [asdict(missing_target) for missing_target in lacks]}
                if lacks
                else {}
            ),
            **({"profiles": ended.profiles} if ended.profiles else {}),
            **(
                {"comparisons": document_of_comparisons(by_axis, places.prices)}
                if spec.compare
                else {}
            ),
            **({"against": verdicts.data()} if verdicts else {}),
        }
        sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
        sys.stdout.flush()
    if ended.interrupted:
        # On standard error: the reader of standard output may be what went away.
        print_line(f"Interrupted. {resume_hint(ended.run_id, places)}", sys.stderr)
    if spec.quiet:
        return check
    if not spec.as_json:
        print_line(stream=stream)
        print_summary(ended.rows, stream)
        print_frameworks(ended.rows, stream, BOTH)
        worth = accuracies(ended.rows)
        print_lines(("", *worth) if worth else (), stream)
        for line in trust(ended.rows):
            print_lines(("", line), stream)
        print_profiles(ended.profiles, stream)
        if spec.compare:
            print_comparisons(by_axis, places.prices, stream)
        if verdicts:
            print_line(stream=stream)
            show(verdicts, stream)
    warned = list(warning_lines(ended.rows))
    print_lines(("", *warned) if warned else (), stream)
    total = total_line(ended.rows, ended.tally.counts)
    print_lines(("", total, *(f"{what}: {path}" for what, path in written)), stream)
    return check


def _stored(ended: RunResult, places: OutputPlaces, journal: Path) -> list[tuple[str, Path | str]]:
    database, log = places.open_database(), journal.with_suffix(LOG)
    paths: list[tuple[str, Path | str]] = [] if database is None else [("Database", database.name)]
    failed = not ended.tally.all_fine and log.is_file()
    return [*paths, ("Journal", journal), *([("Log", log)] if failed else [])]


def started_of(journal: Path) -> Mapping[str, Any]:
    """What the run said of itself when it began."""
    body: Mapping[str, Any] = next(f.body for f in read(journal) if f.kind == RUN_STARTED)
    return body


def _result_files(ended: RunResult, places: OutputPlaces, journal: Path) -> list[tuple[str, Path]]:
    from accelbench.exchange import result_file, tree

    wanted = (places.output_dir, places.csv_dir, places.output_ci)
    if not any(wanted) and not places.report:
        return []
    started = started_of(journal)
    written: list[tuple[str, Path]] = []
    folder = places.output_dir
    if folder is not None:
        written += tree.write_output(folder, started, ended.rows)
    if places.csv_dir is not None:
        written.append(
            ("Results saved to", tree.write_guide_csv(places.csv_dir, started, ended.rows))
        )
    if places.output_ci is not None:
        result_file.write_result_file(places.output_ci, started, ended.rows)
        written.append(("CI file", places.output_ci))
    if places.report:
        from accelbench.cli.services.report_files import report_of_run

        written += report_of_run(started, ended.rows, places.open_database(), folder, places.prices)
    return written


def resume_hint(run_id: str, places: OutputPlaces) -> str:
    """The command that goes on with a run."""
    where = []
    if not places.use_database:
        where = ["--no-database"]
    elif places.database is not None:
        where = ["--db", str(places.database)]
    if places.output_dir is not None:
        where += ["--output-dir", str(places.output_dir)]
    if places.output_ci is not None:
        where += ["--output-ci", str(places.output_ci)]
    where += ["--create-report"] if places.report else []
    where += ["--prices", str(places.prices.path)] if places.prices else []
    return "Go on with: " + shlex.join([*places.command, "--resume", run_id, *where])


def _concerned(
    requests: Sequence[Request], plan: Plan, inventory: Inventory
) -> list[Device | Absent]:
    used = {p.device.fingerprint: p.device for p in plan.cases if p.device}
    absent = [
        entry
        for name in dict.fromkeys(name for request in requests for name in request.hardware)
        for entry in inventory.get(name.partition(":")[0], ())
        if isinstance(entry, Absent)
    ]
    return [*used.values(), *absent]


def _try_writing(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".accelbench-can-write"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SurroundingsError(
            f"Results cannot be written to {folder}: {error.strerror}.",
            "Choose a folder that can be written.",
        ) from error


#: What a shell reports for a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130


def finish(
    ended: RunResult,
    places: OutputPlaces,
    stream: IO[str],
    spec: RunSpec,
    passed_over: Sequence[str] = (),
) -> NoReturn:
    """Deliver what was measured, and end the program. Raises typer.Exit.

    What was `passed_over`, of a models file, was asked for and gave no result.
    """
    lacks = () if ended.interrupted else _lacks(ended, places)
    held = deliver(ended, places, stream, spec, lacks)
    if ended.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    nothing = nothing_measured(ended.rows)
    if not nothing or ended.tally.all_fine:  # else every line above says that it failed
        missing = [f"Nothing was measured {place}" for place in missing_places(lacks)]
        for line in missing or ([nothing] if nothing else []):
            complain(line)
    for text in passed_over:
        complain(f"Not measured: {text}")
    unmeasured = bool(lacks or nothing or passed_over)
    judged = exit_code(held) if held is not None and spec.threshold is not None else None
    raise typer.Exit(_exit_code(ended, unmeasured, judged))


def _lacks(ended: RunResult, places: OutputPlaces) -> list[MissingTarget]:
    started = started_of(places.journals() / f"{ended.run_id}{SUFFIX}")
    return lacking(started.get(NAMED) or {}, ended.rows)


def _exit_code(ended: RunResult, unmeasured: bool, judged: int | None) -> int:
    """Return the exit code of a run: of several that apply, the first one here."""
    if judged is not None and not unmeasured:
        return judged
    if ended.nothing_could_start:
        return EXIT_ENVIRONMENT
    if not ended.tally.all_fine:
        return EXIT_NO  # a case that failed is an answer, even if others were not measured
    return EXIT_ENVIRONMENT if unmeasured else EXIT_OK
