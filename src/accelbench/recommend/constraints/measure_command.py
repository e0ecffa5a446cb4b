"""The `run` command that measures what an answer or an option lacks, or why there is none.

Its result answers the same question: it has the same sizes and circumstances as the results that
it is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from accelbench.core.case import Option as Setting
from accelbench.core.case import Shapes, runtimes_own
from accelbench.core.devices import EITHER, FP32, default_precision, devices_in, sharing
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.plugins import ENGINES, registered
from accelbench.core.precision import parse_precision
from accelbench.core.rows import Row, number
from accelbench.core.run_words import (
    batch_words,
    framework_words,
    mode_words,
    precision_words,
    run_command,
    size_words,
)
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.hardware.detect import known
from accelbench.models.inputs import settle
from accelbench.recommend.constraints.options import Option
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import sizes_of
from accelbench.recommend.evidence.select_context import own_shapes
from accelbench.recommend.query.query import GENERATING, SIZES, Query

#: What `run` takes after a platform's colon. A device's whole name has spaces, which split lists.
_ORDINAL = re.compile(r"\d{1,2}|cpu|gpu|npu", re.IGNORECASE)
_FLAGS = {"compile": "--compile", "gradient_checkpointing": "--gradient-checkpointing"}
_FLAGS |= {"pure": "--pure"}
#: Weights that `run` takes by default.
_RANDOM = "random"


@dataclass(frozen=True)
class MeasurementTarget:
    """What new results are compared with, and where they are stored.

    Attributes:
        sizes: of a step, by the store's columns.
        circumstances: what else the results of the model have in common.
        where: words of `run` that name the store.
        unwritable: why no result can be stored there.
        sharers: what several share a step as, such as devices.
        energy: whether energy is measured, as a limit requires.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    circumstances: Mapping[str, object] = field(default_factory=dict)
    where: Sequence[str] = ()
    unwritable: str = ""
    sharers: str = EITHER
    energy: bool = False


class Words(TypedDict):
    """A measurement in the words of `run`.

    Attributes:
        hardware: a platform, or "platform:device".
        command: None if there is none.
        unmeasurable: why there is no command.
    """

    model: str
    hardware: str
    device: str | None
    runtime: str | None
    precision: str
    batch_size: int
    mode: str
    shapes: dict[str, int]
    options: dict[str, Setting]
    weights: str
    data: str | None
    command: NotRequired[str | None]
    unmeasurable: NotRequired[str]
    energy: NotRequired[bool]


@dataclass(frozen=True)
class Remedy:
    """The command that measures a candidate, or why there is none, and the device it requires."""

    command: str | None
    why: str = ""
    device: str = ""

    def __str__(self) -> str:
        if self.command is None:
            return f"No command measures it as it stands: {self.why}."
        on = f", where there is {self.device}" if self.device else ""
        return f"To measure{on}: {self.command}"


class _NoCommandError(Exception):
    """Why there is no command."""


def remedy(
    query: Query, candidate: Candidate, target: MeasurementTarget, engine: str | None = None
) -> Remedy:
    """Return what measures a question on a candidate, by an engine if its default one failed."""
    precision = query.precision or default_precision(candidate.platform, engine)
    words = _words(query, candidate.name, precision, query.batch, target.sizes)
    if query.spec is not None and query.mode == Mode.INFERENCE and not words["shapes"]:
        # A forward pass could not be compared with the requests that other platforms answer.
        own = own_shapes(query.spec)
        words["shapes"] = {name: own[name] for name in GENERATING if name in own}
    if optimizer := target.circumstances.get("optimizer"):
        words["options"] = {"optimizer": str(optimizer)}
    words = _with_command(query, {**words, "runtime": engine}, target)
    device = "" if _ORDINAL.fullmatch(candidate.device) else candidate.device
    return Remedy(words["command"], words.get("unmeasurable", ""), device)


def case(query: Query, option: Option, target: MeasurementTarget) -> Words:
    """Return the measurement that answers what an option leaves open."""
    row = option.row
    words: Words = {
        **_words(query, option.hardware, option.precision, option.batch_size, sizes_of(row)),
        "device": option.device,
        "runtime": option.runtime or None,
        "options": option.settings,
        "weights": _weights(query, row.get("weights")),
        "data": _folder(row.get("data_source")),
    }
    if row.get("provenance") == Provenance.IMPORTED and (own := runtimes_own(option.settings)):
        return {
            **words,
            "command": None,
            "unmeasurable": f"its settings ({', '.join(sorted(own))}) are those of its source",
        }
    beside = replace(target, circumstances=row, sharers=sharing(row))
    return _with_command(query, words, beside, is_measured=True)


def unmeasured(
    query: Query, candidate: Candidate, precision: str, batch: int, target: MeasurementTarget
) -> Words:
    """Return the measurement of a candidate by the default engine of its platform."""
    words = _words(query, candidate.name, precision, batch, {})
    return _with_command(query, {**words, "device": candidate.device or None}, target)


def _words(
    query: Query, hardware: str, precision: str, batch: int, sizes: Mapping[str, int]
) -> Words:
    return {
        "model": query.names[0],
        "hardware": hardware,
        "device": None,
        "runtime": None,
        "precision": precision,
        "batch_size": batch,
        "mode": query.mode,
        "shapes": _shapes(query, {**query.shapes, **sizes}),
        "options": {},
        "weights": _RANDOM,
        "data": None,
    }


