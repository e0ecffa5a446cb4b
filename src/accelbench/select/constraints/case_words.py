"""An option as words of a case: what a run is asked for, and the command that asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from accelbench.core.cards import FP32
from accelbench.core.case import Option as Setting
from accelbench.core.case import runtimes_own
from accelbench.core.devices import sharing
from accelbench.core.errors import UsageError
from accelbench.core.plugins import HARDWARE, RUNTIMES, registered
from accelbench.core.precision import parse_precision
from accelbench.core.run_words import (
    batch_words,
    framework_words,
    mode_words,
    precision_words,
    run_command,
    size_words,
)
from accelbench.core.vocabulary import SINGLE_STREAM, Mode, Provenance
from accelbench.select.constraints.options import Option
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import EvidenceRow, sizes_of
from accelbench.select.evidence.select_context import own_shapes
from accelbench.select.query.query import GENERATING, Query


class Words(TypedDict):
    """What a run is asked for.

    Attributes:
        hardware: a platform, and a device of it after a colon where one is named.
        options: what is set on purpose.
        command: that asks for it; None where there is none.
        unmeasurable: why there is none.
        energy: whether it is to be measured too.
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
        platforms: of which hardware.
        engines: by which.
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
    engines = frozenset(registered(RUNTIMES))
    return Installed(frozenset(registered(HARDWARE)), engines, where, unwritable)


def case(query: Query, option: Option, here: Installed) -> Words:
    """An option as words of a case, so that measuring it answers what the option leaves open."""
    row = option.row
    sizes = _sizes(query, {**query.shapes, **sizes_of(row)})
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
        "shapes": _sizes(query, query.shapes),
        "options": {},
        "weights": _RANDOM,
        "data": None,
    }


def _sizes(query: Query, sizes: Mapping[str, int]) -> dict[str, int]:
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
    command = None if why else _command(query, words, here)
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


def _command(query: Query, words: Words, here: Installed) -> str:
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
