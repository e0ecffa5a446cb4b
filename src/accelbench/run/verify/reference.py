"""The reference: the same model, weights and inputs in fp32 on the CPU with PyTorch.

The reference of a model file is that file as it is, run by the engine that defines its format. It
runs in its own worker, before the worker that measures is opened, so that neither memory nor caches
are touched. A case that is itself fp32 on the CPU with PyTorch is its own reference.

References of a run's cases: the outputs they are compared with, and what rounding costs.

Before the worker that measures is opened, a reference stores its outputs, and those for other
inputs, in a file. For a narrow precision it also reports how far off it is itself with rounded
products. If an fp32 case is further off than another order of summation explains, it reports how
far it is from itself in fp64, or with inputs that are off by their last places.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench.core.case import Case, Option, Target
from accelbench.core.errors import CaseError, SurroundingsError
from accelbench.core.model import FileFormat, ModelSpec
from accelbench.core.precision import narrow_type
from accelbench.core.protocols import Device, Importing
from accelbench.core.serial import case_to_json
from accelbench.core.vocabulary import Mode
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.code_models.loading import builder_of
from accelbench.models.file_models.unchanged import refuse_changed
from accelbench.run.plan.request import Planned
from accelbench.run.process.memory_guard import spill_to
from accelbench.run.process.wire import Channel, ClosedError
from accelbench.run.process.worker_client import Progress, WorkerContext, open_request

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
        spill = spill_to(case, case.model.weights_setting(context.settings.weights), need, room)
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


_log = logging.getLogger(__name__)

#: What the reference runs: its inputs, and others; rounded, once more. In fp64 a pass takes twice
#: as long.
_STEPS = 2

#: Items that a reference computes of a larger batch, at least.
ITEMS = 3

#: Estimated seconds that a reference may take if it computes more items than that: of resnet-tiny
#: 38, of vit-tiny eight. 64 items of resnet-tiny took 70 ms more than three.
_SPARE_SECONDS = 0.025

#: What a second run of a verified batch may take: so much of what its reference is estimated to
#: take, within these bounds.
_SECOND_RUN_SHARE, _SECOND_RUN_LEAST_NS, _SECOND_RUN_MOST_NS = 0.05, 5e6, 50e6


#: How a reference is asked how far it is from itself, and what that shows.
FP64, LAST_PLACES = "fp64", "last_places"
_BY = {FP64: "rounding to fp32", LAST_PLACES: "one unit in the last place of its inputs"}


@dataclass(frozen=True)
class OwnRounding:
    """How far rounding alone takes a reference's outputs; empty if that is not known."""

    by: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CellReference:
    """The folder of a reference's outputs, or why there is none."""

    items: tuple[int, ...]  # of the input stream
    folder: Path | None = None
    why: str = ""
    weights_digest: str = ""  # of what the reference was made of
    other: str = ""  # what it is where it is not the model as it is


@dataclass(frozen=True)
class _Asked:
    """A question to a reference: a case with as many items as a batch."""

    case: Case
    items: tuple[int, ...]

    @property
    def key(self) -> str:
        first = self.items == tuple(range(len(self.items)))
        return self.case.case_id if first else f"{self.case.case_id} {self.items}"


