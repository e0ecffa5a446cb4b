"""Sessions of engines that open an artefact and are fed with NumPy arrays, and what feeds them.

An engine binds inputs, runs a step and reads outputs; what a step of a case is, how it is sampled
and what it is fed with is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Block, DeviceMemory, Evidence, Job
from accelbench.core.vocabulary import Timing
from accelbench.engines.artifacts.recipe import Manifest, load
from accelbench.engines.shared.local import LocalSampler
from accelbench.engines.shared.sketches import Sketch, sketch
from accelbench.models.data import Feed
from accelbench.models.data.labelled_feed import LabelledFeed, is_labelled
from accelbench.models.data.rows import SUFFIX, ArraysFeed, DataFeed
from accelbench.models.denoising import Schedule, denoise
from accelbench.models.inputs import make_inputs
from accelbench.models.short_steps import SHORT_PASSES


@dataclass
class FedBatch:
    """A batch that is fed in place of a job's own, and whether any session has asked for it."""

    arrays: Mapping[str, Any]
    taken: bool = False


_fed: ContextVar[FedBatch | None] = ContextVar("_fed", default=None)


@contextmanager
def feeding(arrays: Mapping[str, Any]) -> Iterator[FedBatch]:
    """Feed these arrays to sessions that prepare here, as accuracy goes through labelled data.

    A session of another package may draw its inputs by itself: then they are not taken.
    """
    batch = FedBatch(arrays)
    before = _fed.set(batch)
    try:
        yield batch
    finally:
        _fed.reset(before)


def _feed(job: Job, clock: Clock) -> DataFeed | None:
    settings = job.settings
    data, seed = settings.data, settings.seed
    if data is None:
        return None
    if is_labelled(settings, job.case):
        return LabelledFeed(settings, clock.now_ns)
    if data.lower().endswith(SUFFIX):
        return ArraysFeed(data, seed, clock.now_ns)
    return Feed(data, seed, job.case.model.weights_setting(settings.weights), clock.now_ns)


class Inputs:
    """The inputs of a job's cases, as arrays by name."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._seed = job.settings.seed
        self._feed = _feed(job, clock)

    def arrays(self, case: Case, seed: int | None = None) -> Mapping[str, Any]:
        """Return real inputs if the job has them; those of another seed are drawn all the same.

        They are asked for to see whether inputs matter, and a folder may hold no others.
        """
        fed = _fed.get()
        if fed is not None:
            fed.taken = True
            return fed.arrays
        if seed is None:
            seed = self._seed
        if self._feed is not None and seed == self._seed:
            return self._feed.batch(case)
        return make_inputs(case.model, case.shapes, seed, case.mode)

    def columns(self) -> Mapping[str, Any]:
        return {} if self._feed is None else self._feed.columns()

    def details(self) -> dict[str, Any]:
        return {} if self._feed is None else {"data": self._feed.details()}


Arrays = Mapping[str, Any]


class EngineSession:
    """What sessions of engines have that need nothing else: no compiling, no device's memory."""

    phases: tuple[str, ...] = ("step",)
    device_timed = False

    def __init__(self, job: Job, clock: Clock) -> None:
        self._job = job
        self._clock = clock
        self.timings: dict[str, int] = {}
        self._inputs = Inputs(job, clock)
        self._output_facts: dict[str, Any] = {}
        self._looked_with: Any = None  # what the outputs were made of that were seen last

    def _timed(self, name: str, do: Callable[[], Any]) -> Any:
        start = self._clock.now_ns()
        made = do()
        self._wait()
        self.timings[name] = self._clock.now_ns() - start
        return made

    def _wait(self) -> None:
        """Wait for the device."""

    def compile(self, inputs: Any) -> int | None:
        return None

    def reset_memory(self) -> None:
        return None

    def device_memory(self) -> DeviceMemory | None:
        return None

    def close(self) -> None:
        return None


