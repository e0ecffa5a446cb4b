"""Real weights from a local folder or the hub, as safetensors only.

Pickled weights run code when they are opened, so a folder with nothing else is refused. A folder
whose config names code is refused unless that code is trusted.
"""

from __future__ import annotations

import shlex
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core import jsonc
from accelbench.core.errors import CaseError
from accelbench.core.model import ModelSpec

if TYPE_CHECKING:
    import torch

_PICKLED = {".bin", ".pt", ".pth", ".ckpt", ".pkl"}
#: Habits of ours, not properties of the weights, and where a config of transformers keeps them.
_HABITS = {"use_cache": "use_cache", "experts_implementation": "_experts_implementation"}
#: Config entries that may differ from the catalogue's without making it another model.
_FREE = {"num_labels", *_HABITS}
#: A hub that is there answers within a fraction of this; one that is not must not hold up a run.
_HUB_PATIENCE_S = 5.0


def from_folder(
    spec: ModelSpec,
    model_class: Any,
    folder: str,
    trust_remote_code: bool,
    unread: tuple[str, ...] = (),
) -> torch.nn.Module:
    """Load a model from a folder with config.json and safetensors, in fp32.

    `unread` are beginnings of names of weights that may be missing, because nothing reads them.
    Raises CaseError: weights_unavailable, unsafe_weights, remote_code, weights_mismatch,
    weights_incomplete or weights_unreadable.
    """
    path = Path(folder).expanduser()
    _check_files(path)
    raw = _read_config(path)
    if "auto_map" in raw:
        if not trust_remote_code:
            raise CaseError(
                "remote_code",
                f"{path} comes with Python code of its own, which is not run unasked.",
                "Pass --trust-remote-code if you trust its author.",
            )
        return _with_its_own_code(path, raw)
    config = _matching_config(spec, model_class.config_class, raw, path)
    try:
        with _fixed_seed():
            module, loading_info = model_class.from_pretrained(
                path, config=config, dtype="float32", use_safetensors=True,
                local_files_only=True, output_loading_info=True,
            )  # fmt: skip
    except Exception as error:
        raise _unreadable(path, error) from error
    has_new_head = spec.training is not None and spec.training.builder == spec.builder
    body = module.base_model_prefix if has_new_head else ""
    _check_complete(path, loading_info, body, unread)
    return _fp32(module)


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """Fix the seed of weights that the files lack, such as a head to be trained."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(0)
        yield


def _with_its_own_code(path: Path, raw: dict[str, Any]) -> torch.nn.Module:
    import transformers

    loaders = [name for name in raw["auto_map"] if name.startswith("AutoModel")]
    if not loaders:
        raise CaseError(
            "weights_mismatch", f"The config of {path} names code, but no model class.",
            "Use a folder that save_pretrained wrote.",
        )  # fmt: skip
    try:
        module, loading_info = getattr(transformers, loaders[0]).from_pretrained(
            path, dtype="float32", use_safetensors=True, local_files_only=True,
            trust_remote_code=True, output_loading_info=True,
        )  # fmt: skip
    except Exception as error:
        raise _unreadable(path, error) from error
    _check_complete(path, loading_info)
    return _fp32(module)


def _fp32(module: Any) -> torch.nn.Module:
    result: torch.nn.Module = module.float()
    return result


def _check_files(path: Path) -> None:
    if not path.is_dir():
        raise CaseError(
            "weights_unavailable", f"There is no folder {path}.",
            "Name a folder with config.json and *.safetensors, or use --weights random.",
        )  # fmt: skip
    endings = {file.suffix for file in path.iterdir()}
    if ".safetensors" not in endings:
        if endings & _PICKLED:
            raise CaseError(
                "unsafe_weights",
                f"{path} has pickled weights only, which can run code when they are opened.",
                "Convert them to safetensors (save_pretrained does) where you trust them.",
            )
        raise CaseError(
            "weights_unavailable",
            f"{path} has no weights: no model.safetensors or other *.safetensors is in it.",
            "Name the folder that save_pretrained wrote, which has config.json beside them.",
        )  # fmt: skip
    if not (path / "config.json").is_file():
        raise CaseError(
            "weights_unavailable", f"{path} has no config.json.",
            "Name a folder that save_pretrained wrote.",
        )  # fmt: skip


def _folder_advice(path: Path) -> str:
    return (
        f"Measure the folder's own model with `accelbench run {shlex.quote(str(path))}`, or leave"
        " out --weights."
    )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        raw = jsonc.read(path / "config.json", allow_infinity=True)
    except (OSError, ValueError) as error:
        raise _unreadable(path / "config.json", error) from error
    if not isinstance(raw, dict):
        raise _unreadable(path / "config.json", ValueError("not a JSON object"))
    return raw


def _matching_config(spec: ModelSpec, config_class: Any, raw: dict[str, Any], path: Path) -> Any:
    kind = raw.get("model_type")
    if kind != config_class.model_type:
        raise CaseError(
            "weights_mismatch",
            f"{path} holds a model of type {kind}, but {spec.id} is {config_class.model_type}.",
            _folder_advice(path),
        )
    config = config_class.from_dict(raw)
    for key, theirs, ours in _differences(config, spec.config, raw):
        raise CaseError(
            "weights_mismatch",
            f"{path} holds another model than {spec.id}: {key} is {theirs} instead of {ours}.",
            _folder_advice(path),
        )
    _take_habits(config, spec.config)
    return config


def _differences(
    theirs: Any, ours: Mapping[str, Any], raw: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield entries in which a config differs from ours: its own, then those of its parts.

    An entry that its file has like ours is the same, whatever the class makes of it: `id2label` has
    text keys there, and numbers once it is read.
    """
    for key, wanted in ours.items():
        value = getattr(theirs, key, None)
        same = value == wanted or (key in raw and raw[key] == wanted)
        if key not in _FREE and not _is_part(value, wanted) and not same:
            yield key, value, wanted
    for key, part, wanted in _parts(theirs, ours):
        inside = raw.get(key)
        said = inside if isinstance(inside, Mapping) else {}
        yield from ((f"{key}.{inner}", a, b) for inner, a, b in _differences(part, wanted, said))


