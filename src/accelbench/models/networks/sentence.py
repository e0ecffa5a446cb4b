"""Models of sentence-transformers: a transformer, pooling and further layers, as one network.

Imports torch and transformers, but not sentence-transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from accelbench.core.errors import CaseError
from accelbench.core.model import SENTENCE_ENCODER, ModelSpec


class SentenceEncoder(nn.Module):  # type: ignore[misc]  # mypy skips torch
    """A transformer whose token vectors become one vector per text."""

    def __init__(
        self,
        transformer: Mapping[str, Any],
        layers: Sequence[Mapping[str, Any]],
        loaded: nn.Module | None = None,
    ) -> None:
        """Build all layers, with a loaded transformer or one drawn from `transformer`."""
        super().__init__()
        self.transformer = loaded if loaded is not None else _build_transformer(transformer)
        if getattr(self.transformer, "pooler", None) is not None:
            self.transformer.pooler = None  # no layer reads its output
        self.layers = nn.ModuleList([_layer(layer) for layer in layers])

    @property
    def config(self) -> Any:
        return self.transformer.config

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        read = {} if attention_mask is None else {"attention_mask": attention_mask}
        vectors = self.transformer(input_ids=input_ids, **read).last_hidden_state
        for layer in self.layers:
            vectors = layer(vectors, mask) if isinstance(layer, _Pooling) else layer(vectors)
        return {"sentence_embedding": vectors}


def load_sentence_encoder(
    spec: ModelSpec, folder: str, trust_remote_code: bool, find_class: Callable[[ModelSpec], Any]
) -> SentenceEncoder:
    """Load all layers from a folder and those next to it, in fp32.

    `find_class` returns the transformers class of a model. Raises CaseError if weights are missing,
    or belong to another model.
    """
    from dataclasses import replace

    from accelbench.models.weights import from_folder

    assert spec.builder == SENTENCE_ENCODER
    wanted = spec.config["transformer"]
    inner = replace(
        spec, builder=f"transformers:{wanted['class']}", config=wanted["config"], training=None
    )
    model_class = find_class(inner)
    loaded = from_folder(inner, model_class, folder, trust_remote_code, unread=("pooler.",))
    module = SentenceEncoder(**spec.config, loaded=loaded)
    for layer, entry in zip(module.layers, spec.config["layers"], strict=True):
        if "path" in entry:
            _load_layer(layer, Path(folder) / entry["path"])
    return module


def _load_layer(layer: nn.Module, folder: Path) -> None:
    from safetensors.torch import load_file

    try:
        layer.load_state_dict(load_file(folder / "model.safetensors"))
    except OSError as error:
        raise CaseError(
            "weights_unavailable",
            f"{folder} has no model.safetensors.",
            "Save the model with safe_serialization=True.",
        ) from error
    except Exception as error:
        raise CaseError(
            "weights_unreadable",
            f"{folder / 'model.safetensors'} cannot be loaded: {str(error).splitlines()[0]}",
            "Check that the folder is complete.",
        ) from error


def _build_transformer(transformer: Mapping[str, Any]) -> nn.Module:
    import transformers

    model_class = getattr(transformers, transformer["class"])
    module: nn.Module = model_class(model_class.config_class(**transformer["config"]))
    return module


def _layer(layer: Mapping[str, Any]) -> nn.Module:
    kind = layer["type"]
    if kind == "Pooling":
        return _Pooling(layer["modes"])
    if kind == "Dense":
        return _Dense(layer)
    if kind == "LayerNorm":
        return _Norm(layer["dimension"])
    return _Normalize() if kind == "Normalize" else nn.Identity()


class _Pooling(nn.Module):  # type: ignore[misc]  # mypy skips torch
    def __init__(self, modes: Sequence[str]) -> None:
        super().__init__()
        self.modes = tuple(modes)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        pooled = [_POOLED[mode](tokens, mask) for mode in self.modes]
        return pooled[0] if len(pooled) == 1 else torch.cat(pooled, 1)


class _Dense(nn.Module):  # type: ignore[misc]  # mypy skips torch
    def __init__(self, layer: Mapping[str, Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(layer["in_features"], layer["out_features"], layer["bias"])
        self.activation = getattr(nn, layer["activation"])()

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.activation(self.linear(vectors))


class _Norm(nn.Module):  # type: ignore[misc]  # mypy skips torch
    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dimension)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.norm(vectors)


class _Normalize(nn.Module):  # type: ignore[misc]  # mypy skips torch
    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(vectors, p=2.0, dim=-1)


def _mean(tokens: torch.Tensor, mask: torch.Tensor, root: bool = False) -> torch.Tensor:
    counted = mask.unsqueeze(-1).to(tokens.dtype)
    count = counted.sum(1).clamp(min=1e-9)
    return (tokens * counted).sum(1) / (count.sqrt() if root else count)


def _weighted_mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    places = torch.ones_like(mask).cumsum(1)
    weights = (places * mask).unsqueeze(-1).to(tokens.dtype)
    return (tokens * weights).sum(1) / weights.sum(1).clamp(min=1e-9)


def _max(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return tokens.masked_fill(mask.unsqueeze(-1) == 0, -1e9).max(1).values


def _last(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    places = (torch.ones_like(mask).cumsum(1) * mask).argmax(1)
    index = places[:, None, None].expand(-1, 1, tokens.shape[-1])
    return tokens.gather(1, index)[:, 0]


_POOLED = {
    "cls": lambda tokens, _: tokens[:, 0],
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda tokens, mask: _mean(tokens, mask, root=True),
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
