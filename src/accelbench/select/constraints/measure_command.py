"""Which `run` command leaves the result that an answer or an option lacks, or why none does.

The command, run on a machine that has the hardware, leaves a result that the same question then
finds as measured. So it asks for what the question asks for, and for the circumstances of the
results that it is to be compared with: what was trained by another optimizer answers another
question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from accelbench.catalog.inputs import settle
from accelbench.core.case import Option as Setting
from accelbench.core.case import Shapes, runtimes_own
from accelbench.core.devices import EITHER, FP32, devices_in, sharing
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.plugins import ENGINES, HARDWARE, registered
from accelbench.core.precision import PRECISIONS, parse_precision
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
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.hardware.detect import known
from accelbench.select.constraints.options import Option
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import EvidenceRow, sizes_of
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


def _model(query: Query) -> ModelSpec | None:
    """Return the model of the catalogue, or None if the name is a file, a folder or code here."""
    if query.spec is not None:
        return query.spec
    if not query.model:
        raise _NoCommandError("no model is named")
    name = query.names[0]
    if any(Path(path).exists() for path in (name, name.rpartition(":")[0]) if path):
        return None
    raise _NoCommandError(
        f"{query.model} is neither in the catalogue nor here: start accelbench in the folder of its"
        " file or code, or give --models-file"
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


def _mode(query: Query, spec: ModelSpec | None) -> tuple[str, ...]:
    if query.mode != Mode.INFERENCE and spec is not None and spec.training is None:
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


def _sizes(query: Query, spec: ModelSpec | None, beside: MeasurementTarget) -> Iterator[str]:
    sizes = {**query.shapes, **beside.sizes}
    wanted = {name: value for name, value in sizes.items() if value is not None}
    if spec is None:
        yield from size_words(wanted)
        return
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


class Words(TypedDict):
    """What a run is asked for.

    Attributes:
        hardware: a platform, and a device of it after a colon where one is named.
        command: that asks for it; None where there is none.
        unmeasurable: why there is none.
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


_FLAGS = {"compile": "--compile", "gradient_checkpointing": "--gradient-checkpointing"}
_FLAGS |= {"pure": "--pure"}
_VALUES = {"threads": "--threads", "optimizer": "--optimizer"}
#: Weights unless somebody says otherwise.
_RANDOM = "random"


@dataclass(frozen=True)
class Installed:
    """What this installation can measure on, and by.

    Attributes:
        where: words of `run` that put its results where they are looked for.
        unwritable: why none can be put there; "" where one can.
        energy: what is measured has its energy measured too, as a limit asks.
    """

    platforms: frozenset[str]
    engines: frozenset[str]
    where: Sequence[str] = ()
    unwritable: str = ""
    energy: bool = False


def installed(where: Sequence[str] = (), unwritable: str = "") -> Installed:
    """As packages register it; none of them is imported."""
    engines = frozenset(registered(ENGINES))
    return Installed(frozenset(registered(HARDWARE)), engines, where, unwritable)


def case(query: Query, option: Option, here: Installed) -> Words:
    """An option as words of a case, so that measuring it answers what the option leaves open."""
    row = option.row
    sizes = _case_words_sizes(query, {**query.shapes, **sizes_of(row)})
    words: Words = {
        **_case(query, option.hardware, option.precision, option.batch_size),
        "device": option.device,
        "runtime": option.runtime or None,
        "shapes": sizes,
        "options": option.settings,
        "weights": _source(query, row.get("weights")),
        "data": _folder(row.get("data_source")),
    }
    return _with_command(query, words, _unaskable(row, option.settings), here)


def unmeasured(
    query: Query, candidate: Candidate, precision: str, batch: int, here: Installed
) -> Words:
    """What nobody measured, by whichever engine is the platform's own."""
    words = _case(query, candidate.name, precision, batch)
    return _with_command(query, {**words, "device": candidate.device or None}, "", here)


def _case(query: Query, hardware: str, precision: str, batch: int) -> Words:
    return {
        "model": query.names[0],
        "hardware": hardware,
        "device": None,
        "runtime": None,
        "precision": precision,
        "batch_size": batch,
        "mode": query.mode,
        "shapes": _case_words_sizes(query, query.shapes),
        "options": {},
        "weights": _RANDOM,
        "data": None,
    }


