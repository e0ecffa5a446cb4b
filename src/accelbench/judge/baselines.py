"""Both sides of a check: a stored run, a file, or the arms of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.devices import disambiguate_devices
from accelbench.core.errors import UsageError
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import Json, Row
from accelbench.core.unusable_reasons import COMPARABLE, REASON_COLUMNS
from accelbench.exchange.baselines import BaselineFile, read_baseline
from accelbench.judge.arms import checked_arms, names_of_arms
from accelbench.judge.comparison import REFUSED
from accelbench.judge.filters import Filters, catalogued, marks, one_of, where_of
from accelbench.judge.machines import chosen, machine_of
from accelbench.judge.older_runs import NOISE, RERUN_OF, histories_on
from accelbench.judge.regressions import MISSING, Check, Rules, checked
from accelbench.judge.run_names import harmless, labels_of, runs_meant
from accelbench.judge.run_noise import Histories
from accelbench.judge.stored_results import filled, no_lake_in, of_machine, rows_of, runs_of
from accelbench.judge.suggestions import (
    NothingMeasuredError,
    command_again,
    none_found,
    nothing,
    refuse_unknown,
)
from accelbench.judge.verdicts import METRICS
from accelbench.store.places import parse_place

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine
    from accelbench.judge.regressions import Check
    from accelbench.store.database import Database


#: What may be compared with each other although it is not alike.
ALLOWED = (*REFUSED, "machine", MISSING)
#: What another machine has of its own.
_OF_A_MACHINE = frozenset({"device_name", "threads"})

COLUMNS = (
    *CONFIGURATION_COLUMNS,
    *(
        "result_id",
        "family",
        "case_id",
        "series_key",
        "run_id",
        "launch",
        "status",
        "reason",
        "message",
        "device",
    ),
    *("provenance", "emulated", "started_at"),
    *(column for metric in METRICS for column in metric.columns),
    *(name for name in REASON_COLUMNS if name not in {c for m in METRICS for c in m.columns}),
    *("weights_digest", "workarounds"),
    *("conditions", "effective_sample_count", "device_fingerprint"),
    *("verification", "verification_error", "self_check"),
)
#: What helps where the baseline has nothing to say.
_ANOTHER = "Name another --baseline."
_FILES = (".csv", ".json")
_DATABASES = (".duckdb", ".db")

Rows = Sequence[Row]


#: What the runs are called that were made before those that are checked.
EARLIER = "earlier runs"


class OtherMachineError(UsageError):
    """The baseline is of another machine."""


@dataclass(frozen=True)
class BaselineQuery:
    """What of the database is checked."""

    filters: Filters
    runs: tuple[str, ...] = ()
    machine: str | None = None
    allow: tuple[str, ...] = ()


@dataclass(frozen=True)
class Baseline:
    """Both sides, and what is known of them."""

    name: str
    machine: str  # of now
    runs: tuple[str, ...]  # of now
    labels: Mapping[str, str]
    now: Rows
    before: Rows
    told: frozenset[str]
    untold: tuple[str, ...]
    allow: tuple[str, ...]
    older: Histories
    notes: tuple[str, ...] = ()  # what the baseline does not say, or is not alike in all

    def check(self, threshold: float | None) -> Check:
        columns = self.told - _OF_A_MACHINE if "machine" in self.allow else self.told
        rules = Rules(columns, self.untold, threshold, self.allow, self.older)
        return checked(self.now, self.before, rules)

    def about(self, threshold: float | None) -> dict[str, object]:
        """What a reader has to know of the check, in plain values."""
        return {
            "baseline": harmless(self.name),
            "runs": list(self.runs),
            "labels": dict(self.labels),
            "machine": self.machine,
            "threshold": threshold,
            "notes": list(self.notes),
        }


def baseline_for(database: Database, word: str | None, sought: BaselineQuery) -> Baseline:
    """Read both sides.

    Args:
        word: a file; else a run's id, a label or a branch of this database. None: what was measured
            before the runs that are checked, which are named then.

    Raises:
        NothingMeasuredError: a side has no results.
        UnknownRunError: no run is called so.
        OtherMachineError: the baseline is of another machine, which nobody has allowed.
        UsageError: a word is off.
    """
    if word is None:
        with database.keep_open():
            return _both_sides(database, EARLIER, None, sought, earlier=True)
    path = Path(word).expanduser()
    read = read_baseline(path) if _is_file(path) else None
    other = _other_database(word, path) if _is_database(path) else None
    # Nobody can write into what is asked, and another database may be this one by another name.
    with database.keep_open() if other is None else nullcontext():
        return _both_sides(database, word, other if read is None else read, sought)


def baseline_of_run(database: Database, run: str, sought: BaselineQuery) -> Baseline:
    """Read both sides, of which the baseline is a run of this database, whatever it is called.

    For who takes words from an address: one that is a path, or a URL, opens no file here.
    """
    with database.keep_open():
        return _both_sides(database, run, None, sought)


def _both_sides(
    database: Database,
    word: str,
    elsewhere: BaselineFile | Database | None,
    sought: BaselineQuery,
    *,
    earlier: bool = False,
) -> Baseline:
    where, values = where_of(sought.filters)
    with database.keep_open():
        theirs = (
            []
            if elsewhere is not None or earlier
            else runs_meant(database, word, "file, run, label or branch")
        )
        runs = runs_of(database, where, values)
        if not runs:
            raise none_found(database, sought.filters)
        refuse_unknown(database, sought.filters, has_results=True)
        ours = _runs_of_now(database, runs, word, theirs, sought)
        machine, on_it, _ = of_machine({run: runs[run] for run in ours}, sought.machine)
        now = _rows(database, where, values, on_it)
        if earlier:
            out = {*on_it, *_runs_of_checks(database)}
            begun = min(runs[run][1] for run in on_it)
            theirs = [run for run, (_, moment) in runs.items() if run not in out and moment < begun]
            if not theirs:
                raise NothingMeasuredError("None of it was measured before.", _ANOTHER)
    told, untold = frozenset(CONFIGURATION_COLUMNS), tuple[str, ...]()
    if isinstance(elsewhere, BaselineFile):
        told, untold = elsewhere.stated, elsewhere.omitted
        before, notes = _of_file(word, elsewhere, machine, sought)
        if set(on_it) <= {str(row.get("run_id")) for row in before}:
            raise NothingMeasuredError(
                f"{word} is of what would be checked, {', '.join(on_it)}, itself.", _ANOTHER
            )
    elif elsewhere is not None:
        before, notes = _of_database(elsewhere, word, None, on_it, machine, sought)
    else:
        before, notes = _of_database(database, word, theirs, on_it, machine, sought)
    if not before:
        raise NothingMeasuredError(f"{word} has nothing of what was asked for.", _ANOTHER)
    with database.keep_open():
        # A change would be part of the noise that it is compared with: runs of now are left out.
        older = histories_on(database, now, machine, on_it)
        labels = labels_of(database, on_it)
    now, before = disambiguate_devices(now, before), disambiguate_devices(before, now)
    return Baseline(
        word, str(machine), tuple(on_it), labels, now, before, told, untold, sought.allow, older,
        tuple(notes),
    )  # fmt: skip


def rows_of_runs(database: Database, runs: Sequence[str]) -> Rows:
    """All that whole runs came to."""
    where, values = where_of({})
    return _rows(database, where, values, runs)


def _runs_of_now(
    database: Database,
    runs: Mapping[str, tuple[Machine, str]],
    baseline: str,
    theirs: Sequence[str],
    sought: BaselineQuery,
) -> list[str]:
    """Those that were named, else the newest measured one that is not the baseline's."""
    run_ids: list[str] = []
    for word in sought.runs:
        run_ids += runs_meant(database, word)
    if sought.runs:
        if not set(run_ids) & set(runs):
            message = f"Run {', '.join(sought.runs)} has no results of what was asked for"
            raise nothing(message, {**sought.filters, "run_id": run_ids}, database)
        return [run for run in dict.fromkeys(run_ids) if run in runs]
    if sought.machine is not None:
        chosen({machine: "" for machine, _ in runs.values()}, sought.machine)
    out = {*theirs, *_runs_of_checks(database)}
    left = {
        run: about
        for run, about in runs.items()
        if run not in out and _may_be_now(about[0], sought.machine)
    }
    if not left:
        message = f"{database.name} has no measured run beside {baseline}"
        raise nothing(message, sought.filters, database)
    return [max(left, key=lambda run: (left[run][1], run))]


