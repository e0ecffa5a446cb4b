"""The layers of a sentence-transformers folder that follow its transformer, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.jsonc import JsonError
from accelbench.core.jsonc import read as read_json
from accelbench.core.visible import in_quotes

#: Modes of pooling in the order in which their results are joined, by the key of old configs.
POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
#: Activations of a dense layer, as torch.nn calls them.
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid")


def read_layers(
    root: Path, transformer: Path, entries: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return the layers as the arguments of `SentenceEncoder`.

    Args:
        root: the folder that has modules.json.
        transformer: the folder of the transformer.
        entries: of modules.json, without the transformer.

    Raises:
        FileRefusedError: a layer is unknown, or its config cannot be read.
    """
    return [_read_layer(root, transformer, entry) for entry in entries]


def read_longest(folder: Path) -> int | None:
    """Return the number of tokens at which a folder's texts are cut, if it has one."""
    config = _config(folder / "sentence_bert_config.json", required=False)
    longest = config.get("max_seq_length")
    return longest if isinstance(longest, int) and longest > 0 else None


def _read_layer(root: Path, transformer: Path, entry: Mapping[str, str]) -> dict[str, Any]:
    kind = entry["type"].rpartition(".")[2]
    folder = (root / entry["path"]).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise FileRefusedError(f"Its layer {in_quotes(entry['path'])} lies outside its folder.")
    if kind == "Normalize":
        return {"type": kind}
    if kind == "Dropout":  # it does nothing at inference
        return {"type": kind}
    config = _config(folder / "config.json")
    if kind == "Pooling":
        return {"type": kind, "modes": _modes(config)}
    if kind == "Dense":
        return {
            "type": kind,
            "in_features": _size(config, "in_features"),
            "out_features": _size(config, "out_features"),
            "bias": bool(config.get("bias", True)),
            "activation": _activation(config),
            "path": relpath(folder, transformer.resolve()),
        }
    if kind == "LayerNorm":
        path = relpath(folder, transformer.resolve())
        return {"type": kind, "dimension": _size(config, "dimension"), "path": path}
    raise FileRefusedError(
        f"Its layer {in_quotes(kind)} is not known.",
        "Known: Pooling, Dense, LayerNorm, Normalize and Dropout. Measure others as code.",
    )


def _config(path: Path, required: bool = True) -> Mapping[str, Any]:
    try:
        config = read_json(path, infinite=True)
    except OSError as error:
        if not required:
            return {}
        raise FileRefusedError(
            f"Its {path.parent.name}/{path.name} cannot be read: {error.strerror}."
        ) from error
    except (JsonError, UnicodeDecodeError) as error:
        raise FileRefusedError(f"Its {path.parent.name}/{path.name} is not valid JSON.") from error
    if not isinstance(config, Mapping):
        raise FileRefusedError(f"Its {path.parent.name}/{path.name} is not a JSON object.")
    return config


def _modes(config: Mapping[str, Any]) -> list[str]:
    named = config.get("pooling_mode")
    modes = [named] if isinstance(named, str) else named
    if not isinstance(modes, list):
        modes = [mode for key, mode in POOLING.items() if config.get(key)]
    unknown = [str(mode) for mode in modes if mode not in POOLING.values()]
    if unknown or not modes:
        raise FileRefusedError(
            f"Its pooling {in_quotes(unknown[0] if unknown else '')} is not known.",
            f"Known: {', '.join(POOLING.values())}.",
        )
    return [mode for mode in POOLING.values() if mode in modes]


def _size(config: Mapping[str, Any], key: str) -> int:
    size = config.get(key)
    if not isinstance(size, int) or size < 1:
        raise FileRefusedError(f"A layer of it has no {key}.")
    return size


def _activation(config: Mapping[str, Any]) -> str:
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = name.rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise FileRefusedError(
            f"Its activation {in_quotes(name)} is not known.", f"Known: {', '.join(ACTIVATIONS)}."
        )
    return activation
