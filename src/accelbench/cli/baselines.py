"""What `check` holds against what: the runs of now, and the baseline that a word names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.analysis.checking import Check, checked
from accelbench.analysis.comparison import REFUSED
from accelbench.analysis.judging import METRICS, Metric
from accelbench.cli.filters import Filters
from accelbench.cli.stored import catalogued, nothing, of_machine, rows_of, runs_of, where_of
from accelbench.core.columns import ASKED
from accelbench.core.errors import UsageError
from accelbench.measure.launches import Noise, pooled_noise

if TYPE_CHECKING:
    from accelbench.analysis.machines import Machine
    from accelbench.store.database import Database

#: What may be held against each other although it is not alike.
ALLOWED = (*REFUSED, "machine")

_COLUMNS = (
    *ASKED,
    *("case_id", "series_key", "run_id", "launch", "status", "reason", "message", "device"),
    *("provenance", "emulated", "started_at", "latency_p50_ms", "latency_mean_ms"),
    *("throughput", "throughput_unit", "memory_peak_mb", "weights_digest", "workarounds"),
    "conditions",
)
#: Older runs of a series whose launches tell its noise.
_OLDER_RUNS = 20
_FILES = (".csv", ".json")
_DATABASES = (".duckdb", ".db")

Rows = Sequence[Mapping[str, Any]]
#: Runs of several launches, series by series, the newest first.
_LAUNCHES = """
SELECT series_key, {} FROM benchmark_results
WHERE series_key IN ({}) AND status = 'ok' AND provenance = 'measured' AND run_id NOT IN ({})
GROUP BY series_key, run_id HAVING count(*) > 1
QUALIFY row_number() OVER (PARTITION BY series_key ORDER BY max(started_at) DESC) <= ?
"""
#: Launches of a series: run by run the values of a metric.
Older = Mapping[str, Sequence[Mapping[str, Sequence[float]]]]


@dataclass(frozen=True)
class Sought:
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
    now: Rows
    before: Rows
    told: frozenset[str]
    allow: tuple[str, ...]
    older: Older
    notes: tuple[str, ...] = ()  # what the baseline does not say, or is not alike in all

    def check(self, threshold: float | None) -> Check:
        return checked(
            self.now,
            self.before,
            told=self.told,
            threshold=threshold,
            allow=self.allow,
            known=self._known,
        )

    def about(self, threshold: float | None) -> dict[str, Any]:
        """What a reader has to know of the check, in plain values."""
        return {
            "baseline": self.name,
            "runs": list(self.runs),
            "machine": self.machine,
            "threshold": threshold,
            "notes": list(self.notes),
        }

    def _known(self, row: Mapping[str, Any], metric: Metric) -> Noise | None:
        runs = self.older.get(str(row.get("series_key")), ())
        return pooled_noise([run[metric.name] for run in runs if len(run[metric.name]) > 1])


def baseline_for(database: Database, word: str, sought: Sought) -> Baseline:
    """Read both sides.

    Args:
        database: where what is checked lies.
        word: a file; else a run's id, a label or a branch of this database.
        sought: what is checked.
    """
    where, values = where_of(sought.filters)
    runs = runs_of(database, where, values)
    if not runs:
        raise nothing(f"{database.path} has no results of what was asked for")
    ours = _runs_of_now(database, runs, word, sought)
    machine, on_it, _ = of_machine({run: runs[run] for run in ours}, sought.machine)
    now = _rows(database, where, values, on_it)
    path = Path(word).expanduser()
    if path.suffix.lower() in _FILES or (path.is_file() and not _is_database(path)):
        before, told, notes = _of_file(path, machine, sought)
    else:
        before, notes = _of_database(database, path, word, on_it, now, machine, sought)
        told = frozenset(ASKED)
    if not before:
        raise nothing(f"{word} has nothing of what was asked for")
    older = _older(database, now, (*on_it, *{str(row.get("run_id")) for row in before}))
    return Baseline(
        word, str(machine), tuple(on_it), now, before, told, sought.allow, older, tuple(notes)
    )


def rows_of_runs(database: Database, runs: Sequence[str]) -> Rows:
    """All that whole runs came to."""
    where, values = where_of({})
    return _rows(database, where, values, runs)


def runs_named(database: Database, word: str) -> list[str]:
    """Runs by id, else by label, else by branch."""
    for column in ("run_id", "label", "git_branch"):
        _, rows = database.query(
            f"SELECT run_id FROM benchmark_runs WHERE {column} = ? ORDER BY started_at",  # noqa: S608
            [word],
        )
        if rows:
            return [str(run) for (run,) in rows]
    return []


def _runs_of_now(
    database: Database,
    runs: Mapping[str, tuple[Machine, str]],
    baseline: str,
    sought: Sought,
) -> list[str]:
    """Those that were named, else the newest measured one that is not the baseline itself."""
    if sought.runs:
        found = [run for word in sought.runs for run in runs_named(database, word) if run in runs]
        if not found:
            raise nothing(f"{database.path} has no results of run {', '.join(sought.runs)}")
        return found
    left = {
        run: about
        for run, about in runs.items()
        if run != baseline and (sought.machine or not about[0].elsewhere)
    }
    if not left:
        raise nothing(f"{database.path} has no measured run beside {baseline}")
    return [max(left, key=lambda run: (left[run][1], run))]


def _of_file(
    path: Path, machine: Machine, sought: Sought
) -> tuple[Rows, frozenset[str], list[str]]:
    from accelbench.analysis.machines import machine_of
    from accelbench.exchange.baselines import read_baseline

    read = read_baseline(path)
    notes = []
    if read.environment is None:
        notes.append(f"{path} does not say which machine it is of: it is taken for this one.")
    elif (theirs := machine_of("", read.environment)) != machine:
        notes += _of_another(theirs, machine, sought)
    untold = sorted(set(ASKED) - read.told)
    if untold:
        notes.append(f"{path} does not say {', '.join(untold)}.")
    rows = [{**row, "model": catalogued(str(row.get("model")))} for row in read.rows]
    wanted = {name: set(values) for name, values in sought.filters.items()}
    kept = [row for row in rows if all(row.get(n) in values for n, values in wanted.items())]
    return kept, read.told, notes


def _of_another(theirs: Machine, ours: Machine, sought: Sought) -> list[str]:
    said = f"The baseline is of {theirs}, what is checked is of {ours}"
    if "machine" in sought.allow:
        return [f"{said}."]
    raise UsageError(f"{said}.", "--allow machine holds them against each other all the same.")


def _is_database(path: Path) -> bool:
    return path.suffix.lower() in _DATABASES


def _of_database(
    database: Database,
    path: Path,
    word: str,
    on_it: Sequence[str],
    now: Rows,
    machine: Machine,
    sought: Sought,
) -> tuple[Rows, list[str]]:
    """Rows of another database, or of other runs of this one."""
    where, values = where_of({"model": tuple({row["model"] for row in now}), **sought.filters})
    if _is_database(path):
        from accelbench.cli.stored import filled

        database = filled(path)
        runs = runs_of(database, where, values)
    else:
        named = runs_named(database, word)
        if not named:
            raise UsageError(
                f"There is no file, run, label or branch {word!r}.",
                "accelbench db sql 'SELECT run_id, label FROM benchmark_runs' lists runs.",
            )
        there = runs_of(database, where, values)
        runs = {run: there[run] for run in named if run in there and run not in on_it}
    if not runs:
        raise nothing(f"{word} has nothing of the models that were measured now")
    same = [run for run, (one, _) in runs.items() if one == machine]
    if same:
        return _rows(database, where, values, same, newest=True), []
    theirs, others, _ = of_machine(runs, None)
    return _rows(database, where, values, others, newest=True), _of_another(theirs, machine, sought)


def _rows(
    database: Database,
    where: str,
    values: Sequence[Any],
    runs: Sequence[str],
    *,
    newest: bool = False,
) -> Rows:
    """Rows of runs; of many, of each case those of its newest run."""
    condition = f"{where} AND coalesce(run_id, '') IN ({_marks(runs)})"
    if newest:
        condition += (
            " QUALIFY coalesce(run_id, '') = arg_max(coalesce(run_id, ''), started_at)"
            " OVER (PARTITION BY case_id, device_fingerprint, threads)"
        )
    return rows_of(database, _COLUMNS, condition, [*values, *runs])


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _older(database: Database, now: Rows, apart: Sequence[str]) -> Older:
    """What launches of older runs of the same series came to; older than what is compared."""
    series = sorted({str(row["series_key"]) for row in now if row.get("series_key")})
    if not series:
        return {}
    values = ", ".join(f"list({metric.sql})" for metric in METRICS)
    _, rows = database.query(
        _LAUNCHES.format(values, _marks(series), _marks(apart)), [*series, *apart, _OLDER_RUNS]
    )
    found: dict[str, list[dict[str, list[float]]]] = {}
    for key, *lists in rows:
        known = {
            metric.name: [value for value in of_it or () if value is not None and value > 0]
            for metric, of_it in zip(METRICS, lists, strict=True)
        }
        found.setdefault(str(key), []).append(known)
    return found
