"""Case: the configuration to measure, and the identities that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from accelbench.core.axes import Part, axes_of, with_axes
from accelbench.core.identity import IDENTITY_VERSION, canonical_json, digest, non_default_values
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import SINGLE_STREAM, Mode

Option = str | int | float | bool

#: Increased when the measuring rules change so that results are no longer comparable.
PROTOCOL_VERSION = 1
#: Key of a result's conditions: parts of the case's identity that have no column.
QUESTION = "question"


@dataclass(frozen=True)
@with_axes(lambda axis: axis.field, None)
class Shapes:
    """Batch size, and one size for each axis."""

    batch: int
    sequence: int | None = None
    image: int | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    audio: int | None = None  # seconds of sound
    steps: int | None = None  # denoising steps an image
    dims: str | None = None  # other free dimensions of a file, by name: "edges=256,nodes=64"


@dataclass(frozen=True)
class Target:
    """Engine, hardware and optional device."""

    runtime: str
    hardware: str
    device: str | None = None  # "cuda:1", or OpenVINO's "gpu"; None for the default

    @property
    def unit(self) -> str | None:
        """Kind of unit, such as OpenVINO's gpu; None for an ordinal."""
        return None if self.device is None or self.device.isdecimal() else self.device

    @property
    def hardware_label(self) -> str:
        """The hardware, followed by the device if one was named."""
        return f"{self.hardware}:{self.device}" if self.device else self.hardware

    def __str__(self) -> str:
        return f"{self.runtime}/{self.hardware_label}"


_WIDENED = frozenset({("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "int8")})


@dataclass(frozen=True)
class Case:
    """Model, target, precision, shapes, mode, scenario and options set on purpose."""

    model: ModelSpec
    target: Target
    precision: str
    shapes: Shapes
    mode: Mode = Mode.INFERENCE
    scenario: str = SINGLE_STREAM
    world_size: int = 1
    options: Mapping[str, Option] = field(default_factory=dict)  # only those set on purpose

    @cached_property
    def case_id(self) -> str:
        """Hash of the configuration, without machine, ordinal, version or resolved defaults."""
        return digest(
            {
                "v": IDENTITY_VERSION,
                "model": self.model.id,
                "runtime": self.target.runtime,
                "hardware": self.target.hardware,
                "precision": self.precision,
                "shapes": non_default_values(self.shapes),
                "mode": self.mode,
                "scenario": self.scenario,
                "world": self.world_size,
                "options": self.options,
                **self._identity_without_columns,
            }
        )

    @property
    def identity_without_columns(self) -> dict[str, str]:
        """Parts of the identity that have no column in a result, so that they can be checked later.

        Objects and numbers are canonical JSON.
        """
        return {
            name: value if isinstance(value, str) else canonical_json(value)
            for name, value in self._identity_without_columns.items()
            if name != "unit" or value is not None
        }

    @property
    def _identity_without_columns(self) -> dict[str, object]:
        parts: dict[str, object] = {"config": self.model.config_digest, "unit": self.target.unit}
        if self.model.sampling_rate is not None:  # the number of samples in a second of sound
            parts["sampling_rate"] = self.model.sampling_rate
        if self.mode is Mode.TRAINING:
            return parts | {"training": non_default_values(self.model.training)}
        if self.model.procedure != "forward":
            parts["procedure"] = self.model.procedure
        if self.generates:
            generation = self.model.generation
            fixed = generation and replace(generation, prompt_tokens=0, new_tokens=0)
            parts["generation"] = non_default_values(fixed)
        return parts

    @property
    def generates(self) -> bool:
        """Whether a step is one whole request, token by token."""
        return self.mode is Mode.INFERENCE and bool(self.shapes.new_tokens)

    @property
    def procedure(self) -> str:
        """What one step does: train, generate, or the model's forward, denoise or rag."""
        if self.mode is Mode.TRAINING:
            return "train"
        if self.generates and self.model.procedure == "forward":
            return "generate"
        return self.model.procedure

    @property
    def is_run_as_stored(self) -> bool:
        """Whether a graph runs in its stored precision: nothing is quantised or narrowed for it.

        An engine may compute a graph that is stored in 16 bits or int8 in fp32.
        """
        file = self.model.graph
        return file is not None and (
            self.precision == file.precision or (self.precision, file.precision) in _WIDENED
        )

    @property
    def tolerance_precision(self) -> str:
        """Precision whose tolerance applies: a quantised graph rounds in every engine."""
        file = self.model.graph
        return "int8" if file is not None and file.precision == "int8" else self.precision

    @property
    def compiled(self) -> bool:
        return bool(self.options.get("compile", False))

    def _sizes(self, part: Part) -> list[str]:
        sizes = ((axis, getattr(self.shapes, axis.field)) for axis in axes_of(part))
        return [axis.label.format(size) for axis, size in sizes if size]

    def __str__(self) -> str:
        parts = [self.model.id, str(self.target), self.precision, f"batch {self.shapes.batch}"]
        parts += self._sizes(Part.INPUT)
        if self.generates:
            parts.append(f"{self.shapes.prompt_tokens} + {self.shapes.new_tokens} tokens")
        parts += self._sizes(Part.PASSES)
        if self.world_size > 1:
            # Whether they are processes or devices is in the engine's card, which imports this.
            parts.append(f"shared by {self.world_size}")
        if self.compiled:
            parts.append("compiled")
        parts += [f"{k}={v}" for k, v in sorted(engine_options(self.options).items())]
        if self.mode is Mode.TRAINING:
            parts.append("training")
        return " · ".join(parts)


#: Options of every engine; each has an option of its own on the command line.
COMMON_OPTIONS = frozenset({"compile", "threads", "optimizer", "gradient_checkpointing", "pure"})


def engine_options(options: Mapping[str, Option]) -> dict[str, Option]:
    """Return the options of a case that belong to its engine."""
    return {name: value for name, value in options.items() if name not in COMMON_OPTIONS}


def series_key(case: Case, fingerprint: str, threads: int | None) -> str:
    """Return the key of a history: the same case on the same device by the same rules."""
    return digest(
        {
            "v": IDENTITY_VERSION,
            "case": case.case_id,
            "device": fingerprint,
            "threads": threads,
            "protocol": PROTOCOL_VERSION,
        }
    )


def result_id(run_id: str, case: Case, device: str, launch: int, arm: str) -> str:
    """Return an id that a retry repeats, so that a retry never doubles a result."""
    return digest(
        {
            "v": IDENTITY_VERSION,
            "run": run_id,
            "case": case.case_id,
            "device": device,
            "launch": launch,
            "arm": arm,
        },
        length=24,
    )
