"""`accelbench.benchmark`: measure a model or a callable from Python, in fresh processes."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from accelbench.api.config import check_counts, check_settings
from accelbench.api.live_objects import GIVEN, batches_meant, name_of, written
from accelbench.api.result import Result
from accelbench.core.case import Case
from accelbench.core.devices import title_of
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.formatting import NO_DATA
from accelbench.core.model import ModelSpec
from accelbench.core.precision import parse_precision
from accelbench.core.protocols import Absent, Device, Inventory, Runtime
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.vocabulary import parse_mode
from accelbench.engines.shared.names import runtime_named
from accelbench.hardware.detect import parse_platform
from accelbench.models.code_models.loading import is_importing
from accelbench.models.code_models.models import describe_code_model
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.selection import choose
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.execute import StoredResults, execute
from accelbench.run.plan import expand
from accelbench.run.plan.request import Plan, Planned, Request, apart
from accelbench.run.process.worker_client import Observer, SilentObserver
from accelbench.store.database import ENVIRONMENT, Database
from accelbench.store.files import Scratch
from accelbench.store.opening import open_store

_LINE = "=" * 60


class Printed(SilentObserver):
    """Prints a run as it goes."""

    def __init__(
        self, stream: IO[str], names: Mapping[str, str], places: Mapping[str, Device | Absent]
    ) -> None:
        self._stream = stream
        self._names = names
        self._places = places
        self._banner = ""

    def say(self, *lines: str) -> None:
        self._stream.write("".join(f"{visible(line)}\n" for line in lines))
        self._stream.flush()

    def note(self, text: str) -> None:
        self.say(f"Note: {text}")

    def case_started(self, case: Case, launch: int, number: int, total: int) -> None:
        banner = f"{title_of(case.target.runtime)} Benchmark: {self._names[case.case_id]}"
        if banner != self._banner:
            self._banner = banner
            self.say(_LINE, banner, _LINE, *_device_lines(self._places[case.case_id]), "")
        self.say(f"Benchmarking batch size: {case.shapes.batch}")

    def case_finished(self, row: Mapping[str, Any]) -> None:
        if row["status"] != "ok":
            why = row.get("message") or row.get("reason")
            self.say(f"  Status: {row['status']} — {why}")
            if row.get("advice"):
                self.say(f"  → {row['advice']}")
        else:
            self.say(*_figure_lines(row))
        self.say("")

    def ended(self, results: int, path: str, interrupted: bool) -> None:
        title = "Interrupted" if interrupted else "Benchmark Suite Complete"
        self.say(
            *(_LINE, title, _LINE), f"Total configurations: {results}", f"Results saved to: {path}"
        )


def _device_lines(place: Device | Absent) -> list[str]:
    there = isinstance(place, Device)
    name, why = (place.name, "") if isinstance(place, Device) else (place.hardware, place.reason)
    lines = [f"Device: {name}", f"  Type: {place.hardware.upper()}", f"  Available: {there}"]
    return lines if there else [*lines, f"  Reason: {why}"]


def _figure_lines(row: Mapping[str, Any]) -> list[str]:
    p50, mean = row.get("latency_p50_ms"), row.get("latency_mean_ms")
    word, latency = ("p50", p50) if p50 is not None else ("mean", mean)
    unit = str(row.get("throughput_unit") or "items/s").removesuffix("/s")
    return [
        f"  Latency ({word}): {_shown(latency, 3)}ms",
        f"  Throughput: {_shown(row.get('throughput'), 2)} {unit}/sec",
        f"  Memory: {_shown(row.get('memory_peak_mb'), 2)} MB",
    ]


def _shown(value: float | None, digits: int) -> str:
    return NO_DATA if value is None else f"{value:.{digits}f}"


def database_at(path: str | os.PathLike[str] | None) -> Database:
    """The database that is named, else the usual one; made where it is missing."""
    database = open_store(None if path is None else os.fspath(path))
    database.ensure()
    return database


def observer_of(plan: Plan, names: Mapping[str, str], verbose: bool) -> Observer:
    """Who watches a run: what the guide prints, or nobody."""
    if not verbose:
        return SilentObserver()
    places = {case.case.case_id: _place(case) for case in plan.cases}
    printed = Printed(sys.stdout, names, places)
    for note in plan.notes:
        printed.note(note)
    return printed


def _place(planned: Planned) -> Device | Absent:
    if planned.device is not None:
        return planned.device
    refusal = planned.refusal
    hardware = planned.case.target.hardware_label
    return (
        Absent(hardware, refusal.message, refusal.advice) if refusal else Absent(hardware, "", "")
    )


def try_writing(folder: Path, parameter: str) -> None:
    """See that a file can be made in a folder, before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SurroundingsError(
            f"Results cannot be written to {folder}: {error.strerror}.",
            f"Set {parameter} to a folder that can be written.",
        ) from error


