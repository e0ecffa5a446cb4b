"""Counting a forward pass: against formulas worked out by hand and torch's own counter."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    conv_backward_flop,
    mm_flop,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from accelbench.core.case import Shapes
from accelbench.core.vocabulary import Mode
from accelbench.models.build import build
from accelbench.models.counting import UnknownOperationError, count_forward
from accelbench.models.find import every_model, find
from accelbench.models.inputs import make_inputs
from accelbench.models.losses import find_loss
from accelbench.models.passes import Passes, TrainingPasses


class Named(torch.nn.Module):
    """Takes its input by the name x."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def counted(*shape, layers):
    return count_forward(Named(*layers).to("meta").eval(), {"x": torch.empty(shape, device="meta")})


def test_layers_by_hand():
    seen = counted(8, 30, layers=(torch.nn.Linear(30, 20),))
    assert seen.matmul_flops == seen.flops == 2 * 8 * 30 * 20
    assert seen.weight_bytes_read == (30 * 20 + 20) * 4
    assert seen.input_bytes == 8 * 30 * 4
    assert seen.activation_bytes == seen.peak_activation_bytes == 8 * 20 * 4
    assert seen.bytes_moved == (620 + 240 + 160) * 4

    layer = torch.nn.Conv2d(6, 8, 3, stride=2, padding=1, groups=2)
    seen = counted(2, 6, 16, 16, layers=(layer,))
    assert seen.flops == 2 * (2 * 8 * 8 * 8) * (9 * 3)
    seen = counted(2, 6, 5, 5, layers=(torch.nn.ConvTranspose2d(6, 8, 3, groups=2),))
    assert seen.flops == 2 * (2 * 6 * 5 * 5) * (9 * 4)
    seen = counted(4, 10, layers=(torch.nn.ReLU(), torch.nn.GELU(), torch.nn.LayerNorm(10)))
    assert seen.matmul_flops == 0
    assert seen.other_flops == 40 * (1 + 1 + 7)

    module = Named(torch.nn.Embedding(1000, 16)).to("meta")
    ids = torch.empty(2, 5, dtype=torch.int64, device="meta")
    seen = count_forward(module, {"x": ids})
    assert seen.flops == 0
    assert seen.weight_bytes_read == 2 * 5 * 16 * 4

    with pytest.raises(UnknownOperationError, match="fft"):
        count_forward(Unknown(), {"x": torch.empty(8, device="meta")})


class Straight(torch.nn.Module):
    """Three results, of which two at most are alive at once, unless the first is kept."""

    def __init__(self, keep):
        super().__init__()
        self.keep = keep

    def forward(self, x):
        one = x + 1
        two = one * 2
        kept = one if self.keep else None
        del one
        three = two * 3
        del kept, two
        return three


@pytest.mark.parametrize(("keep", "alive"), [(False, 2), (True, 3)])
def test_the_peak_is_what_is_alive_at_once(keep, alive):
    seen = count_forward(Straight(keep), {"x": torch.empty(100, device="meta")})
    assert seen.activation_bytes == 3 * 400
    assert seen.peak_activation_bytes == alive * 400


class InPlace(torch.nn.Module):
    """Writes into its result and looks at it through views: one tensor all along."""

    def forward(self, x):
        made = x * 2
        made.add_(1)
        return made.reshape(4, 25).transpose(0, 1)


def test_views_and_in_place_work_make_nothing_new():
    seen = count_forward(InPlace(), {"x": torch.empty(100, device="meta")})
    assert seen.flops == 200
    assert seen.activation_bytes == 400