class References:
    """The references of a run."""

    def __init__(self) -> None:
        self._kept: dict[str, CellReference] = {}  # by what the reference was asked
        self._asked: dict[str, _Asked] = {}  # of a cell, whatever its batch: that question
        self._doubted: dict[str, _Asked] = {}  # of a case that is being looked at again
        self._rounded: dict[tuple[str, str], float | None] = {}
        self._rounded_errors: dict[tuple[str, str], Mapping[str, float]] = {}
        self._moved: dict[tuple[str, str], Mapping[str, Any]] = {}  # by what was asked
        self._drawn: dict[str, frozenset[str]] = {}
        self._errors: dict[str, NoReferenceError] = {}
        self.draw = int.from_bytes(os.urandom(4), "little")

    def gather(self, context: WorkerContext, case: Case, batches: Sequence[int]) -> None:
        """Have the reference of a case that will be measured at these batches."""
        # Whether an item's outputs of a file or of a user's code are its own alone is not known:
        # each batch has its own reference.
        if case.model.is_user_model:
            for batch in dict.fromkeys(batches):
                own = _of_items(case, batch)
                self._gather(context, own, self._question_of(own, range(batch)))
            return
        largest = max(batches, default=1)
        known = self._asked.get(_question(case))
        if known is None or len(known.items) < min(largest, ITEMS):
            most = max(ITEMS, _affordable(context, case)) if largest > ITEMS else ITEMS
            known = self._question_of(case, range(min(largest, most)))
        self._gather(context, case, known)

    def _question_of(self, case: Case, items: Sequence[int]) -> _Asked:
        known = self._asked.get(_question(case))
        if known is not None and known.items == tuple(items):
            return known
        return _Asked(_of_items(reference_of(case), len(items)), tuple(items))

    def _gather(self, context: WorkerContext, case: Case, asked: _Asked) -> None:
        self._asked[_question(case)] = asked
        kept = self._ask_for(context, case, asked)
        if kept.folder is not None or (error := self._errors.get(asked.key)) is None:
            return
        other = otherwise(asked.case, error)
        if other is not None:
            converted = replace(asked, case=other)
            if self._ask_for(context, case, converted).folder is not None:
                self._asked[_question(case)] = converted

    def _ask_for(self, context: WorkerContext, case: Case, asked: _Asked) -> CellReference:
        """Have a reference store its outputs, unless it has, or has failed to."""
        precision = narrow_type(case.precision)
        key = (asked.key, precision or "")
        kept = self._kept.get(asked.key)
        if kept and (key in self._rounded or precision is None or kept.folder is None):
            return kept
        context.observer.progress(Progress("reference"))
        folder = (kept.folder if kept else None) or context.worker_pool.new_folder("reference")
        request = {**self._request(asked, folder), "whole": kept is None, "rounded": precision}
        try:
            (answer,) = ask(context, asked.case, _STEPS + bool(precision), [request])
        except NoReferenceError as error:
            self._rounded[key] = None
            if kept is None:
                self._errors[asked.key] = error
                kept = self._kept[asked.key] = CellReference(asked.items, why=str(error))
            return kept
        self._rounded[key] = answer["rounded"]
        self._rounded_errors[key] = _numbers(answer)
        weights = str(answer.get("weights_digest") or "")
        kept = CellReference(asked.items, folder, "", weights, held_against(asked.case))
        self._kept[asked.key] = kept
        return kept

    def doubt(self, context: WorkerContext, case: Case, items: Sequence[int]) -> bool:
        """Have other items computed, and compare a case with these until `trust`; return if that
        worked."""
        asked = self._asked[_question(case)]
        asked = _Asked(_of_items(asked.case, len(items)), tuple(items))
        self._doubted[case.case_id] = asked
        return self._ask_for(context, case, asked).folder is not None

    def trust(self, case: Case) -> None:
        """Compare a case with its first reference again."""
        self._doubted.pop(case.case_id, None)

    def _asked_of(self, case: Case) -> _Asked | None:
        return self._doubted.get(case.case_id) or self._asked.get(_question(case))

    def _asked_before(self, case: Case) -> _Asked:
        asked = self._asked_of(case)
        assert asked is not None
        return asked

    def of(self, case: Case) -> CellReference | None:
        """Return what a case is compared with; None if it was never gathered."""
        asked = self._asked_of(case)
        return None if asked is None else self._kept.get(asked.key)

    def rounded(self, case: Case) -> float | None:
        """Return the error of the reference rounded to a case's precision; None if not gathered."""
        asked = self._asked_of(case)
        if asked is None:
            return None
        return self._rounded.get((asked.key, narrow_type(case.precision) or ""))

    def fp64(self, context: WorkerContext, case: Case) -> float:
        """Return how far the reference is from itself in fp64; 0 if that is not known."""
        return self._from_itself(context, self._asked_before(case), FP64).get("error") or 0.0

    def own_rounding(self, context: WorkerContext, case: Case) -> OwnRounding:
        """Return how far rounding alone takes each of a reference's outputs in a case's
        precision."""
        # For a narrow precision that is known. In fp32 a module is asked in fp64, and if that shows
        # nothing by the last places of its inputs; a file in the other order, as no engine has its
        # graph in fp64. A callable is compared with another function of its owner's, and neither
        # need get numbers.
        asked = self._asked_before(case)
        model = asked.case.model
        if model.format is FileFormat.CALLABLE:
            return OwnRounding()
        if precision := narrow_type(case.precision):
            errors = self._rounded_errors.get((asked.key, precision), {})
            return OwnRounding(f"rounding to {precision}", errors)
        ways = (LAST_PLACES, FP64) if model.graph is not None else (FP64, LAST_PLACES)
        for way in ways:
            errors = _numbers(self._from_itself(context, asked, way))
            if any(errors.values()):
                return OwnRounding(_BY[way], errors)
        return OwnRounding()

    def _from_itself(self, context: WorkerContext, asked: _Asked, way: str) -> Mapping[str, Any]:
        key = (asked.key, way)
        if key not in self._moved:
            self._moved[key] = self._again(context, asked, way, wide=way == FP64)
        return self._moved[key]

    def drawn(self, context: WorkerContext, case: Case) -> frozenset[str]:
        """Return outputs of the reference that differ from run to run by more than rounding."""
        asked = self._asked_before(case)
        if asked.key not in self._drawn:
            answer = self._again(context, asked, "drawn")
            self._drawn[asked.key] = frozenset(answer.get("drawn", ()))
        return self._drawn[asked.key]

    def _again(
        self, context: WorkerContext, asked: _Asked, what: str, wide: bool = False
    ) -> Mapping[str, Any]:
        """Ask a reference that has stored its outputs something more; empty if it cannot answer."""
        folder = self._kept[asked.key].folder
        assert folder is not None
        context.observer.progress(Progress("reference"))
        try:
            request = {**self._request(asked, folder), "do": what}
            return ask(context, asked.case, _STEPS, [request], wide=wide)[0]
        except NoReferenceError as error:
            _log.debug("%s: the reference cannot say %s: %s", asked.case, what, error)
            return {}

    def _request(self, asked: _Asked, folder: Path) -> dict[str, Any]:
        return {
            "do": "outputs", "case": case_to_json(asked.case), "items": list(asked.items),
            "folder": str(folder), "draw": self.draw,
        }  # fmt: skip

    def comparison(self, context: WorkerContext, case: Case) -> Mapping[str, Any]:
        """Return the request to the worker that has measured a case, about items in doubt if
        there are any."""
        yardstick = self.of(case)
        assert yardstick is not None
        return {
            "do": "verify",
            "case": case_to_json(case),
            "folder": str(yardstick.folder),
            "draw": self.draw,
            "items": list(yardstick.items),
            "doubted": case.case_id in self._doubted,
            "rounded": self.rounded(case),
            "spare_ns": _spare_ns(context, self._asked_before(case).case),
        }


