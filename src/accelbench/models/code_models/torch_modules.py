"""Torch modules of owners: their inputs, batches and costs.

A pass is counted on the meta device with the example's shapes, by the catalogue's rules. Modules
whose way depends on values, or that keep tensors outside parameters and buffers, have no count.

Imports torch: import this module only in the process that looks at code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from accelbench.core.errors import CaseError
from accelbench.core.safe_text import in_quotes
from accelbench.models.build import parameter_count
from accelbench.models.code_models import example
from accelbench.models.code_models.loading import LoadedCode
from accelbench.models.counting import Count, Counter, UnknownOperationError, count_forward
from accelbench.models.file_models.given_inputs import refuse_unknown_inputs
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.inputs import named_tensors
from accelbench.models.op_costs import Args
from accelbench.models.polynomials import DEFAULT_SIZES, InexactError, exact, fit


class _Blind(Counter):
    """Counter that refuses modules whose way depends on values."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Args = (), kwargs: Any = None) -> Any:
        if func._schema.name == "aten::_local_scalar_dense" and args[0].is_meta:
            raise UnknownOperationError("its way depends on values")
        return super().__torch_dispatch__(func, types, args, kwargs)


_TYPES = {"fp32": torch.float32, "half": torch.bfloat16}


def count_module(
    module: torch.nn.Module, inputs: Mapping[str, torch.Tensor], batch: int | None
) -> dict[str, Any]:
    """Return the entry of a module as in `costs.json`, or the reason why there is none.

    The module loses its weights. `batch` is None if it takes no other number of items.
    """
    passes = {}
    try:
        meta = module.to("meta")
        for kind, dtype in _TYPES.items():
            passes[kind] = _fit_costs(meta.to(dtype), inputs, batch, dtype)
    except UnknownOperationError as error:
        return {"uncounted": str(error)}
    except InexactError:
        return {"uncounted": "what it takes follows no rule in its batch"}
    except Exception as error:  # of the owner's code, which knows of no meta device
        words = " ".join(str(error).split())[:120]
        return {"uncounted": f"it does not run on shapes alone ({type(error).__name__}: {words})"}
    return {"counted": {"forward": {"along": None, "step": 1, **passes}}}


def _fit_costs(
    module: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    batch: int | None,
    dtype: torch.dtype,
) -> dict[str, Any]:
    def counted_at(items: int) -> Count:
        fed = {name: _empty_like(value, batch, items, dtype) for name, value in inputs.items()}
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


def _empty_like(
    value: torch.Tensor, batch: int | None, items: int, dtype: torch.dtype
) -> torch.Tensor:
    shape = list(value.shape)
    if batch is not None and shape:
        shape[0] = items
    wanted = dtype if value.is_floating_point() else value.dtype
    return torch.empty(shape, dtype=wanted, device="meta")


def describe_module(
    loaded: LoadedCode, given: Sequence[str], advice: str, live: bool = False
) -> dict[str, Any]:
    """Return a module's inputs, batch, parameters and cost; its example has to fit."""
    module = loaded.subject.eval()
    _refuse_unmade(module)
    if loaded.example is None:
        needs = example.required_parameters(module.forward) or ["inputs"]
        example.refuse_missing(module.forward, given, needs, advice)
        return {
            "inputs": [],
            "batch": 1,
            "free_batch": True,
            "notes": [],
            "parameters": parameter_count(module),
            "uncounted": "it has no example inputs to be counted with",
            "training": _training(loaded),
        }
    inputs = {
        name: value if torch.is_tensor(value) else torch.from_numpy(np.asarray(value))
        for name, value in example.name_arguments(module.forward, loaded.example).items()
    }
    refuse_unknown_inputs(given, inputs)
    for name, value in inputs.items():
        if not value.numel():
            raise FileRefusedError(
                f"Its input {in_quotes(name)} is empty in its example: {list(value.shape)}.",
                "Give it an example with at least one item.",
            )
    there = dict(module.named_parameters())
    outputs = _outputs_of_example(module, inputs)
    if later := sorted(dict(module.named_parameters()).keys() - there):
        raise _lazy_weight_error(later[0])
    batch = example.common_batch(list(inputs.values()))
    free, notes = False, _stored_otherwise(module)
    if batch is not None:
        why = _refuses_twice(module, inputs, outputs, batch)
        free = not why
        notes += [f"is measured at a batch of {batch} alone: {why}"] if why else []
    return {
        "inputs": [example.describe_input(name, value) for name, value in inputs.items()],
        "parameters": parameter_count(module),
        "batch": batch or 1,
        "free_batch": free,
        "notes": notes,
        "training": _training(loaded),
        **(_UNCOUNTED if live else count_module(module, inputs, batch if free else None)),
    }