class ArtefactSession(EngineSession, ABC):
    """One artefact opened by an engine, wherever that engine runs."""

    def __init__(self, job: Job, clock: Clock) -> None:
        if job.artefact is None:
            raise CaseError("no_artefact", "the runtime was given nothing to open")
        super().__init__(job, clock)
        self._case = job.case
        self._folder = Path(job.artefact)
        self.manifest: Manifest = load(self._folder)
        self._schedule: Schedule | None = None

    # -- what an engine says

    @abstractmethod
    def _bind(self, arrays: Arrays) -> Any:
        """Put inputs, by the file's names, to where the engine reads them."""

    @abstractmethod
    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        """Time a block of steps."""

    @abstractmethod
    def _seen(self, inputs: Any) -> dict[str, Any]:
        """Return one run's outputs by name, where the engine has put them."""

    @abstractmethod
    def evidence(self) -> Evidence:
        """Return where the work ran."""

    # -- what is the same for all

    @property
    def weights_digest(self) -> str:
        return self.manifest.weights_digest

    @property
    def model_path(self) -> Path:
        return self._folder / self.manifest.file

    def prepare(self, case: Case, seed: int | None = None) -> Any:
        batch = self.manifest.batch
        if batch is not None and case.shapes.batch != batch:
            raise CaseError("fixed_batch", f"the artefact is for a batch of {batch}")
        self._case = case
        self._schedule = None
        if case.procedure == "denoise":
            self._schedule = Schedule(case.shapes.steps or case.model.steps or 1)
        arrays = self._inputs.arrays(case, seed)
        named = {
            input_.file_name: np.ascontiguousarray(arrays[input_.name])
            for input_ in self.manifest.inputs
        }
        if self._schedule is None:
            return self._bind(named)
        return named

    def loaded(self) -> Mapping[str, Any]:
        return self._inputs.columns()

    def inspect(self, inputs: Any) -> None:
        # Where they lie: a copy of GPT-2's logits, 26 MB an item, would be in the peak.
        self._look(self._seen(inputs))

    def outputs(self, inputs: Any) -> dict[str, Any]:
        # Copies: an engine may write its next outputs to the same place.
        arrays = {name: np.array(value) for name, value in self._seen(inputs).items()}
        self._look(arrays)
        return arrays

    def _look(self, outputs: Arrays) -> None:
        self._output_facts = {
            "outputs_finite": all(_finite(value) for value in outputs.values()),
            "output_dtypes": sorted({str(value.dtype) for value in outputs.values()}),
        }

    def _evidence(
        self,
        engine: str,
        details: Mapping[str, Any],
        devices: tuple[str, ...] | None = None,
        **more: Any,
    ) -> Evidence:
        asked = str(self._job.device)
        return Evidence(
            devices=(asked,) if devices is None else devices,
            requested=asked,
            engine=engine,
            details={**details, **self.details()},
            **more,
        )

    def details(self) -> dict[str, Any]:
        made = self.manifest
        return {
            "artefact": {
                "key": made.key,
                "format": made.format,
                "fixed_batch": made.batch,
                "made_with": dict(made.versions),
                "seconds": dict(made.seconds),
            },
            **({"quantiser": dict(made.quantiser)} if made.quantiser else {}),
            **self._output_facts,
            **self._inputs.details(),
        }


class ArraySession(ArtefactSession):
    """One artefact opened by an engine in this process, which runs and times its steps."""

    def __init__(self, job: Job, clock: Clock) -> None:
        super().__init__(job, clock)
        self._timed("load", self._open)
        self._sampler = LocalSampler(clock=clock, step=self._step, around=nullcontext)

    @abstractmethod
    def _open(self) -> None:
        """Open the artefact; timed as load."""

    @abstractmethod
    def _run(self, bound: Any) -> Any:
        """Make one pass; when it returns, the engine is done with it."""

    @abstractmethod
    def _read(self, result: Any) -> list[Any]:
        """Return the outputs of a pass, in the manifest's order, as arrays."""

    def _step(self, inputs: Any) -> Any:
        if self._schedule is None:
            return self._run(inputs)
        return self._denoised(inputs, len(self._schedule.times))

    def _denoised(self, inputs: Arrays, passes: int) -> Any:
        assert self._schedule is not None
        names = {input_.name: input_.file_name for input_ in self.manifest.inputs}

        def look(sample: Any, times: Any) -> Any:
            fed = {**inputs, names["sample"]: sample, names["timestep"]: times}
            return self._read(self._run(self._bind(fed)))[0]

        return denoise(look, inputs[names["sample"]], self._schedule, passes)

    def sample(self, inputs: Any, n: int, timing: Timing) -> Block:
        return self._sampler.sample(inputs, n, timing)

    def stepped(self, most: int) -> Mapping[str, Sketch]:
        left = self._sampler.left
        if left is None:
            return {}
        if self._schedule is not None:
            return sketch({"sample": left}, most)
        return sketch(self._named(self._read(left)), most)

    def _seen(self, inputs: Any) -> dict[str, Any]:
        self._sampler.left = None
        self._looked_with = inputs
        if self._schedule is not None:
            return {"sample": self._denoised(inputs, SHORT_PASSES)}
        return self._named(self._read(self._run(inputs)))

    def _named(self, values: Iterable[Any]) -> dict[str, Any]:
        return dict(zip((output.name for output in self.manifest.outputs), values, strict=True))


def _finite(value: Any) -> bool:
    # Without a temporary of the array's size: its extremes tell, and NaN passes through them.
    if value.dtype.kind != "f" or not value.size:
        return True
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite(value.min()) and np.isfinite(value.max()))


def timed(clock: Clock, do: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a call gives, and the nanoseconds that it took."""
    start = clock.now_ns()
    made = do()
    return made, clock.now_ns() - start
