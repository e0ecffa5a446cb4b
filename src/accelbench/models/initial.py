"""Initialising a model with every weight drawn once. Imports torch.

A constructor draws most weights several times: PyTorch's layer fills them, then the model's own
scheme (GPT-2: 361 M draws for 124 M weights). Here a fill is noted, a later fill of the whole
tensor replaces the note, and the rest is done at the end: the distributions are the model's own. On
one thread, against the plain constructor: BERT-base 0.29 s instead of 0.51, GPT-2 0.32 instead of
0.96, ViT-B/16 0.23 instead of 0.41, ResNet-50 0.09 instead of 0.19. For 16 bits each tensor is cast
as soon as it is filled: unwritten pages do not exist, so the whole never exists in fp32.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench.models.narrow import Narrowing

#: Every tensor begins on a page of its own: those of one layer alone are read then.
_PAGE = 4096


class MappedWeights:
    """Room for tensors in one unnamed file, which goes with the process.

    Mapped pages are read on use and given up when room is needed: LLaMA-2-7B in fp32 (25 GiB) runs
    with 0.4 GiB of its own. Each pass reads every weight from the disk, so nothing is ever timed
    that way; a reference only has to be right.
    """

    def __init__(self, folder: Path, tensors: int, payload: int) -> None:
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
        """Make room for a module's tensors, with floats of `item` bytes."""
        tensors = [*module.parameters(), *module.buffers()]
        sizes = (item if t.is_floating_point() else t.element_size() for t in tensors)
        payload = sum(t.numel() * size for t, size in zip(tensors, sizes, strict=True))
        return cls(folder, len(tensors), payload)

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the same values, from now on in the file."""
        size = tensor.numel() * tensor.element_size()
        place = self._all[self._used : self._used + size]
        self._used += -(-size // _PAGE) * _PAGE
        kept = place.view(tensor.dtype).view(tensor.shape)
        return kept.copy_(tensor)


_aten = torch.ops.aten
#: In-place operations that leave nothing of what was there.
_FILLS = {_aten.normal_.default, _aten.uniform_.default, _aten.zero_.default, _aten.fill_.Scalar}

_Geometry = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]


class _Notes:
    """What is still to be done to one storage; does not keep the storage alive."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self._storage = StorageWeakRef(storage)
        self._steps: list[tuple[Any, _Geometry, tuple[Any, ...], dict[str, Any]]] = []

    def add(self, func: Any, tensor: torch.Tensor, rest: tuple[Any, ...], kw: Any) -> None:
        if func in _FILLS and _covers_storage(tensor):
            self._steps.clear()
        geometry = (
            tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()),
        )  # fmt: skip
        self._steps.append((func, geometry, rest, dict(kw)))

    def carry_out(self, then: Callable[[torch.UntypedStorage], None] | None = None) -> None:
        """Do the steps, unless the tensor is gone (for example a tied head)."""
        if self._storage.expired():
            return
        storage = torch.UntypedStorage._new_with_weak_ptr(self._storage.cdata)
        for func, (dtype, offset, shape, stride), rest, kw in self._steps:
            target = torch.empty(0, dtype=dtype).set_(storage, offset, shape, stride)
            func(target, *rest, **kw)
            del target
        if then is not None:
            then(storage)


class _FillOnce(TorchDispatchMode):  # type: ignore[misc]  # mypy skips torch
    """Mode that notes fills of CPU tensors, and carries them out before anything reads one."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: dict[int, _Notes] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.is_view:
            return func(*args, **kwargs)
        if _touches_first_alone(func, args, kwargs):
            target = args[0]
            storage = target.untyped_storage()
            notes = self._notes.get(storage._cdata)
            if notes is None and func in _FILLS and _covers_storage(target):
                notes = self._notes[storage._cdata] = _Notes(storage)
            if notes is not None:
                notes.add(func, target, args[1:], kwargs)
                return target
        self._settle((*args, *kwargs.values()))
        return func(*args, **kwargs)

    def _settle(self, values: Any) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                notes = self._notes.pop(value.untyped_storage()._cdata, None)
                if notes is not None:
                    notes.carry_out()
            elif isinstance(value, (list, tuple)):
                self._settle(value)

    def carry_out_all(self, narrowing: Narrowing) -> None:
        """Carry out in the order of the first fills, whatever is cast between: the same draws."""
        while self._notes:
            self._notes.pop(next(iter(self._notes))).carry_out(narrowing.cast)


def _covers_storage(tensor: torch.Tensor) -> bool:
    whole: bool = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
    return tensor.device.type == "cpu" and tensor.is_contiguous() and whole and tensor.numel() > 0


def _touches_first_alone(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether only the first argument is filled or changed in place, elementwise."""
    if func not in _FILLS:
        in_place = func._schema.name.endswith("_") and torch.Tag.pointwise in func.tags
        if not in_place or not isinstance(args[0], torch.Tensor):
            return False
    others = (*args[1:], *kwargs.values())
    return not any(isinstance(v, (torch.Tensor, list, tuple, torch.Generator)) for v in others)


def initialise(
    construct: Callable[[], torch.nn.Module],
    seed: int,
    dtype: torch.dtype | None = None,
    spill: Path | None = None,
) -> tuple[torch.nn.Module, str]:
    """Construct a module with seeded weights, each drawn once; return it with its fp32 digest.

    The same seed gives the same bits for the same torch on the same kind of CPU, in any process and
    with any number of threads; `dtype` casts those bits, and `spill` maps them to a file in a
    folder. The global random state stays as it was.
    """
    mode = _FillOnce()
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        with mode:
            module = construct()
        keep = None
        if spill is not None:
            item = (dtype or torch.float32).itemsize
            keep = MappedWeights.of(module, spill, item).keep
        narrowing = Narrowing(module, dtype, keep)
        with torch.no_grad():
            mode.carry_out_all(narrowing)
    return module, narrowing.finish()
