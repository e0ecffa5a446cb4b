"""Each operator of the table against torch's own, on small tensors."""

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax")

from accelbench.engines.jax.lowering import OPS, array  # noqa: E402
from accelbench.engines.jax.lowering.lower import cast, placed  # noqa: E402

_drawing = torch.Generator().manual_seed(0)


def floats(*shape):
    return torch.randn(*shape, generator=_drawing)


def shares(*shape):
    """Between 0 and 1, the borders left out."""
    return torch.rand(*shape, generator=_drawing) * 0.98 + 0.01


def ids(top, *shape):
    return torch.randint(0, top, shape, generator=_drawing)


def given(value):
    if isinstance(value, torch.Tensor):
        return array(value)
    if isinstance(value, (list, tuple)):
        return type(value)(given(one) for one in value)
    return value


def torchs(name):
    operator, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator), overload)


def check(name, *args, tolerance=2e-6, **named):
    """The same values, shapes and dtypes as torch's; what JAX does not give is left out."""
    target = torchs(name)
    wanted = target(*args, **named)
    places, rest = placed(target, given(args), {k: given(v) for k, v in named.items()})
    found = OPS[f"aten.{name}"](*places, **rest)
    found = cast(found, wanted)
    several = isinstance(wanted, (list, tuple))
    pairs = list(zip(found, wanted, strict=True)) if several else [(found, wanted)]
    assert any(one is not None for one, _ in pairs)
    for one, right in pairs:
        if one is None:
            continue
        assert one.shape == tuple(right.shape), name
        held = np.asarray(one, np.float64)
        np.testing.assert_allclose(
            held, right.double().numpy(), rtol=tolerance, atol=tolerance, err_msg=name
        )


X, Y = floats(3, 5), floats(3, 5)
MASK = floats(3, 5) > 0
WHOLE = ids(7, 3, 5) - 3

OF_ANY_NUMBER = [
    "abs", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor", "isinf", "isnan",
    "neg", "reciprocal", "relu", "round", "sigmoid", "sign", "silu", "sin", "sinh", "square", "tan",
    "tanh", "trunc",
]  # fmt: skip


class TestElementwise:
    @pytest.mark.parametrize("name", OF_ANY_NUMBER)
    def test_of_any_number(self, name):
        check(f"{name}.default", X)

    @pytest.mark.parametrize("name", ["acos", "asin", "log", "log1p", "log2", "rsqrt", "sqrt"])
    def test_of_shares(self, name):
        check(f"{name}.default", shares(4, 3))

    @pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "remainder", "fmod"])
    def test_of_two(self, name):
        overload = "Tensor_Tensor" if name == "pow" else "Tensor"
        base = shares(3, 5) if name == "pow" else X
        check(f"{name}.{overload}", base, Y)
        check(f"{name}.{overload}", base, Y[:1])  # one stretched over the other

    @pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
    def test_comparing(self, name):
        check(f"{name}.Tensor", WHOLE, WHOLE.flip(0))
        check(f"{name}.Scalar", WHOLE, 1)

    def test_forms_and_choices(self):
        check("add.Tensor", X, Y, alpha=3)
        check("sub.Tensor", X, Y, alpha=2)
        check("rsub.Scalar", X, 2, 3)

        check("add.Tensor", WHOLE, X)
        check("mul.Tensor", WHOLE, 0.5 * torch.ones(()))
        check("div.Tensor", WHOLE, WHOLE.abs() + 1)
        check("mul.Tensor", MASK, WHOLE)
        check("add.Tensor", X.bfloat16(), X, tolerance=1e-6)
        check("mul.Tensor", X.half(), X.half(), tolerance=1e-3)
        assert OPS["aten.add.Tensor"](array(X.bfloat16()), 1.5).dtype == "bfloat16"

        check("leaky_relu.default", X, 0.2)
        check("elu.default", X, 1.5)
        check("softplus.default", X * 20, 2.0, 5.0)
        check("hardtanh.default", X)
        check("hardtanh.default", X * 9, 0.0, 6.0)

        check("clamp.default", X, -0.5, 0.5)
        check("clamp.default", X, None, 0.5)
        check("clamp.default", X, min=-0.1)
        check("clamp_min.default", X, 0.1)
        check("clamp_max.default", X, 0.1)

        check("where.self", MASK, X, Y[0])
        check("masked_fill.Scalar", X, MASK, -torch.inf)
        check("logical_and.default", MASK, ~MASK[:1])
        check("bitwise_not.default", MASK)
        check("maximum.default", X, Y)

        check("arange.start_step", 2, 11, 3)
        check("full.default", [2, 0, 3], 1.5)
        check("full_like.default", WHOLE, 4)
        check("zeros.default", [3])
        check("new_zeros.default", X, [2, 2])
        check("ones_like.default", MASK)

    @pytest.mark.parametrize("mode", [None, "floor", "trunc"])
    def test_division_rounds_as_asked(self, mode):
        check("div.Tensor_mode", WHOLE, ids(3, 3, 5) + 1, rounding_mode=mode)
        check("div.Tensor_mode", X, Y, rounding_mode=mode)

    @pytest.mark.parametrize("approximate", ["none", "tanh"])
    def test_gelu(self, approximate):
        check("gelu.default", X * 3, approximate=approximate)


