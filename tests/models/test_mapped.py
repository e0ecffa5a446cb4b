"""Weights mapped to a file: the same values, and nothing left behind."""

import pytest

torch = pytest.importorskip("torch")

from accelbench.models.build import build_module  # noqa: E402
from accelbench.models.find import find  # noqa: E402


@pytest.mark.parametrize("name", ["gpt2-tiny", "t5-tiny", "resnet-tiny", "mamba-tiny"])
def test_mapped_weights_are_the_same_weights(name, tmp_path):
    spec = find(name)
    plain, mapped = build_module(spec, 3), build_module(spec, 3, spill=tmp_path)
    assert mapped.digest == plain.digest
    theirs = mapped.module.state_dict()
    for key, value in plain.module.state_dict().items():
        assert torch.equal(value, theirs[key]), key


def test_what_is_mapped_is_whole_narrow_and_leaves_nothing(tmp_path):
    module = build_module(find("gpt2-tiny"), 0, spill=tmp_path).module
    storages = {one.untyped_storage().data_ptr() for one in module.parameters()}
    assert len(storages) == 1
    assert module.lm_head.weight is module.transformer.wte.weight

    plain = build_module(find("bert-tiny"), 0, dtype=torch.bfloat16).module.state_dict()
    mapped = build_module(find("bert-tiny"), 0, dtype=torch.bfloat16, spill=tmp_path).module
    for key, value in mapped.state_dict().items():
        assert value.dtype == plain[key].dtype
        assert torch.equal(value, plain[key]), key

    held = build_module(find("bert-tiny"), 0, spill=tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    assert held.module is not None
