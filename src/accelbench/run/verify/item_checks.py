"""Checks of a batch's items against each other, for items that the reference has not computed.

copies        Two items with different inputs do not have the same outputs. An engine that computes
              some items and copies them is seen, whichever they are.
another order The batch is run again with its items in another order. Each item keeps its outputs,
              unless they depend on where the item lies.

Neither convicts: the outputs of a saturated model coincide, and a tie may be decided either way.
Items in doubt are computed by the reference, and judged like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelbench.core.precision import FEW_VALUES, narrowed
from accelbench.run.verify.agreement import far_apart, judged_outputs, unit_of
from accelbench.run.verify.reference_outputs import (
    Array,
    Batches,
    Outputs,
    is_number,
    item_axis,
    rows_of,
)
from accelbench.run.verify.tolerances import tolerance_of

#: How many items the reference computes to settle doubts.
MOST_DOUBTED = 3

#: Values of each item that are compared with those of other items, and with its own in the batch
#: in another order: in all of the batch.
_COLUMNS, _VALUES = 64, 2**18

#: Two items are copies if they are nearer than this share of what items are apart on average.
#: 2,000 pairs of items of one fp32 value each are so near by chance in one of 50 batches.
_COPIES_APART = 1e-5


def copied_items(
    outputs: Mapping[str, Any], right: Outputs, batches: Batches, precision: str, draw: int
) -> list[int]:
    """Return some items of a batch whose outputs are those of another item.

    Pairs of which the reference has computed both are left out.

    Args:
        outputs: a batch's, which agree with the reference as far as that goes.
        right: the reference's.
        batches: the items of both.
        precision: that the engine computes in. In a narrow one, few values coincide by chance.
        draw: decides which values are looked at, and which items are returned.
    """
    random = np.random.default_rng([draw, 2])
    known = np.zeros(len(batches.found), bool)
    known[batches.common()[1]] = True
    least = 1 if narrowed(precision) is None else FEW_VALUES
    for name in judged_outputs(right):
        values = _by_item(outputs[name], right[name].shape, batches, _COLUMNS, random)
        if values is None or values.shape[1] < least or not is_number(values):
            continue
        first, second = np.nonzero(np.triu(_are_near(values), 1) & ~(known[:, None] & known))
        chosen = random.permutation(len(first))[:MOST_DOUBTED]
        pairs = np.stack([first[chosen], second[chosen]], 1).reshape(-1).tolist()
        if rows := [row for row in dict.fromkeys(pairs) if not known[row]]:
            return [batches.found[row] for row in rows[:MOST_DOUBTED]]
    return []


def _are_near(values: Array) -> Array:
    """Which pairs of items are copies: a square of truths."""
    wide = np.nan_to_num(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        wide = wide - wide.mean(axis=0)
        products = (wide @ wide.conj().T).real
        squares = np.diag(products)
        apart = squares[:, None] + squares - 2 * products
        mean = 2 * squares.mean()
        near: Array = apart <= _COPIES_APART**2 * mean
    return near if np.isfinite(mean) and mean > 0 else np.zeros_like(near)


def moved_items(
    runs: Mapping[tuple[int, ...], Mapping[str, Any]],
    right: Outputs,
    others: Sequence[Outputs],
    of_reference: tuple[int, ...],
    precision: str,
) -> list[int]:
    """Return some items whose outputs differ between two runs of the same batch.

    Args:
        runs: the outputs of both by the order of the items, which are numbered from 0.
        right: the reference's outputs.
        others: the reference's outputs for other inputs, which differences are measured by.
        of_reference: the items that the reference has computed.
        precision: that the engine computes in.
    """
    most = tolerance_of(precision).most
    for name in judged_outputs(right):
        first, second = (
            _sorted(found[name], right[name].shape, order, Batches(of_reference, order))
            for order, found in runs.items()
        )
        if first is None or second is None:
            continue
        scale = unit_of(name, right, others, precision, most).scale
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.sqrt(np.square(far_apart(first, second)).mean(axis=1))
        worst = np.argsort(-apart, kind="stable")[:MOST_DOUBTED]
        if doubted := [int(item) for item in worst if not apart[item] <= most * scale]:
            return doubted
    return []


def _sorted(
    output: Any, right: tuple[int, ...], order: Sequence[int], batches: Batches
) -> Array | None:
    """A row of values for each item, by its number."""
    by_number = rows_of(np.asarray(output), right, np.argsort(order), batches)
    most = _VALUES // len(order) + 1
    return _by_item(by_number, right, batches, most, np.random.default_rng(0))


def _by_item(
    output: Any, right: tuple[int, ...], batches: Batches, most: int, random: np.random.Generator
) -> Array | None:
    """A row of values for each item; None if an output has no items or no values."""
    array = np.asarray(output)
    axis = item_axis(array.shape, right, batches)
    if axis is None or not array.size:
        return None
    rows = np.moveaxis(array, axis, 0).reshape(len(batches.found), -1)
    if rows.shape[1] > most:
        rows = rows[:, random.integers(0, rows.shape[1], most)]
    return rows
