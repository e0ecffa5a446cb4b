"""Sessions that do less for the inputs that are measured than for others; none is ok."""

import numpy as np
import pytest
import torch
from judging import became
from lies import first_value
from lying import BATCH, CASE, ITEM_NS, KINDS, WORLD, Lie

from accelbench.models.inputs import make_inputs


@pytest.mark.parametrize("rows", [4, 6, 7])
def test_fewer_items_in_the_batch_that_is_measured(kind, rows, tmp_path, monkeypatch):
    """Batches of other seeds, which checks ask for, are whole."""

    class Smaller(KINDS[kind]):
        def prepare(self, case, seed=None):
            inputs = super().prepare(case, seed)
            return inputs if seed is not None else {n: v[:rows] for n, v in inputs.items()}

    monkeypatch.setitem(KINDS, "smaller", Smaller)
    found = became("smaller", Lie(), tmp_path)
    assert found in {"cached", "work_skipped", "wrong_steps"}


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_inputs_that_are_measured_cost_less_than_others(kind, share, tmp_path):
    own = first_value(make_inputs(CASE.model, CASE.shapes, 0, CASE.mode))

    def step(honest, inputs):
        found = honest(inputs)
        saved = share * BATCH * ITEM_NS if first_value(inputs) == own else 0
        WORLD.clock.time_ns -= int(saved)
        return found

    assert became(kind, Lie(step=step), tmp_path) in {"cached", "work_skipped"}


@pytest.mark.parametrize("repeated", [False, True])
def test_a_loader_that_gives_one_batch_for_ever(kind, repeated, tmp_path, monkeypatch):
    """Whatever is asked for, the first batch comes, or one item of it in every place."""

    class Constant(KINDS[kind]):
        def prepare(self, case, seed=None):
            (features,) = super().prepare(case, 0).values()
            return {"features": features[[0] * len(features)] if repeated else features}

    monkeypatch.setitem(KINDS, "constant", Constant)
    assert became("constant", Lie(), tmp_path) == "not_real"


# -- outputs that stand for others


def by_shape():
    """Outputs are kept by the shape of the inputs."""
    lie = Lie()

    def step(honest, inputs):
        key = tuple(tuple(values.shape) for values in inputs.values())
        if key not in lie.kept:
            lie.kept[key] = honest(inputs)
        else:
            WORLD.clock.advance(10_000)
        return lie.kept[key]

    lie.step = step
    return lie


def by_first_bytes():
    """Outputs are kept by the first 64 bytes of the inputs; the same for calls of `outputs`."""
    lie = Lie()

    def step(honest, inputs):
        key = np.ascontiguousarray(next(iter(inputs.values()))).tobytes()[:64]
        if key not in lie.kept:
            lie.kept[key] = honest(inputs)
        else:
            WORLD.clock.advance(10_000)
        return lie.kept[key]

    lie.step = lie.outputs = step
    return lie


def every_second_item_between(honest, inputs):
    """Every second item is computed; the others are the means of their neighbours."""
    (features,) = inputs.values()
    found = np.asarray(honest({"features": features[::2]})["scores"])
    whole = np.repeat(found, 2, 0)[: len(features)]
    whole[1:-1:2] = (found[:-1] + found[1:])[: len(whole[1:-1:2])] / 2
    return {"scores": torch.from_numpy(whole) if torch.is_tensor(features) else whole}


def every_second_value(honest, inputs):
    """Every second value of an item is read, for half of the time, and stands for its neighbour."""
    (features,) = inputs.values()
    thin = np.repeat(np.asarray(features)[:, ::2], 2, 1)
    found = honest({"features": torch.from_numpy(thin) if torch.is_tensor(features) else thin})
    WORLD.clock.time_ns -= len(features) * ITEM_NS // 2
    return found


def equal_items_once(honest, inputs):
    """Equal items of a batch are computed once."""
    (features,) = inputs.values()
    _, first, back = np.unique(np.asarray(features), axis=0, return_index=True, return_inverse=True)
    found = honest({"features": features[first]})["scores"]
    return {"scores": found[back.reshape(-1)]}


@pytest.mark.parametrize("lie", [by_shape, by_first_bytes])
def test_outputs_that_are_kept(kind, lie, tmp_path):
    assert became(kind, lie(), tmp_path) in {"cached", "wrong_steps", "not_real"}


@pytest.mark.parametrize("less", [every_second_item_between, every_second_value])
@pytest.mark.parametrize("outputs", [False, True])
def test_a_part_that_stands_for_the_whole(kind, less, outputs, tmp_path):
    """Also if `outputs` does the same: then the reference's outputs differ."""
    lie = Lie(step=less, outputs=less if outputs else None)
    assert became(kind, lie, tmp_path) == ("wrong_outputs" if outputs else "wrong_steps")


def test_items_that_are_equal_are_in_no_batch(kind, tmp_path):
    """To compute equal items once saves nothing, since all items differ."""
    WORLD.__init__()
    counted = []

    def step(honest, inputs):
        start = WORLD.clock.time_ns
        found = equal_items_once(honest, inputs)
        counted.append(WORLD.clock.time_ns - start)
        return found

    assert became(kind, Lie(step=step), tmp_path) == "ok"
    assert min(counted) >= BATCH * ITEM_NS
