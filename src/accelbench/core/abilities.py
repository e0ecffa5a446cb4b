"""Optional abilities of a session, each a protocol that a session may realise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from accelbench.core.case import Case
from accelbench.core.protocols import Block


@runtime_checkable
class WeightPerturbable(Protocol):
    """Session whose weights can be changed for a moment, to check that they matter."""

    def other_weights(self) -> AbstractContextManager[None]:
        """Change every weight while entered, and restore all of them afterwards."""


@runtime_checkable
class DrawRepeatable(Protocol):
    """Session whose model draws random numbers, and can draw the same numbers again."""

    def same_draws(self) -> AbstractContextManager[None]:
        """Make every run draw the same numbers while entered."""


@runtime_checkable
class SimilarInputs(Protocol):
    """Session that runs on an example, whose values it can change a little."""

    def similar_inputs(self, seed: int) -> Any | None:
        """Return inputs close to the example, or None if the model takes no others."""


@runtime_checkable
class DropoutSwitchable(Protocol):
    """Session that can train without dropout, so that its losses can be compared."""

    def without_dropout(self) -> AbstractContextManager[None]:
        """Switch dropout off while entered."""


@runtime_checkable
class RoundingReference(Protocol):
    """Reference session that can compute the effect of rounding."""

    def exact(self, inputs: Any) -> Mapping[str, Any]:
        """Return outputs computed in fp64, named like those of `outputs`.

        Only `close` may follow.
        """

    def rounded(self, inputs: Any, precision: str) -> Mapping[str, Any]:
        """Return the outputs of a pass whose values are rounded to bf16, fp16 or int8."""


@runtime_checkable
class TrainingReference(Protocol):
    """Reference session that can train with rounded products and from changed weights."""

    def narrow_products(self) -> AbstractContextManager[None]:
        """Round factors of products to ten bits while entered, as TF32 does and fp16 nearly."""

    def nudge(self, by: float) -> None:
        """Change every weight by this share of its value, alternately up and down."""


@runtime_checkable
class RealInputs(Protocol):
    """Session that accepts real inputs."""

    def loaded(self) -> Mapping[str, Any]:
        """Return columns about the inputs that were prepared last; empty if they were synthetic.

        The evidence has the items that were read, skipped and drawn in its details, under "data".
        """


@runtime_checkable
class OutOfProcess(Protocol):
    """Session whose work is done by processes other than the worker."""

    @property
    def host_memory(self) -> Any:
        """A `HostMemory` of those processes."""

    def cpu_seconds(self) -> float:
        """Return the processor time of those processes so far."""


@runtime_checkable
class RankExchange(Protocol):
    """Session whose step is made by several processes, with the cost of their exchange."""

    def exchanged(self, case: Case) -> Mapping[str, Any]:
        """Return columns about the collectives of a few profiled steps, per rank under "ranks"."""


@runtime_checkable
class ContinuousBlocks(Protocol):
    """Session with a slow connection, which measures better without pauses between blocks."""

    def unbroken_blocks(self, inputs: Any, steps: int, samples: int) -> Sequence[Block]:
        """Return `samples` blocks of `steps` steps each, timed as wholes without a pause."""


@runtime_checkable
class LastStepOutputs(Protocol):
    """Session that keeps the outputs of its last timed step until the next step."""

    def stepped(self, most: int) -> Mapping[str, Any]:
        """Return sketches of the last step's outputs, by the names of `outputs`.

        Nothing is computed for it. It is empty if the last block left no outputs, as in training.
        At most `most` values of each output are read, at `sketches.places`.
        """


@dataclass(frozen=True)
class StepPreview:
    """Loss and weights that the next training step will produce."""

    loss: float  # of the whole batch
    weights: Mapping[str, Any] | None = None  # as `weight_values`; None if copies are too dear


@runtime_checkable
class TrainingProbe(Protocol):
    """Session that shows its weights and previews its next step between blocks of training.

    Neither method changes the next step.
    """

    def weight_values(self, most: int, draw: int) -> Mapping[str, Any]:
        """Return some current values of each trained weight, as NumPy arrays by name.

        There are at most `most` values of each. `draw` selects them (`sketches.drawn_places`).
        """

    def preview_step(self, inputs: Any, most: int, draw: int) -> StepPreview | None:
        """Return the result of the next step, by a step that is undone; None if that is too dear.

        Both steps draw the same random numbers.
        """


@runtime_checkable
class EvaluatedOutputs(Protocol):
    """Session that also evaluates, within its steps, outputs that are computed on demand."""

    evaluates_outputs: bool


@runtime_checkable
class RemoteOutputs(Protocol):
    """Session whose outputs are on another machine or in another process, and are checked there."""

    def glance(self, inputs: Any, most: int) -> Any:
        """Return one run's outputs as a `Glance`: a digest of all and `most` values of each."""


@runtime_checkable
class PageVisits(Protocol):
    """Session that loads anew for each visit, as a web page does."""

    def visits(self, case: Case, first_inference_ms: float) -> Mapping[str, float]:
        """Return columns about the visits of this case; empty if it was not visited.

        `first_inference_ms` is the first step of the measured visit.
        """


@runtime_checkable
class Reusable(Protocol):
    """Session that can free its model and keep what the next model can use."""

    def leave(self) -> None:
        """Free the model. Only `close` may follow. Raises CaseError if it fails."""
