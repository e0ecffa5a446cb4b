"""A model as data: everything needed to build it offline and to feed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accelbench.core.identity import digest
from accelbench.core.words import Architecture, Family


@dataclass(frozen=True)
class InputSpec:
    """One named input tensor.

    `shape` holds numbers and the names batch, sequence and image, which a
    case's shapes fill in. Integer inputs are drawn from [low, high); a float
    input is standard normal. `constant` fills the tensor with one value.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str = "float"  # float (follows the precision) · float32 · int64 · bool
    low: int = 0
    high: int = 0
    constant: float | None = None


@dataclass(frozen=True)
class ModelSpec:
    """Something to run."""

    id: str
    family: Family
    architecture: Architecture
    modalities: tuple[str, ...]
    task: str
    size: str  # tiny · small · base · large
    builder: str  # "transformers:BertModel" — a function of the catalogue's builders
    config: Mapping[str, Any]
    inputs: tuple[InputSpec, ...]
    parameters: int  # exact count of the built model, held by a test
    item: str = "samples"  # what one element of a batch is: images, sequences, …
    sequence: int | None = None  # default sequence length
    image: int | None = None  # default image side
    max_sequence: int | None = None
    aliases: tuple[str, ...] = ()
    hub_ids: tuple[str, ...] = ()
    small_variant: str | None = None  # the model to advise when this one does not fit
    sets: tuple[str, ...] = field(default=())  # key, small

    @cached_property
    def config_digest(self) -> str:
        """Changes whenever what would be built or fed changes."""
        return digest({"builder": self.builder, "config": self.config, "inputs": self.inputs})


@dataclass(frozen=True)
class AnalyticCost:
    """What one step costs on paper, found without running the model."""

    flops: float  # multiply and add counted apart
    bytes_moved: float  # weights, inputs, outputs and intermediate results, each once
    activation_bytes: float  # the sum of intermediate results of one forward pass
    peak_activation_bytes: float  # the largest amount alive at once
    weight_bytes: float
