"""How several ranks share a step: what each is given, and what they exchange.

ddp     each rank has all weights and a part of the batch; gradients are averaged
fsdp2   each rank has a part of all weights, gathered block by block, and a part of the batch
tp      each rank has a part of each block's products, and all of the batch
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from accelbench.core.case import Case
from accelbench.core.errors import UnsupportedError
from accelbench.engines.pytorch.procedures.base import (
    Inputs,
    Opened,
    buffers_kept,
    chances_kept,
    seed_all,
)
from accelbench.engines.pytorch.procedures.train import Train, unmarked
from accelbench.engines.shared.local import Mark

#: By the ends of modules' names, for each layout of a block that is known.
_OURS = (
    {  # BERT, ELECTRA, RoBERTa
        "attention.self.query": "colwise",
        "attention.self.key": "colwise",
        "attention.self.value": "colwise",
        "attention.output.dense": "rowwise",
        "intermediate.dense": "colwise",
        "output.dense": "rowwise",
    },
    {  # DistilBERT
        "attention.q_lin": "colwise",
        "attention.k_lin": "colwise",
        "attention.v_lin": "colwise",
        "attention.out_lin": "rowwise",
        "ffn.lin1": "colwise",
        "ffn.lin2": "rowwise",
    },
)
_OF_EACH_HEAD = "relative_position_bias_table"
_STYLES = {"colwise": ColwiseParallel, "rowwise": RowwiseParallel}


def tensor_parallel(module: torch.nn.Module, mesh: DeviceMesh, model: str) -> dict[str, int]:
    """Split a module's products in place; return how many of them by columns, and by rows.

    A model of transformers that brings a plan (`_tp_plan`: LLaMA, Qwen2 …) is split by it if it
    names nothing but columns and rows. Of encoders that bring none ours has what Megatron-LM has:
    queries, keys, values and the first product of the feed-forward part by columns, what follows
    each by rows, so that a block exchanges twice forward and twice backward. Other models, and
    heads that do not go round, raise UnsupportedError.
    """
    plan = _plan(module)
    if not plan:
        raise UnsupportedError(
            "tensor_parallel",
            f"nothing says how the products of {model} are split over ranks",
            "Train with --strategy ddp or fsdp2; infer with one process.",
        )
    _refuse_uneven(module, plan, mesh.size(), model)
    parallelize_module(module, mesh, {name: _STYLES[style]() for name, style in plan.items()})
    styles = list(plan.values())
    return {style: styles.count(style) for style in _STYLES}


def products_split(module: torch.nn.Module) -> bool:
    """Return whether anything says how its products are split."""
    return bool(_plan(module))


def _plan(module: torch.nn.Module) -> dict[str, str]:
    return _own_plan(module) or _our_plan(module)


def _own_plan(module: torch.nn.Module) -> dict[str, str]:
    """Return the plan that the model brings, by full names; empty if it asks for more."""
    patterns: dict[str, str] = {
        name: str(style)
        for name, style in (getattr(module, "_tp_plan", None) or {}).items()
        if "layers" in name  # what stands outside of blocks stays whole on every rank
    }
    if not patterns or set(patterns.values()) - set(_STYLES):
        return {}
    plan = {}
    for name, part in module.named_modules():
        style = next((s for p, s in patterns.items() if _matches(p, name)), None)
        if style is not None and isinstance(part, torch.nn.Linear):
            plan[name] = style
    return plan


def _matches(pattern: str, name: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", r"[^.]+")
    return re.fullmatch(rf"(?:.*\.)?{expression}", name) is not None


def _our_plan(module: torch.nn.Module) -> dict[str, str]:
    # Swin's blocks are named as BERT's, and add to each head a weight that would stay whole.
    if any(name.endswith(_OF_EACH_HEAD) for name, _ in module.named_parameters()):
        return {}
    linear = {n for n, part in module.named_modules() if isinstance(part, torch.nn.Linear)}
    for layout in _OURS:
        first = next(iter(layout))
        bases = [n.removesuffix(first) for n in linear if n.endswith(f".{first}")]
        plan = {f"{base}{end}": style for base in sorted(bases) for end, style in layout.items()}
        if plan and plan.keys() <= linear:
            return plan
    return {}


def _refuse_uneven(module: torch.nn.Module, plan: dict[str, str], ranks: int, model: str) -> None:
    config: Any = getattr(module, "config", None)
    counts = {
        name: getattr(config, name, None)
        for name in ("num_attention_heads", "n_heads", "num_key_value_heads")
    }
    uneven = {name: n for name, n in counts.items() if isinstance(n, int) and n % ranks}
    for name in plan:
        part = module.get_submodule(name)
        assert isinstance(part, torch.nn.Linear)
        split = part.out_features if plan[name] == "colwise" else part.in_features
        if split % ranks:
            uneven[name] = split
    if uneven:
        name, number = next(iter(uneven.items()))
        raise UnsupportedError(
            "tensor_parallel",
            f"{name} of {model} is {number}, which {ranks} ranks cannot share evenly",
            "Use another number of processes; train with --strategy ddp or fsdp2.",
        )


#: A trial step of a model: which of its weights get no gradient, DDP has to know beforehand.
Trial = Callable[[], set[str]]


class Parallel(Protocol):
    """A model as this rank has it."""

    run: Callable[..., Any]
    #: Parts that the batch is in, over the ranks, and whether gradients are averaged over them.
    parts: int

    def syncing(self, last: bool) -> AbstractContextManager[None]:
        """Enter what is around a micro-batch: gradients are exchanged with the last one alone."""

    def facts(self) -> dict[str, Any]:
        """Return what belongs in the evidence."""


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
    # After a forward pass that no backward pass follows: a rank has its part alone again. What is
    # in no block stays gathered for the backward pass, which would split it. Whoever asked for the
    # weights then, an optimizer or `restore`, got whole ones that the next step throws away.
    if not torch.is_grad_enabled():
        module.reshard()


class TensorParallel:
    """Products of each block split by torch's parallelize_module; see `tensor_parallel`."""

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
    """Return a module as a strategy has it; raise UnsupportedError if it cannot be shared so."""
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
    """Return the repeated parts of a model: the entries of its outermost lists of modules."""
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
    """Return what this rank has of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return all of a tensor; every rank has to ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


class RankTrain(Train):
    """A rank's part of a training step: micro-batches, gradients exchanged with the last."""

    def __init__(self, case: Case, opened: Opened, shared: Parallel, part: int) -> None:
        """Step nothing yet; `part` is which part of the batch is this rank's."""
        self._shared = shared
        self._part = part
        self._micro_batches = int(case.options.get("accumulate", 1))
        super().__init__(case, opened)

    def _restore(self, weights: Mapping[str, torch.Tensor]) -> None:
        restore(self._module, weights)

    def _groups(self) -> list[list[torch.nn.Parameter]]:
        # A step of many tensors at once takes none that are split beside some that are not.
        split = [w for w in self._weights if isinstance(w, DTensor)]
        plain = [w for w in self._weights if not isinstance(w, DTensor)]
        return [group for group in (split, plain) if group]

    def _seed(self) -> None:
        # Parts of a batch drop out other values; ranks that have the same batch the same ones.
        seed_all(self._opened.job.settings.seed + self._part)

    def _gradients(self, inputs: Inputs, mark: Mark) -> None:
        count, total = self._micro_batches, None
        for number in range(count):
            with self._shared.syncing(number == count - 1):
                loss = self._loss_of(self._micro_batch(inputs, number), mark) / count
                total = loss.detach() if total is None else total + loss.detach()
                mark("loss")
                self._scaler.scale(loss).backward()
                mark("backward")
        assert total is not None
        self._losses.append(total)

    def _micro_batch(self, inputs: Inputs, number: int) -> Inputs:
        if self._micro_batches == 1:
            return inputs
        rows = self._case.shapes.batch // self._shared.parts
        size = rows // self._micro_batches
        cut = slice(number * size, (number + 1) * size)
        return {n: t[cut] if t.dim() and len(t) == rows else t for n, t in inputs.items()}

    def _own(self, weight: torch.Tensor) -> torch.Tensor:
        return here(weight)

    def _forward_loss(self, inputs: Inputs) -> float:
        # Without gradients: ranks expect a backward pass to follow any other forward pass.
        count = self._micro_batches
        with torch.no_grad(), buffers_kept(self._module), chances_kept(self._opened.place.device):
            parts = [self._loss_of(self._micro_batch(inputs, i), unmarked) for i in range(count)]
        return sum(float(part) / count for part in parts)

    def gradients(self, inputs: Inputs) -> Iterator[tuple[str, torch.Tensor]]:
        self._gradients(inputs, lambda _phase: None)
        self._losses.clear()
        for name, weight in self._module.named_parameters():
            if weight.grad is not None:
                yield name, whole(weight.grad)
        self._optimizer.zero_grad(set_to_none=True)