def _shapes(query: Query, sizes: Mapping[str, int | None]) -> dict[str, int]:
    """Return sizes as `run` takes them: a forward pass of a model that generates has no tokens."""
    training = query.mode == Mode.TRAINING
    shapes = {
        name: int(value)
        for name, value in sizes.items()
        if value is not None and not (training and name in GENERATING)
    }
    makes = query.spec.generation if query.spec is not None and not training else None
    if makes is not None and shapes.get("sequence_length") and not shapes.get("new_tokens"):
        shapes["new_tokens"] = 0
    elif makes is not None and shapes.keys() & set(GENERATING):
        # Without a number, an engine that cannot generate would compute a forward pass.
        shapes.setdefault("new_tokens", makes.new_tokens)
    return shapes


def _weights(query: Query, weights: str | None) -> str:
    if weights and query.spec is not None and weights in query.spec.hub_ids:
        return "hub"
    return _folder(weights) or _RANDOM


def _folder(source: str | None) -> str | None:
    """Return a folder of this machine; the names of other sources lead nowhere here."""
    return str(source) if source and str(source).startswith("/") else None


def _with_command(
    query: Query, words: Words, target: MeasurementTarget, *, is_measured: bool = False
) -> Words:
    if target.energy:
        words = {**words, "energy": True}
    try:
        return {**words, "command": _command(query, words, target, is_measured=is_measured)}
    except _NoCommandError as error:
        return {**words, "command": None, "unmeasurable": str(error)}


def _command(query: Query, words: Words, target: MeasurementTarget, *, is_measured: bool) -> str:
    _refuse_unknown_model(query)
    hardware = _hardware(words["hardware"])
    _refuse_circumstances(target.circumstances, target.sharers)
    if words["runtime"] and words["runtime"] not in registered(ENGINES):
        raise _NoCommandError(f"the engine {words['runtime']} is not here")
    precision = _precision(query, words["precision"])
    if query.spec is not None and not is_measured:
        _refuse_sizes(query.spec, words["batch_size"], words["shapes"])
    if target.unwritable:
        raise _NoCommandError(target.unwritable)
    return run_command(
        words["model"],
        hardware,
        batch_words(words["batch_size"]),
        mode_words(words["mode"]),
        framework_words(words["runtime"]),
        precision,
        size_words(words["shapes"]),
        _settings(words),
        ("--energy",) if target.energy else (),
        target.where,
    )


def _refuse_unknown_model(query: Query) -> None:
    """Refuse what is neither in the catalogue nor a file, a folder or code here."""
    spec, name = query.spec, query.names[0]
    if spec is not None:
        if query.mode != Mode.INFERENCE and spec.training is None:
            raise _NoCommandError(f"the catalogue does not say how {spec.id} is trained")
        return
    if not query.model:
        raise _NoCommandError("no model is named")
    if not any(Path(path).exists() for path in (name, name.rpartition(":")[0]) if path):
        raise _NoCommandError(
            f"{query.model} is neither in the catalogue nor here: start accelbench in the folder of"
            " its file or code, or give --models-file"
        )


def _hardware(name: str) -> str:
    """Return a platform with the number or kind of its device, as `run` takes it."""
    platform, _, device = name.partition(":")
    if platform not in _platforms():
        raise _NoCommandError(
            f"{platform} is hardware that no plugin knows: its results come by accelbench db import"
        )
    if devices_in(device)[0] > 1:
        raise _NoCommandError(f"{device} is several devices, and run measures one")
    return f"{platform}:{device.lower()}" if _ORDINAL.fullmatch(device) else platform


@cache
def _platforms() -> frozenset[str]:
    return frozenset(known())


def _precision(query: Query, precision: str) -> tuple[str, ...]:
    try:
        parse_precision(precision)
    except UsageError as error:
        raise _NoCommandError(f"run measures in no {precision}") from error
    return precision_words(precision) if query.precision or precision != FP32 else ()


def _refuse_sizes(spec: ModelSpec, batch: int, sizes: Mapping[str, int]) -> None:
    """Refuse sizes that a model does not have."""
    fields: dict[str, Any] = {SIZES[name]: value for name, value in sizes.items()}
    try:
        settled = settle(spec, Shapes(batch, **fields))
    except AccelbenchError as error:
        raise _NoCommandError(error.message.rstrip(".")) from error
    for name, value in sizes.items():
        if value and getattr(settled, SIZES[name]) != value:
            raise _NoCommandError(f"{spec.id} has no {name.replace('_', ' ')} to be set")


def _refuse_circumstances(circumstances: Row, sharers: str) -> None:
    """Refuse circumstances that no run has: requests at once, several devices."""
    if circumstances.get("scenario") not in (None, SINGLE_STREAM):
        raise _NoCommandError(f"the known results are of the scenario {circumstances['scenario']}")
    if (number(circumstances, "world_size") or 1) > 1:
        raise _NoCommandError(
            f"the known results are of {circumstances['world_size']} {sharers} together"
        )


def _settings(words: Words) -> Iterator[str]:
    options = words["options"]
    yield from (flag for name, flag in _FLAGS.items() if options.get(name))
    if options.get("threads") is not None:
        yield from ("--threads", str(options["threads"]))
    if words["mode"] == Mode.TRAINING and options.get("optimizer") not in (None, "adamw"):
        yield from ("--optimizer", str(options["optimizer"]))
    for name, value in sorted(runtimes_own(options).items()):
        spelt = str(value).lower() if isinstance(value, bool) else str(value)
        yield from ("--option", f"{words['runtime']}.{name}={spelt}")
    if words["weights"] != _RANDOM:
        yield from ("--weights", words["weights"])
    if words["data"]:
        yield from ("--data", words["data"])
