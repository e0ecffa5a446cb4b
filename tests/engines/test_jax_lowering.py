"""Torch modules as JAX functions: graphs, state, chance, and what has no counterpart."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from refusals import refusal

jax = pytest.importorskip("jax")

from accelbench.core.errors import UnsupportedError  # noqa: E402
from accelbench.engines.jax.lowering import (  # noqa: E402
    Names,
    Wrapped,
    array,
    lower,
    weights_of,
)
from accelbench.models.inputs import named_tensors  # noqa: E402


def lowered(module, **inputs):
    """The function, the weights, the inputs; the module itself keeps no weights."""
    names = Names.of(module)
    wrapped = Wrapped(module, lambda output, _: named_tensors(output))
    low = lower(wrapped, inputs, names)
    return low, weights_of(module, names), {name: array(t) for name, t in inputs.items()}


class Convolving(nn.Module):
    """A kernel that a convolution alone uses, one that is looked at too, and grouped ones."""

    def __init__(self):
        super().__init__()
        self.plain = nn.Conv2d(2, 4, 3)
        self.looked_at = nn.Conv2d(4, 4, 1)
        self.grouped = nn.Conv2d(4, 4, 3, groups=2)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.norm(self.plain(x))
        x = self.looked_at(x) + self.looked_at.weight.sum(1)[None, :, :, 0, None].sum(2)[..., None]
        return self.grouped(x)


class Tied(nn.Module):
    """One weight under two names."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Embedding(5, 3)
        self.outer = nn.Linear(3, 5, bias=False)
        self.outer.weight = self.inner.weight

    def forward(self, ids):
        return {"logits": self.outer(self.inner(ids))}


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + self.drop(x)


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_kernels_lie_as_xla_wants_them_and_mean_the_same():
    module, x = Convolving().eval(), draw(2, 2, 6, 6)
    with torch.no_grad():
        right = module(x)
    low, weights, inputs = lowered(module, x=x)
    assert weights["plain.weight"].shape == (3, 3, 2, 4)
    assert weights["grouped.weight"].shape == (4, 2, 3, 3)
    found = jax.jit(low)(weights, low.buffers, inputs)[0]["output"]
    np.testing.assert_allclose(found, right.numpy(), rtol=1e-4, atol=1e-5)


def test_running_statistics():
    module, x = nn.BatchNorm1d(3, momentum=0.3), draw(8, 3) * 2 + 1
    low, weights, inputs = lowered(module.train(), input=x)
    module.weight.data, module.bias.data = torch.ones(3), torch.zeros(3)
    right = module(x)
    found, renewed = jax.jit(low)(weights, low.buffers, inputs)
    np.testing.assert_allclose(found["output"], right.detach().numpy(), rtol=1e-5, atol=1e-6)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        np.testing.assert_allclose(renewed[name], getattr(module, name).numpy(), rtol=1e-6)
    assert not np.array_equal(renewed["running_mean"], low.buffers["running_mean"])

    low, weights, inputs = lowered(nn.BatchNorm1d(3).eval(), input=draw(8, 3))
    _, renewed = low(weights, low.buffers, inputs)
    assert all(renewed[name] is low.buffers[name] for name in low.buffers)


def test_a_shared_weight_stands_once_and_gets_the_gradient_of_both_uses():
    module, ids = Tied(), torch.tensor([[0, 2, 2]])
    right = module(ids)["logits"]
    right.square().sum().backward()
    gradient = module.inner.weight.grad
    low, weights, inputs = lowered(module.train(), ids=ids)
    assert list(weights) == ["inner.weight"]
    assert low.used == ("inner.weight",)

    def loss(held):
        return (low(held, low.buffers, inputs)[0]["logits"] ** 2).sum()

    np.testing.assert_allclose(
        jax.grad(loss)(weights)["inner.weight"], gradient.numpy(), rtol=1e-5, atol=1e-6
    )


def test_dropout_draws_anew_at_each_place_and_with_each_key():
    low, weights, inputs = lowered(Dropping().train(), x=torch.ones(40, 40))
    run = jax.jit(low)
    first, again, other, none = (
        np.asarray(run(weights, low.buffers, inputs, key)[0]["output"])
        for key in (jax.random.key(0), jax.random.key(0), jax.random.key(1), None)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert set(np.unique(first)) == {0.0, 2.0, 4.0}  # both places at once would leave out 2
    np.testing.assert_array_equal(none, np.full((40, 40), 2.0))


def test_weights_keep_their_names_and_bits():
    module = nn.Linear(3, 2)
    kept = module.weight.detach().clone()
    weights = weights_of(module, Names.of(module))
    module.weight.data.zero_()
    np.testing.assert_array_equal(weights["weight"], kept.numpy())
    assert module.weight.shape == kept.shape

    for dtype in (torch.bfloat16, torch.float16):
        x = draw(5).to(dtype)
        np.testing.assert_array_equal(np.asarray(array(x), np.float32), x.float().numpy())
        low, weights, inputs = lowered(nn.Linear(5, 3).to(dtype).eval(), input=x[None])
        found = low(weights, low.buffers, inputs)[0]["output"]
        assert str(found.dtype) == str(dtype).removeprefix("torch.")


def test_what_cannot_be_lowered_is_named():
    class Odd(nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x)

    with pytest.raises(UnsupportedError) as caught:
        lowered(Odd(), x=draw(3))
    assert caught.value.reason == "operator"
    assert "bessel_j0" in caught.value.message
    assert caught.value.advice

    class Branching(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x - 1

    with refusal("not_exported"):
        lowered(Branching(), x=draw(3))


@pytest.mark.parametrize("source", [np.random.random, random.random])
def test_chance_of_the_host_is_refused(source):
    """It would be drawn once, while the graph is written down, and be the same ever after."""

    class Chancy(nn.Module):
        def forward(self, x):
            return x * float(source())

    with refusal("host_random"):
        lowered(Chancy(), x=draw(3))