class TestShapes:
    def test_dims_joins_stretches_and_padding(self):
        x = floats(2, 3, 4)
        check("permute.default", x, [-1, 0, 1])
        check("transpose.int", x, -1, 0)
        check("unsqueeze.default", x, -2)
        check("select.int", x, -1, -2)
        check("squeeze.dims", floats(1, 3, 1), [0, -1])
        check("squeeze.dim", x, 0)  # nothing there to take away
        check("flip.default", x, [-1, 0])

        check("cat.default", [X, Y[:1]], 0)
        check("cat.default", [torch.empty(0), X], -1)  # an empty vector passes beside any shape
        check("stack.default", [X, Y], -1)
        check("split.Tensor", X, 2, 1)
        check("split_with_sizes.default", X, [1, 4], -1)
        check("unbind.int", X, 1)

        check("expand.default", floats(3, 1), [2, -1, 4])
        check("repeat.default", floats(2), [3, 2])
        check("view.default", X, [5, -1])
        x = floats(2, 3, 4)
        check("constant_pad_nd.default", x, [1, 2], 7.0)
        check("constant_pad_nd.default", x, [0, -1, 2, 0])

    @pytest.mark.parametrize(
        ("start", "end", "step"),
        [(0, 2**63 - 1, 1), (1, -1, 1), (-3, 2**63 - 1, 2), (4, 2, 1), (None, 3, 1), (9, 99, 1)],
    )
    def test_slices(self, start, end, step):
        check("slice.Tensor", floats(3, 5), -1, start, end, step)


class TestReductions:
    @pytest.mark.parametrize("dim", [[0], [-1], [0, 1], [1, -1]])
    @pytest.mark.parametrize("keep", [False, True])
    def test_sums_over_dims(self, dim, keep):
        x = floats(2, 3, 4)
        check("sum.dim_IntList", x, dim, keep)
        check("mean.dim", x, dim, keep)
        check("amax.default", x, dim, keep)
        check("amin.default", x, dim, keep)

    def test_forms_of_reductions(self):
        for name in ("sum", "mean", "max", "min", "prod", "argmax", "argmin"):
            check(f"{name}.default", X)
        check("sum.default", MASK)  # truths add up to a number
        check("any.dim", MASK, -1)
        check("all.dim", MASK, 0, True)

        check("max.dim", X, -1)
        check("min.dim", X, 0, True)
        check("argmax.default", X, -1)
        check("linalg_vector_norm.default", X, 2, [-1], True)
        with pytest.raises(NotImplementedError, match="order 1"):
            OPS["aten.linalg_vector_norm.default"](array(X), 1)
        x = X.clone()
        x[1] = -torch.inf
        check("_safe_softmax.default", x, -1)

        check("cumsum.default", WHOLE, 1)
        check("topk.default", X, 2, -1)
        check("topk.default", X, 2, 0, False)
        check("sort.default", X, 0, True)
        check("sort.stable", WHOLE, stable=True, dim=1)
        check("histc.default", X, 4, min=-1, max=1)

    @pytest.mark.parametrize("correction", [0, 1, None])
    def test_variance(self, correction):
        check("var.correction", X, [1], correction=correction, keepdim=True)

    @pytest.mark.parametrize("dim", [0, -1])
    def test_softmax(self, dim):
        check("_softmax.default", X * 30, dim, False)
        check("_log_softmax.default", X, dim, False)
        check("_softmax.default", X.bfloat16(), dim, False, tolerance=1e-2)