def _runs_of_checks(database: Database) -> list[str]:
    """Runs that a check made for itself, of which nobody asks whether anything became worse."""
    _, rows = database.query(
        "SELECT run_id FROM benchmark_runs WHERE label = ? OR starts_with(label, ?)",
        [NOISE, RERUN_OF],
    )
    return [str(run) for (run,) in rows]


def _may_be_now(machine: Machine, word: str | None) -> bool:
    return not machine.elsewhere if word is None else machine.answers(word)


def _of_file(
    path: str, read: BaselineFile, machine: Machine, sought: BaselineQuery
) -> tuple[Rows, list[str]]:
    notes = []
    if read.environment is None:
        notes.append(f"{path} does not say which machine it is of: it is taken for this one.")
    elif (theirs := machine_of("", read.environment)) != machine:
        notes += _of_another(theirs, machine, sought)
    untold = dict.fromkeys([*sorted(set(CONFIGURATION_COLUMNS) - read.stated), *read.omitted])
    if untold:
        notes.append(f"{path} does not say {', '.join(untold)}.")
    rows = [{**row, "model": catalogued(str(row.get("model")))} for row in read.rows]
    wanted = {n: set(values) for n, values in sought.filters.items() if n in read.stated}
    kept = [row for row in rows if all(row.get(n) in values for n, values in wanted.items())]
    return kept, notes