#: Counting takes a module's weights from it.
_UNCOUNTED = {"uncounted": "it is in use in the process that measured it"}


def _stored_otherwise(module: torch.nn.Module) -> list[str]:
    kinds = {p.dtype for p in module.parameters() if p.is_floating_point()} - {torch.float32}
    names = sorted(str(kind).removeprefix("torch.") for kind in kinds)
    return [f"has weights of {' and '.join(names)}, which are cast to --precision"] if names else []


def _refuse_unmade(module: torch.nn.Module) -> None:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if is_lazy(tensor):
            raise _lazy_weight_error(name)
        if tensor.is_meta:
            raise FileRefusedError(
                f"Its weight {in_quotes(name)} is on the device meta, which holds no values.",
                "Let it have values: module.to_empty(device='cpu'), and then its own.",
            )


def _lazy_weight_error(name: str) -> FileRefusedError:
    return FileRefusedError(
        f"Its weight {in_quotes(name)} is made by its first call, which every process makes anew.",
        "Call it once with its example before it is handed over: model(*example).",
    )


def _outputs_of_example(
    module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return the outputs of a copy of the example; refuse a module that then gives other outputs.

    A step begins with the inputs of the step before: each would have another batch.
    """
    fed = {name: value.clone() for name, value in inputs.items()}
    outputs = {name: value.clone() for name, value in _outputs(module, fed).items()}
    changed = [name for name, value in inputs.items() if not _alike(value, fed[name])]
    if not changed:
        return outputs
    again = _outputs(module, fed)
    if all(name in again and _alike(value, again[name]) for name, value in outputs.items()):
        return outputs
    name = changed[0]
    raise FileRefusedError(
        f"Each call changes its input {in_quotes(name)} in place, so that no two are alike.",
        f"Let it work on a copy: {name} = {name}.clone().",
    )


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.is_quantized or one.layout is not torch.strided:
        return bool(one.shape == other.shape)
    wide = torch.complex128 if one.is_complex() else torch.float64
    near = torch.allclose(one.to(wide), other.to(wide), rtol=1e-3, atol=1e-5, equal_nan=True)
    return bool(near)


def _outputs(module: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    with torch.inference_mode():
        try:
            return dict(named_tensors(module(**inputs)))
        except CaseError as error:
            raise FileRefusedError(
                f"With its example inputs, {error.message}.", "Let its forward return tensors."
            ) from error


def _refuses_twice(
    module: torch.nn.Module,
    inputs: Mapping[str, torch.Tensor],
    outputs: Mapping[str, torch.Tensor],
    batch: int,
) -> str:
    twice = {
        name: torch.cat([value, value]) if value.dim() else value for name, value in inputs.items()
    }
    try:
        with torch.inference_mode():
            more = named_tensors(module(**twice))
    except Exception as error:
        words = " ".join(str(error).split())[:120]
        return f"with its example twice over it fails ({type(error).__name__}: {words})"
    grown = [
        name
        for name, value in outputs.items()
        if value.dim() and value.shape[0] == batch and name in more
    ]
    if not grown or any(more[name].shape[0] != 2 * batch for name in grown):
        return "its outputs are not twice as many where its example is"
    return ""


def _training(loaded: LoadedCode) -> dict[str, Any] | None:
    if loaded.loss is None or loaded.labels is None:
        return None
    several = loaded.labels if isinstance(loaded.labels, tuple) else (loaded.labels,)
    names = ["labels", *(f"labels_{place}" for place in range(1, len(several)))]
    tensors = {name: torch.as_tensor(value) for name, value in zip(names, several, strict=True)}
    return {"labels": [example.describe_input(name, value) for name, value in tensors.items()]}
