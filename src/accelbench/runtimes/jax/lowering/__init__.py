"""Torch modules as JAX functions: a table of operators, and a walk over torch's own graph."""

from accelbench.runtimes.jax.lowering import convolutions, elementwise, reductions, shapes
from accelbench.runtimes.jax.lowering.export import Wrapped
from accelbench.runtimes.jax.lowering.lower import Arrays, Lowered, Names, lower, weights_of
from accelbench.runtimes.jax.lowering.shapes import array
from accelbench.runtimes.jax.lowering.table import OPS, RANDOM

#: Each enters its operators into the table when it is imported.
THEMES = (
    elementwise,
    convolutions,
    elementwise,
    shapes,
    convolutions,
    reductions,
    reductions,
    shapes,
)

__all__ = [
    "OPS",
    "RANDOM",
    "THEMES",
    "Arrays",
    "Lowered",
    "Names",
    "Wrapped",
    "array",
    "lower",
    "weights_of",
]
