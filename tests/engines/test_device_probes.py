"""Probes of a device in PyTorch: each does the work that its figure is divided by."""

from types import SimpleNamespace

import pytest
import torch

from accelbench.core.calibration import ProbeKind, ProbeSpec
from accelbench.engines.pytorch.device_probes import cache_bytes, step_of

CPU = torch.device("cpu")


def spec(kind, name, size, precision="fp32"):
    return ProbeSpec(kind, f"probe/{name}", precision, size, 1.0)


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        ("fp32", torch.float32),
        ("bf16", torch.bfloat16),
        ("fp16", torch.float16),
        ("int8", torch.int32),  # sums of int8 products
    ],
)
def test_a_product_is_of_whole_matrices_in_its_precision(precision, dtype):
    product = step_of(torch, spec(ProbeKind.MATRIX, "matmul-32", 32, precision), CPU)()
    assert (product.shape, product.dtype) == ((32, 32), dtype)
    # Of random matrices: zeros would be multiplied at a higher clock.
    assert product.to(torch.float32).std() > 1


def test_probes_do_what_they_are_named_for():
    # A new array each step would time the pages of the system.
    step = step_of(torch, spec(ProbeKind.MATRIX, "matmul-32", 32), CPU)
    first, second = step(), step()
    assert first.data_ptr() == second.data_ptr()

    result = step_of(torch, spec(ProbeKind.ATTENTION, "attention-16", 16, "bf16"), CPU)()
    assert (tuple(result.shape), result.dtype) == ((1, 12, 16, 64), torch.bfloat16)
    result = step_of(torch, spec(ProbeKind.LAUNCH, "launch", 1), CPU)()
    assert result.tolist() == [2.0]

    def engine(**told):
        properties = SimpleNamespace(**told)
        return SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _: properties))

    card = SimpleNamespace(type="cuda")
    assert cache_bytes(engine(L2_cache_size=50 * 2**20), card) == {"L2": 50 * 2**20}
    assert cache_bytes(engine(), card) == {}
    assert cache_bytes(engine(), SimpleNamespace(type="mps")) == {}


@pytest.mark.parametrize(("name", "value"), [("memory-copy", 1.0), ("memory-triad", 4.0)])
def test_arrays_have_the_bytes_that_are_named(name, value):
    result = step_of(torch, spec(ProbeKind.MEMORY, name, 4096), CPU)()
    assert result.numel() * result.element_size() == 4096
    assert bool((result == value).all())
