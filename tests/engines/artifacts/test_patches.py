"""What replaces a library's code computes what the library computes, and is undone."""

import pytest
import torch
from transformers import masking_utils
from transformers.models.llava_next import modeling_llava_next
from transformers.models.mamba import modeling_mamba

from accelbench.engines.artifacts.exporting import (
    applied,
    contracted,
    doubled,
    placed,
    selective_scan,
    unpadded,
    written_out,
)


def scanned(length, seed=0):
    draw = torch.Generator().manual_seed(seed)
    batch, wide, state = 2, 6, 4

    def normal(*shape):
        return torch.randn(*shape, generator=draw)

    return {
        "hidden_states": normal(batch, wide, length),
        "dt": normal(batch, wide, length),
        "A": -torch.exp(normal(wide, state)),
        "B": normal(batch, state, length),
        "C": normal(batch, state, length),
        "D": normal(wide),
        "z": normal(batch, wide, length),
        "delta_bias": normal(wide),
    }


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 33])
def test_the_scan_by_doubling_is_transformers_own(length):
    fed = scanned(length)
    own = modeling_mamba.mamba_selective_scan(**fed, delta_softplus=True)
    theirs = own[0] if isinstance(own, tuple) else own
    found = selective_scan(**fed, delta_softplus=True)
    assert found.shape == theirs.shape
    torch.testing.assert_close(found, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("without", ["D", "z", "delta_bias"])
def test_the_scan_does_without_what_may_be_missing(without):
    fed = {**scanned(9), without: None}
    own = modeling_mamba.mamba_selective_scan(**fed, delta_softplus=False)
    theirs = own[0] if isinstance(own, tuple) else own
    torch.testing.assert_close(selective_scan(**fed), theirs, rtol=1e-5, atol=1e-5)


def test_products_are_those_they_stand_for():
    draw = torch.Generator().manual_seed(3)
    decay, step = (torch.rand(2, 3, 11, 4, generator=draw, dtype=torch.float64) for _ in "ab")
    read = torch.rand(2, 11, 4, generator=draw, dtype=torch.float64)
    state, rows = torch.zeros(2, 3, 4, dtype=torch.float64), []
    for i in range(11):
        state = decay[:, :, i] * state + step[:, :, i]
        rows.append((state * read[:, None, i]).sum(-1))
    torch.testing.assert_close(doubled(decay, step, read), torch.stack(rows, 2))

    draw = torch.Generator().manual_seed(1)
    rows, texts = torch.randn(3, 8, generator=draw), torch.randn(3, 5, 8, generator=draw)
    einsum = contracted(torch.einsum)
    sums = torch.einsum("bd,bkd->bk", rows, texts)
    torch.testing.assert_close(einsum("bd,bkd->bk", rows, texts), sums)
    assert torch.equal(einsum("bd,bkd->b", rows, texts), torch.einsum("bd,bkd->b", rows, texts))


@pytest.mark.parametrize("size", [(64, 64), (30, 64), (64, 30), (33, 57), (100, 7), (1, 99)])
@pytest.mark.parametrize("grid", [(8, 8), (8, 16), (15, 9)])
def test_unpadding_is_transformers_own(size, grid):
    tensor = torch.arange(2.0 * grid[0] * grid[1]).reshape(2, *grid)
    assert torch.equal(unpadded(tensor, size), modeling_llava_next.unpad_image(tensor, size))


@pytest.mark.parametrize("shape", [(6,), (5, 6)])
@pytest.mark.parametrize("learnt", [True, False])
def test_a_layer_norm_written_out_is_torch_s(shape, learnt):
    draw = torch.Generator().manual_seed(4)
    values = 3 + 5 * torch.randn(2, 5, 6, generator=draw)
    more = [torch.randn(*shape, generator=draw) for _ in "wb"] if learnt else [None, None]
    own = torch.nn.functional.layer_norm(values, shape, *more, 1e-3)
    torch.testing.assert_close(written_out(values, shape, *more, 1e-3), own)


@pytest.mark.parametrize("places", [(), (0, 1, 2), (3, 7, 9), tuple(range(12))])
def test_placing_rows_is_masked_scatter(places):
    draw = torch.Generator().manual_seed(2)
    tokens = torch.randn(2, 6, 4, generator=draw)
    here = torch.zeros(12, dtype=torch.bool)
    here[list(places)] = True
    mask = here.reshape(2, 6, 1).expand_as(tokens)
    rows = torch.randn(max(len(places), 1), 4, generator=draw)
    assert torch.equal(placed(tokens, mask, rows), tokens.masked_scatter(mask, rows))


def test_token_types_are_zeros_and_no_table():
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertModel(BertConfig(vocab_size=50, intermediate_size=32, **sizes)).eval()
    tokens = torch.arange(8).reshape(1, 8)
    before = model(tokens).last_hidden_state
    with applied(["token_types_as_zeros"], model):
        assert not [name for name, _ in model.named_buffers() if "token_type" in name]
        assert torch.equal(model(tokens).last_hidden_state, before)
    assert [name for name, _ in model.named_buffers() if "token_type" in name]


def test_patches_are_undone_whatever_happens():
    places = [
        (masking_utils, "find_packed_sequence_indices", "no_packed_sequences"),
        (modeling_mamba, "mamba_selective_scan", "scan_by_doubling"),
        (modeling_llava_next, "unpad_image", "image_sizes_as_numbers"),
        (torch, "einsum", "product_for_einsum"),
        (torch.nn.functional, "layer_norm", "layer_norm_written_out"),
        (torch.Tensor, "masked_scatter", "gather_for_scatter"),
    ]
    before = [getattr(owner, name) for owner, name, _ in places]
    workarounds = [name for _, _, name in places] + ["fixed_batch"]

    def fail():
        now = [getattr(owner, name) for owner, name, _ in places]
        assert not any(one is other for one, other in zip(now, before, strict=True))
        raise RuntimeError("the export fails")

    with pytest.raises(RuntimeError), applied(workarounds, torch.nn.Identity()):
        fail()
    assert [getattr(owner, name) for owner, name, _ in places] == before
