"""A module that inference changes: what was another one after its steps is named."""

import torch
from torch import nn

from accelbench.engines.pytorch.session import ModuleState
from accelbench.measure.loop import evidence_warnings


class Trains(nn.Module):
    """Puts its batch normalisation back into training each time it is called."""

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.bn.train()(x))


class Remembers(nn.Module):
    """Keeps what it was given in a buffer that no state_dict has."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(2, 4), persistent=False)

    def forward(self, x):
        self.last.copy_(x)
        return x + self.last


def changed(module):
    state = ModuleState(module.eval())
    with torch.inference_mode():
        module(torch.randn(2, 4))
        return state.changed(module)


def test_what_steps_change_is_named():
    names = changed(Trains())
    assert names == ["the mode of bn", "bn.running_mean", "bn.running_var", "1 more"]
    (warning,) = evidence_warnings({"state_changed": names})
    assert warning.startswith("The steps changed the module: the mode of bn, ")

    assert changed(Remembers()) == ["last"]
    plain = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout())
    assert changed(plain) == []
    state = ModuleState(plain)
    assert state.changed(plain.double()) == []
    assert evidence_warnings({"state_changed": []}) == []

    class Drifts(nn.Linear):
        def forward(self, x):
            self.weight.mul_(1.5)
            return super().forward(x)

    assert changed(Drifts(4, 4)) == ["weight"]
