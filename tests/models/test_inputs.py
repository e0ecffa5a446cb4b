"""Inputs: seeded, in range, of the asked shape; absurd sizes are arithmetic only."""

from dataclasses import replace

import numpy as np
import pytest

from accelbench.core.case import Shapes
from accelbench.core.errors import OutOfMemoryError, UnsupportedError, UsageError
from accelbench.core.vocabulary import Mode
from accelbench.models.find import every_model, find
from accelbench.models.inputs import (
    choosing,
    chosen_items,
    input_bytes,
    input_shapes,
    make_inputs,
    settle,
    tensors,
    throughput_unit,
)

every = pytest.mark.parametrize("spec", every_model(), ids=lambda s: s.id)


@every
def test_values_are_what_a_model_takes(spec):
    made = make_inputs(spec, Shapes(3), seed=1)
    assert list(made) == [tensor.name for tensor in spec.inputs]
    for tensor in spec.inputs:
        array = made[tensor.name]
        assert array.shape[0] == 3
        if tensor.constant is not None:
            assert (array == tensor.constant).all()
        elif tensor.row is not None:
            assert (array == np.asarray(tensor.row, array.dtype)).all()
        elif tensor.dtype == "int64":
            assert array.dtype == np.int64
            drawn = array
            if tensor.lead is not None:
                assert (array[..., : tensor.lead[1]] == tensor.lead[0]).all()
                drawn = drawn[..., tensor.lead[1] :]
            if tensor.last is not None:
                assert (array[..., -1] == tensor.last).all()
                drawn = drawn[..., :-1]
            assert drawn.min() >= tensor.low
            assert drawn.max() < tensor.high
            assert drawn.max() > tensor.high // 2  # not all from a corner of the vocabulary
        else:
            assert array.dtype == np.float32
            assert abs(float(array.mean())) < 0.05
            assert abs(float(array.std()) - 1) < 0.05


@every
def test_bytes_are_those_of_the_arrays(spec):
    made = make_inputs(spec, Shapes(2), seed=0)
    assert input_bytes(spec, Shapes(2)) == sum(a.nbytes for a in made.values())


def fed(spec):
    """Each way that a model is fed: a forward pass, a request, and training."""
    ways = [(Mode.INFERENCE, Shapes(5))]
    if spec.generation is not None:
        ways.append((Mode.INFERENCE, Shapes(5, new_tokens=4)))
    if spec.training is not None:
        ways.append((Mode.TRAINING, Shapes(5)))
    return ways


def is_drawn(tensor):
    return tensor.constant is None and tensor.row is None


@every
def test_an_item_is_the_same_in_every_batch(spec):
    for mode, shapes in fed(spec):
        whole = make_inputs(spec, shapes, 3, mode)
        few = make_inputs(spec, replace(shapes, batch=2), 3, mode)
        with choosing([4, 0]):
            chosen = make_inputs(spec, replace(shapes, batch=2), 3, mode)
        with choosing(range(5)):
            all_ = make_inputs(spec, shapes, 3, mode)
        for name, array in whole.items():
            np.testing.assert_array_equal(few[name], array[:2])
            np.testing.assert_array_equal(chosen[name], array[[4, 0]])
            np.testing.assert_array_equal(all_[name], array)
    assert chosen_items() is None


@every
def test_the_items_of_a_batch_are_distinct(spec):
    for mode, shapes in fed(spec):
        made = make_inputs(spec, replace(shapes, batch=8), 0, mode)
        for tensor in tensors(spec, settle(spec, shapes), mode):
            rows = {row.tobytes() for row in made[tensor.name]}
            if not is_drawn(tensor):
                assert len(rows) == 1
            elif made[tensor.name][0].size > 8:  # not a class or a time step
                assert len(rows) == 8


def test_a_seed_gives_its_values():
    spec, shapes = find("vit-tiny"), Shapes(2)
    one, again, other = (make_inputs(spec, shapes, seed)["pixel_values"] for seed in (7, 7, 8))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    # The draw is part of what a stored seed means: it must not change unnoticed.
    ids = make_inputs(find("bert-tiny"), Shapes(1, sequence=4), seed=0)["input_ids"]
    assert ids.tolist() == [[16587, 6756, 29868, 24699]]
    assert input_bytes(find("vit-base"), Shapes(1), 2) == 3 * 224 * 224 * 2
    assert input_bytes(find("bert-base"), Shapes(1), 2) == 2 * 128 * 8


def test_sizes_are_filled_in_or_refused():
    bert, vit = find("bert-base"), find("vit-base")
    assert settle(bert, Shapes(4, image=64)) == Shapes(4, sequence=128)
    assert settle(vit, Shapes(4, sequence=64)) == Shapes(4, image=224)
    assert input_shapes(bert, Shapes(4, sequence=9))["input_ids"] == (4, 9)
    assert input_shapes(find("resnet-50"), Shapes(1, image=96))["pixel_values"] == (1, 3, 96, 96)

    with pytest.raises(UnsupportedError, match="at most 512 tokens, not 513") as raised:
        make_inputs(find("bert-base"), Shapes(1, sequence=513), seed=0)
    assert raised.value.reason == "sequence_too_long"
    assert settle(find("bert-base"), Shapes(1, sequence=512)).sequence == 512
    with pytest.raises(UnsupportedError, match="224 × 224") as raised:
        settle(find("vit-base"), Shapes(1, image=256))
    assert raised.value.reason == "image_size"
    huge = Shapes(10**9)
    assert input_bytes(find("vit-base"), huge) == 10**9 * 3 * 224 * 224 * 4
    with pytest.raises(OutOfMemoryError):
        make_inputs(find("vit-base"), huge, seed=0)
    assert throughput_unit(find("vit"), Shapes(1)) == "images/s"
    assert throughput_unit(find("bert"), Shapes(1)) == "sequences/s"


@pytest.mark.parametrize(
    ("builder", "config", "fixed"),
    [
        ("transformers:ViTForImageClassification", {}, True),
        ("transformers:VisionEncoderDecoderModel", {"encoder": {"model_type": "vit"}}, True),
        ("transformers:VisionEncoderDecoderModel", {"encoder": {"model_type": "swin"}}, False),
        ("transformers:VisionEncoderDecoderModel", {"encoder": "vit"}, False),
        ("transformers:SwinForImageClassification", {"image_size": 224}, False),
        ("transformers:ConvNextForImageClassification", {"image_size": [224, 224]}, False),
        ("our.models:ViTModel", {"image_size": 224}, False),
    ],
)
def test_a_size_in_a_config_fixes_nothing_and_learned_positions_do(builder, config, fixed):
    spec = replace(find("vit-base"), builder=builder, config=config)
    if not fixed:
        assert settle(spec, Shapes(1, image=256)).image == 256
        return
    with pytest.raises(UnsupportedError, match="224 × 224"):
        settle(spec, Shapes(1, image=256))


@pytest.mark.parametrize("shapes", [Shapes(0), Shapes(-1), Shapes(1, sequence=0)])
def test_sizes_below_one_are_refused(shapes):
    with pytest.raises(UsageError):
        make_inputs(find("bert-tiny"), shapes, seed=0)