def _spare_ns(context: WorkerContext, reference: Case) -> float:
    """Return what a second run of a verified batch may take."""
    share_ns = _SECOND_RUN_SHARE * seconds(context, reference, _STEPS) * 1e9
    return min(max(share_ns, _SECOND_RUN_LEAST_NS), _SECOND_RUN_MOST_NS)


def _affordable(context: WorkerContext, case: Case) -> int:
    """Return how many items a reference computes in the time that it may take for more."""
    one = _of_items(reference_of(case), 1)
    if context.cost(Planned(one, CPU)) is None:
        return 0  # the estimate by the number of weights is too low for convolutions
    steps = _STEPS + bool(narrow_type(case.precision))
    return int(_SPARE_SECONDS / seconds(context, one, steps))


def _numbers(answer: Mapping[str, Any]) -> dict[str, float]:
    errors = answer.get("errors") or {}
    return {name: error for name, error in errors.items() if error is not None}


def batchless(case: Case) -> str:
    """Return the id of a case at any batch."""
    return _of_items(case, 0).case_id


def _question(case: Case) -> str:
    """Return what shares a reference: a case at any batch; a user's model only at its own."""
    return case.case_id if case.model.is_user_model else batchless(case)


def _of_items(case: Case, items: int) -> Case:
    return replace(case, shapes=replace(case.shapes, batch=items))