def _take_habits(config: Any, ours: Mapping[str, Any]) -> None:
    for key, attribute in _HABITS.items():
        if key in ours:
            setattr(config, attribute, ours[key])
    for _, part, wanted in _parts(config, ours):
        _take_habits(part, wanted)


def _parts(config: Any, ours: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    for key, wanted in ours.items():
        part = getattr(config, key, None)
        if _is_part(part, wanted):
            yield key, part, wanted


def _is_part(value: Any, wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and hasattr(value, "model_type")


def _check_complete(
    path: Path, loading_info: Any, body: str = "", unread: tuple[str, ...] = ()
) -> None:
    """Refuse missing weights, which would silently be random; a new head for training may be."""
    names = (str(key) for key in loading_info["missing_keys"])
    missing = (name for name in names if not name.startswith(unread))
    lacking = sorted(key for key in missing if not body or key.startswith(f"{body}."))
    lacking += sorted(str(key) for key in loading_info["mismatched_keys"])
    if lacking:
        raise CaseError(
            "weights_incomplete",
            f"{path} lacks {len(lacking)} of the model's weights, {lacking[0]} among them.",
            "Use a folder that was saved from the whole model, or leave out --weights.",
        )


def _unreadable(path: Path, error: Exception) -> CaseError:
    text = str(error).strip() or type(error).__name__
    return CaseError(
        "weights_unreadable", f"{path} cannot be loaded: {text.splitlines()[0]}",
        "Check that the folder is complete, or leave out --weights.",
    )  # fmt: skip


def from_hub(spec: ModelSpec, model_class: Any, trust_remote_code: bool) -> torch.nn.Module:
    """Load a model by its first hub id: from the local cache, else fetched.

    Only the config and safetensors are fetched (and code, if trusted). Raises CaseError:
    weights_unavailable without a hub id or without a hub in reach, found out within seconds; else
    as `from_folder`.
    """
    if not spec.hub_ids:
        raise CaseError(
            "weights_unavailable", f"{spec.id} is a model of our own: no hub has weights for it.",
            "Leave out --weights.",
        )  # fmt: skip
    folder = fetch_folder(spec.hub_ids[0], trust_remote_code)
    return from_folder(spec, model_class, folder, trust_remote_code)


def fetch_folder(hub_id: str, trust_remote_code: bool) -> str:
    """Return the folder of a hub's model once it is there; raises like `from_hub`."""
    from huggingface_hub import constants, snapshot_download

    wanted = ["config.json", "model*.safetensors", "model.safetensors.index.json"]
    if trust_remote_code:
        wanted.append("*.py")
    try:
        cached = snapshot_download(hub_id, allow_patterns=wanted, local_files_only=True)
        if any(Path(cached).glob("*.safetensors")):
            return str(cached)
    except Exception:  # noqa: S110 - not in the cache, which is what was asked
        pass
    if constants.HF_HUB_OFFLINE:
        raise _out_of_reach(hub_id, "HF_HUB_OFFLINE is set and it is not in the local cache")
    trouble = _trouble_reaching(constants.ENDPOINT)
    if trouble:
        raise _out_of_reach(hub_id, trouble)
    try:
        return str(snapshot_download(hub_id, allow_patterns=wanted))
    except Exception as error:
        raise _out_of_reach(hub_id, str(error).strip().split("\n")[0]) from error


def _trouble_reaching(endpoint: str) -> str:
    """Return why the hub does not answer, or "".

    Asked in a thread: looking up a name has no timeout, and the hub's client would try several
    times.
    """
    answer: list[str] = []

    def ask() -> None:
        request = urllib.request.Request(endpoint, method="HEAD")  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_HUB_PATIENCE_S):  # noqa: S310
                answer.append("")
        except urllib.error.HTTPError:
            answer.append("")  # it answers; whether it has the model, its client finds out
        except Exception as error:
            answer.append(str(getattr(error, "reason", error)) or type(error).__name__)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_HUB_PATIENCE_S + 1)
    return answer[0] if answer else f"no answer within {_HUB_PATIENCE_S:.0f} s"


def _out_of_reach(hub_id: str, why: str) -> CaseError:
    return CaseError(
        "weights_unavailable",
        f"The weights of {hub_id} cannot be had: {why}.",
        "Use --weights random, or name a folder that holds them.",
    )
