"""Weights in a file that the memory is mapped to, for models that the memory does not hold.

What is mapped is read when it is used and given up when room is needed: LLaMA-2-7B in fp32
(25 GiB) runs in a process that has 0.4 of its own. Each pass then reads every weight from the
disk, so nothing is ever timed that way; a reference only has to be right.

Imports torch: import this module only where a model is built.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import torch

#: Every tensor begins on a page of its own: those of one layer alone are read then.
_PAGE = 4096


class MappedWeights:
    """Room for tensors in one file, which nobody else sees and which goes with the process."""

    def __init__(self, folder: Path, tensors: int, payload: int) -> None:
        """Room for so many tensors of so many bytes together."""
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".weights-", dir=folder)
        total = payload + tensors * _PAGE
        try:
            os.ftruncate(handle, total)
            self._all = torch.from_file(name, shared=True, size=total, dtype=torch.uint8)
        finally:
            os.close(handle)
            # A file that is open on Windows cannot be removed; there it goes with its folder.
            with contextlib.suppress(OSError):
                Path(name).unlink()
        self._used = 0

    @classmethod
    def of(cls, module: torch.nn.Module, folder: Path, item: int) -> MappedWeights:
        """Room for a module's tensors, floats of so many bytes each."""
        tensors = [*module.parameters(), *module.buffers()]
        sizes = (item if t.is_floating_point() else t.element_size() for t in tensors)
        payload = sum(t.numel() * size for t, size in zip(tensors, sizes, strict=True))
        return cls(folder, len(tensors), payload)

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same values, from now on in the file."""
        size = tensor.numel() * tensor.element_size()
        place = self._all[self._used : self._used + size]
        self._used += -(-size // _PAGE) * _PAGE
        kept = place.view(tensor.dtype).view(tensor.shape)
        return kept.copy_(tensor)
