"""Inputs like an example: other numbers of the same types, shapes and ranges."""

import numpy as np
import pytest
import torch

from accelbench.engines.python.session import make_similar


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_every_float_changes_and_stays_within_its_range(dtype):
    example = np.linspace(-1, 1, 40).astype(dtype)
    similar = make_similar((example,), 1)[0]
    assert similar.dtype == example.dtype
    assert (similar != example).all()
    assert (np.abs(similar) < np.abs(example)).all()
    np.testing.assert_allclose(similar, example, rtol=0.02)


def test_values_change_within_containers():
    ids, offsets = np.array([7, 3, 9, 1, 8, 2]), np.array([0, 2, 2, 5])
    similar = make_similar({"ids": ids, "offsets": offsets}, 1)
    assert sorted(similar["ids"]) == sorted(ids)
    assert (similar["ids"] != ids).any()
    assert similar["offsets"] is offsets

    example = ([torch.ones(3), 2.5], {"ids": torch.tensor([5, 1, 4, 2, 3])}, "text", 7)
    (tensor, number), named, text, whole = make_similar(example, 2)
    assert tensor.dtype == torch.float32
    assert (tensor < 1).all()
    assert number < 2.5
    assert named["ids"].tolist() != example[1]["ids"].tolist()
    assert (text, whole) == ("text", 7)

    example = np.arange(1.0, 9.0)
    assert make_similar(example, 4).tolist() == make_similar(example, 4).tolist()
    assert make_similar(example, 4).tolist() != make_similar(example, 5).tolist()


@pytest.mark.parametrize(
    "example", [("text", 7), ([], {}), (np.zeros(3),), (np.array([1, 2, 3]),), (b"bytes", None)]
)
def test_an_example_without_numbers_to_change_is_itself(example):
    assert make_similar(example, 3) is example
