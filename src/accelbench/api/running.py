"""The guide's `run_inference_benchmark`, `run_benchmark_suite` and `BenchmarkLogger`.

The journal is kept next to the database if one is wanted (`db` or ACCELBENCH_DB), else in
`csv_output_dir`: a library that creates a database unasked would surprise.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.api.benchmark import database_at, ended_lines, observer_of, try_writing
from accelbench.api.config import FEWEST_ITERATIONS, BenchmarkConfig
from accelbench.core.axes import AXES
from accelbench.core.case import Case, Target
from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.protocols import Device, Inventory, Runtime
from accelbench.core.run_options import DEFAULT_TIMEOUT, RunSettings
from accelbench.core.safe_text import from_csv_cell, in_quotes
from accelbench.core.vocabulary import Mode, Status
from accelbench.exchange import guide_csv
from accelbench.exchange.guide_csv import guide_result
from accelbench.exchange.writing import write_new
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.execute import StoredResults, execute
from accelbench.run.plan import expand
from accelbench.run.plan.request import Plan, Planned, Refusal, Request, joined
from accelbench.run.plan.sharing import shapes_of
from accelbench.run.process.worker_client import Observer
from accelbench.store.database import ENVIRONMENT, Database
from accelbench.store.files import REAL_FILES, explain_os_errors

if TYPE_CHECKING:
    import pandas as pd


class BenchmarkLogger:
    """One CSV of results in a folder.

    Args:
        output_dir: The folder; made when something is written.
        filename: The file in it: read, or added to. Without one, the first result begins
            a new file, benchmark_results_<YYYYMMDD_HHMMSS>.csv.
    """

    def __init__(
        self, output_dir: str | os.PathLike[str] = "results/raw", filename: str | None = None
    ) -> None:
        self.output_dir = Path(output_dir)
        if filename is not None and Path(filename).name != filename:
            raise UsageError(
                f"{in_quotes(filename)} is not a plain file name.",
                "Put its folder into output_dir.",
            )
        self._filename = filename

    @property
    def path(self) -> Path | None:
        """The file; None as long as nothing has begun it."""
        return None if self._filename is None else self.output_dir / self._filename

    def log_result(self, result: Mapping[str, Any]) -> None:
        """Add one result."""
        self.log_results([result])

    def log_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Add results. A new file appears whole or not at all; one that is there is added to."""
        path = self.path
        if path is not None and path.exists():
            self._add_to(path, results)
            return
        name = self._filename or guide_csv.csv_name(datetime.fromtimestamp(time.time(), UTC))
        written = write_new(self.output_dir, name, guide_csv.encode(results, header=True))
        self._filename = written.name

    def _add_to(self, path: Path, results: Sequence[Mapping[str, Any]]) -> None:
        with explain_os_errors("Writing the file", path):
            with path.open(encoding="utf-8", newline="") as stream:
                first = stream.readline()
            if guide_csv.parse_header(first) != guide_csv.COLUMNS:
                raise UsageError(
                    f"{path} has other columns than these results.", "Choose another file name."
                )
            fd = REAL_FILES.open_append(path)
            try:
                REAL_FILES.write(fd, guide_csv.encode(results, header=False))
                REAL_FILES.sync(fd)
            finally:
                REAL_FILES.close(fd)

    def read_results(self) -> pd.DataFrame:
        """Every result of the file, a row each; what is not known is NaN."""
        path = self.path
        if path is None:
            raise UsageError(
                "This logger has written nothing yet.", "Name the file to read with filename."
            )
        if not path.is_file():
            files = sorted(p.name for p in self.output_dir.glob("*.csv"))[-3:]
            raise UsageError(
                f"There is no file {path}.",
                f"In that folder: {', '.join(files)}." if files else "That folder has no CSV.",
            )
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise MissingExtraError("pandas", "frames", "Reading results as a DataFrame") from error
        frame = pd.read_csv(path)
        for name in frame.select_dtypes(include=("object", "string")):
            frame[name] = frame[name].map(_as_written)
        if "input_shape" in frame:
            frame["input_shape"] = frame["input_shape"].map(_shape, na_action="ignore")
        return frame


