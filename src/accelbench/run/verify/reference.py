"""The reference: the same model, weights and inputs in fp32 on the CPU with PyTorch.

The reference of a model file is that file as it is, run by the engine that defines its format. It
runs in its own worker, before the worker that measures is opened, so that neither memory nor caches
are touched. A case that is itself fp32 on the CPU with PyTorch is its own reference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case, Option, Target
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.model import FileFormat, ModelSpec
from accelbench.core.protocols import Device, Importing
from accelbench.core.vocabulary import Mode
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.code_models.loading import builder_of
from accelbench.models.file_models.unchanged import refuse_changed
from accelbench.run.plan.request import Planned
from accelbench.run.process.memory_guard import spill_to
from accelbench.run.process.wire import Channel, ClosedError
from accelbench.run.process.worker_client import WorkerContext, open_request

#: A reference that would take longer is not worth its time, nor more than this part of a budget;
#: where verifying is what was asked for, it may take as long as a case.
LONGEST_SECONDS = 60.0
LARGEST_SHARE = 0.25

#: Operations a second of one core: half of what BERT-base reaches (22e9 in 0.55 s).
_PER_CORE = 2e10

#: The estimate is rough; what takes this many times as long is not what was estimated.
_PATIENCE = 4.0

_RUNTIME = "pytorch"
CPU = Device("cpu", "the reference's processor")

#: What decides what is computed, of all that can be set on purpose.
_OPTIONS = frozenset({"optimizer"})

#: Set on purpose without changing a bit of what is computed.
_HARMLESS = frozenset({"threads"})


class NoReferenceError(Exception):
    """Why there is no reference, as the rest of a sentence; `reason` is the worker's reason
    code."""

    def __init__(self, why: str, reason: str = "") -> None:
        super().__init__(why)
        self.reason = reason


#: Of ONNX graphs that ONNX Runtime does not open as they are: it gives all outputs that the package
#: onnx stores beside such. Its own evaluator does, too, but takes the axis of an old `Add` for the
#: last, without a word.
_CONVERTED: Mapping[str, Option] = {"opset": "converted"}
_UNITS = {"cpu": CPU, "openvino": replace(CPU, hardware="openvino", unit="cpu")}


def _unit(case: Case) -> Device:
    hardware = case.target.hardware
    return _UNITS.get(hardware) or replace(CPU, hardware=hardware)


def reference_of(case: Case) -> Case:
    """Return a case's reference: in fp32 on the CPU with PyTorch; a file or a callable itself."""
    options = {name: value for name, value in case.options.items() if name in _OPTIONS}
    target, precision = Target(_RUNTIME, "cpu"), "fp32"
    if case.model.graph is not None:
        form = case.model.graph.format
        target = Target(form.reference_engine, form.reference_hardware)
        options |= form.reference_options
        precision = "int8" if case.model.graph.precision == "int8" else "fp32"
    if case.model.format is FileFormat.CALLABLE:
        # Where it computes is its own affair: a reference is asked on the same platform.
        target = Target(case.target.runtime, case.target.hardware)
        return replace(case, model=_reference_function(case.model), target=target, options={})
    return replace(case, target=target, precision=precision, world_size=1, options=options)


def otherwise(reference: Case, error: NoReferenceError) -> Case | None:
    """Return another reference if one failed, or None: an ONNX graph with old operators,
    converted."""
    graph = reference.model.graph
    if error.reason != "operator" or graph is None or graph.format is not FileFormat.ONNX:
        return None
    if set(_CONVERTED.items()) <= set(reference.options.items()):
        return None
    return replace(reference, options={**reference.options, **_CONVERTED})


def held_against(reference: Case) -> str:
    """Return what a reference is if it is not the model as it is; else an empty text."""
    # Such a reference can show that outputs are right. If they differ, it may be the wrong one.
    converted = set(_CONVERTED.items()) <= set(reference.options.items())
    return "the graph, converted to opset 7 by onnx" if converted else ""


def _reference_function(model: ModelSpec) -> ModelSpec:
    """Return the callable that a callable is compared with: itself, unless its owner names
    another."""
    code = model.code
    if code is None or not code.reference:
        return model
    own = (code.attribute, code.made_by)
    code = replace(code, attribute=code.reference, made_by="itself", reference="", example_of=own)
    return replace(model, builder=builder_of(code), code=code)


def is_own(case: Case) -> bool:
    """Return whether a case is its own reference."""
    if case.model.format is not None and case.model.format.unverifiable:
        return False
    kept = {name: value for name, value in case.options.items() if name not in _HARMLESS}
    unit = Target(case.target.runtime, case.target.hardware)
    return replace(case, options=kept, target=unit).case_id == reference_of(case).case_id


