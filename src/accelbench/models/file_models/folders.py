"""The model of a folder with a config.json, or of the hub's local cache."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import relpath
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, loads
from accelbench.core.jsonc import read as read_json
from accelbench.core.model import SENTENCE_ENCODER, ModelSpec
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.vocabulary import Family
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.find import cached_folder
from accelbench.models.own import OwnModels, describe, refusal

#: Modes of pooling in the order in which their results are joined, by the key of old configs.
POOLING = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean", "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
#: Activations of a dense layer, as torch.nn calls them.
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid")


def read_layers(
    root: Path, transformer: Path, entries: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return the layers after the transformer of sentence-transformers, for `SentenceEncoder`."""
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
        config = read_json(path, allow_infinity=True)
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


CONFIG = "config.json"
#: What a folder of sentence-transformers has, and one of a pipeline of diffusers.
_MODULES, _PIPELINE = "modules.json", "model_index.json"
_TRANSFORMER = ".Transformer"
_LARGEST_CONFIG = 2**24
_WEIGHTS = ("*.safetensors",)
_PICKLED = ("pytorch_model*.bin", "*.pt", "*.pth")
_HUB_ID = re.compile(r"^[\w.-]+/[\w.-]+$")
#: What a class of transformers is for, by how its name ends.
_FAMILIES = {
    ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration"): Family.TEXT_GENERATION,
    ("ForImageClassification",): Family.VISION,
    ("ForCTC", "ForAudioClassification"): Family.AUDIO,
}
#: What a model that reads such an input is of.
_MODALITIES = {"pixel_values": "vision", "input_values": "audio", "input_features": "audio"}


def is_folder_word(word: str) -> bool:
    """Return whether a word names a folder with a config, its config, or a cached hub id."""
    path = Path(word).expanduser()
    here = any((path / name).is_file() for name in (CONFIG, _MODULES, _PIPELINE))
    return here or path.name == CONFIG or _of_the_hub(word) is not None


def model_of_folder(word: str) -> ModelSpec:
    """Return the model of a folder, with its weights if there are any."""
    path = Path(word).expanduser()
    folder = path.parent if path.name == CONFIG else path
    name = visible(f"{folder.absolute().name}/")
    if not (folder / CONFIG).is_file() and (cached := _of_the_hub(word)) is not None:
        folder, name = cached, word
    try:
        root, folder = folder, _transformer_of(folder)
        weights = _weights_of(folder)  # at once: describing the config takes seconds
        layers = read_layers(root, folder, _layers(root)[1:])
        for layer in layers:
            _weights_of(folder / layer.get("path", ""))
        longest = read_longest(folder) if layers else None
        spec = config_model(name, folder, layers, longest)
    except FileRefusedError as error:
        raise UsageError(
            f"{in_quotes(word)} is not measured: {error.within}", error.advice
        ) from error
    return replace(spec, folder=weights, aliases=(word,))


def describe_layers(spec: ModelSpec) -> list[str]:
    """Return a line about the layers that follow the transformer of a folder, if it has any."""
    if spec.builder != SENTENCE_ENCODER:
        return []
    kinds = [str(layer["type"]) for layer in spec.config["layers"]]
    return [
        f"{spec.id} is its transformer followed by {', '.join(kinds)}; at most"
        f" {spec.max_sequence} tokens."
        if spec.max_sequence
        else f"{spec.id} is its transformer followed by {', '.join(kinds)}."
    ]


def _layers(folder: Path) -> list[Mapping[str, str]]:
    try:
        layers = read_json(folder / _MODULES)
        return [{"type": str(entry["type"]), "path": str(entry["path"])} for entry in layers]
    except (OSError, JsonError, UnicodeDecodeError, TypeError, KeyError):
        return []


def _transformer_of(folder: Path) -> Path:
    """Return the folder of the model: sentence-transformers may keep it in one below."""
    if (folder / _PIPELINE).is_file():
        parts = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
        raise FileRefusedError(
            "It is a pipeline of diffusers, which is made of several models.",
            _as_code(folder / parts[0] if parts else folder),
        )
    if not (folder / _MODULES).is_file():
        return folder
    layers = _layers(folder)
    first = layers[0] if layers else {"type": "", "path": ""}
    inside = (folder / first["path"]).resolve()
    if not first["type"].endswith(_TRANSFORMER) or not inside.is_relative_to(folder.resolve()):
        raise FileRefusedError(
            f"Its {_MODULES} does not begin with a transformer.", _as_code(folder)
        )
    return inside


def _as_code(folder: Path) -> str:
    return (
        "Measure it as code: a function in a file that returns (model, example_inputs), the model"
        f" by from_pretrained({in_quotes(str(folder))})."
    )


def config_model(
    name: str, folder: Path, layers: Sequence[Mapping[str, Any]] = (), longest: int | None = None
) -> ModelSpec:
    """Return the model that a folder's config describes; its weights are not read.

    `layers` of sentence-transformers follow it; its owner cuts texts at `longest` tokens.
    """
    path = folder / CONFIG
    try:
        if path.is_file() and path.stat().st_size > _LARGEST_CONFIG:
            raise FileRefusedError(f"Its {CONFIG} is larger than any config.")
        config = read_json(path, allow_infinity=True)
    except OSError as error:
        graphs = sorted(entry.name for entry in folder.glob("*.onnx"))[:1]
        raise FileRefusedError(
            f"Its {CONFIG} cannot be read: {error.strerror}.",
            f"Name the file itself: {folder / graphs[0]}"
            if graphs
            else f"Name a folder with a model's {CONFIG}, or a file.",
        ) from error
    except (JsonError, UnicodeDecodeError) as error:
        raise FileRefusedError(f"Its {CONFIG} is no JSON: {error}.") from error
    if not isinstance(config, dict):
        raise FileRefusedError(f"Its {CONFIG} is no object.")
    if "_class_name" in config:
        raise FileRefusedError(
            f"It is a {visible(str(config['_class_name']))} of diffusers, and no config says what"
            " it reads.",
            _as_code(folder),
        )
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    if not isinstance(first, str):
        raise FileRefusedError(f"Its {CONFIG} names no architecture.")
    if (why := refusal(config)) is not None:
        raise FileRefusedError(f"{why[:1].upper()}{why[1:]}.")
    family = next((f for ends, f in _FAMILIES.items() if first.endswith(ends)), Family.EMBEDDING)
    text = loads(json.dumps(config), allow_infinity=True)
    own = OwnModels(name, first, text, family, "", (), layers=layers, longest=longest)
    (spec,) = describe([own])
    if isinstance(spec, str):
        raise FileRefusedError(f"{spec.rstrip('.')}.")
    found = (_MODALITIES.get(entry.name, "text") for entry in spec.inputs)
    return replace(spec, modalities=tuple(dict.fromkeys(found)))


def _weights_of(folder: Path) -> str | None:
    """Return the folder if it has weights, or None if random ones are drawn.

    Pickled ones are refused: random ones must not replace them.
    """
    if any(True for pattern in _WEIGHTS for _ in folder.glob(pattern)):
        return str(folder.absolute())
    if any(True for pattern in _PICKLED for _ in folder.glob(pattern)):
        raise FileRefusedError(
            "Its weights are pickled, and whoever reads a pickle runs the code in it.",
            "Save them as safetensors: model.save_pretrained(folder, safe_serialization=True).",
        )
    return None


def _of_the_hub(word: str) -> Path | None:
    if not _HUB_ID.match(word) or Path(word).exists():
        return None
    folder = cached_folder(word)
    return folder if folder is not None and (folder / CONFIG).is_file() else None