def ended_lines(observer: Observer, results: Sequence[Any], where: str, interrupted: bool) -> None:
    """The last block of what is printed, where anything is."""
    if isinstance(observer, Printed):
        observer.ended(len(results), where, interrupted)


def benchmark(
    model: Any,
    inputs: Any = None,
    *,
    hardware: str | Sequence[str] | None = None,
    framework: str | Sequence[str] | None = None,
    batch_sizes: Sequence[int] | str | None = None,
    precision: str | Sequence[str] | None = None,
    mode: str = "inference",
    iterations: int | None = None,
    warmup: int | None = None,
    launches: int = 1,
    threads: int | None = None,
    seed: int = 0,
    verify: str = "auto",
    budget: float | None = None,
    name: str | None = None,
    label: str | None = None,
    db: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    isolate: bool = True,
) -> Result:
    """Measure a model or a callable in fresh processes.

    Args:
        model: A torch module, anything that can be called, or a word as `accelbench run` takes it:
            a name of the catalogue, 'model.onnx', 'model.py:make', 'package.module:make'.
        inputs: What it is called with: a tuple by place, a dict by name, else one input; of a word,
            what --input takes, in a list. None where it says so itself, by `example_inputs`.
        hardware: Platforms, such as 'cpu'; None: everything present.
        framework: Runtimes, such as 'onnxruntime'; None: each platform's own.
        batch_sizes: Items in one step; None: 1, 8, 32 and 128, as memory allows; 'given': as many
            as inputs has, 1 where it says nothing.
        precision: 'fp32' by default; of a file what it is stored in.
        mode: 'inference' or 'training'.
        iterations: Exactly so many samples; None samples until the figure is known.
        warmup: Exactly so many steps before; None until they are steady.
        launches: Fresh processes for each batch size; verdicts need five or more.
        threads: Of each worker; None: the engine's own choice.
        seed: Of weights and inputs.
        verify: 'auto', 'require' or 'off'.
        budget: Seconds for the whole run; every case gets a share.
        name: What it is called in results; its own name where none is given.
        label: A name of the run, by which `compare` and `check` find it.
        db: A database that keeps the results; None: ACCELBENCH_DB, or none.
        verbose: Whether progress is printed.
        isolate: Whether it is measured in fresh processes. False measures an object that cannot
            travel in this one, on the CPU in fp32; each result says what is lost by that.

    Raises:
        UsageError, SurroundingsError: nothing can be measured; one sentence.
        KeyboardInterrupt: after Ctrl-C.
    """
    if is_importing():
        raise UsageError(
            "accelbench.benchmark() was called while its own file is imported to be measured.",
            'Put the call behind: if __name__ == "__main__":',
        )
    _refuse_words(batch_sizes, budget, label)
    asked = {
        "iterations": iterations,
        "warmup": warmup,
        "launches": launches,
        "threads": threads,
        "seed": seed,
    }
    check_settings(asked)
    settings = RunSettings.from_dict(
        {**asked, "run_id": new_run_id(), "verify": verify, "budget": budget}
    )
    named: dict[str, Any] = {
        "hardware": tuple(parse_platform(word) for word in _several(hardware)),
        "runtimes": tuple(runtime_named(word) for word in _several(framework)),
        "precisions": tuple(parse_precision(word) for word in _several(precision)),
    }
    with closing(Scratch()) as scratch:
        if not isolate:
            if db is not None:
                raise UsageError(
                    "isolate=False keeps no results: they would stand beside isolated ones.",
                    "Leave out db, or isolate=False.",
                )
            if label is not None or budget is not None:
                raise UsageError(
                    "isolate=False makes no run, which a label or a budget would be of.",
                    "Leave them out, or isolate=False.",
                )
            from accelbench.api.in_process import measured_here

            return measured_here(
                model, inputs, settings, **named, batch_sizes=batch_sizes,
                mode=str(parse_mode(mode)), name=name, folder=scratch.folder,
            )  # fmt: skip
        spec = _spec(model, inputs, name, scratch.folder)
        request = Request(
            models=(spec,),
            **{**named, "precisions": named["precisions"] or ("fp32",)},
            batch_sizes=batches_meant(batch_sizes, spec, model, inputs),
            modes=(parse_mode(mode),),
            options={} if threads is None else {"threads": threads},
        )
        kept = db is not None or bool(os.environ.get(ENVIRONMENT))
        database = database_at(db if kept else scratch.folder / "results.duckdb")
        about = {"command": "accelbench.benchmark()", "label": label}
        return _run(
            request, bool(precision), settings, database, about, describe_code_model(spec), verbose
        )


