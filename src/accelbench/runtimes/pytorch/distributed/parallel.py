"""How several ranks share a step: what each is given, and what they exchange.

ddp     each rank has all weights and a part of the batch; gradients are averaged
fsdp2   each rank has a part of all weights, gathered block by block, and a part of the batch
tp      each rank has a part of each block's products, and all of the batch
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor

from accelbench.core.errors import UnsupportedError
from accelbench.runtimes.pytorch.distributed.tensor_plan import tensor_parallel

#: A trial step of a model: which of its weights get no gradient, DDP has to know beforehand.
Trial = Callable[[], set[str]]


class Parallel(Protocol):
    """A model as this rank has it."""

    run: Callable[..., Any]
    #: Parts that the batch is in, over the ranks, and whether gradients are averaged over them.
    parts: int

    def syncing(self, last: bool) -> AbstractContextManager[None]:
        """Around a micro-batch: gradients are exchanged with the last one alone."""
        ...

    def facts(self) -> dict[str, Any]:
        """For the evidence."""
        ...


class DataParallel:
    """torch's DistributedDataParallel."""

    def __init__(self, module: torch.nn.Module, place: torch.device, trial: Trial) -> None:
        self.parts = dist.get_world_size()
        idle = trial()
        self._wrapped = torch.nn.parallel.DistributedDataParallel(
            module,
            device_ids=None if place.type == "cpu" else [place],
            # Gradients live in the buckets that are exchanged, not a second time beside them.
            gradient_as_bucket_view=True,
            find_unused_parameters=bool(idle),
        )
        self.run: Callable[..., Any] = self._wrapped
        self._idle = sorted(idle)

    def syncing(self, last: bool) -> AbstractContextManager[None]:
        context: AbstractContextManager[None] = nullcontext() if last else self._wrapped.no_sync()
        return context

    def facts(self) -> dict[str, Any]:
        return {"weights_without_gradient": self._idle}


class FullySharded:
    """torch's fully_shard: each block of the model, and what is left of it."""

    def __init__(self, module: torch.nn.Module, place: torch.device) -> None:
        from torch.distributed.fsdp import fully_shard

        self.parts = dist.get_world_size()
        mesh = init_device_mesh(place.type, (self.parts,))
        named = blocks(module)
        for _, block in named:
            fully_shard(block, mesh=mesh)
        fully_shard(module, mesh=mesh)
        module.register_forward_hook(_split_again)
        self._sharded: Any = module
        self.run = module
        self._blocks = len(named)

    @contextmanager
    def syncing(self, last: bool) -> Iterator[None]:
        self._sharded.set_requires_gradient_sync(last)
        self._sharded.set_is_last_backward(last)
        yield

    def facts(self) -> dict[str, Any]:
        return {"sharded_blocks": self._blocks}


def _split_again(module: Any, _inputs: object, _outputs: object) -> None:
    """After a forward pass that no backward pass follows: a rank has its part alone again.

    What is in no block stays gathered for the backward pass, which would split it. Whoever asked
    for the weights then, an optimizer or `restore`, got whole ones that the next step throws away.
    """
    if not torch.is_grad_enabled():
        module.reshard()


class TensorParallel:
    """Products of each block split by torch's parallelize_module; see `tensor_plan`."""

    def __init__(self, module: torch.nn.Module, place: torch.device, model: str) -> None:
        self.parts = 1
        mesh = init_device_mesh(place.type, (dist.get_world_size(),))
        self._styles = tensor_parallel(module, mesh, model)
        self.run: Callable[..., Any] = module

    def syncing(self, last: bool) -> AbstractContextManager[None]:
        return nullcontext()

    def facts(self) -> dict[str, Any]:
        return {"split_modules": self._styles}


def parallel(
    strategy: str, module: torch.nn.Module, place: torch.device, model: str, trial: Trial
) -> Parallel:
    """A module as a strategy has it.

    Raises:
        UnsupportedError: the model cannot be shared out in this way.
    """
    if strategy == "ddp":
        return DataParallel(module, place, trial)
    if strategy == "fsdp2":
        return FullySharded(module, place)
    if strategy == "tp":
        return TensorParallel(module, place, model)
    raise UnsupportedError(
        "option", f"the pytorch runtime has no strategy {strategy}", "Use ddp, fsdp2 or tp."
    )


def blocks(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """The repeated parts of a model: what lies directly in its outermost lists of modules."""
    found: list[tuple[str, torch.nn.Module]] = []
    outermost: list[str] = []
    for name, part in module.named_modules():
        if not isinstance(part, torch.nn.ModuleList) or len(part) < 2:
            continue
        if any(name.startswith(f"{outer}.") for outer in outermost):
            continue
        outermost.append(name)
        found += [(f"{name}.{i}", block) for i, block in enumerate(part)]
    return found


def restore(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Put whole weights into a module of which this rank may have parts alone."""
    own = module.state_dict()
    with torch.no_grad():
        for name, value in weights.items():
            target = own[name]
            if isinstance(target, DTensor):
                shard = distribute_tensor(
                    value.to(target.device), target.device_mesh, target.placements
                )
                target.to_local().copy_(shard.to_local())
            else:
                target.copy_(value)


def here(tensor: torch.Tensor) -> torch.Tensor:
    """What this rank has of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor; every rank has to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
