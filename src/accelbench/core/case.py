"""A case: what is asked, and the identities that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from accelbench.core.axes import Part, axes_of, with_axes
from accelbench.core.identity import IDENTITY_VERSION, canonical, digest, said
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import SINGLE_STREAM, Mode

Option = str | int | float | bool

#: Raised whenever the measuring rules change so that figures no longer compare.
PROTOCOL_VERSION = 1
#: Key of a result's conditions: parts of the question that no column has.
QUESTION = "question"


@dataclass(frozen=True)
@with_axes(lambda axis: axis.field, None)
class Shapes:
    """The sizes that are part of the question: the batch, and one of each axis that there is."""

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
    """Where and through what: runtime × hardware (× device)."""

    runtime: str
    hardware: str
    device: str | None = None  # "cuda:1", or OpenVINO's "gpu"; None means the default one

    @property
    def unit(self) -> str | None:
        """The kind of unit, such as OpenVINO's gpu; an ordinal is none."""
        return None if self.device is None or self.device.isdecimal() else self.device

    @property
    def place(self) -> str:
        """The hardware, and the device where one was named."""
        return f"{self.hardware}:{self.device}" if self.device else self.hardware

    def __str__(self) -> str:
        return f"{self.runtime}/{self.place}"


_WIDENED = frozenset({("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "int8")})


@dataclass(frozen=True)
class Case:
    """model × target × precision × shapes × mode × scenario × options set on purpose."""

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
        """What was asked. No machine, ordinal, version or resolved default."""
        return digest(
            {
                "v": IDENTITY_VERSION,
                "model": self.model.id,
                "runtime": self.target.runtime,
                "hardware": self.target.hardware,
                "precision": self.precision,
                "shapes": said(self.shapes),
                "mode": self.mode,
                "scenario": self.scenario,
                "world": self.world_size,
                "options": self.options,
                **self._unlisted,
            }
        )

    @property
    def unlisted(self) -> dict[str, str]:
        """Parts of the question that no column of a result has, so that it can be checked later.

        Objects and numbers are canonical JSON.
        """
        return {
            name: value if isinstance(value, str) else canonical(value)
            for name, value in self._unlisted.items()
            if name != "unit" or value is not None
        }

    @property
    def _unlisted(self) -> dict[str, object]:
        way: dict[str, object] = {"config": self.model.config_digest, "unit": self.target.unit}
        if self.model.sampling_rate is not None:  # a second of sound is that many samples
            way["sampling_rate"] = self.model.sampling_rate
        if self.mode is Mode.TRAINING:
            return way | {"training": said(self.model.training)}
        if self.model.procedure != "forward":
            way["procedure"] = self.model.procedure
        if self.generates:
            makes = self.model.generation
            kept = makes and replace(makes, prompt_tokens=0, new_tokens=0)
            way["generation"] = said(kept)
        return way

    @property
    def generates(self) -> bool:
        """Whether a step is one whole request, token by token."""
        return self.mode is Mode.INFERENCE and bool(self.shapes.new_tokens)

    @property
    def procedure(self) -> str:
        """What one step is: train, generate, or the model's own forward, denoise or rag."""
        if self.mode is Mode.TRAINING:
            return "train"
        if self.generates and self.model.procedure == "forward":
            return "generate"
        return self.model.procedure

    @property
    def as_stored(self) -> bool:
        """Whether it is a graph that is run as it is: nothing is quantised or narrowed for it.

        A graph that is stored in 16 bits or int8 may be computed in fp32 by its engine.
        """
        file = self.model.graph
        return file is not None and (
            self.precision == file.precision or (self.precision, file.precision) in _WIDENED
        )

    @property
    def compared_in(self) -> str:
        """The precision whose tolerance holds: a quantised graph rounds, whatever computes it."""
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
            # Processes or devices: that is known of the runtime's card, which knows of cases.
            parts.append(f"shared by {self.world_size}")
        if self.compiled:
            parts.append("compiled")
        parts += [f"{k}={v}" for k, v in sorted(runtimes_own(self.options).items())]
        if self.mode is Mode.TRAINING:
            parts.append("training")
        return " · ".join(parts)


#: Options that are asked of every runtime, each by a word of its own on the command line.
ASKED_OF_ALL = frozenset({"compile", "threads", "optimizer", "gradient_checkpointing", "pure"})


def runtimes_own(options: Mapping[str, Option]) -> dict[str, Option]:
    """Of the options of a case, those that its runtime alone has."""
    return {name: value for name, value in options.items() if name not in ASKED_OF_ALL}


def series_key(case: Case, fingerprint: str, threads: int | None) -> str:
    """One line of history: the same question on the same device by the same rules."""
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
    """Stable across a retry, so that a retry can never double a result."""
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