class TestIndexing:
    def test_picking_and_placing(self):
        check("embedding.default", floats(7, 3), ids(7, 2, 4), 0)

        weight, which = floats(5, 2), torch.tensor([0, 1, 1, 4])
        mine = weight.clone().requires_grad_()
        torch.nn.functional.embedding(which, mine, padding_idx=0).square().sum().backward()
        found = jax.grad(lambda w: (OPS["aten.embedding.default"](w, array(which), 0) ** 2).sum())(
            array(weight)
        )
        np.testing.assert_allclose(found, mine.grad.numpy(), rtol=1e-6)
        assert not np.asarray(found)[0].any()

        x, index = floats(4, 5), torch.tensor([[0, 3, 1], [2, 2, 0]])
        check("gather.default", x, 0, index)
        check("gather.default", x, -1, index)
        unique = torch.tensor([[0, 3, 1], [2, 1, 0]])
        check("scatter.src", x, 0, unique, floats(3, 4))
        check("scatter.value", x, -1, index, 9.0)
        check("scatter_add.default", x, 1, index, floats(2, 3))

        x = floats(4, 5, 3)
        check("index.Tensor", x, [ids(4, 2), ids(5, 2)])
        check("index.Tensor", x, [None, ids(5, 6)])
        check("index_select.default", x, -1, torch.tensor([2, 0]))
        check("index_put.default", x, [torch.tensor([1, 3])], floats(2, 5, 3))
        check("index_put.default", x, [torch.tensor([1, 1])], floats(2, 5, 3), True)

        check("index_put.default", X, [MASK], torch.tensor(7.0))
        with pytest.raises(NotImplementedError, match="no static shape"):
            OPS["aten.index.Tensor"](array(X), [array(MASK)])
        check("masked_scatter.default", X, MASK, floats(20))
        x = torch.log_softmax(floats(6, 4), -1)
        target = torch.tensor([0, 3, -100, 1, -100, 2])
        for reduction in (1, 2):
            check("nll_loss_forward.default", x, target, None, reduction, -100)


class TestProducts:
    def test_products_and_attention(self):
        check("mm.default", floats(2, 3), floats(3, 4))
        check("bmm.default", floats(2, 3, 4), floats(2, 4, 1))
        check("addmm.default", floats(4), floats(2, 3), floats(3, 4), beta=2, alpha=0.5)
        check("linear.default", floats(2, 5, 3), floats(4, 3), floats(4))

        q, k, v = floats(2, 4, 3, 8), floats(2, 4, 5, 8), floats(2, 4, 5, 6)
        self.attention(q, k, v)
        self.attention(q, k, v, scale=0.1)
        self.attention(q, k, v, is_causal=True)
        self.attention(q, k, v, attn_mask=floats(3, 5) > 0)
        self.attention(q, k, v, attn_mask=floats(2, 1, 3, 5))

        mask = torch.ones(3, 5, dtype=torch.bool)
        mask[1] = False
        self.attention(floats(1, 3, 8), floats(1, 5, 8), floats(1, 5, 8), attn_mask=mask)
        q, k, v = floats(1, 4, 3, 8), floats(1, 2, 3, 8), floats(1, 2, 3, 8)
        self.attention(q, k, v, enable_gqa=True)

    def attention(self, *args, **named):
        check("scaled_dot_product_attention.default", *args, **named, tolerance=1e-5)


