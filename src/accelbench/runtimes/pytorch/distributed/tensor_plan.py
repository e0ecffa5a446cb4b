"""Which products of a model are split over ranks, and how: by its own plan, or by ours.

A model of transformers that brings a plan (`_tp_plan`: LLaMA, Qwen2 …) is split by it where it
names nothing but columns and rows. Of encoders that bring none ours has what Megatron-LM has:
queries, keys, values and the first product of the feed-forward part by columns, what follows each
by rows, so that a block exchanges twice forward and twice backward.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from accelbench.core.errors import UnsupportedError

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
    """Split a module's products in place; how many of them by columns, and by rows.

    What class and config tell was refused when the run was planned (`splittable`).

    Raises:
        UnsupportedError: nothing says how, or its heads do not go round.
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
    """Whether anything says how its products are split."""
    return bool(_plan(module))


def _plan(module: torch.nn.Module) -> dict[str, str]:
    return _own_plan(module) or _our_plan(module)


def _own_plan(module: torch.nn.Module) -> dict[str, str]:
    """The plan that the model brings, by full names; empty where it asks for more than we have."""
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
