"""Sessions that compute some items of a batch only; none is ok."""

from collections.abc import Callable
from typing import Any

import lying
import numpy as np
import pytest
import torch
from judging import became
from lying import Lie

Array = np.ndarray[Any, Any]
Rows = Callable[[int], list[int]]
Fill = Callable[[Array, int], Array]


def computing(rows, fill):
    """Compute some rows of each batch, in steps and for outputs, and fill up the others."""

    def run(honest, inputs):
        (features,) = inputs.values()
        found = honest({"features": features[rows(len(features))]})["scores"]
        whole = fill(np.asarray(found), len(features)).astype(np.float32)
        return {"scores": torch.from_numpy(whole) if isinstance(found, torch.Tensor) else whole}

    return Lie(step=run, outputs=run)


def first(count):
    return lambda batch: list(range(min(count, batch)))


def half_of(batch):
    return list(range(max(batch // 2, 1)))


def all_but_one(batch):
    return list(range(max(batch - 1, 1)))


def again_and_again(found, batch):
    return found[np.arange(batch) % len(found)]


def averaged(found, batch):
    rest = np.repeat(found.mean(0)[None], batch - len(found), 0)
    return np.concatenate([found, rest])


def by_chance(found, batch):
    draw = np.random.default_rng(abs(int(1e6 * found.sum())))
    rest = draw.standard_normal((batch - len(found), found.shape[1])) * found.std(0)
    return np.concatenate([found, rest])


def other_way_about(found, batch):
    return found[::-1].copy()


def exchanged(found, batch):
    """The outputs of the two items in the middle are each other's."""
    rows = np.arange(batch)
    rows[batch // 2 - 1 : batch // 2 + 1] = rows[batch // 2 - 1 : batch // 2 + 1][::-1].copy()
    return found[rows]


def of_its_neighbour(found, batch):
    rows = np.arange(batch)
    rows[batch // 2] = batch // 2 - 1
    return found[rows]


def everything(batch):
    return list(range(batch))


#: What is seen wherever the reference's items lie.
ITEMS = {
    "three items, repeated": computing(first(3), again_and_again),
    "three items, and their average": computing(first(3), averaged),
    "the first half, repeated": computing(half_of, again_and_again),
    "the first half, and its average": computing(half_of, averaged),
    "every second item, repeated": computing(
        lambda batch: list(range(0, batch, 2)), lambda found, batch: np.repeat(found, 2, 0)[:batch]
    ),
    "all but one item, which is the first one's": computing(all_but_one, again_and_again),
    "one item has its neighbour's outputs": computing(everything, of_its_neighbour),
    "all items, the other way about": computing(everything, other_way_about),
}
#: What is seen of quick steps, and of all if the reference has all items.
FEW_ITEMS = {
    "the first half, and chance": computing(half_of, by_chance),
    "all but one item, which is the average": computing(all_but_one, averaged),
    "two items have each other's outputs": computing(everything, exchanged),
}
WHOLE, QUICK_NS = 64, 500_000


@pytest.mark.parametrize(("items", "item_ns"), [(3, QUICK_NS), (3, 6_000_000), (WHOLE, 6_000_000)])
@pytest.mark.parametrize("name", ITEMS)
def test_which_items_were_computed(kind, name, item_ns, items, tmp_path, monkeypatch):
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    assert became(kind, ITEMS[name], tmp_path, 12, batch=WHOLE, items=items) == "wrong_outputs"


@pytest.mark.parametrize(("items", "item_ns"), [(3, QUICK_NS), (WHOLE, 6_000_000)])
@pytest.mark.parametrize("name", FEW_ITEMS)
def test_that_a_few_items_were_not_computed(kind, name, item_ns, items, tmp_path, monkeypatch):
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    found = became(kind, FEW_ITEMS[name], tmp_path, 12, batch=WHOLE, items=items)
    assert found == "wrong_outputs"


def test_half_of_slow_items_is_seen_in_seven_runs_of_eight(tmp_path, monkeypatch):
    """Outputs by chance are no copies, and a slow batch is run once: three items decide."""
    lie = FEW_ITEMS["the first half, and chance"]
    found = [
        became("remote", lie, tmp_path, 12, batch=WHOLE, items=3, draw=draw) for draw in range(16)
    ]
    assert set(found) <= {"ok", "wrong_outputs"}
    assert found.count("ok") <= 4


@pytest.mark.parametrize("item_ns", [QUICK_NS, 6_000_000])
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 64])
def test_batches_of_distinct_items_that_were_computed_are_measured(
    kind, batch, item_ns, tmp_path, monkeypatch
):
    monkeypatch.setattr(lying, "ITEM_NS", item_ns)
    doubts = []
    assert became(kind, Lie(), tmp_path, 12, batch=batch, items=3, doubts=doubts) == "ok"
    assert doubts == [0]


def saturated(honest, inputs):
    """Of few values, each at its least or most: many items have the same outputs."""
    found = honest(inputs)["scores"][:, :4]
    sign = torch.sign if isinstance(found, torch.Tensor) else np.sign
    return {"scores": sign(found)}


def test_items_whose_outputs_coincide_are_settled_by_the_reference(kind, tmp_path):
    lie, doubts = Lie(step=saturated, outputs=saturated), list[int]()
    found = became(kind, lie, tmp_path, 12, batch=WHOLE, items=3, honest=lie, doubts=doubts)
    assert (found, doubts) == ("ok", [1])