def _case_words_sizes(query: Query, sizes: Mapping[str, int]) -> dict[str, int]:
    """As a run is asked for them: one forward pass of what can write is asked for as no tokens."""
    training = query.mode == Mode.TRAINING
    shapes = {
        name: int(value) for name, value in sizes.items() if not (training and name in GENERATING)
    }
    writes = "new_tokens" in own_shapes(query.spec) and not training
    if writes and shapes.get("sequence_length") and not shapes.get("new_tokens"):
        shapes["new_tokens"] = 0
    return shapes


def _source(query: Query, weights: str | None) -> str:
    """hub, by whichever of the model's ids it was; a folder; random where nobody says."""
    if weights and query.spec is not None and weights in query.spec.hub_ids:
        return "hub"
    return _folder(weights) or _RANDOM


def _folder(source: str | None) -> str | None:
    """A folder that inputs or weights were from; what others say of theirs leads nowhere here."""
    return str(source) if source and str(source).startswith("/") else None


def _unaskable(row: EvidenceRow, settings: Mapping[str, Setting]) -> str:
    """What of a figure's question no run can be asked for; "" where all can be."""
    if row.get("provenance") == Provenance.IMPORTED and runtimes_own(settings):
        return f"its settings ({', '.join(sorted(settings))}) are of the source that it is from"
    if row.get("world_size") not in (None, 1):
        return (
            f"it is of {row['world_size']} {sharing(row)}, and what is measured to choose is of one"
        )
    if row.get("scenario") not in (None, SINGLE_STREAM):
        return f"its requests came as {row['scenario']}, and a run's come one by one"
    return ""


def _with_command(query: Query, words: Words, refused: str, here: Installed) -> Words:
    """The same with the command, else with why there is none."""
    why = refused or _refused(query, words, here)
    command = None if why else _case_words_command(query, words, here)
    answer: Words = {**words, "command": command}
    if here.energy:
        answer["energy"] = True
    if why:
        answer["unmeasurable"] = why
    return answer


def _refused(query: Query, words: Words, here: Installed) -> str:
    """Why it cannot be measured by any command of this installation; "" where it can."""
    platform = words["hardware"].partition(":")[0]
    if query.spec is None:
        return f"{query.model} is not in the catalogue: describe it by run --models-file"
    if platform not in here.platforms:
        return f"nothing here measures on {platform}"
    if words["runtime"] and words["runtime"] not in here.engines:
        return f"the engine {words['runtime']} is not here"
    try:
        parse_precision(words["precision"])
    except UsageError as error:
        return error.message.rstrip(".")
    return here.unwritable


def _case_words_command(query: Query, words: Words, here: Installed) -> str:
    platform, _, device = words["hardware"].partition(":")
    # A list on the command line is split at spaces: such a name is said by no one word.
    plain = device and not set(device) & set(" ,\t")
    usual = own_shapes(query.spec)
    named = words["runtime"] or query.precision or words["precision"] != FP32
    return run_command(
        words["model"],
        words["hardware"] if plain else platform,
        batch_words(words["batch_size"]),
        mode_words(words["mode"]),
        precision_words(words["precision"]) if named else (),
        framework_words(words["runtime"]),
        size_words({n: size for n, size in words["shapes"].items() if usual.get(n) != size}),
        _settings(words),
        ("--energy",) if here.energy else (),
        here.where,
    )


def _settings(words: Words) -> Iterator[str]:
    options = words["options"]
    yield from (flag for name, flag in _FLAGS.items() if options.get(name))
    for name, option in _VALUES.items():
        if options.get(name) is not None:
            yield from (option, str(options[name]))
    for name, value in sorted(runtimes_own(options).items()):
        spelt = str(value).lower() if isinstance(value, bool) else str(value)
        yield from ("--option", f"{words['runtime']}.{name}={spelt}")
    if words["weights"] != _RANDOM:
        yield from ("--weights", words["weights"])
    if words["data"]:
        yield from ("--data", words["data"])