def _refuse_words(
    batch_sizes: Sequence[int] | str | None, budget: float | None, label: str | None
) -> None:
    if batch_sizes is not None and batch_sizes != GIVEN:
        check_counts("batch_sizes", batch_sizes, least=1)
    numeric = isinstance(budget, (int, float)) and not isinstance(budget, bool)
    if budget is not None and not (numeric and 0 < budget < math.inf):
        raise UsageError(f"budget takes seconds, not {in_quotes(budget)}.")
    if label is not None and not (isinstance(label, str) and label and label.isprintable()):
        raise UsageError(f"label takes one line of text, not {in_quotes(label)}.")


def _several(words: str | Sequence[str] | None) -> list[str]:
    return [words] if isinstance(words, str) else list(words or ())


def _spec(model: Any, inputs: Any, name: str | None, folder: Path) -> ModelSpec:
    if isinstance(model, str):
        if inputs is not None and not _are_words(inputs):
            raise UsageError(
                "Of a model that is named, inputs takes what --input does: a list such as"
                " ['ids=int64[batch,128]:0..30522'].",
                "Give the object itself with its inputs, or give it example_inputs.",
            )
        (spec,) = choose([model], inputs=parse_inputs(inputs))
        if name and not (spec.is_user_model or spec.folder):
            raise UsageError(
                f"{spec.id} is a model of the catalogue, which keeps its name.", "Leave out name."
            )
        return replace(spec, id=name, aliases=(model,)) if name else spec
    if not callable(model):
        raise UsageError(
            f"What cannot be called cannot be measured: {type(model).__name__}.",
            "Give a torch module, a function, or a word such as 'model.py:make'.",
        )
    word = written(model, inputs, folder)
    (spec,) = choose([word])
    called = name or name_of(model)
    return replace(spec, id=called, aliases=())


def _are_words(inputs: Any) -> bool:
    return isinstance(inputs, (list, tuple)) and all(isinstance(word, str) for word in inputs)


def _run(
    request: Request,
    precision_named: bool,
    settings: RunSettings,
    database: Database,
    about: Mapping[str, Any],
    notes: Sequence[str],
    verbose: bool,
) -> Result:
    def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[PlannedRun]:
        plan = expand.plan_of(apart(request, precision_named), inventory, runtimes)
        plan = replace(plan, notes=(*notes, *plan.notes))
        return [PlannedRun(plan, settings, runtimes, about)]

    def observe(spec: PlannedRun, _: Inventory, here: Mapping[str, Any]) -> Observer:
        environment.update(here)
        names = {case.case.case_id: case.case.model.id for case in spec.plan.cases}
        if not verbose and request.models[0].code is not None:
            Printed(sys.stderr, {}, {}).note(notes[0])
        return observer_of(spec.plan, names, verbose)

    environment: dict[str, Any] = {}
    (made,) = execute(planner, StoredResults(database), observe)
    ended = made.result
    if ended.interrupted:
        raise KeyboardInterrupt
    rows = database.results("run_id = ?", [ended.run_id], samples=True)
    return Result(ended.run_id, [dict(row) for row in rows], environment)