def most_seconds(context: WorkerContext) -> float:
    """Return how long a reference may take."""
    left, longest = context.budget.left(), LONGEST_SECONDS
    if context.settings.verify in ("require", "only"):
        longest = max(longest, context.settings.timeout)
    return longest if left is None else min(longest, LARGEST_SHARE * left)


def seconds(context: WorkerContext, case: Case, steps: int) -> float:
    """Estimate the seconds of so many steps of a reference."""
    counted = context.cost(Planned(case, CPU))
    shapes = case.shapes
    # Not counted: two operations a weight and token forward, twice that backward.
    tokens = shapes.batch * (shapes.sequence or shapes.prompt_tokens or 1)
    each = 6.0 if case.mode is Mode.TRAINING else 2.0
    flops = counted.flops if counted else each * case.model.parameters * tokens
    cores = context.settings.threads or os.cpu_count() or 1
    return steps * flops / (_PER_CORE * cores)


def prepare(context: WorkerContext, case: Case, steps: int, wide: bool = False) -> Path | None:
    """Return the folder for a reference's weights if the memory does not hold them.

    A `wide` one computes in fp64 too: it takes twice the memory, and never the disk. Raises
    NoReferenceError if a reference is not worth trying.
    """
    name = case.target.runtime
    runtime = context.runtimes.get(name)
    wanted = case.model.format
    if wanted is not None and wanted.unverifiable:
        raise NoReferenceError(wanted.unverifiable)
    if runtime is None:
        raise NoReferenceError(f"the runtime {name} is not installed here")
    support = runtime.supports(case, _unit(case))
    if not support.ok:
        raise NoReferenceError(support.message)
    # Weights and, in training, gradients and the optimizer's two moments: more in any case.
    least = (16 if case.mode is Mode.TRAINING else 4) * case.model.parameters
    need = (context.estimate(case) or least) * (2 if wide else 1)
    room = context.free(CPU)
    spill = None
    if room is not None and need > room and not wide:
        spill = spill_to(case, case.model.weights_from(context.settings.weights), need, room)
    if room is not None and need > room and spill is None:
        raise NoReferenceError(
            f"in fp32 on the CPU it needs an estimated {need / 2**30:.1f} GiB,"
            f" and {room / 2**30:.1f} GiB is free"
        )
    needed, most = seconds(context, case, steps), most_seconds(context)
    if needed > most:
        raise NoReferenceError(
            f"in fp32 on the CPU it would take an estimated {needed:.0f} s,"
            f" and {max(most, 0):.0f} s is the most; --verify require gives it as long as a case"
        )
    return spill


def ask(
    context: WorkerContext,
    case: Case,
    steps: int,
    requests: Sequence[Mapping[str, Any]],
    wide: bool = False,
) -> list[dict[str, Any]]:
    """Return the answers of a worker with the reference open, each with its weights_digest.

    Raises NoReferenceError if there is no reference.
    """
    spill = prepare(context, case, steps, wide)
    settings = context.settings
    artefact = _artefact(context, case)
    try:
        worker = context.worker_pool.worker(context.runtimes[case.target.runtime], settings.threads)
    except (SurroundingsError, ClosedError, TimeoutError) as error:
        words = error or "it did not answer in time"
        raise NoReferenceError(f"its worker did not start ({words})") from error
    patience = min(settings.timeout, _PATIENCE * most_seconds(context))
    try:
        opened = _answer(
            worker.channel, open_request(settings, case, _unit(case), artefact, spill), patience
        )
        digest = {"weights_digest": opened.get("weights_digest") or ""}
        return [{**digest, **_answer(worker.channel, request, patience)} for request in requests]
    except TimeoutError as error:
        raise NoReferenceError(
            f"in fp32 on the CPU it was not finished after {patience:.0f} s"
        ) from error
    except ClosedError as error:
        raise NoReferenceError("its worker ended in the middle of it") from error
    finally:
        worker.end()


def _artefact(context: WorkerContext, case: Case) -> str | None:
    runtime = context.runtimes[case.target.runtime]
    if case.model.graph is None or not isinstance(runtime, Importing):
        return None
    recipe = Recipe(case, runtime.wants(case), context.settings.seed)
    try:
        refuse_changed(case.model.graph)
        return str(make(recipe, Cache()).folder)
    except CaseError as error:
        raise NoReferenceError(error.message) from error


def _answer(channel: Channel, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    channel.send(request)
    message = channel.receive(patience)
    if message["event"] == "error":
        reason = str(message.get("reason") or "")
        raise NoReferenceError(f"in fp32 on the CPU, {message['message']}", reason)
    return message