def _as_written(cell: Any) -> Any:
    return from_csv_cell(cell) if isinstance(cell, str) else cell


def _shape(text: str) -> Any:
    """(1, 3, 224, 224) as a tuple again; what is not one stays as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


#: The guide's order, with those in between that it does not know.
BEST_FIRST = ("cuda", "rocm", "tpu", "mps", "cpu")
#: Journals of runs without a database, in csv_output_dir.
JOURNALS = "journals"
#: A fixed number of steps takes as long as it takes: batch 128 of a large network on a CPU was
#: asked for on purpose. A minute a step tells a hang from a slow machine.
_SLOWEST_STEP_SECONDS = 60.0


def run_inference_benchmark(
    config: BenchmarkConfig, *, db: str | os.PathLike[str] | None = None
) -> list[dict[str, Any]]:
    """Measure one model at every batch size; write the CSV.

    Args:
        config: What to measure.
        db: A database to store the results in as well, samples included.

    Returns:
        A result a batch size, in the order of `config.batch_sizes`, under the guide's keys
        and every column of the store. One that is not ok has a status, a reason, a message
        and an advice, and NaN for its figures.
    """
    return _run([config], db)


def run_benchmark_suite(
    models: Sequence[str],
    frameworks: Sequence[str],
    batch_sizes: Sequence[int] | None = None,
    *,
    db: str | os.PathLike[str] | None = None,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """Measure models × frameworks × batch sizes in one run; write one CSV.

    Args:
        models: Names, as `BenchmarkConfig.model_name`.
        frameworks: Names, as `BenchmarkConfig.framework`; one that is not installed gives
            unsupported results.
        batch_sizes: As `BenchmarkConfig.batch_sizes`, whose default it has.
        db: As for `run_inference_benchmark`.
        parameters: Any other parameter of `BenchmarkConfig`.

    Returns:
        As `run_inference_benchmark`, model by model.
    """
    for what, names in (("models", models), ("frameworks", frameworks)):
        if isinstance(names, str) or not list(names):
            raise UsageError(f"{what} takes a list of names, not {in_quotes(names)}.")
    if batch_sizes is not None:
        parameters["batch_sizes"] = batch_sizes
    configs = [
        BenchmarkConfig(framework=framework, model_name=model, **parameters)
        for model in models
        for framework in frameworks
    ]
    return _run(configs, db)


def _run(
    configs: Sequence[BenchmarkConfig], db: str | os.PathLike[str] | None
) -> list[dict[str, Any]]:
    for config in configs:
        config.check()
    first = configs[0]
    settings = _settings(first)
    folder = Path(first.csv_output_dir)
    try_writing(folder, "csv_output_dir")
    database = _database(db)
    config_by_case: dict[str, BenchmarkConfig] = {}
    machine: dict[str, Any] = {}

    def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[PlannedRun]:
        plans = [_plan(config, inventory, runtimes) for config in configs]
        for config, plan in zip(configs, plans, strict=True):
            for case in plan.cases:
                config_by_case.setdefault(case.case.case_id, config)
        return [PlannedRun(joined(plans), settings, runtimes, {"command": _said(configs)})]

    def observe(spec: PlannedRun, _: Inventory, here: Mapping[str, Any]) -> Observer:
        machine.update(here)
        names = {case_id: config.model_name for case_id, config in config_by_case.items()}
        return observer_of(spec.plan, names, first.verbose)

    places = StoredResults(database, None if database else folder / JOURNALS)
    (made,) = execute(planner, places, observe)
    ended, observer = made.result, made.observer
    commit = (machine.get("git") or {}).get("commit")
    results = _results(ended.rows, configs, config_by_case, commit)
    logger = BenchmarkLogger(folder)
    logger.log_results(results)
    ended_lines(observer, results, str(logger.path), ended.interrupted)
    if ended.interrupted:
        raise KeyboardInterrupt
    return results


def _settings(config: BenchmarkConfig) -> RunSettings:
    steps = config.warmup_iterations + config.measurement_iterations
    return RunSettings(
        run_id=new_run_id(),
        data=config.data,
        iterations=config.measurement_iterations,
        warmup=config.warmup_iterations,
        timeout=max(DEFAULT_TIMEOUT, steps * _SLOWEST_STEP_SECONDS),
    )


def _plan(config: BenchmarkConfig, inventory: Inventory, runtimes: Mapping[str, Runtime]) -> Plan:
    """The cases of one config, those of a framework that is not installed included."""
    given = ((axis.option_key, getattr(config.shapes, axis.field)) for axis in AXES)
    sizes: dict[str, Any] = {name: (size,) for name, size in given if size}
    request = Request(
        models=(config.spec,),
        hardware=(config.platform or _best(inventory, runtimes.get(config.runtime)),),
        runtimes=(config.runtime,),
        batch_sizes=tuple(config.batch_sizes),
        precisions=(config.precision,),
        **sizes,
    )
    if config.runtime in runtimes:
        return expand.plan_for(request, inventory, runtimes)
    refusal = Refusal(
        Status.UNSUPPORTED,
        "no_runtime",
        f"no runtime named {config.runtime} is installed here",
        f"Runtimes installed here: {', '.join(sorted(runtimes))}.",
    )
    name, _, ordinal = request.hardware[0].partition(":")
    target = Target(config.runtime, name, ordinal or None)
    present = next(
        (device for device in inventory.get(name, ()) if isinstance(device, Device)), None
    )
    return Plan(
        tuple(
            Planned(
                Case(config.spec, target, config.precision, replace(shapes, batch=batch)),
                present,
                refusal,
            )
            for shapes in shapes_of(config.spec, request, Mode.INFERENCE)
            for batch in sorted(set(config.batch_sizes))
        )
    )


def _best(inventory: Inventory, runtime: Runtime | None) -> str:
    for name in BEST_FIRST:
        served = runtime is None or name in runtime.info.hardware
        if served and any(isinstance(device, Device) for device in inventory.get(name, ())):
            return name
    return "cpu"


def _results(
    rows: Sequence[Mapping[str, Any]],
    configs: Sequence[BenchmarkConfig],
    config_by_case: Mapping[str, BenchmarkConfig],
    commit: str | None,
) -> list[dict[str, Any]]:
    """In the order that was asked for: a run measures ascending batches."""
    numbers = {id(config): number for number, config in enumerate(configs)}

    def place(row: Mapping[str, Any]) -> tuple[int, int]:
        config = config_by_case[row["case_id"]]
        return numbers[id(config)], list(config.batch_sizes).index(row["batch_size"])

    return [
        guide_result(row, config.model_name, commit, _warnings(config, row))
        for row in sorted(rows, key=place)
        for config in (config_by_case[row["case_id"]],)
    ]


def _warnings(config: BenchmarkConfig, row: Mapping[str, Any]) -> list[str]:
    count = config.measurement_iterations
    if row["status"] != Status.OK or count >= FEWEST_ITERATIONS:
        return []
    return [f"Measured with {count} iterations; the guide asks for {FEWEST_ITERATIONS} or more."]


def _said(configs: Sequence[BenchmarkConfig]) -> str:
    shown = ", ".join(map(repr, configs))
    return (
        f"accelbench.run_inference_benchmark({shown})"
        if len(configs) == 1
        else (f"accelbench.run_benchmark_suite: {shown}")
    )


def _database(path: str | os.PathLike[str] | None) -> Database | None:
    wanted = path is not None or os.environ.get(ENVIRONMENT)
    return database_at(path) if wanted else None


def reset_memory_stats() -> None:
    """Forget the memory peaks of the calling process, as far as there are any.

    That is the allocator's peak on every CUDA or ROCm device that this process
    uses, and on Linux the process's own (VmHWM). Metal keeps no peak. Nothing
    is imported or started for it. `run_inference_benchmark` does not need it:
    it measures in fresh processes, each with a baseline of its own.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for ordinal in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(ordinal)
    # 5 is "reset the peak resident set size" of proc(5); other systems have no such file.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_bytes(b"5\n")
