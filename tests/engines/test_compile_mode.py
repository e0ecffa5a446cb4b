"""`pytorch.compile_mode`: what torch.compile is told, and where it is refused."""

import pytest
import torch

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.models.find import find


def case(hardware="cpu", **options):
    return Case(
        find("resnet-tiny"),
        Target("pytorch", hardware),
        "fp32",
        Shapes(1, image=64),
        options=options,
    )


@pytest.mark.parametrize("mode", [None, "max-autotune"])
def test_torch_compile_is_told_the_mode(monkeypatch, mode):
    told = []

    def noted(module, **how):
        told.append(how)
        return module

    monkeypatch.setattr(torch, "compile", noted)
    more = {} if mode is None else {"compile_mode": mode}
    asked = case(compile=True, **more)
    session = PytorchRuntime().open(Job(asked, Device("cpu", "cpu"), JobSettings(threads=1)))
    session.close()
    assert told == [{"dynamic": False, "mode": mode}]
