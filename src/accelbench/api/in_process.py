"""`accelbench.benchmark(…, isolate=False)`: measure an object in the calling process.

For objects that cannot be sent to another process. Each result states what isolation would add.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.api.live_objects import batches_meant, name_of
from accelbench.api.result import Result
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.columns import COLUMNS
from accelbench.core.errors import UsageError
from accelbench.core.facts import utc_now
from accelbench.core.model import CodeKind, ModelSpec
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.protocols import Device, Runtime
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import in_quotes
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Outcome, Status
from accelbench.hardware.detect import detect
from accelbench.hardware.environment import describe_environment
from accelbench.measure.intervals import Interval
from accelbench.models.code_models.loading import CodeWord
from accelbench.models.code_models.looking import look
from accelbench.models.code_models.models import model_found
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.run.conduct.results import LaunchFacts, compose
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import conditions, cost
from accelbench.run.process.worker_client import open_request
from accelbench.run.worker.worker import CaseBench, Reporter, describe

LOST = (
    "It was measured in the process that called (isolate=False): what else runs and is kept there"
    " is in its times, its memory is not told apart, no process of its own verified it, and it is"
    " in no database."
)
_NOT_TOLD = "measured in a process that holds other things (isolate=False)"
#: Of a process what a measurement says of its memory.
_MEMORY = ("host_memory", "memory_")
_SOURCE = '''"""Gives an object that accelbench.benchmark(isolate=False) was called with."""

from accelbench.api.in_process import given


def make():
    return given()
'''

_given: list[Any] = []


def given() -> Any:
    """What is measured now, in this process: the object, and what it is called with."""
    return _given[-1]


def measured_here(
    model: Any,
    inputs: Any,
    settings: RunSettings,
    *,
    hardware: Sequence[str],
    runtimes: Sequence[str],
    batch_sizes: Sequence[int] | str | None,
    precisions: Sequence[str],
    mode: str,
    name: str | None,
    folder: Path,
) -> Result:
    """Measure an object in this process, a batch size after the other."""
    _refuse(model, settings, hardware, precisions, mode)
    stub = folder / "given_object.py"
    stub.write_text(_SOURCE, encoding="utf-8")
    _given.append(model if inputs is None else (model, inputs))
    try:
        with _as_it_was(model):
            spec = _spec(stub, name or name_of(model))
            batches = batches_meant(batch_sizes, spec, model, inputs)
            return _result(spec, settings, runtimes, batches or (spec.fixed_batch or 1,))
    finally:
        _given.pop()


def _refuse(
    model: Any, settings: RunSettings, hardware: Sequence[str], precisions: Sequence[str], mode: str
) -> None:
    own = "Leave out isolate=False."
    if isinstance(model, str) or not callable(model):
        raise UsageError("isolate=False measures an object of this process, not a name.", own)
    if settings.launches > 1:
        raise UsageError("isolate=False has no launches: each would be a fresh process.", own)
    for wanted, few, what in (
        (hardware, {"cpu"}, "on the CPU"),
        (precisions, {"fp32"}, "in fp32"),
        ([mode], {"inference"}, "inference"),
    ):
        for word in wanted:
            if word not in few:
                raise UsageError(
                    f"isolate=False measures {what} alone, not {in_quotes(word)}: anything else"
                    " would change your object.",
                    own,
                )
    if settings.verify == "require":
        raise UsageError("isolate=False has no reference to verify against.", own)


@contextmanager
def _as_it_was(model: Any) -> Iterator[None]:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    modules = list(model.modules()) if hasattr(model, "modules") else []
    modes = [(module, bool(getattr(module, "training", False))) for module in modules]
    weights = [(weight, weight.data) for part in modules for weight in _own(part, "_parameters")]
    buffers = [(part, dict(getattr(part, "_buffers", {}))) for part in modules]
    drawn = random.getstate()
    drawn_by_numpy = numpy.random.get_state() if numpy is not None else None
    threads = torch.get_num_threads() if torch is not None else 0
    drawn_by_torch = torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
        for weight, data in weights:
            if weight.dtype != data.dtype:  # it was cast, as one in fp64 is
                weight.data = data
        for module, kept in buffers:
            for name, buffer in kept.items():
                now = module._buffers[name]
                if buffer is not None and now is not None and now.dtype != buffer.dtype:
                    module._buffers[name] = buffer
        random.setstate(drawn)
        if numpy is not None:
            numpy.random.set_state(drawn_by_numpy)
        if torch is not None:
            torch.set_num_threads(threads)
            torch.set_rng_state(drawn_by_torch)


def _own(module: Any, kind: str) -> list[Any]:
    return [tensor for tensor in getattr(module, kind, {}).values() if tensor is not None]


def _spec(stub: Path, name: str) -> ModelSpec:
    word = CodeWord(name=name, place=str(stub), attribute="make")
    question = {
        "module": stub.stem, "path": str(stub), "folder": str(stub.parent), "attribute": "make",
        "given": [], "reference": "", "live": True,
    }  # fmt: skip
    try:
        found = {**question, **look(question)}
        return model_found(word, found, {})
    except FileRefusedError as error:
        raise UsageError(
            f"{in_quotes(name)} is not measured: {error.within}", error.advice
        ) from error


def _result(
    spec: ModelSpec, settings: RunSettings, runtimes: Sequence[str], batch_sizes: Sequence[int]
) -> Result:
    assert spec.code is not None
    only = "pytorch" if spec.code.kind is CodeKind.MODULE else "python"
    for word in runtimes:
        if word != only:
            raise UsageError(
                f"isolate=False measures it by {only} alone, not by {in_quotes(word)}.",
                "Leave out isolate=False.",
            )
    for batch in batch_sizes:
        if spec.fixed_batch is not None and batch != spec.fixed_batch:
            raise UsageError(
                f"It takes {spec.fixed_batch} items at once, not {batch}.", "Leave out batch_sizes."
            )
    runtime: Runtime = load(find_entry_points(ENGINES)[only])
    device = next(entry for entry in detect("cpu") if isinstance(entry, Device))
    here = describe_environment()
    rows = []
    bench = CaseBench(runtime, _Silent())
    opened: Mapping[str, Any] = {}
    try:
        for batch in batch_sizes:
            case = Case(spec, Target(only, "cpu"), "fp32", Shapes(batch))
            began = utc_now()
            try:
                if not opened:
                    opened = bench.answer(open_request(settings, case, device))
                outcome = _outcome(bench, case, settings, len(batch_sizes) == 1)
            except UsageError:
                raise
            except Exception as error:
                told = describe(error)
                outcome = Outcome(**{**told, "status": Status(told["status"])})
            outcome = replace(outcome, opened=opened, conditions=conditions(here))
            rows.append(
                compose(
                    LaunchFacts(settings.run_id, 1, job=settings),
                    Planned(case, device),
                    outcome,
                    runtime.info.provenance,
                    cost(case),
                    began,
                    utc_now(),
                    compiles=runtime.info.compiles,
                )
            )
    finally:
        bench.close()
    every = [_every_column(row) for row in rows]
    return Result(settings.run_id, every, here, isolated=False)


def _every_column(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{column.name: None for column in COLUMNS}, **row}


def _outcome(bench: CaseBench, case: Case, settings: RunSettings, alone: bool) -> Outcome:
    rules = {"iterations": settings.iterations, "warmup": settings.warmup, "seconds": None}
    request = {"do": "measure", "case": case_to_json(case), "rules": rules, "alone": alone}
    answer = bench.answer(request)
    metrics = {
        column: None if column.startswith(_MEMORY) else value
        for column, value in answer["metrics"].items()
    }
    empty = {column: _NOT_TOLD for column, value in metrics.items() if value is None}
    reasons = answer.get("null_reasons", {})
    told = {name: why for name, why in reasons.items() if not name.startswith(_MEMORY)}
    return Outcome(
        Status.OK,
        measurement={**answer, "metrics": metrics},
        warnings=[LOST],
        null_reasons={**empty, **told},
    )


class _Silent(Reporter):
    """Nobody who is told where a measurement stands."""

    def __init__(self) -> None:
        return None

    def phase(self, name: str) -> None:
        return None

    def progress(self, samples: int, median_ns: float, interval: Interval | None) -> None:
        return None