class Attention(torch.nn.Module):
    """Grouped-query attention, with or without a mask that is added to the scores."""

    def __init__(self, masked):
        super().__init__()
        self.masked = masked

    def forward(self, q, kv):
        mask = torch.zeros(5, 7, device=q.device) if self.masked else None
        return torch.nn.functional.scaled_dot_product_attention(
            q, kv, kv, attn_mask=mask, enable_gqa=True
        )


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_two_products_a_softmax_and_a_mask(masked):
    inputs = {
        "q": torch.empty(2, 4, 5, 16, device="meta"),
        "kv": torch.empty(2, 2, 7, 16, device="meta"),
    }
    seen = count_forward(Attention(masked), inputs)
    scores = 2 * 4 * 5 * 7
    assert seen.matmul_flops == 2 * 2 * scores * 16
    assert seen.other_flops == (5 if masked else 4) * scores


class Stateful(torch.nn.Module):
    """Writes into a buffer of its own: no new tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(100))

    def forward(self, x):
        self.total.add_(x)
        return x + self.total


def test_writing_into_a_buffer_makes_nothing_new():
    seen = count_forward(Stateful().to("meta"), {"x": torch.empty(100, device="meta")})
    assert seen.activation_bytes == 400
    assert seen.weight_bytes_read == 400


class Unknown(torch.nn.Module):
    """Uses an operation that no rule counts."""

    def forward(self, x):
        return torch.fft.fft(x)


def transformer(layers, hidden, tokens):
    """Four projections, a feed-forward of four times the width, two attention products."""
    projections = 4 * 2 * tokens * hidden**2
    feed_forward = 2 * 2 * tokens * hidden * 4 * hidden
    attention = 2 * 2 * tokens**2 * hidden
    return layers * (projections + feed_forward + attention)


def test_models_by_hand():
    pooler = 2 * 768 * 768
    by_hand = transformer(12, 768, 128) + pooler
    assert by_hand == 22_348_431_360
    assert Passes(find("bert-base")).forward(Shapes(1, sequence=128)).matmul_flops == by_hand
    by_hand = transformer(12, 768, 128) + 2 * 128 * 768 * 50257
    assert Passes(find("gpt2")).forward(Shapes(1, sequence=128)).matmul_flops == by_hand
    patches = 2 * 196 * 768 * (3 * 16 * 16)
    by_hand = patches + transformer(12, 768, 197) + 2 * 768 * 1000
    assert Passes(find("vit-base")).forward(Shapes(1)).matmul_flops == by_hand
    assert 35.0e9 < by_hand < 35.2e9
    # 4.09 billion multiply-adds, as torchvision states for the same layers.
    seen = Passes(find("resnet-50")).forward(Shapes(1))
    assert round(seen.matmul_flops / 2 / 1e9, 2) == 4.09


SMALL = [spec for spec in every_model() if "small" in spec.sets]
small = pytest.mark.parametrize("spec", SMALL, ids=lambda s: s.id)
aten = torch.ops.aten


def _attention(query, key, value, *_, out_shape=None, **__):
    return int(sdpa_flop_count(query, key, value))


def _attention_backward(outward, query, key, value, *_, out_shape=None, **__):
    return int(sdpa_backward_flop_count(outward, query, key, value))


def _rows(left, right, *_, out_shape=None, **__):
    """Rows of each group times its matrix; or, going back, a matrix a group from its rows."""
    return int(mm_flop(left, right[-2:]))


def _convolution_backward(outward, inputs, weight, *rest, out_shape=None):
    """torch's own formula, a group at a time: it takes the weights' gradient for that of one."""
    groups = rest[6]
    narrow = [(s[0], s[1] // groups, *s[2:]) for s in (outward, inputs)]
    out = [s and (s[0], s[1] // groups, *s[2:]) for s in out_shape[:1]]
    out.append(out_shape[1] and (out_shape[1][0] // groups, *out_shape[1][1:]))
    one = (weight[0] // groups, *weight[1:])
    of_one_group = conv_backward_flop.__wrapped__  # as it is before tensors become shapes
    return groups * int(of_one_group(*narrow, one, *rest, out_shape=out))


def torchs_own():
    """torch's counter, told of the CPU's fused attention, of experts and of groups."""
    return FlopCounterMode(
        display=False,
        custom_mapping={
            aten._scaled_dot_product_flash_attention_for_cpu: _attention,
            aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
            aten._grouped_mm: _rows,
            aten.convolution_backward: _convolution_backward,
        },
    )


def real(spec, mode=Mode.INFERENCE):
    return {k: torch.from_numpy(v) for k, v in make_inputs(spec, Shapes(2), 0, mode).items()}


@small
def test_products_agree_with_torchs_own_counter_on_a_real_run(spec):
    module = build(spec, seed=0)
    with torchs_own() as theirs, torch.no_grad():
        module(**real(spec))
    ours = Passes(spec).forward(Shapes(2)).matmul_flops
    assert ours == pytest.approx(theirs.get_total_flops(), rel=0.02)


@small
def test_products_of_training_agree_with_torchs_own_counter(spec):
    """Forward, loss and backward on the CPU, with its own choice of attention."""
    module = build(spec.training_variant, seed=0).train()
    fed = real(spec, Mode.TRAINING)
    labels = {label.name for label in spec.training.labels}
    with torchs_own() as theirs:
        outputs = module(**{name: t for name, t in fed.items() if name not in labels})
        find_loss(spec.training.loss)(outputs, fed).backward()
    ours = TrainingPasses(spec).step(Shapes(2)).matmul_flops
    assert ours == pytest.approx(theirs.get_total_flops(), rel=0.02)


@pytest.mark.parametrize("name", ["bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny"])
def test_counting_without_values_sees_what_really_runs(name):
    """On the CPU with real values every question is answered truly, and the count is the same."""
    spec = find(name)
    assert count_forward(build(spec, seed=0), real(spec)) == Passes(spec).forward(Shapes(2))


def test_a_decode_step_reads_every_weight_and_looks_at_what_is_kept():
    """GPT-2: two operations a weight of its layers and head, and attention to each place."""
    hidden, layers, words = 128, 2, 50257
    prefill, first, second = Passes(find("gpt2-tiny")).request(
        Shapes(3, prompt_tokens=20, new_tokens=3), steps=2
    )
    weights = layers * 12 * hidden**2 + hidden * words
    assert first.matmul_flops == 3 * (2 * weights + layers * 2 * 2 * 21 * hidden)
    assert second.matmul_flops - first.matmul_flops == 3 * layers * 2 * 2 * hidden
    of_one_place = 2 * weights - 2 * hidden * words
    assert prefill.matmul_flops == 3 * (
        20 * of_one_place + layers * 2 * 2 * 20**2 * hidden + 2 * hidden * words
    )  # of the prompt's last place alone the words are asked
    kept = 3 * 2 * layers * hidden * 4  # keys and values of one place
    assert second.peak_activation_bytes - first.peak_activation_bytes >= kept


def test_of_experts_those_that_a_token_is_sent_to_are_counted():
    spec = find("mixtral-tiny")
    one, two = (
        Passes(replace(spec, config={**spec.config, "num_experts_per_tok": k})).forward(
            Shapes(2, sequence=16)
        )
        for k in (1, 2)
    )
    expert = 3 * 2 * spec.config["hidden_size"] * spec.config["intermediate_size"]
    more = two.matmul_flops - one.matmul_flops
    assert more == spec.config["num_hidden_layers"] * 2 * 16 * expert


def test_recomputing_results_takes_more_operations_and_less_memory():
    spec = find("gpt2-tiny")
    # Few words and many layers: what is recomputed is the layers' own.
    spec = replace(spec, config={**spec.config, "vocab_size": 300, "n_layer": 8})
    plain = TrainingPasses(spec).step(Shapes(4))
    saving = TrainingPasses(spec, checkpointed=True).step(Shapes(4))
    assert saving.matmul_flops > 1.2 * plain.matmul_flops
    assert saving.peak_activation_bytes < 0.6 * plain.peak_activation_bytes
