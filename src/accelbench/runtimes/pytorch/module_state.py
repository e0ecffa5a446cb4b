"""What a module of its owner's keeps from step to step: whether inference changes it.

A batch normalisation that is put back into training within `forward`, a running average or a cache
in a buffer make each step begin where the one before ended. Nothing in a step's time shows that.
"""

from __future__ import annotations

import hashlib

import torch

from accelbench.runtimes.shared.sketches import places

#: Values of each tensor that are looked at: of a buffer all but the largest's, of weights some.
_OF_BUFFERS, _OF_WEIGHTS = 1 << 16, 1 << 10
#: What a name begins with of a module that is in training; such are told first.
_MODE = "the mode of"
#: Names that are told.
_MOST_NAMES = 3


class ModuleState:
    """A module's buffers, weights and modes as they were when it was opened."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._before = _marks(module)

    def changed(self, module: torch.nn.Module) -> list[str]:
        """Names of what is no longer as it was; of many the first, and how many more."""
        now = _marks(module)
        keys = sorted({**self._before, **now}, key=lambda name: not name.startswith(_MODE))
        names = [name for name in keys if self._before.get(name) != now.get(name)]
        more = len(names) - _MOST_NAMES
        return names[:_MOST_NAMES] + ([f"{more} more"] if more > 0 else [])


def _marks(module: torch.nn.Module) -> dict[str, str]:
    marks = {f"{_MODE} {name or 'it'}": "" for name, m in module.named_modules() if m.training}
    for tensors, most in (
        (module.named_buffers(), _OF_BUFFERS),
        (module.named_parameters(), _OF_WEIGHTS),
    ):
        for name, tensor in tensors:
            # A quantised tensor is of a class of its own, and has no values to be picked.
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                marks[name] = _mark(tensor.detach(), most)
    return marks


def _mark(tensor: torch.Tensor, most: int) -> str:
    if tensor.layout is not torch.strided or tensor.is_meta:
        return str(tuple(tensor.shape))
    where = torch.from_numpy(places(tensor.numel(), most)).to(tensor.device)
    some = tensor.reshape(-1)[where]
    some = torch.view_as_real(some.resolve_conj()) if some.is_complex() else some
    # In one type, whatever the module was cast to since.
    values = some.double().cpu().numpy()
    return hashlib.sha256(str(tuple(tensor.shape)).encode() + values.tobytes()).hexdigest()
