"""What a pass of a torch module takes, counted on the meta device with its example's shapes.

By the rules that count the catalogue's models. A module that looks at values to know its way, or
that keeps tensors beside its parameters and buffers, cannot be counted so: that is said.

Imports torch: import this module only in the process that looks at code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from accelbench.catalog.cost_fitting import DEFAULT_SIZES, exact, fit
from accelbench.catalog.counting import Count, Counter, UnknownOperationError, count_forward
from accelbench.catalog.op_costs import Args
from accelbench.catalog.polynomials import InexactError


class _Blind(Counter):
    """Counts no module whose way depends on values: of another's nothing says which it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Args = (), kwargs: Any = None) -> Any:
        if func._schema.name == "aten::_local_scalar_dense" and args[0].is_meta:
            raise UnknownOperationError("its way depends on values")
        return super().__torch_dispatch__(func, types, args, kwargs)


_TYPES = {"fp32": torch.float32, "half": torch.bfloat16}


def counted(
    module: torch.nn.Module, inputs: Mapping[str, torch.Tensor], batch: int | None
) -> dict[str, Any]:
    """The entry of a module as `costs.json` has it, or why there is none.

    The module is of no other use afterwards: its weights are let go.

    Args:
        module: in evaluation mode.
        inputs: its example, by name.
        batch: items of the example, where a module takes other numbers of them.
    """
    passes = {}
    try:
        meta = module.to("meta")
        for kind, dtype in _TYPES.items():
            passes[kind] = _fitted(meta.to(dtype), inputs, batch, dtype)
    except UnknownOperationError as error:
        return {"uncounted": str(error)}
    except InexactError:
        return {"uncounted": "what it takes follows no rule in its batch"}
    except Exception as error:  # of the owner's code, which knows of no meta device
        words = " ".join(str(error).split())[:120]
        return {"uncounted": f"it does not run on shapes alone ({type(error).__name__}: {words})"}
    return {"counted": {"forward": {"along": None, "step": 1, **passes}}}


def _fitted(
    module: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    batch: int | None,
    dtype: torch.dtype,
) -> dict[str, Any]:
    def counted_at(items: int) -> Count:
        fed = {name: _shaped(value, batch, items, dtype) for name, value in inputs.items()}
        return count_forward(module, fed, _Blind)

    @cache
    def at(items: int, _: int) -> Count:
        return counted_at(items)

    # Of passes that differ with every call a rule in the batch might fit by chance.
    if counted_at(1) != at(1, 0):
        raise UnknownOperationError("two passes of it do not take the same")
    own = {id(t): t for t in (*module.parameters(), *module.buffers())}
    return {
        "weight_bytes": sum(tensor.nbytes for tensor in own.values()),
        **exact(lambda batches: fit(at, DEFAULT_SIZES, batches)),
    }


def _shaped(value: torch.Tensor, batch: int | None, items: int, dtype: torch.dtype) -> torch.Tensor:
    """An input in shapes alone; what has the example's batch takes another."""
    shape = list(value.shape)
    if batch is not None and shape:
        shape[0] = items
    wanted = dtype if value.is_floating_point() else value.dtype
    return torch.empty(shape, dtype=wanted, device="meta")
