"""Which `run` command leaves the result that an answer lacks, or why none does. Pure.

The command, run as it stands on a machine that has the hardware, leaves a result that the same
question then finds as measured. So it asks for what the question asks for, and for the
circumstances of the figures that the result is to stand beside: what was trained by another
optimizer answers another question, and would never be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from accelbench.catalog.inputs import settle
from accelbench.core.case import Shapes
from accelbench.core.devices import EITHER, devices_in
from accelbench.core.errors import AccelbenchError
from accelbench.core.model import ModelSpec
from accelbench.core.precision import PRECISIONS
from accelbench.core.rows import number
from accelbench.core.run_words import (
    batch_words,
    default_precision_words,
    framework_words,
    mode_words,
    precision_words,
    run_command,
    size_words,
)
from accelbench.core.vocabulary import SINGLE_STREAM, Mode
from accelbench.hardware.detect import known
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.select_context import own_shapes
from accelbench.select.query.query import GENERATING, SIZES, Query

#: What `run` takes after a platform's colon; a device's whole name has spaces, which part its list.
_ORDINAL = re.compile(r"\d{1,2}|cpu|gpu|npu", re.IGNORECASE)


@dataclass(frozen=True)
class MeasurementTarget:
    """What a new result is to stand beside.

    Attributes:
        sizes: of a step, by the store's columns.
        circumstances: what else the figures of the model have in common; empty where it has none.
        where: words of `run` that name where its results are looked for.
        unwritable: why no result can be put there; "" where one can.
        sharers: what several share a step as, where the circumstances are of several.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    circumstances: Mapping[str, object] = field(default_factory=dict)
    where: Sequence[str] = ()
    unwritable: str = ""
    sharers: str = EITHER


@dataclass(frozen=True)
class Remedy:
    """What fills a gap: a command, or why there is none; on what machine, where that matters."""

    command: str | None
    why: str = ""
    device: str = ""

    def __str__(self) -> str:
        if self.command is None:
            return f"No command measures it as it stands: {self.why}."
        on = f", where there is {self.device}" if self.device else ""
        return f"To measure{on}: {self.command}"


class _NoCommandError(Exception):
    """Why none does."""


def remedy(
    query: Query,
    candidate: Candidate,
    beside: MeasurementTarget | None = None,
    engine: str | None = None,
) -> Remedy:
    """What measures a question on a candidate, by an engine if its default one failed."""
    device = "" if _ORDINAL.fullmatch(candidate.device) else candidate.device
    try:
        command = _command(query, candidate, beside or MeasurementTarget(query.shapes), engine)
    except _NoCommandError as error:
        return Remedy(None, str(error), device)
    return Remedy(command, "", device)


def _command(
    query: Query, candidate: Candidate, beside: MeasurementTarget, engine: str | None
) -> str:
    spec = _model(query)
    return run_command(
        query.names[0],
        _hardware(candidate),
        batch_words(query.batch),
        _mode(query, spec),
        framework_words(engine),
        _precision(query, candidate, engine),
        _sizes(query, spec, beside),
        _circumstances(beside, query.mode),
        _where(beside),
    )


def _model(query: Query) -> ModelSpec:
    if query.spec is not None:
        return query.spec
    if not query.model:
        raise _NoCommandError("no model is named")
    raise _NoCommandError(
        f"{query.model} is in no catalogue: name its file, folder or code to accelbench run, or"
        " give --models-file"
    )


def _hardware(candidate: Candidate) -> str:
    """As `run` takes it: a platform, and which of its devices where a number or a unit says it."""
    if candidate.platform not in _platforms():
        raise _NoCommandError(
            f"{candidate.platform} is hardware that no plugin knows: its results come by accelbench"
            " db import"
        )
    if devices_in(candidate.device)[0] > 1:
        raise _NoCommandError(f"{candidate.device} is several devices, and run measures one")
    if _ORDINAL.fullmatch(candidate.device):
        return f"{candidate.platform}:{candidate.device.lower()}"
    return candidate.platform


@cache
def _platforms() -> frozenset[str]:
    """What is installed: it is looked for once."""
    return frozenset(known())


def _mode(query: Query, spec: ModelSpec) -> tuple[str, ...]:
    if query.mode != Mode.INFERENCE and spec.training is None:
        raise _NoCommandError(f"the catalogue does not say how {spec.id} is trained")
    return mode_words(query.mode)


def _precision(query: Query, candidate: Candidate, engine: str | None) -> tuple[str, ...]:
    if not query.precision:
        return default_precision_words(candidate.platform, engine)
    if query.precision not in PRECISIONS:
        raise _NoCommandError(f"run measures in no {query.precision}")
    return precision_words(query.precision)


def _where(beside: MeasurementTarget) -> Sequence[str]:
    if beside.unwritable:
        raise _NoCommandError(beside.unwritable)
    return beside.where


def _sizes(query: Query, spec: ModelSpec, beside: MeasurementTarget) -> Iterator[str]:
    sizes = {**query.shapes, **beside.sizes}
    wanted = {name: value for name, value in sizes.items() if value is not None}
    makes = spec.generation if query.mode == Mode.INFERENCE else None
    if makes is not None and not wanted:
        # Of what generates each platform is asked to: one that measured a forward pass instead
        # would stand beside none of the others.
        own = own_shapes(spec)
        wanted = {name: own[name] for name in GENERATING if name in own}
    if makes is not None and wanted.keys() & set(GENERATING):
        # Beside an engine that cannot generate, one forward pass is what `run` settles on.
        wanted.setdefault("new_tokens", makes.new_tokens)
    fields: dict[str, Any] = {SIZES[name]: value for name, value in wanted.items()}
    shapes = Shapes(query.batch, **fields)
    try:
        settled = settle(spec, shapes)
    except AccelbenchError as error:
        raise _NoCommandError(error.message.rstrip(".")) from error
    for name, value in wanted.items():
        if getattr(settled, SIZES[name]) != value:
            raise _NoCommandError(f"{spec.id} has no {_plainly(name)} to be set")
    yield from size_words(wanted)
    if makes is not None and "sequence_length" in wanted:
        yield from ("--new-tokens", "0")


def _circumstances(beside: MeasurementTarget, mode: str) -> Iterator[str]:
    """The options that make a result one of these figures; what none can make is refused."""
    circumstances = beside.circumstances
    if circumstances.get("scenario") not in (None, SINGLE_STREAM):
        raise _NoCommandError(
            f"the figures that are known are of the scenario {circumstances['scenario']}"
        )
    if (number(circumstances, "world_size") or 1) > 1:
        raise _NoCommandError(
            f"the figures that are known are of {circumstances['world_size']} {beside.sharers}"
            " together"
        )
    optimizer = circumstances.get("optimizer")
    if mode == Mode.TRAINING and optimizer not in (None, "adamw"):
        yield from ("--optimizer", str(optimizer))


def _plainly(column: str) -> str:
    return column.replace("_", " ")
