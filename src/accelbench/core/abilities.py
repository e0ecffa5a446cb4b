"""What a session may be able to do beside running its model; each is asked for by its protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from accelbench.core.case import Case
from accelbench.core.protocols import Block


@runtime_checkable
class WeightPerturbable(Protocol):
    """A session whose weights can be changed for a moment, to see whether they matter."""

    def other_weights(self) -> AbstractContextManager[None]:
        """Within it every weight has another value; afterwards each has its own again."""


@runtime_checkable
class DrawRepeatable(Protocol):
    """A session whose model may draw numbers as it runs, and can be made to draw them again."""

    def same_draws(self) -> AbstractContextManager[None]:
        """Within it each run draws the same; afterwards as if there had been none."""


@runtime_checkable
class SimilarInputs(Protocol):
    """A session that is always called with an example, whose numbers it can change a little."""

    def similar_inputs(self, seed: int) -> Any | None:
        """Return inputs like the example; None if there are none, or the model takes no others."""


@runtime_checkable
class DropoutSwitchable(Protocol):
    """A session whose training can do without dropout, so that its losses can be compared."""

    def without_dropout(self) -> AbstractContextManager[None]:
        """Within it nothing is dropped by chance; afterwards it is again."""


@runtime_checkable
class RoundingReference(Protocol):
    """A session that can say what rounding costs its model: a reference's."""

    def exact(self, inputs: Any) -> Mapping[str, Any]:
        """Outputs computed in fp64, as `outputs` gives them; nothing else is asked of it after."""

    def rounded(self, inputs: Any, precision: str) -> Mapping[str, Any]:
        """Outputs of a pass whose numbers are rounded to bf16, fp16 or int8."""


@runtime_checkable
class TrainingReference(Protocol):
    """A session that can train with rounded products and from other weights: a reference's."""

    def narrow_products(self) -> AbstractContextManager[None]:
        """Round what products multiply to ten bits, as TF32 does and fp16 nearly, while entered."""

    def nudge(self, by: float) -> None:
        """Change every weight by this share of itself, up and down in turns."""


@runtime_checkable
class RealInputs(Protocol):
    """A session that can be fed with real inputs."""

    def loaded(self) -> Mapping[str, Any]:
        """Columns about the inputs that were prepared last; empty where they were synthetic.

        What was read, skipped and drawn is part of the evidence's details, under "data".
        """


@runtime_checkable
class OutOfProcess(Protocol):
    """A session whose work is done by other processes than the worker, and who counts theirs."""

    @property
    def host_memory(self) -> Any:
        """A `HostMemory` of those processes."""

    def cpu_seconds(self) -> float:
        """Processor time of those processes so far."""


@runtime_checkable
class RankExchange(Protocol):
    """A session whose step several processes make together, and that tells what that costs."""

    def exchanged(self, case: Case) -> Mapping[str, Any]:
        """Columns about the collectives of a few profiled steps; each rank's under "ranks"."""


@runtime_checkable
class ContinuousBlocks(Protocol):
    """A session that is asked from afar, and does better without a pause between its blocks."""

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> Sequence[Block]:
        """So many blocks of steps timed as a whole, one straight after the other."""


@runtime_checkable
class LastStepOutputs(Protocol):
    """A session that keeps what the last step it timed has left, until it is stepped again."""

    def stepped(self, most: int) -> Mapping[str, Any]:
        """Return sketches of that step's outputs as it left them, by the names that `outputs` has.

        Nothing is computed for it. Empty where the last block left none, as in training. Of a
        larger output `most` values are read, at `sketches.places`.
        """


@dataclass(frozen=True)
class StepPreview:
    """What the next training step will report and leave."""

    loss: float  # of the whole batch
    weights: Mapping[str, Any] | None = None  # as `weight_values`; None if copies are too dear


@runtime_checkable
class TrainingProbe(Protocol):
    """A session that shows its weights, and what its next step does, between blocks of training.

    Neither question changes anything: the next step is the step that it would have been.
    """

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        """Return some values of each trained weight as they are now, as NumPy arrays by name.

        There are at most `most` of each; `draw` chooses which ones (`sketches.drawn_places`).
        """

    def preview_step(self, inputs: Any, most: int, draw: int) -> StepPreview | None:
        """Return what the next step will do, by a step that is undone; None if that is too dear.

        Both steps draw the same random numbers.
        """


@runtime_checkable
class EvaluatedOutputs(Protocol):
    """A session that evaluates within its steps whatever an answer computes only when asked."""

    evaluates_outputs: bool


@runtime_checkable
class RemoteOutputs(Protocol):
    """A session whose outputs lie far away, and can be looked at there."""

    def glance(self, inputs: Any, most: int) -> Any:
        """One run's outputs as a `Glance`: a digest of all, and at most so many values of each."""


@runtime_checkable
class PageVisits(Protocol):
    """A session that users wait for each time they come to it, as they do for a page's."""

    def visits(self, case: Case, first_inference_ms: float) -> Mapping[str, float]:
        """Return columns of the visits to this case; none for a case that was not come to.

        `first_inference_ms` is the first step of the visit in which it was measured.
        """


@runtime_checkable
class Reusable(Protocol):
    """A session that can give up its model, and leave what serves the next one."""

    def leave(self) -> None:
        """Afterwards nothing is asked of it but `close`; raises CaseError where it fails."""
