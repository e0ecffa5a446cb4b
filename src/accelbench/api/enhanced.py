"""`EnhancedHardwareBenchmarkRunner`: measure models on the hardware that suits them.

Runs are those of `accelbench run --hardware auto`, with every sample stored.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import exp, fsum, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.api.benchmark import database_at, ended_lines, observer_of, try_writing
from accelbench.api.config import check_count, check_counts, check_settings
from accelbench.core import processes
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import RUN_STARTED, new_run_id
from accelbench.core.model import ModelSpec
from accelbench.core.precision import PRECISIONS, parse_precision
from accelbench.core.protocols import Inventory, Runtime
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import FAMILIES, Mode, Status
from accelbench.engines.shared.names import runtime_named
from accelbench.exchange import result_file, tree
from accelbench.exchange.aggregate import AggregateRows, aggregate
from accelbench.exchange.result_file import to_row
from accelbench.exchange.writing import resolve_inside
from accelbench.hardware.detect import parse_platform, refuse_unknown_platform, stored_platforms
from accelbench.models.find import find, names_used
from accelbench.models.selection import choose
from accelbench.recommend import validation
from accelbench.run.conduct.lifecycle import PlannedRun, RunResult
from accelbench.run.execute import Observe, Planner, StoredResults, execute
from accelbench.run.plan import expand
from accelbench.run.plan.automatic import SelectedTarget, plan_chosen
from accelbench.run.plan.request import AUTO, AUTO_STRATEGY, STRATEGIES, Distribution, Plan, Request
from accelbench.run.process.worker_client import Observer
from accelbench.store.database import Database
from accelbench.store.files import create_temporary_folder
from accelbench.store.journal import BARE_JOURNALS, journal_path, read

if TYPE_CHECKING:
    from accelbench.fleet.session import FleetAddress
    from accelbench.recommend.selector import HardwareSelector


_VERIFY = ("auto", "require", "off")


@dataclass(frozen=True)
class BenchmarkRequest:
    """How models are to be measured.

    Attributes:
        hardware: A platform, such as 'cuda' or 'cuda:1'; None or 'auto' takes the selector's.
        batch_sizes: Items in one step; None takes 1, 8, 32 and 128, as memory allows.
        mode: 'inference' or 'training'.
        precision: 'fp32', 'fp16', 'bf16', 'int8', or as the guides spell them.
        framework: The runtime, such as 'pytorch'; None takes the platform's own, or what a
            choice rests on.
        available_hardware: Platforms that may be chosen; None: all that are here.
        sequence_length: Tokens in one item; None takes the model's own.
        iterations: Exactly so many samples; None samples until the figure is known.
        warmup: Exactly so many steps before; None until they are steady.
        launches: Fresh processes for each batch size; verdicts need five or more.
        seed: Of weights and inputs.
        verify: 'auto', 'require' or 'off': outputs against PyTorch in fp32 on the CPU.
        budget: Seconds for the whole run.
        energy: Whether energy and power are measured as well, where there is a meter.
        processes: That make each step together, each on a device of its own, on a CPU on a share
            of its cores; 1 for one process. One process is measured as well.
        strategy: How they share it: 'ddp', 'fsdp2' or 'tp'; 'auto' takes the first that fits.
        label: A name for the run.
    """

    hardware: str | None = None
    batch_sizes: Sequence[int] | None = None
    mode: str = Mode.INFERENCE.value
    precision: str = "fp32"
    framework: str | None = None
    available_hardware: Sequence[str] | None = None
    sequence_length: int | None = None
    iterations: int | None = None
    warmup: int | None = None
    launches: int = 1
    seed: int = 0
    verify: str = "auto"
    budget: float | None = None
    energy: bool = False
    processes: int = 1
    strategy: str = AUTO_STRATEGY
    label: str | None = None

    def __post_init__(self) -> None:
        self._check_places()
        self._check_words()
        self._check_amounts()

    def _check_places(self) -> None:
        names = [] if self.chosen else [str(self.hardware)]
        allowed = validation.names("available_hardware", self.available_hardware)
        if allowed == []:
            raise UsageError("available_hardware is empty.", "Name at least one, or leave it out.")
        for name in (*names, *(allowed or ())):
            refuse_unknown_platform(name)

    def _check_words(self) -> None:
        if self.mode not in tuple(Mode):
            raise UsageError(
                f"There is no mode {in_quotes(self.mode)}.", f"Modes: {', '.join(Mode)}."
            )
        parse_precision(validation.word("precision", self.precision, PRECISIONS))
        if self.framework is not None:
            runtime_named(str(self.framework), "framework")
        if self.verify not in _VERIFY:
            raise UsageError(f"verify takes {', '.join(_VERIFY)}, not {in_quotes(self.verify)}.")
        if not isinstance(self.energy, bool):
            raise UsageError(f"energy takes True or False, not {in_quotes(self.energy)}.")
        known = (AUTO_STRATEGY, *STRATEGIES)
        if self.strategy not in known:
            raise UsageError(
                f"There is no strategy {in_quotes(self.strategy)}.",
                f"Strategies: {', '.join(known)}.",
            )
        if self.label is not None:
            label = validation.word("label", self.label, advice="Use one line of text.")
            if not label.isprintable():
                raise UsageError(
                    f"The label {in_quotes(label)} has characters that cannot be shown.",
                    "Use one line of text.",
                )

    def _check_amounts(self) -> None:
        if self.batch_sizes is not None:
            check_counts("batch_sizes", self.batch_sizes, least=1)
        if self.sequence_length is not None:
            check_count("sequence_length", self.sequence_length, 1)
        for required in ("launches", "processes", "seed"):
            check_count(required, getattr(self, required), 0)
        check_settings(asdict(self))
        if self.budget is not None:
            validation.amount("budget", self.budget, "Use seconds, such as 600.")

    @property
    def chosen(self) -> bool:
        return self.hardware is None or str(self.hardware).lower() == AUTO

    def request(self, models: Sequence[ModelSpec]) -> Request:
        return Request(
            models=tuple(models),
            hardware=(AUTO if self.chosen else parse_platform(str(self.hardware)),),
            runtimes=(runtime_named(str(self.framework)),) if self.framework else (),
            batch_sizes=tuple(self.batch_sizes or ()),
            sequence_lengths=(self.sequence_length,) if self.sequence_length else (),
            precisions=(parse_precision(self.precision),),
            modes=(Mode(self.mode),),
            distribution=self.distribution,
        )

    @property
    def distribution(self) -> Distribution | None:
        return Distribution(self.processes, self.strategy) if self.processes > 1 else None

    def settings(self, run_id: str) -> RunSettings:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        known = {name: values[name] for name in RunSettings.names() if name in values}
        return RunSettings.from_dict({**known, "run_id": run_id})


def wanted(**parameters: Any) -> BenchmarkRequest:
    """How models are to be measured, by what a call says."""
    known = [field.name for field in fields(BenchmarkRequest)]
    for name in parameters:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"There is no parameter {in_quotes(name)}.", hint)
    return BenchmarkRequest(**parameters)


def model_named(name: str, family: str | None) -> ModelSpec:
    """The catalogue's model, seen to be of the family that is said."""
    spec = find(
        validation.word("model_name", name, advice="List the models with: accelbench models")
    )
    if family is None:
        return spec
    if validation.word("model_family", family, FAMILIES).replace("-", "_").lower() not in FAMILIES:
        raise UsageError(
            f"There is no model family {in_quotes(family)}.",
            f"Known families: {', '.join(FAMILIES)}.",
        )
    try:
        choose([name], categories=[family])
    except UsageError as error:
        raise UsageError(
            f"{name} is not of the family {family}: it is of {spec.family.value}.",
            "Leave model_family out: it is known from the model.",
        ) from error
    return spec