def _of_another(theirs: Machine, ours: Machine, sought: BaselineQuery) -> list[str]:
    message = f"The baseline is of {theirs}, what is checked is of {ours}"
    if "machine" in sought.allow:
        return [f"{message}."]
    advice = "--allow machine compares them with each other all the same."
    raise OtherMachineError(f"{message}.", advice)


def names_a_file(word: str) -> bool:
    """Return whether a word for a baseline means a file, a database or a lake."""
    path = Path(word).expanduser()
    return _is_file(path) or _is_database(path)


def _is_file(path: Path) -> bool:
    """A file of results, by its name or because it is there."""
    return path.suffix.lower() in _FILES or (path.is_file() and not _is_database(path))


def _is_database(path: Path) -> bool:
    return path.suffix.lower() in _DATABASES or parse_place(path) is not None


def _other_database(word: str, path: Path) -> Database:
    """Another database or lake, filled.

    Raises:
        UsageError: there is none at what the word names.
    """

    from accelbench.store.opening import open_store

    if open_store(word).exists:
        return filled(Path(word))
    if path.is_dir():
        raise UsageError(no_lake_in(path.absolute(), "--baseline"), _ANOTHER)
    kind = "database" if parse_place(word) is None else "lake"
    raise UsageError(f"There is no {kind} at {word}.", _ANOTHER)


def _of_database(
    database: Database,
    word: str,
    named: Sequence[str] | None,
    on_it: Sequence[str],
    machine: Machine,
    sought: BaselineQuery,
) -> tuple[Rows, list[str]]:
    """Rows of another database, or of the runs of this one that were named."""
    where, values = where_of(sought.filters)
    with database.keep_open():
        if named is not None:
            where, values = f"{where} AND run_id IN ({marks(named)})", [*values, *named]
        # Runs of now are no baseline: another database may be a copy of this one.
        candidates = runs_of(database, where, values)
        runs = {run: about for run, about in candidates.items() if run not in on_it}
        if not runs:
            message = f"{word} has nothing of what was asked for, but what is checked."
            raise NothingMeasuredError(message, _ANOTHER)
        same = [run for run, (owner, _) in runs.items() if owner == machine]
        if same:
            return _rows(database, where, values, same, newest=True), []
        theirs, others, _ = of_machine(runs, None)
        rows = _rows(database, where, values, others, newest=True)
    return rows, _of_another(theirs, machine, sought)


