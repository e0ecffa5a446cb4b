"""What is worth measuring under limits, as words of cases, and the command that measures each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelbench.core.case import runtimes_own
from accelbench.core.errors import UsageError
from accelbench.core.plugins import HARDWARE, RUNTIMES, registered
from accelbench.core.precision import parse_precision
from accelbench.core.words import SINGLE_STREAM, Mode, Provenance
from accelbench.select.asking import Asked
from accelbench.select.candidates import Candidate
from accelbench.select.contexts import own_shapes
from accelbench.select.contexts import told as sizes_of
from accelbench.select.evidence import Cell
from accelbench.select.front import Rate, merit
from accelbench.select.limits import Limits
from accelbench.select.options import Option
from accelbench.select.room import counted_memory

#: Tried where nothing was measured and no batch is named: as far as memory is counted to allow.
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
#: Beside the best, no more than so many that may be better, or may fit.
_MOST = 3
_SIZES = {
    "sequence_length": "--sequence-lengths",
    "image_size": "--image-sizes",
    "prompt_tokens": "--prompt-tokens",
    "new_tokens": "--new-tokens",
    "audio_seconds": "--audio-seconds",
    "denoising_steps": "--denoising-steps",
}
_GENERATING = ("prompt_tokens", "new_tokens")
_FLAGS = {"compile": "--compile", "gradient_checkpointing": "--gradient-checkpointing"}
_FLAGS |= {"pure": "--pure"}
_VALUES = {"threads": "--threads", "optimizer": "--optimizer"}
#: Weights unless somebody says otherwise.
_RANDOM = "random"

Words = dict[str, Any]


def worth_measuring(
    asked: Asked,
    limits: Limits,
    options: Sequence[Option],
    candidates: Sequence[Candidate],
    batches: Sequence[int],
    rate: Rate,
) -> list[Words]:
    """The best that fits; what may do more, or may fit for all that is known.

    Where nothing is known at all it is each hardware at the largest batch whose memory is counted
    to fit, or the smallest where a step's time is limited.
    """
    fits = sorted((one for one in options if not one.why), key=lambda one: merit(one, rate))
    found = [case(asked, one) for one in [*fits[:1], *_promising(options, fits, rate)]]
    if fits:
        return found
    known = {one.hardware for one in options}
    precision = asked.precision or "fp32"
    batch = first_batch(asked, limits, precision, batches)
    unknown = [one for one in candidates if one.name not in known]
    if batch is not None:
        found += [unmeasured(asked, one, precision, batch) for one in unknown]
    return found


def first_batch(asked: Asked, limits: Limits, precision: str, batches: Sequence[int]) -> int | None:
    """Where to begin with what was never measured; None where memory is counted not to allow any.

    Of a step whose time is limited, a small batch says most: where that is too slow, all are.
    """
    among = sorted(batches or BATCHES)
    sizes = sizes_meant(asked)
    fitting = []
    for batch in among:
        memory = counted_memory(asked, batch, precision, sizes)
        if memory is None:
            return among[0]
        if limits.memory_mb is None or memory <= limits.memory_mb:
            fitting.append(batch)
    if not fitting:
        return None
    return fitting[0] if limits.max_latency_ms is not None else fitting[-1]


def sizes_meant(asked: Asked) -> dict[str, int]:
    """The sizes that are asked for, and of the rest the model's own."""
    own = own_shapes(asked.spec)
    if asked.shapes.get("sequence_length") or not asked.shapes.get("new_tokens", 1):
        own = {name: value for name, value in own.items() if name not in _GENERATING}
    return {**own, **asked.shapes}


def case(asked: Asked, one: Option) -> Words:
    """An option as words of a case, so that measuring it answers what the option leaves open."""
    row = one.row
    sizes = _sizes(asked, {**asked.shapes, **sizes_of(Cell(row, ()))})
    found = {
        **_case(asked, one.hardware, one.precision, one.batch_size),
        "device": one.device,
        "runtime": one.runtime or None,
        "shapes": sizes,
        "options": one.settings,
        "weights": _source(asked, row.get("weights")),
        "data": _folder(row.get("data_source")),
    }
    return _with_command(asked, found, _unaskable(row))


def unmeasured(asked: Asked, candidate: Candidate, precision: str, batch: int) -> Words:
    """What nobody measured, by whichever engine is the platform's own."""
    found = _case(asked, candidate.name, precision, batch)
    return _with_command(asked, {**found, "device": candidate.device or None}, "")