#: What draws charts may hang, as any engine.
_SECONDS = 600.0


def reported(
    page: Path, begun: Mapping[str, Any], ended: RunResult, database: Database | None
) -> Path:
    """Write it by the program itself: drawing brings an engine, which the caller need not have."""
    with create_temporary_folder() as scratch:
        source = ["--run", ended.run_id]
        if database is not None:
            source += ["--db", database.name]
        else:
            file = scratch / f"{ended.run_id}.json"
            result_file.write_result_file(file, begun, ended.rows)
            source += ["--json-path", str(file)]
        done = processes.run_python(
            "accelbench", ["report", *source, "--output", str(page)], timeout=_SECONDS
        )
    if done.returncode:
        raise SurroundingsError(
            f"The report was not written: {done.last_line or 'it said nothing'}",
            f"What was measured is stored as run {ended.run_id}.",
        )
    return page


#: What is said once for all results of a model.
_WHERE = ("hardware", "runtime", "device", "device_name")


def outcome_of(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One model's results, in plain JSON values."""
    rows = sorted(map(to_row, bodies), key=lambda row: (row["batch_size"] or 0, row["launch"] or 0))
    first = rows[0] if rows else {}
    statuses = Counter(str(row["status"]) for row in rows)
    return {
        **{name: first.get(name) for name in _WHERE},
        "status": _whole(statuses),
        "status_counts": dict(sorted(statuses.items())),
        "batch_sizes": sorted({row["batch_size"] for row in rows if row["batch_size"]}),
        "results": rows,
        "aggregate": _aggregate(rows),
    }


def _whole(statuses: Mapping[str, int]) -> str:
    """ok where all went through, partial where some did, else what most came to."""
    if Status.OK in statuses:
        return "ok" if len(statuses) == 1 else "partial"
    return max(
        statuses, key=lambda status: (statuses[status], status), default=Status.SKIPPED.value
    )


def _aggregate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The best of the batch sizes and the means over them, as the aggregated file has them.

    A mean over batch sizes is geometric: it says how two platforms compare that were asked about
    the same batches. An arithmetic one would be that of the largest batch, or of the smallest.
    """
    entries = [
        entry for entry in aggregate(AggregateRows(rows))["entries"] if entry["best_throughput"]
    ]
    if not entries:
        return None
    best = max(entries, key=lambda entry: float(entry["best_throughput"]["throughput"]))
    batches = best["batches"]
    return {
        **{
            name: best[name]
            for name in (
                *("best_throughput", "best_latency", "memory_peak"),
                *("batch_scaling_efficiency", "emulated", "flags"),
            )
        },
        "geometric_mean_throughput": _mean([batch["throughput"] for batch in batches]),
        "geometric_mean_latency_ms": _mean([batch["latency_ms"] for batch in batches]),
        "batches": batches,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    if not known or len(known) < len(values):
        return None
    return exp(fsum(map(log, known)) / len(known))


class EnhancedHardwareBenchmarkRunner:
    """Measures models, by default on the hardware that the selector names.

    Args:
        database_path: The database or lake that results go into, and that choices rest on;
            None: ACCELBENCH_DB, or accelbench.duckdb here.
        no_database: Store nothing but the journal, which a crash leaves too.
        config_path: The selector's configuration: a file's path, or the same as a mapping.
        matrix_file: The selector's compatibility matrix.
        output_dir: A folder for result files, as `accelbench run --output-dir` leaves them.
        selector: One of your own, such as of a class derived from HardwareSelector.
        verbose: Whether progress is printed.
        fleet: Measure on the nodes of this fleet: HOST:PORT of its head, or True for the one that
            was started or joined on this machine.
        fleet_token_file: The file of its token; the one of the fleet here by default.
    """

    def __init__(
        self,
        database_path: str | os.PathLike[str] | None = None,
        *,
        no_database: bool = False,
        config_path: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        matrix_file: str | os.PathLike[str] | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        selector: HardwareSelector | None = None,
        verbose: bool = True,
        fleet: str | bool = False,
        fleet_token_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if no_database and database_path is not None:
            raise UsageError(
                "no_database and database_path contradict each other.", "Leave one out."
            )
        if selector is not None and not callable(getattr(selector, "select_hardware", None)):
            raise UsageError(
                f"selector takes a HardwareSelector, not {in_quotes(selector)}.",
                "Leave it out for the usual.",
            )
        self.database_path = validation.path("database_path", database_path)
        self.no_database = no_database
        folder = validation.path("output_dir", output_dir)
        self.output_dir = None if folder is None else Path(folder).expanduser()
        self.verbose = verbose
        self._config = (
            config_path
            if isinstance(config_path, Mapping)
            else validation.path("config_path", config_path)
        )
        self._matrix = validation.path("matrix_file", matrix_file)
        self._selector = selector
        self._fleet = _fleet_named(fleet, fleet_token_file)

    @property
    def selector(self) -> HardwareSelector:
        if self._selector is None:
            from accelbench.recommend.selector import HardwareSelector

            self._selector = HardwareSelector(self.database_path, self._config, self._matrix)
        return self._selector

    def run_benchmark(
        self,
        model_name: str,
        model_family: str | None = None,
        hardware: str | None = None,
        batch_sizes: Sequence[int] | None = None,
        mode: str = "inference",
        **parameters: Any,
    ) -> dict[str, Any]:
        """Measure one model.

        Args:
            model_name: A name, an alias or a hub id of the catalogue.
            model_family: Known from the model; one that it is not of is refused.
            hardware: A platform; None: the selector's.
            batch_sizes: Items in one step; None: 1, 8, 32 and 128, as memory allows.
            mode: 'inference' or 'training'.
            parameters: Any other of `accelbench.api.enhanced.Wanted`: precision, framework,
                available_hardware, sequence_length, iterations, warmup, launches, …

        Returns:
            A dict that json.dumps takes: what was measured and where, whether the hardware was
            chosen and why, every result, and their aggregate over batch sizes.
        """
        how = wanted(hardware=hardware, batch_sizes=batch_sizes, mode=mode, **parameters)
        spec = model_named(model_name, model_family)
        call = f"run_benchmark({model_name!r}, {how})"
        whole = self._run((spec,), how, {spec.id: model_name}, call, create_report=False)
        (outcome,) = whole.pop("models").values()
        return {**outcome, **whole}

    def run_multiple(
        self,
        models: Sequence[str] = (),
        model_families: Sequence[str] = (),
        *,
        models_set: str | None = None,
        limit: int | None = None,
        create_report: bool = False,
        **parameters: Any,
    ) -> dict[str, Any]:
        """Measure several models in one run, each on the hardware that is chosen for it.

        Args:
            models: Names; with families, only those of them that are of one.
            model_families: Families or modalities, such as 'embedding' or 'vision'; without
                names or a set, all models of them.
            models_set: 'key' or 'small'.
            limit: At most so many models.
            create_report: Write a report of the run, as HTML: into the output_dir, else here.
            parameters: As for `run_benchmark`.

        Returns:
            The run, with what `run_benchmark` says of a model for each, by the model's id.
        """
        named = validation.names("models", models) or []
        families = validation.names("model_families", model_families) or []
        if limit is not None:
            check_count("limit", limit, least=1)
        how = wanted(**parameters)
        chosen = choose(named, models_set, families, limit=limit)
        call = f"run_multiple({[spec.id for spec in chosen]}, {how})"
        return self._run(chosen, how, names_used(named, chosen), call, create_report)

    def _run(
        self,
        models: Sequence[ModelSpec],
        wanted: BenchmarkRequest,
        names: Mapping[str, str],
        call: str,
        create_report: bool,
    ) -> dict[str, Any]:
        if create_report:
            from accelbench.present.charts import draw

            draw.refuse_undrawable("create_report")
        if self.output_dir is not None:
            try_writing(self.output_dir, "output_dir")
            tree.refuse_links(self.output_dir)
        database = None if self.no_database else database_at(self.database_path)
        about = {
            "command": f"accelbench.EnhancedHardwareBenchmarkRunner.{call}",
            "label": wanted.label,
            "names": dict(names),
        }
        choices: list[SelectedTarget] = []

        def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[PlannedRun]:
            plan, chosen = self._plan(wanted, models, inventory, runtimes)
            choices.extend(chosen)
            return [PlannedRun(plan, wanted.settings(new_run_id()), runtimes, about)]

        def observe(spec: PlannedRun, *_: object) -> Observer:
            of_models = {case.case.case_id: case.case.model.id for case in spec.plan.cases}
            by_case = {case_id: names.get(model, model) for case_id, model in of_models.items()}
            return observer_of(spec.plan, by_case, self.verbose)

        journals = self._journals(database)
        places = StoredResults(database, journals)
        ended, plan, observer = self._executed(planner, places, observe)
        files = self._files(ended, journals, database, create_report)
        where = database.name if database else str(journals)
        ended_lines(observer, ended.rows, where, ended.interrupted)
        if ended.interrupted:
            raise KeyboardInterrupt
        return {
            "run_id": ended.run_id,
            "mode": wanted.mode,
            "models": {spec.id: _told(spec, names, wanted, choices, ended.rows) for spec in models},
            "notes": list(plan.notes),
            "database": database.name if database else None,
            "journal": str(journal_path(journals, ended.run_id)),
            "files": [str(path) for path in files],
        }

    def _executed(
        self, planner: Planner, places: StoredResults, observe: Observe
    ) -> tuple[RunResult, Plan, Observer]:
        if self._fleet is None:
            (made,) = execute(planner, places, observe)
            return made.result, made.spec.plan, made.observer
        from accelbench.fleet.fleet_run import execute_on_cluster

        watching: list[Observer] = []

        def watched(*planned: Any) -> Observer:
            watching.append(observe(*planned))
            return watching[0]

        ((spec, ended),) = execute_on_cluster(self._fleet.connect(), planner, places, watched)
        return ended, spec.plan, watching[0]

    def _plan(
        self,
        wanted: BenchmarkRequest,
        models: Sequence[ModelSpec],
        inventory: Inventory,
        runtimes: Mapping[str, Runtime],
    ) -> tuple[Plan, list[SelectedTarget]]:
        request = wanted.request(models)
        if not wanted.chosen:
            return expand.plan_for(request, inventory, runtimes), []
        from accelbench.recommend.selector import LocalSelector

        allowed = _allowed(inventory, wanted.available_hardware)
        here = LocalSelector(self.selector, allowed, getattr(self.selector, "database", None))
        return plan_chosen(request, here.found, runtimes, here.select_hardware)

    def _journals(self, database: Database | None) -> Path:
        if database is not None:
            return database.journals
        if self.output_dir is not None:
            return resolve_inside(self.output_dir, tree.JOURNALS)
        return BARE_JOURNALS.absolute()

    def _files(
        self, ended: RunResult, journals: Path, database: Database | None, create_report: bool
    ) -> list[Path]:
        if ended.interrupted:
            return []
        facts = read(journal_path(journals, ended.run_id))
        begun = next(fact.body for fact in facts if fact.kind == RUN_STARTED)
        files: list[Path] = []
        if self.output_dir is not None:
            files += [path for _, path in tree.write_output(self.output_dir, begun, ended.rows)]
        if create_report and ended.rows:
            page = (self.output_dir or Path()) / f"report-{ended.run_id}.html"
            files.append(reported(page.absolute(), begun, ended, database))
        return files


def _fleet_named(
    fleet: str | bool, token_file: str | os.PathLike[str] | None
) -> FleetAddress | None:
    if fleet is False:
        return None
    from accelbench.fleet.session import FleetAddress

    token = validation.path("fleet_token_file", token_file)
    address = None if fleet is True else validation.word("fleet", fleet, advice="Use HOST:PORT.")
    return FleetAddress.resolve(address, None if token is None else Path(token).expanduser())


def _allowed(inventory: Inventory, names: Sequence[str] | None) -> Inventory:
    if names is None:
        return inventory
    wanted = {
        platform for name in names for platform in stored_platforms(str(name).partition(":")[0])
    }
    return {name: entries for name, entries in inventory.items() if name in wanted}


def _told(
    spec: ModelSpec,
    names: Mapping[str, str],
    wanted: BenchmarkRequest,
    choices: Sequence[SelectedTarget],
    rows: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    choice = next((target for target in choices if target.model.id == spec.id), None)
    own = [row for row in rows if row["model"] == spec.id]
    return {
        "model": spec.id,
        "model_name": names.get(spec.id, spec.id),
        "model_family": spec.family.value,
        "mode": wanted.mode,
        "precision": wanted.request((spec,)).precisions[0],
        **outcome_of(own),
        "automatic": wanted.chosen,
        "reason": choice.reason if choice else _unchosen(wanted, bool(own)),
        "recommendation": dict(choice.answer) if choice else None,
    }


def _unchosen(wanted: BenchmarkRequest, tried: bool) -> str:
    if wanted.chosen and not tried and wanted.available_hardware is not None:
        return f"none of {', '.join(map(str, wanted.available_hardware))} is here"
    if wanted.chosen:
        return "nothing here could take it: each result says why"
    return f"hardware={in_quotes(wanted.hardware)} was asked for"
