"""`EnhancedHardwareBenchmarkRunner`: models measured on the hardware that suits them, stored.

Real runs, as `accelbench run --hardware auto` makes them: what is chosen is said with its reason,
every sample is kept, and what is returned is what was measured.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.api.aggregated import outcome_of
from accelbench.api.config import check_count
from accelbench.api.reporting import reported
from accelbench.api.starting import (
    database_at,
    ended_lines,
    observer_of,
    try_writing,
)
from accelbench.api.wanted import BenchmarkRequest, model_named, wanted
from accelbench.catalog.find import called
from accelbench.catalog.selection import choose
from accelbench.core.errors import UsageError
from accelbench.core.facts import RUN_STARTED, new_run_id
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Inventory, Runtime
from accelbench.core.visible import in_quotes
from accelbench.exchange import tree
from accelbench.exchange.writing import inside
from accelbench.hardware.names import platforms_named
from accelbench.run.conduct.lifecycle import RunResult, RunSpec
from accelbench.run.execute import Observe, RunRequest, StoredResults, execute
from accelbench.run.plan import planning
from accelbench.run.plan.automatic import SelectedTarget, plan_chosen
from accelbench.run.plan.request import Plan
from accelbench.run.process.observer import Observer
from accelbench.select.query import validation
from accelbench.store.database import Database
from accelbench.store.journal import BARE_JOURNALS, journal_path, read

if TYPE_CHECKING:
    from accelbench.run.fleet.fleet_address import FleetAddress
    from accelbench.select.selector import HardwareSelector


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
        """Who names the hardware, by what the database knows; made when it is first asked."""
        if self._selector is None:
            from accelbench.select.selector import HardwareSelector

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
            parameters: Any other of `accelbench.api.wanted.Wanted`: precision, framework,
                available_hardware, sequence_length, iterations, warmup, launches, …

        Returns:
            A dict that json.dumps takes: what was measured and where, whether the hardware was
            chosen and why, every result, and their aggregate over batch sizes.

        Raises:
            UsageError, SurroundingsError: nothing can be measured or written; one sentence.
            KeyboardInterrupt: after Ctrl-C; what was measured until then is stored.
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
        return self._run(chosen, how, called(named, chosen), call, create_report)

    def _run(
        self,
        models: Sequence[ModelSpec],
        wanted: BenchmarkRequest,
        names: Mapping[str, str],
        call: str,
        create_report: bool,
    ) -> dict[str, Any]:
        if create_report:
            from accelbench.report.charts import draw

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

        def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[RunSpec]:
            plan, chosen = self._plan(wanted, models, inventory, runtimes)
            choices.extend(chosen)
            return [RunSpec(plan, wanted.settings(new_run_id()), runtimes, about)]

        def observe(spec: RunSpec, *_: object) -> Observer:
            of_models = {case.case.case_id: case.case.model.id for case in spec.plan.cases}
            by_case = {case_id: names.get(model, model) for case_id, model in of_models.items()}
            return observer_of(spec.plan, by_case, self.verbose)

        journals = self._journals(database)
        request = RunRequest(planner, StoredResults(database, journals))
        ended, plan, observer = self._executed(request, observe)
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

    def _executed(self, request: RunRequest, observe: Observe) -> tuple[RunResult, Plan, Observer]:
        """The run of a request, here or on the fleet."""
        if self._fleet is None:
            (made,) = execute(request, observe)
            return made.result, made.spec.plan, made.observer
        from accelbench.run.fleet.fleet_execute import execute_on

        watching: list[Observer] = []

        def watched(*planned: Any) -> Observer:
            watching.append(observe(*planned))
            return watching[0]

        ((spec, ended),) = execute_on(self._fleet.connected(), request, watched)
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
            return planning.plan_for(request, inventory, runtimes), []
        from accelbench.select.answer.local_selector import LocalSelector

        allowed = _allowed(inventory, wanted.available_hardware)
        here = LocalSelector(self.selector, allowed, getattr(self.selector, "database", None))
        return plan_chosen(request, here.found, runtimes, here.select_hardware)

    def _journals(self, database: Database | None) -> Path:
        """Where a crash leaves what was measured."""
        if database is not None:
            return database.journals
        if self.output_dir is not None:
            return inside(self.output_dir, tree.JOURNALS)
        return BARE_JOURNALS.absolute()

    def _files(
        self, ended: RunResult, journals: Path, database: Database | None, create_report: bool
    ) -> list[Path]:
        """What is left beside the store; of a run that was cut off, nothing."""
        if ended.interrupted:
            return []
        facts = read(journal_path(journals, ended.run_id))
        begun = next(fact.body for fact in facts if fact.kind == RUN_STARTED)
        files: list[Path] = []
        if self.output_dir is not None:
            files += [path for _, path in tree.leave_in(self.output_dir, begun, ended.rows)]
        if create_report and ended.rows:
            page = (self.output_dir or Path()) / f"report-{ended.run_id}.html"
            files.append(reported(page.absolute(), begun, ended, database))
        return files


def _fleet_named(
    fleet: str | bool, token_file: str | os.PathLike[str] | None
) -> FleetAddress | None:
    """The fleet that is meant; None where everything is measured here."""
    if fleet is False:
        return None
    from accelbench.run.fleet.fleet_address import FleetAddress

    token = validation.path("fleet_token_file", token_file)
    address = None if fleet is True else validation.word("fleet", fleet, advice="Use HOST:PORT.")
    return FleetAddress.of(address, None if token is None else Path(token).expanduser())


def _allowed(inventory: Inventory, names: Sequence[str] | None) -> Inventory:
    """Of what is here, the platforms that may be chosen."""
    if names is None:
        return inventory
    wanted = {
        platform for name in names for platform in platforms_named(str(name).partition(":")[0])
    }
    return {name: entries for name, entries in inventory.items() if name in wanted}


def _told(
    spec: ModelSpec,
    names: Mapping[str, str],
    wanted: BenchmarkRequest,
    choices: Sequence[SelectedTarget],
    rows: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What is said of one model of a run."""
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
