"""A subject of the conformance suite: a runtime on a device with a model in a precision."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Absent, Device, Importing, Job, Runtime, Session
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.file_models.given_inputs import parse_inputs
from accelbench.models.inputs import settle
from accelbench.models.selection import choose
from kept_artefacts import kept_artefacts


@cache
def chosen(model: str, inputs: tuple[str, ...] = ()) -> ModelSpec:
    """A model by its name; of a file a process looks at it, for a second."""
    given = parse_inputs(list(inputs)) if inputs else None
    return choose([model], None, (), (), all_models=False, inputs=given)[0]


@dataclass(frozen=True, eq=False)  # hashable, by which pytest groups a subject's checks
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
    ahead: bool = False  # it compiles when it is told to, whatever the options say
    options: Mapping[str, Any] = field(default_factory=dict)
    new_tokens: int | None = None  # where a step is a whole request
    mode: Mode = Mode.INFERENCE
    inputs: tuple[str, ...] = ()  # what its owner says of them, as --input takes it

    def __str__(self) -> str:
        flags = "".join(f"-{name}" for name in self.options)
        flags += "-generating" if self.new_tokens else ""
        flags += "-training" if self.mode is Mode.TRAINING else ""
        name = self.card.rpartition(":")[2]
        model = self.model.rpartition("/")[2] if self.inputs else self.model
        return f"{name}-{self.hardware}-{model}-{self.precision}{flags}"

    def case(self, batch: int = 2) -> Case:
        spec = chosen(self.model, self.inputs)
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

    def job(self, case: Case, seed: int = 0) -> Job:
        """What opens a case, with its artefact where the runtime wants one: exported once."""
        runtime, artefact = self.runtime(), None
        if isinstance(runtime, Importing):
            recipe = Recipe(case, runtime.wants(case), seed)
            artefact = str(make(recipe, kept_artefacts()).folder)
        return Job(case, self.device(), JobSettings(seed=seed, threads=1), artefact=artefact)

    @property
    def fixed_batch(self) -> bool:
        """Whether a session is for one batch size alone."""
        runtime = self.runtime()
        if self.case().model.fixed_batch is not None:
            return True
        return isinstance(runtime, Importing) and runtime.wants(self.case()).static

    @contextlib.contextmanager
    def opened(self, batch: int = 2, seed: int = 0) -> Iterator[tuple[Session, Case]]:
        """A session, closed afterwards."""
        case = self.case(batch)
        session = self.runtime().open(self.job(case, seed))
        try:
            yield session, case
        finally:
            session.close()
            gc.collect()
