"""Counting a forward pass: against formulas worked out by hand and torch's own counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from accelbench.catalog.analytic import count
from accelbench.catalog.build import build
from accelbench.catalog.counting import Count, UnknownOperationError, count_forward
from accelbench.catalog.find import find
from accelbench.catalog.inputs import make_inputs
from accelbench.core.case import Shapes
from accelbench.core.model import ModelSpec


class Named(torch.nn.Module):
    """Takes its input by the name x."""

    def __init__(self, *layers: torch.nn.Module) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def counted(*shape: int, layers: tuple[torch.nn.Module, ...]) -> Count:
    return count_forward(Named(*layers).to("meta").eval(), {"x": torch.empty(shape, device="meta")})


def test_a_linear_layer() -> None:
    seen = counted(8, 30, layers=(torch.nn.Linear(30, 20),))
    assert seen.matmul_flops == seen.flops == 2 * 8 * 30 * 20
    assert seen.weight_bytes_read == (30 * 20 + 20) * 4
    assert seen.input_bytes == 8 * 30 * 4
    assert seen.activation_bytes == seen.peak_activation_bytes == 8 * 20 * 4
    assert seen.bytes_moved == (620 + 240 + 160) * 4


def test_a_convolution_with_groups_stride_and_padding() -> None:
    layer = torch.nn.Conv2d(6, 8, 3, stride=2, padding=1, groups=2)
    seen = counted(2, 6, 16, 16, layers=(layer,))
    assert seen.flops == 2 * (2 * 8 * 8 * 8) * (9 * 3)


def test_a_transposed_convolution() -> None:
    seen = counted(2, 6, 5, 5, layers=(torch.nn.ConvTranspose2d(6, 8, 3, groups=2),))
    assert seen.flops == 2 * (2 * 6 * 5 * 5) * (9 * 4)


def test_elementwise_work_is_counted_per_result() -> None:
    seen = counted(4, 10, layers=(torch.nn.ReLU(), torch.nn.GELU(), torch.nn.LayerNorm(10)))
    assert seen.matmul_flops == 0
    assert seen.other_flops == 40 * (1 + 1 + 7)


class Straight(torch.nn.Module):
    """Three results, of which two at most are alive at once, unless the first is kept."""

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.keep = keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = x + 1
        two = one * 2
        kept = one if self.keep else None
        del one
        three = two * 3
        del kept, two
        return three


@pytest.mark.parametrize(("keep", "alive"), [(False, 2), (True, 3)])
def test_the_peak_is_what_is_alive_at_once(keep: bool, alive: int) -> None:
    seen = count_forward(Straight(keep), {"x": torch.empty(100, device="meta")})
    assert seen.activation_bytes == 3 * 400
    assert seen.peak_activation_bytes == alive * 400


class InPlace(torch.nn.Module):
    """Writes into its result and looks at it through views: one tensor all along."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = x * 2
        made.add_(1)
        return made.reshape(4, 25).transpose(0, 1)


def test_views_and_in_place_work_make_nothing_new() -> None:
    seen = count_forward(InPlace(), {"x": torch.empty(100, device="meta")})
    assert seen.flops == 200
    assert seen.activation_bytes == 400


def test_an_embedding_reads_the_rows_it_returns() -> None:
    module = Named(torch.nn.Embedding(1000, 16)).to("meta")
    ids = torch.empty(2, 5, dtype=torch.int64, device="meta")
    seen = count_forward(module, {"x": ids})
    assert seen.flops == 0
    assert seen.weight_bytes_read == 2 * 5 * 16 * 4


class Attention(torch.nn.Module):
    """Grouped-query attention, with or without a mask that is added to the scores."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.masked = masked

    def forward(self, q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros(5, 7, device=q.device) if self.masked else None
        return torch.nn.functional.scaled_dot_product_attention(
            q, kv, kv, attn_mask=mask, enable_gqa=True
        )


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_two_products_a_softmax_and_a_mask(masked: bool) -> None:
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

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return x + self.total


def test_writing_into_a_buffer_makes_nothing_new() -> None:
    seen = count_forward(Stateful().to("meta"), {"x": torch.empty(100, device="meta")})
    assert seen.activation_bytes == 400
    assert seen.weight_bytes_read == 400


class Unknown(torch.nn.Module):
    """Uses an operation that no rule counts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x)


def test_an_unknown_operation_is_refused_not_free() -> None:
    with pytest.raises(UnknownOperationError, match="fft"):
        count_forward(Unknown(), {"x": torch.empty(8, device="meta")})


def transformer(layers: int, hidden: int, tokens: int) -> int:
    """Four projections, a feed-forward of four times the width, two attention products."""
    projections = 4 * 2 * tokens * hidden**2
    feed_forward = 2 * 2 * tokens * hidden * 4 * hidden
    attention = 2 * 2 * tokens**2 * hidden
    return layers * (projections + feed_forward + attention)


def test_bert_base_by_hand() -> None:
    pooler = 2 * 768 * 768
    by_hand = transformer(12, 768, 128) + pooler
    assert by_hand == 22_348_431_360
    assert count(find("bert-base"), Shapes(1, sequence=128)).matmul_flops == by_hand


def test_gpt2_by_hand() -> None:
    by_hand = transformer(12, 768, 128) + 2 * 128 * 768 * 50257
    assert count(find("gpt2"), Shapes(1, sequence=128)).matmul_flops == by_hand


def test_vit_base_by_hand() -> None:
    patches = 2 * 196 * 768 * (3 * 16 * 16)
    by_hand = patches + transformer(12, 768, 197) + 2 * 768 * 1000
    assert count(find("vit-base"), Shapes(1)).matmul_flops == by_hand
    assert 35.0e9 < by_hand < 35.2e9


def test_resnet_50_has_its_published_size() -> None:
    """4.09 billion multiply-adds, as torchvision states for the same layers."""
    seen = count(find("resnet-50"), Shapes(1))
    assert round(seen.matmul_flops / 2 / 1e9, 2) == 4.09


@pytest.fixture(params=["bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny"])
def real(request: pytest.FixtureRequest) -> tuple[ModelSpec, torch.nn.Module, dict[str, Any]]:
    spec = find(request.param)
    inputs = {k: torch.from_numpy(v) for k, v in make_inputs(spec, Shapes(2), 0).items()}
    return spec, build(spec, seed=0), inputs


def test_counting_without_values_sees_what_really_runs(
    real: tuple[ModelSpec, torch.nn.Module, dict[str, Any]],
) -> None:
    """On the CPU with real values every question is answered truly, and the count is the same."""
    spec, module, inputs = real
    assert count_forward(module, inputs) == count(spec, Shapes(2))


def test_products_agree_with_torchs_own_counter(
    real: tuple[ModelSpec, torch.nn.Module, dict[str, Any]],
) -> None:
    spec, module, inputs = real
    # It does not know the CPU's fused attention: let it see the products one by one.
    with FlopCounterMode(display=False) as theirs, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        module(**inputs)
    assert count(spec, Shapes(2)).matmul_flops == theirs.get_total_flops()
