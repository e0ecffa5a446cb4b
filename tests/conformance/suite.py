"""What every runtime must do, whatever it runs on.

A runtime joins by a line in `SUBJECTS`: how it is made, where it runs, which
model and precision, and how inputs are changed a little. Every check of
`test_conformance.py` is then run for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.catalog.find import choose
from accelbench.catalog.inputs import settle
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Absent, Device, Job, Runtime, Session
from accelbench.core.words import Mode
from accelbench.runtimes.pytorch import PytorchRuntime
from accelbench.runtimes.scripted import ScriptedRuntime


@dataclass(frozen=True)
class Subject:
    """A runtime on a device with a model in a precision."""

    runtime: Callable[[], Runtime]
    card: str  # "module:Class", to be read in a process that imports no engine
    hardware: str
    model: str
    precision: str
    changed: Callable[[Any], Any]  # other inputs of the same shapes
    freed: Callable[[Session], Any] | None = None  # an object that must die with the session
    dtypes: Callable[[Mapping[str, Any]], Any] | None = None  # evidence → the weights' types
    too_large: int | None = None  # a batch that no machine holds
    batch_axis: Mapping[str, int] = field(default_factory=dict)  # of outputs; 0 otherwise
    options: Mapping[str, Any] = field(default_factory=dict)
    new_tokens: int | None = None  # where a step is a whole request
    mode: Mode = Mode.INFERENCE

    def __str__(self) -> str:
        flags = "".join(f"-{name}" for name in self.options)
        flags += "-generating" if self.new_tokens else ""
        flags += "-training" if self.mode is Mode.TRAINING else ""
        name = self.card.rpartition(":")[2]
        return f"{name}-{self.hardware}-{self.model}-{self.precision}{flags}"

    def case(self, batch: int = 2) -> Case:
        spec = choose([self.model], None, (), (), all_models=False)[0]
        # Short: nothing here is a measurement.
        shapes = Shapes(
            batch,
            sequence=16 if spec.sequence else None,
            image=spec.image,
            steps=2 if spec.steps else None,
        )
        if self.new_tokens and spec.generation is not None:
            least = spec.generation.min_prompt + 15 if spec.generation.kind == "decoder" else None
            shapes = dataclasses.replace(
                shapes, sequence=None, prompt_tokens=least, new_tokens=self.new_tokens
            )
        return Case(
            spec,
            Target(self.runtime().info.name, self.hardware),
            self.precision,
            settle(spec, shapes),
            self.mode,
            options=dict(self.options),
        )

    def device(self) -> Device:
        """The device as the engine itself sees it."""
        found: list[Device | Absent] = self.runtime().probe()
        return next(d for d in found if isinstance(d, Device) and d.hardware == self.hardware)

    @contextlib.contextmanager
    def opened(self, batch: int = 2, seed: int = 0) -> Iterator[tuple[Session, Case]]:
        """A session, closed afterwards."""
        case = self.case(batch)
        session = self.runtime().open(Job(case, self.device(), seed=seed, threads=1))
        try:
            yield session, case
        finally:
            session.close()
            gc.collect()


def scripted() -> Runtime:
    return ScriptedRuntime({"step_ns": 1_000_000, "build_ns": 5, "load_ns": 7})


def other_numbers(inputs: Any) -> Any:
    """Scripted inputs with other values."""
    return dataclasses.replace(inputs, values=tuple(v + 1.0 for v in inputs.values))


def other_tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Torch inputs with other ids, other pixels, other sounds, other noise; masks stay."""
    changed = dict(inputs)
    for name in ("input_ids", "pixel_values", "input_features", "sample"):
        if name in changed:
            changed[name] = changed[name].flip(-1) + (0 if name == "input_ids" else 1)
    return changed


def torch_subject(
    hardware: str,
    model: str,
    precision: str,
    new_tokens: int | None = None,
    mode: Mode = Mode.INFERENCE,
    **options: Any,
) -> Subject:
    return Subject(
        runtime=PytorchRuntime,
        card="accelbench.runtimes.pytorch:PytorchRuntime",
        hardware=hardware,
        model=model,
        precision=precision,
        changed=other_tensors,
        freed=lambda session: session._module,  # type: ignore[attr-defined]
        dtypes=lambda evidence: evidence["weight_dtypes"],
        too_large=10**9,
        options=options,
        new_tokens=new_tokens,
        mode=mode,
    )


SCRIPTED = [
    Subject(
        runtime=scripted,
        card="accelbench.runtimes.scripted:ScriptedRuntime",
        hardware="cpu",
        model="bert-tiny",
        precision="fp32",
        changed=other_numbers,
    )
]
PYTORCH_CPU = [
    torch_subject("cpu", model, precision)
    for model in ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")
    for precision in ("fp32", "bf16")
] + [torch_subject("cpu", "bert-tiny", "fp16"), torch_subject("cpu", "vit-tiny", "amp-bf16")]
PYTORCH_CUDA = [
    torch_subject("cuda", model, precision)
    for model in ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")
    for precision in ("fp32", "fp16", "bf16", "amp-fp16", "amp-bf16")
]
#: What a step is where it is no single pass: requests, images made pass by pass, retrieval.
PROCEDURES = [
    ("gpt2-tiny", "fp32", 3),
    ("gpt2-tiny", "bf16", 3),
    ("whisper-mini", "fp32", 3),
    ("rag-tiny", "fp32", 3),
    ("rag-tiny", "bf16", 3),
    ("unet-tiny", "fp32", None),
    ("unet-tiny", "bf16", None),
]
PYTORCH_CPU += [torch_subject("cpu", *one) for one in PROCEDURES]
PYTORCH_CUDA += [torch_subject("cuda", *one) for one in PROCEDURES]
PYTORCH_CPU += [
    torch_subject("cpu", model, precision, mode=Mode.TRAINING)
    for model in ("bert-tiny", "vit-tiny")
    for precision in ("fp32", "bf16", "fp16")
]
PYTORCH_CUDA += [
    torch_subject("cuda", model, precision, mode=Mode.TRAINING)
    for model in ("bert-tiny", "vit-tiny")
    for precision in ("fp32", "bf16", "fp16")
]
COMPILED = [
    torch_subject("cpu", "bert-tiny", "fp32", compile=True),
    torch_subject("cpu", "vit-tiny", "fp32", mode=Mode.TRAINING, compile=True),
]
COMPILED_CUDA = [
    torch_subject("cuda", "bert-tiny", "fp32", compile=True),
    torch_subject("cuda", "vit-tiny", "fp32", mode=Mode.TRAINING, compile=True),
]

#: Run by default, and behind the markers of pyproject.toml.
SUBJECTS: list[Subject] = [*SCRIPTED, *PYTORCH_CPU]
CUDA_SUBJECTS: list[Subject] = PYTORCH_CUDA
