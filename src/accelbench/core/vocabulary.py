"""The closed vocabularies of the project, each spelled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes


class Status(StrEnum):
    """What became of one case in one launch."""

    OK = "ok"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


class Provenance(StrEnum):
    """Where a number comes from. Only measured and imported feed comparison."""

    MEASURED = "measured"
    IMPORTED = "imported"
    PREDICTED = "predicted"
    SIMULATED = "simulated"


class Quality(StrEnum):
    """How far a steady-state figure may be trusted within its launch."""

    # UNUSABLE is beyond all others: its interval is wider than ±25 %, however sampling ended.
    # FIXED is of a number of samples that was asked for: nothing judged whether they suffice.

    CONVERGED = "converged"
    NOISE_LIMITED = "noise_limited"
    TIME_LIMITED = "time_limited"
    UNSTEADY = "unsteady"
    THROTTLED = "throttled"
    FIXED = "fixed"
    UNUSABLE = "unusable"


class Check(StrEnum):
    """What came of looking at a model's own outputs."""

    OK = "ok"
    FAILED = "failed"
    NOT_DONE = "not_done"


class Verification(StrEnum):
    """What came of comparing outputs with the reference's."""

    OK = "ok"
    FAILED = "failed"
    NOT_DONE = "not_done"
    REFERENCE = "reference"  # it is that itself


#: The verifications that outputs passed.
VERIFIED = frozenset({Verification.OK.value, Verification.REFERENCE.value})


class PrecisionWord(StrEnum):
    """Whether it is shown that a case was computed in the precision that was asked for."""

    PROVEN = "proven"
    NOT_PROVEN = "not_proven"


class Mode(StrEnum):
    """What is done with the model."""

    INFERENCE = "inference"
    TRAINING = "training"


class Timing(StrEnum):
    """How a block is timed."""

    EACH = "each"  # every step has its own pair of clock readings
    WHOLE = "whole"  # one pair around all steps, for steps near the clock's resolution
    PHASES = "phases"  # split by phase; splitting synchronises, so never the headline
    DEVICE = "device"  # by the device's own event timers


class Family(StrEnum):
    """The documents' five model families."""

    EMBEDDING = "embedding"
    TEXT_GENERATION = "text_generation"
    VISION = "vision"
    AUDIO = "audio"
    MULTIMODAL = "multimodal"
    #: Of a model of a file, which does not say what it is for.
    UNKNOWN = "unknown"


#: Those that people ask for.
FAMILIES = tuple(family for family in Family if family is not Family.UNKNOWN)


class Architecture(StrEnum):
    """The eleven architectures."""

    ENCODER_ONLY = "encoder-only"
    DECODER_ONLY = "decoder-only"
    ENCODER_DECODER = "encoder-decoder"
    VISION = "vision"
    VISION_ENCODER_TEXT_DECODER = "vision-encoder-text-decoder"
    SPEECH = "speech"
    MULTIMODAL = "multimodal"
    DIFFUSION = "diffusion"
    MIXTURE_OF_EXPERTS = "mixture-of-experts"
    STATE_SPACE = "state-space"
    RAG = "rag"
    #: Of a model of a file.
    UNKNOWN = "unknown"


#: Those of the catalogue.
ARCHITECTURES = tuple(kind for kind in Architecture if kind is not Architecture.UNKNOWN)


#: The platforms as the documents name them, in the order tables show them.
HARDWARE = ("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu", "wasm", "tpu")

#: One stream of requests, the next sent when the last has come back.
SINGLE_STREAM = "single_stream"

MIB = 2**20


class Belongs(StrEnum):
    """What a reason is about."""

    CELL = "the cell"  # this model, on this platform, by this runtime, in this precision
    MACHINE = "the machine"  # what is installed, plugged in, free or writable; who killed it
    QUESTION = "the question"  # what was asked: options, sizes, inputs, weights, time


@dataclass(frozen=True)
class Outcome:
    """What became of a case."""

    status: Status
    reason: str = ""
    message: str = ""
    advice: str = ""
    measurement: Mapping[str, Any] = field(default_factory=dict)  # as the worker sent it
    opened: Mapping[str, Any] = field(default_factory=dict)  # what opening the model told
    warnings: Sequence[str] = ()
    quality: str | None = None  # one that the surroundings impose on the measurement's own
    null_reasons: Mapping[str, str] = field(default_factory=dict)  # of columns left empty
    environment: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    workarounds: Sequence[str] = ()


def with_first_cause(outcome: Outcome, first: Outcome) -> Outcome:
    """Return the outcome of the last workaround with the cause and advice of the first try."""
    if outcome.status is Status.OK or first.message in outcome.message:
        return outcome
    message = f"{outcome.message}; at first: {first.message}"
    return replace(outcome, message=message, advice=first.advice or outcome.advice)


def parse_mode(text: str, advice: str = "") -> Mode:
    """Return the mode of a word, whatever its case; raise UsageError with the advice."""
    try:
        return Mode(text.strip().lower())
    except ValueError:
        usual = f"Modes: {', '.join(Mode)}."
        raise UsageError(f"There is no mode {in_quotes(text)}.", advice or usual) from None