def _promising(options: Sequence[Option], fits: Sequence[Option], rate: Rate) -> Iterator[Option]:
    """Estimates that may be better than the best; without one, what may fit, the most first."""
    least = rate(fits[0]) if fits else 0.0
    able = (one for one in options if one not in fits[:1] and _most(one, rate) > least)
    may = [one for one in able if all(why.open for why in one.why) and _tells(one)]
    may.sort(key=lambda one: (bool(one.why), merit(one, rate)))
    yield from may[:_MOST]


def _most(one: Option, rate: Rate) -> float:
    """What it may do, by the middle of what is known."""
    return rate(one) * one.latency.high / one.latency.middle


def _tells(one: Option) -> bool:
    """Whether measuring it would say more: what was measured here said all that it can, and what
    something costs nobody measures."""
    if {why.limit for why in one.why} == {"max_cost"} and one.cost is None:
        return False
    imported = one.row.get("provenance") == Provenance.IMPORTED
    return not one.measured or (imported and bool(one.why))


def _case(asked: Asked, hardware: str, precision: str, batch: int) -> Words:
    return {
        "model": asked.names[0],
        "hardware": hardware,
        "device": None,
        "runtime": None,
        "precision": precision,
        "batch_size": batch,
        "mode": asked.mode,
        "shapes": _sizes(asked, asked.shapes),
        "options": {},
        "weights": _RANDOM,
        "data": None,
    }


def _sizes(asked: Asked, sizes: Mapping[str, Any]) -> dict[str, int]:
    """As a run is asked for them: one forward pass of what can write is asked for as no tokens."""
    training = asked.mode == Mode.TRAINING
    found = {
        name: int(value) for name, value in sizes.items() if not (training and name in _GENERATING)
    }
    writes = "new_tokens" in own_shapes(asked.spec) and not training
    if writes and found.get("sequence_length") and not found.get("new_tokens"):
        found["new_tokens"] = 0
    return found


def _source(asked: Asked, weights: Any) -> str:
    """hub, by whichever of the model's ids it was; a folder; random where nobody says."""
    if weights and asked.spec is not None and weights in asked.spec.hub_ids:
        return "hub"
    return _folder(weights) or _RANDOM


def _folder(source: Any) -> str | None:
    """A folder that inputs or weights were from; what others say of theirs leads nowhere here."""
    return str(source) if source and str(source).startswith("/") else None


def _unaskable(row: Mapping[str, Any]) -> str:
    """What of a figure's question no run can be asked for; "" where all can be."""
    if row.get("world_size") not in (None, 1):
        return f"it is of {row['world_size']} processes, and a run is of one"
    if row.get("scenario") not in (None, SINGLE_STREAM):
        return f"its requests came as {row['scenario']}, and a run's come one by one"
    return ""


def _with_command(asked: Asked, words: Words, refused: str) -> Words:
    """The same with the command, else with why there is none."""
    why = refused or _refused(asked, words)
    command = None if why else _command(asked, words)
    return {**words, "command": command, **({"why": why} if why else {})}


def _refused(asked: Asked, words: Words) -> str:
    """Why it cannot be measured by any command of this installation; "" where it can."""
    platform = words["hardware"].partition(":")[0]
    if asked.spec is None:
        return f"{asked.model} is not in the catalogue: describe it by run --models-file"
    if platform not in registered(HARDWARE):
        return f"nothing here measures on {platform}"
    if words["runtime"] and words["runtime"] not in registered(RUNTIMES):
        return f"the engine {words['runtime']} is not here"
    try:
        parse_precision(words["precision"])
    except UsageError as error:
        return error.message.rstrip(".")
    return ""


def _command(asked: Asked, words: Words) -> str:
    platform, _, device = words["hardware"].partition(":")
    # A list on the command line is split at spaces: such a name is said by no one word.
    plain = device and not set(device) & set(" ,\t")
    said = ["accelbench", "run", words["model"]]
    said += ["--hardware", words["hardware"] if plain else platform]
    said += ["--batch-sizes", str(words["batch_size"])]
    if words["mode"] != Mode.INFERENCE:
        said += ["--mode", words["mode"]]
    if words["runtime"] or asked.precision:
        said += ["--precision", words["precision"]]
    if words["runtime"]:
        said += ["--framework", words["runtime"]]
    usual = own_shapes(asked.spec)
    for name, value in words["shapes"].items():
        if usual.get(name) != value:
            said += [_SIZES[name], str(value)]
    return shlex.join([*said, *_settings(words)])


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
