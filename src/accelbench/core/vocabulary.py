"""Closed vocabularies of the project, each defined once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes


class Status(StrEnum):
    """Outcome of one case in one launch."""

    OK = "ok"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


class Provenance(StrEnum):
    """Origin of a number. Only measured and imported numbers are compared."""

    MEASURED = "measured"
    IMPORTED = "imported"
    PREDICTED = "predicted"
    SIMULATED = "simulated"


class Quality(StrEnum):
    """Trustworthiness of a steady-state value within its launch."""

    # UNUSABLE overrides the others: its interval is wider than ±25 %, however sampling ended.
    # FIXED has a requested number of samples: nothing judged whether they suffice.

    CONVERGED = "converged"
    NOISE_LIMITED = "noise_limited"
    TIME_LIMITED = "time_limited"
    UNSTEADY = "unsteady"
    THROTTLED = "throttled"
    FIXED = "fixed"
    UNUSABLE = "unusable"


class Check(StrEnum):
    """Outcome of a check of a model's own outputs."""

    OK = "ok"
    FAILED = "failed"
    NOT_DONE = "not_done"


class Verification(StrEnum):
    """Outcome of the comparison of outputs with the reference's."""

    OK = "ok"
    FAILED = "failed"
    NOT_DONE = "not_done"
    REFERENCE = "reference"  # this result is the reference


#: Verifications that count as passed.
VERIFIED = frozenset({Verification.OK.value, Verification.REFERENCE.value})


class PrecisionVerdict(StrEnum):
    """Whether a case is shown to be computed in the requested precision."""

    PROVEN = "proven"
    NOT_PROVEN = "not_proven"


class Mode(StrEnum):
    """Use of the model."""

    INFERENCE = "inference"
    TRAINING = "training"


class Timing(StrEnum):
    """Method of timing a block."""

    EACH = "each"  # every step has its own pair of clock readings
    WHOLE = "whole"  # one pair around all steps, for steps near the clock's resolution
    PHASES = "phases"  # split by phase; splitting synchronises, so it is never the main result
    DEVICE = "device"  # by the device's own event timers


class Family(StrEnum):
    """The documents' five model families."""

    EMBEDDING = "embedding"
    TEXT_GENERATION = "text_generation"
    VISION = "vision"
    AUDIO = "audio"
    MULTIMODAL = "multimodal"
    #: A model file does not name its purpose.
    UNKNOWN = "unknown"


#: Families that users can select.
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
    #: For a model file.
    UNKNOWN = "unknown"


#: Architectures of the catalogue.
ARCHITECTURES = tuple(kind for kind in Architecture if kind is not Architecture.UNKNOWN)


#: Platforms in the order of tables.
HARDWARE = ("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu", "wasm", "tpu")

#: One stream of requests, each sent after the previous answer.
SINGLE_STREAM = "single_stream"

MIB = 2**20


class Belongs(StrEnum):
    """Subject of a reason."""

    CELL = "the cell"  # this model, platform, engine and precision
    MACHINE = "the machine"  # installed software, devices, free memory, kills
    QUESTION = "the question"  # requested options, sizes, inputs, weights, time


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case."""

    status: Status
    reason: str = ""
    message: str = ""
    advice: str = ""
    measurement: Mapping[str, Any] = field(default_factory=dict)  # as the worker sent it
    opened: Mapping[str, Any] = field(default_factory=dict)  # report of opening the model
    warnings: Sequence[str] = ()
    quality: str | None = None  # replaces the measurement's own, due to the environment
    null_reasons: Mapping[str, str] = field(default_factory=dict)  # of empty columns
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
