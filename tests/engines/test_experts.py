"""A mixture of experts runs in the precision that is asked for, experts included."""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.build import build
from accelbench.models.find import find
from accelbench.models.inputs import make_inputs, settle

SPEC = find("mixtral-tiny")


class Products(TorchDispatchMode):
    """The types of the operands of every matrix product."""

    def __init__(self):
        super().__init__()
        self.types = set()
        self.grouped = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.removeprefix("aten::")
        if name in ("linear", "mm", "_grouped_mm"):
            self.types |= {a.dtype for a in args[:2]}
            self.grouped |= name == "_grouped_mm"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("precision", "used", "grouped"),
    [
        ("fp32", torch.float32, True),
        ("bf16", torch.bfloat16, True),
        ("amp-bf16", torch.bfloat16, False),  # autocast leaves grouped products in fp32
    ],
)
def test_every_product_is_in_the_precision_asked_for(precision, used, grouped):
    shapes = settle(SPEC, Shapes(2, sequence=8))
    case = Case(SPEC, Target("pytorch", "cpu"), precision, shapes)
    session = PytorchRuntime().open(Job(case, Device("cpu", "cpu"), JobSettings(threads=1)))
    inputs = session.prepare(case)
    with Products() as seen:
        session.outputs(inputs)
    session.close()
    assert seen.types == {used}
    assert seen.grouped is grouped


def test_grouped_products_agree_with_the_loop_over_experts():
    inputs = {k: torch.from_numpy(v) for k, v in make_inputs(SPEC, Shapes(2, 32), 0).items()}
    made = {}
    for way in ("grouped_mm", "eager"):
        module = build(replace(SPEC, config={**SPEC.config, "experts_implementation": way}), 0)
        logits = module(**inputs).logits
        logits.square().mean().backward()
        made[way] = [logits.detach(), *(p.grad for p in module.parameters())]
    for grouped, looped in zip(*made.values(), strict=True):
        torch.testing.assert_close(
            grouped, looped, rtol=1e-4, atol=1e-5 * float(looped.abs().max())
        )
