"""A module's weights cast tensor by tensor, and the digest of their fp32 values. Imports torch.

Models of 7 billion weights exist in 16 bits only: in fp32 they would take 27 GiB. Each tensor is
cast, and its fp32 pages given back, as soon as its values are there. Two precisions share one
digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class _Place:
    pointer: int
    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def in_precision(
    module: torch.nn.Module, dtype: torch.dtype, device: torch.device | None = None
) -> torch.nn.Module:
    """Return a module in a floating-point type; complex tensors stay complex.

    `Module.to` drops imaginary parts, for example of rotary frequencies in a buffer, and warns.
    """
    if not any(tensor.is_complex() for tensor in module.state_dict().values()) and not any(
        buffer.is_complex() for buffer in module.buffers()
    ):
        return module.to(device=device, dtype=dtype)

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        wanted = dtype if tensor.is_floating_point() else None
        if tensor.is_complex() and dtype is torch.float32:
            wanted = torch.complex64
        return tensor.to(device=device, dtype=wanted)

    return module._apply(cast)


class Narrowing:
    """Casts the tensors of one storage after another, in whatever order they come."""

    def __init__(
        self,
        module: torch.nn.Module,
        dtype: torch.dtype | None = None,
        keep: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self._module = module
        self._dtype = dtype
        self._keep = keep
        self._heads: list[tuple[str, int]] = []  # in order of name: how it is said, where it lies
        self._places: dict[int, list[_Place]] = {}  # by storage: what the digest sums
        self._sums: dict[int, bytes] = {}  # by pointer
        self._parameters: dict[int, list[torch.nn.Parameter]] = {}
        self._buffers: dict[int, list[tuple[torch.nn.Module, str]]] = {}
        self._note_places()
        self._note_owners()

    def _note_places(self) -> None:
        noted: set[int] = set()  # a tied weight is summed once
        for name, tensor in sorted(self._module.state_dict().items()):
            pointer = tensor.data_ptr()
            head = f"{name} {tuple(tensor.shape)} {tensor.dtype}"
            self._heads.append((head, pointer))
            if tensor.numel() and pointer not in noted:
                noted.add(pointer)
                place = _Place(
                    pointer, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape),
                    tuple(tensor.stride()),
                )  # fmt: skip
                self._places.setdefault(_storage(tensor), []).append(place)

    def _note_owners(self) -> None:
        for parameter in self._module.parameters():
            self._parameters.setdefault(_storage(parameter), []).append(parameter)
        for owner in self._module.modules():
            for name, buffer in owner._buffers.items():
                if buffer is not None:
                    self._buffers.setdefault(_storage(buffer), []).append((owner, name))

    def cast(self, storage: torch.UntypedStorage) -> None:
        """Sum and cast everything that lies in a storage whose values are final."""
        key = storage._cdata
        for place in self._places.pop(key, ()):
            whole = torch.empty(0, dtype=place.dtype, device=storage.device)
            whole.set_(storage, place.offset, place.shape, place.stride)
            self._sums[place.pointer] = _sums(_bytes_of(whole))
        with torch.no_grad():
            for parameter in self._parameters.pop(key, ()):
                parameter.data = self._cast(parameter.data)
            for owner, name in self._buffers.pop(key, ()):
                owner._buffers[name] = self._cast(owner._buffers[name])

    def _cast(self, tensor: Any) -> Any:
        wanted = self._dtype if tensor.is_floating_point() else None
        cast = tensor if wanted is None else tensor.to(wanted)
        return cast if self._keep is None else self._keep(cast)

    def finish(self) -> str:
        """Cast what is left, and return the digest of the whole state."""
        left = (
            *(p for several in self._parameters.values() for p in several),
            *(o._buffers[n] for several in self._buffers.values() for o, n in several),
        )
        storages = {_storage(t): t.untyped_storage() for t in left if t is not None}
        del left
        while storages:
            self.cast(storages.popitem()[1])
        total = hashlib.sha256()
        for head, pointer in self._heads:
            total.update(head.encode() + self._sums.get(pointer, b""))
        return total.hexdigest()[:16]


def weights_digest(module: torch.nn.Module) -> str:
    """Return a digest of a module's state, the same in every process.

    It covers name, shape and type of every parameter and stored buffer, and every byte: as wrapping
    sums over the rows and columns of a table of 1024 words, so that single changes and moved values
    show. It guards against mistakes, not forgery. BERT-base takes 0.04 s on one core; a
    cryptographic hash of the bytes took 0.2 s and more.
    """
    return Narrowing(module).finish()


def _storage(tensor: torch.Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key


def _bytes_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    result: np.ndarray[Any, Any] = flat.view(torch.uint8).numpy()
    return result


def _sums(data: np.ndarray[Any, Any]) -> bytes:
    width = 1024
    whole = data.size // (8 * width) * (8 * width)
    table = data[:whole].view(np.int64).reshape(-1, width)
    rest = hashlib.sha256(data[whole:].tobytes()).digest()
    summed: bytes = table.sum(axis=0).tobytes() + table.sum(axis=1).tobytes()
    return summed + rest