def _rows(
    database: Database,
    where: str,
    values: Sequence[object],
    runs: Sequence[str],
    *,
    newest: bool = False,
) -> Rows:
    """Rows of runs; of many, of each case those of its newest run."""
    condition = f"{where} AND coalesce(run_id, '') IN ({marks(runs)})"
    if newest:
        condition += (
            " QUALIFY coalesce(run_id, '') ="
            " arg_max(coalesce(run_id, ''), coalesce(started_at, 'epoch'))"  # some say no moment
            " OVER (PARTITION BY case_id, device_fingerprint, threads)"
        )
    return rows_of(database, COLUMNS, condition, [*values, *runs], launches=True)


#: How a baseline is measured that a check can judge by.
_AS_BASELINE = f" --launches {FEWEST_LAUNCHES} --label baseline"
_MEASURED = f"provenance IN ({', '.join(repr(kind.value) for kind in COMPARABLE)})"


def check_of_arms(
    database: Database, sought: BaselineQuery, columns: Sequence[str], threshold: float | None
) -> tuple[Check, dict[str, object]]:
    """Hold the arms of a run against each other.

    Args:
        sought: which run, else the newest one with arms; which of its questions; what may differ.
        threshold: what a change has to exceed at least, as a share.

    Raises:
        UsageError: there is none, or what was named has no arms.
    """
    with database.keep_open():
        run = _run_with_arms(database, sought)
        where: list[str] = [f"{_MEASURED} AND run_id = ?"]
        values: list[object] = [run]
        for column, wanted in sought.filters.items():
            where.append(one_of(column, wanted))
            values += wanted
        rows = disambiguate_devices(
            rows_of(database, [*columns, "arm"], " AND ".join(where), values, launches=True)
        )
        labels = labels_of(database, [run])
        environment = _environment(database, run)
    names = names_of_arms(rows)
    if not names:
        raise _nothing(database, sought)
    about: dict[str, object] = {
        "baseline": harmless(names[0]),
        "runs": [run],
        "labels": labels,
        "machine": str(machine_of(run, environment)),
        "threshold": threshold,
        "notes": [],
    }
    return checked_arms(rows, threshold, sought.allow), about


def _run_with_arms(database: Database, sought: BaselineQuery) -> str:
    """The newest of those that were named, or of all."""
    condition, values = "coalesce(arm, '') <> ''", list[object]()
    if sought.runs:
        named = [run for word in sought.runs for run in runs_meant(database, word)]
        condition += f" AND {one_of('run_id', named)}"
        values += named
    _, rows = database.query(
        f"SELECT run_id FROM benchmark_results WHERE {condition}"  # noqa: S608 — our columns
        " ORDER BY started_at DESC, run_id DESC LIMIT 1",
        values,
    )
    if not rows:
        raise _nothing(database, sought)
    return str(rows[0][0])


def _nothing(database: Database, sought: BaselineQuery) -> UsageError:
    """Return the error of a check without a baseline, with the command that measures one."""
    both = "or measure both sides in one run: add --against commit:REVISION."
    with database.keep_open():
        refuse_unknown(database, sought.filters)
        measure = command_again(database, sought.filters)
    if not measure:
        return UsageError("There is nothing to check against.", f"Name a --baseline, {both}")
    return UsageError(
        "There is nothing to check against.",
        f"Name a --baseline. To measure one before a change: `{measure}{_AS_BASELINE}`, after which"
        f" --baseline baseline names it; {both}",
    )


def _environment(database: Database, run: str) -> Json | None:
    import json

    _, rows = database.query(
        "SELECT environment::VARCHAR FROM benchmark_runs WHERE run_id = ?", [run]
    )
    record: Json | None = json.loads(str(rows[0][0])) if rows and rows[0][0] else None
    return record
