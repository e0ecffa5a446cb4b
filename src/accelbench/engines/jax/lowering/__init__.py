"""Torch modules as JAX functions: a table of operators, and a walk over torch's own graph."""

from accelbench.engines.jax.lowering import arithmetic, operators
from accelbench.engines.jax.lowering.lower import Arrays, Lowered, Names, Wrapped, lower, weights_of
from accelbench.engines.jax.lowering.operators import OPS, RANDOM, array

#: Each enters its operators into the table when it is imported.
THEMES = (operators, arithmetic)

__all__ = [
    "OPS", "RANDOM", "THEMES", "Arrays", "Lowered", "Names", "Wrapped", "array", "lower",
    "weights_of",
]  # fmt: skip
