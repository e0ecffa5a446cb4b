"""Finding models by the names that people type, and the hub's local cache."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from accelbench.core.errors import UsageError
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import FAMILIES
from accelbench.models.catalogue import MODELS
from accelbench.models.file_models.given_inputs import OPTION

#: The documents' thirteen models, and those with one of every other architecture.
KEY, ARCHITECTURES = "key", "architectures"
#: The sets that the catalogue itself has; "custom" stands for a models file.
SETS = (KEY, ARCHITECTURES, "small")
CUSTOM = "custom"
#: A word that begins so is a path, not a name.
_PATHS = ("./", "../", "/", "~")
LIST_THEM = "List the models with: accelbench models"


def every_model() -> tuple[ModelSpec, ...]:
    """Return the whole catalogue, in its order."""
    return MODELS


def find(name: str, own: Sequence[ModelSpec] = ()) -> ModelSpec:
    """Return the model of a name, alias or hub id; raise UsageError with near matches.

    Case, dashes, underscores and dots do not matter: "BERT", "bert_base", "bert-base-uncased" and
    "google-bert/bert-base-uncased" are one model. A hub id with another owner is another model, and
    so unknown. Models of a models file, `own`, come first, and answer to their keys as well.
    """
    names = {**_names(), **_by_name(own)}
    spec = names.get(key_of(name))
    if spec is not None:
        return spec
    if name.startswith(_PATHS) or name.endswith("/") or name.count("/") > 1:
        raise UsageError(f"There is no file or folder {in_quotes(name)}.", "Check its path.")
    ids = list(dict.fromkeys(names[match].id for match in _near(key_of(name), names)))[:3]
    hint = f"Did you mean {' or '.join(ids)}? " if ids else ""
    raise UsageError(_no_model(name), f"{hint}{LIST_THEM}")


def _no_model(name: str) -> str:
    if "/" in name:  # a folder, or a model of the hub
        return f"There is no model, file or folder {in_quotes(name)}, here or in the hub's cache."
    return f"There is no model named {in_quotes(name)}."


def find_exact(name: str) -> ModelSpec | None:
    """Return the catalogue's model of that name, or None, without looking for near names.

    This is asked for thousands of results, and looking for near names takes ten milliseconds.
    """
    return _names().get(key_of(name))


def members(set_name: str) -> tuple[ModelSpec, ...]:
    """Return the models of a set, or raise UsageError."""
    if set_name not in SETS:
        raise UsageError(
            f"There is no model set {in_quotes(set_name)}.", f"Known sets: {', '.join(SETS)}."
        )
    names = {KEY, ARCHITECTURES} if set_name == ARCHITECTURES else {set_name}
    return tuple(spec for spec in MODELS if names & set(spec.sets))


def in_categories(spec: ModelSpec, categories: Iterable[str]) -> bool:
    """Return whether a model has one of these families or modality tags; refuse unknown words."""
    known = {key_of(word) for word in (*FAMILIES, *(m for s in MODELS for m in s.modalities))}
    own = {key_of(word) for word in (spec.family, *spec.modalities)}
    for category in categories:
        if key_of(category) not in known:
            words = sorted({*map(str, FAMILIES), *(m for s in MODELS for m in s.modalities)})
            raise UsageError(
                f"There is no category {in_quotes(category)}.",
                f"Known categories: {', '.join(words)}.",
            )
    return any(key_of(category) in own for category in categories)


@lru_cache(maxsize=4096)  # thousands of results are of hundreds of models
def key_of(name: str) -> str:
    """Return a name without differences of spelling; an owner keeps its slash."""
    return "".join(c for c in name.strip().lower() if c.isalnum() or c == "/")


def _near(key: str, names: Iterable[str]) -> list[str]:
    """Return names to suggest: a typing error, or a looser match that begins the same.

    Similarity alone would suggest gpt2-tiny for opt-tiny.
    """
    close = difflib.get_close_matches(key, list(names), n=8, cutoff=0.6)
    return [
        name
        for name in close
        if name[0] == key[0] or difflib.SequenceMatcher(None, key, name).ratio() > 0.8
    ]


@cache
def _names() -> dict[str, ModelSpec]:
    return _by_name(MODELS)


def _by_name(specs: Sequence[ModelSpec]) -> dict[str, ModelSpec]:
    ordered = sorted(specs, key=lambda spec: CUSTOM in spec.sets)
    return {key_of(name): spec for spec in ordered for name in names_of(spec)}


def names_used(names: Iterable[str], specs: Sequence[ModelSpec]) -> dict[str, str]:
    """Return the name by which each of these models was called, by its id."""
    known = _by_name(specs)
    return {known[key_of(name)].id: name for name in names if key_of(name) in known}


def names_of(spec: ModelSpec) -> Iterator[str]:
    """Yield every spelling of a model: id, aliases, hub ids with and without their owner."""
    yield spec.id
    yield from spec.aliases
    for hub_id in spec.hub_ids:
        yield hub_id
        yield hub_id.rpartition("/")[2]


#: What engines write of an index beyond a table.
_OUT_OF_RANGE = re.compile(
    r"out of (?:\w+ )?(?:bounds|range)|index.{0,40}(?:exceeds|must be within)", re.IGNORECASE
)
_INDEX = re.compile(r"\b(?:idx|index)\D{0,3}(\d+)", re.IGNORECASE)


def index_advice(message: str, inputs: Iterable[InputSpec]) -> str:
    """Return which input to correct if an engine refused an index, or ""."""
    if not _OUT_OF_RANGE.search(message):
        return ""
    drawn = [one for one in inputs if "int" in one.dtype and one.high > one.low]
    if match := _INDEX.search(message):
        drawn = [one for one in drawn if one.low <= int(match[1]) < one.high] or drawn
    if not drawn:
        return ""
    ranges = " and ".join(f"{one.name} ({one.low:,} to {one.high - 1:,})" for one in drawn)
    return (
        f"The index comes from the values of {ranges}: set a smaller range with"
        f" {OPTION} {drawn[0].name}=0..LIMIT, or the values with --input-file FILE.npz."
    )


#: Loading a model begins with it, so that every model that was fetched has it.
_FIRST = "config.json"


def snapshot(hub_id: str) -> str | None:
    """Return the commit that loading a hub id would take, or None if it would be fetched."""
    folder = cached_folder(hub_id)
    return None if folder is None else folder.name


def cached_folder(hub_id: str) -> Path | None:
    """Return the folder of that commit in the cache, or None if it would be fetched."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    try:
        path = try_to_load_from_cache(hub_id, _FIRST)
    except (OSError, ValueError):
        return None
    # A cached file lies in the folder of its commit; what is known not to exist is no path.
    return Path(path).parent if isinstance(path, str) else None
