"""A model's outputs by name: the same in every runtime, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import CaseError

if TYPE_CHECKING:
    import torch


def named_tensors(output: Any) -> dict[str, torch.Tensor]:
    """Every tensor of a torch model's output by name, whatever shape the output has."""
    import torch

    if isinstance(output, torch.Tensor):
        return {"output": output}
    if isinstance(output, Mapping):
        return {str(k): v for k, v in output.items() if isinstance(v, torch.Tensor)}
    if isinstance(output, (tuple, list)):
        return {str(i): v for i, v in enumerate(output) if isinstance(v, torch.Tensor)}
    raise CaseError("no_outputs", f"the model returned a {type(output).__name__}, not tensors")