class TestConvolutions:
    @pytest.mark.parametrize("groups", [1, 2])
    @pytest.mark.parametrize("sizes", [(9,), (7, 8), (4, 5, 6)])
    def test_in_one_two_and_three_dimensions(self, sizes, groups):
        n = len(sizes)
        x, kernel = floats(2, 4, *sizes), floats(6, 4 // groups, *[3] * n)
        rest = ([2] * n, [1] * n, [1] * n, False, [0] * n, groups)
        check("convolution.default", x, kernel, floats(6), *rest, tolerance=1e-5)

    def test_pools_and_kernels(self):
        args = (floats(1, 2, 9, 9), floats(3, 2, 3, 3), None)
        check(
            "convolution.default", *args, [1, 1], [2, 1], [2, 3], False, [0, 0], 1, tolerance=1e-5
        )

        x, kernel = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
        rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        plain = OPS["aten.convolution.default"](array(x), array(kernel), None, *rest)
        turned = array(kernel.permute(2, 3, 1, 0))
        found = OPS["aten.convolution.default"](array(x), turned, None, *rest, laid_out=True)
        np.testing.assert_array_equal(plain, found)

        x = floats(2, 3, 8, 6)
        check("max_pool2d_with_indices.default", x, [3, 3], [2, 2], [1, 1])
        check("max_pool2d_with_indices.default", x, [2, 2])
        check("avg_pool2d.default", x, [2, 2], [2, 2])
        check("avg_pool2d.default", x, [3, 3], [1, 1], [1, 1])
        check("_adaptive_avg_pool2d.default", x, [1, 1])
        check("_adaptive_avg_pool2d.default", x, [4, 2])

        with pytest.raises(NotImplementedError, match="rounds up"):
            OPS["aten.max_pool2d_with_indices.default"](
                array(floats(1, 1, 5, 5)), [2, 2], ceil=True
            )
        with pytest.raises(NotImplementedError, match="windows differ"):
            OPS["aten._adaptive_avg_pool2d.default"](array(floats(1, 1, 5, 5)), [2, 2])

        check("upsample_nearest2d.default", floats(1, 2, 3, 4), [6, 8])
        check("upsample_nearest2d.default", floats(1, 2, 3, 4), [5, 7])

    @pytest.mark.parametrize("groups", [1, 2])
    def test_transposed(self, groups):
        args = (floats(2, 4, 5, 6), floats(4, 3, 3, 2), floats(3 * groups))
        rest = ([2, 3], [1, 0], [1, 1], True, [1, 0], groups)
        check("convolution.default", *args, *rest, tolerance=1e-5)


class TestNorms:
    def test_layers_groups_and_batches(self):
        x = floats(2, 6, 4)
        check("native_layer_norm.default", x, [4], floats(4), None, 1e-5, tolerance=1e-5)
        check("native_layer_norm.default", x, [6, 4], None, None, 1e-5, tolerance=1e-5)
        groups = OPS["aten.native_group_norm.default"](
            array(x), array(torch.ones(6)), array(torch.zeros(6)), 2, 6, 4, 3, 1e-5
        )[0]
        right = torch.nn.functional.group_norm(x, 3)
        np.testing.assert_allclose(groups, right.numpy(), rtol=1e-5, atol=1e-5)

        x, mean, spread = floats(4, 3, 5) * 2 + 1, floats(3), shares(3)
        weight, bias = floats(3), floats(3)
        name = "_native_batch_norm_legit_functional.default"
        for training in (True, False):
            check(name, x, weight, bias, mean, spread, training, 0.1, 1e-5, tolerance=1e-5)

        x = floats(2, 3, 4, 4)
        found = OPS["aten._native_batch_norm_legit_no_training.default"](
            *map(array, (x, floats(3), floats(3), floats(3), shares(3))), 0.1, 1e-5
        )
        assert found[0].shape == x.shape
        check(
            "_native_batch_norm_legit_no_training.default",
            x, None, None, floats(3), shares(3), 0.1, 1e-5, tolerance=1e-5,
        )  # fmt: skip


class TestChance:
    def test_dropout_makes_up_for_what_it_drops_and_needs_a_key(self):
        x, key = jax.numpy.ones((400, 50)), jax.random.key(0)
        found = np.asarray(OPS["aten.dropout.default"](x, 0.25, True, key=key))
        assert set(np.unique(found)) == {np.float32(0), np.float32(1 / 0.75)}
        assert abs(found.mean() - 1) < 0.02
        other = OPS["aten.dropout.default"](x, 0.25, True, key=jax.random.key(1))
        assert not np.array_equal(found, other)

        x = array(X)
        drop = OPS["aten.dropout.default"]
        np.testing.assert_array_equal(drop(x, 0.5, True), x)
        np.testing.assert_array_equal(drop(x, 0.5, False, key=jax.random.key(0)), x)
        values, kept = OPS["aten.native_dropout.default"](x, 0.5, True)
        np.testing.assert_array_equal(values, x)
        assert bool(kept.all())

        with pytest.raises(NotImplementedError, match="rand outside training"):
            OPS["aten.rand.default"]([2])
