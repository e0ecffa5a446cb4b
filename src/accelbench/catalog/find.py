"""Finding models by the names people type. Pure; nothing heavy is imported."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from accelbench.catalog.models import MODELS
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Family

#: The sets that the catalogue itself has; "custom" stands for a models file.
SETS = ("key", "small")
CUSTOM = "custom"
_LIST_THEM = "List the models with: accelbench models"


def every_model() -> tuple[ModelSpec, ...]:
    """The whole catalogue, in its order."""
    return MODELS


def find(name: str, own: Sequence[ModelSpec] = ()) -> ModelSpec:
    """Return the model that a name, alias or hub id stands for.

    Case, dashes, underscores and dots do not matter: "BERT", "bert_base",
    "bert-base-uncased" and "google-bert/bert-base-uncased" are one model. A hub
    id with another owner is another model, and so unknown. Models of a models
    file, `own`, come before the catalogue's, and answer to their keys as well.

    Raises:
        UsageError: no model has that name; near matches are named.
    """
    names = {**_names(), **_named(own)}
    spec = names.get(_key(name))
    if spec is not None:
        return spec
    ids = list(dict.fromkeys(names[match].id for match in _near(_key(name), names)))[:3]
    hint = f"Did you mean {' or '.join(ids)}? " if ids else ""
    raise UsageError(f"There is no model named {in_quotes(name)}.", f"{hint}{_LIST_THEM}")


def choose(
    models: Iterable[str] = (),
    set_name: str | None = None,
    categories: Iterable[str] = (),
    specific: Iterable[str] = (),
    limit: int | None = None,
    *,
    all_models: bool = False,
    models_file: Path | None = None,
    pass_over: Callable[[UsageError], None] | None = None,
) -> tuple[ModelSpec, ...]:
    """The models a command line asks for, each once, named ones first.

    Args:
        models: names, as `find` takes them; those of the models file come first.
        set_name: "key", "small", or "custom" for those of the models file.
        categories: families or modality tags; "vision" finds every model that sees.
            Beside names or a set they narrow it, alone they choose from everything.
        specific: keep only these. A model also answers for its small variant, so
            that "bert" picks bert-tiny out of the small set.
        limit: keep at most so many.
        all_models: take the whole catalogue.
        models_file: models described by a file: more names for `models`, and where
            none is named, all of them join the others.
        pass_over: hears of each entry of that file that is wrong and whose model nobody named;
            without it, one that is wrong is an error.
    """
    models, categories, specific = tuple(models), tuple(categories), tuple(specific)
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} leaves no model.", "Use a limit of 1 or more.")
    if set_name == CUSTOM and models_file is None:
        raise UsageError("The set custom needs a file.", "Name it with --models-file FILE.")
    own: tuple[ModelSpec, ...] = ()
    if models_file is not None:
        own = _described(models_file, (*models, *specific), pass_over, every=not models)
    start = [find(name, own) for name in models]
    if set_name == CUSTOM or not models:
        start += own
    if set_name is not None and set_name != CUSTOM:
        start += members(set_name)
    if all_models or (categories and not start):
        start += MODELS
    if not start:
        raise UsageError("No model is named.", f"Name one, or use --set or --all. {_LIST_THEM}")
    picked = (find(name, own) for name in specific)
    wanted = {name for spec in picked for name in (spec.id, spec.small_variant)}
    chosen = [
        spec
        for spec in {spec.id: spec for spec in start}.values()
        if (not categories or _in_categories(spec, categories))
        and (not specific or spec.id in wanted)
    ]
    if not chosen:
        raise UsageError("No model is left after the filters.", _LIST_THEM)
    return tuple(chosen[:limit])


def _described(
    path: Path,
    named: Sequence[str],
    pass_over: Callable[[UsageError], None] | None,
    *,
    every: bool,
) -> tuple[ModelSpec, ...]:
    """The models of a file, and a word of each entry that is wrong, where all are asked for."""
    from accelbench.catalog.custom import models_in

    described = models_in(path)
    for key, error in described.wrong.items():
        if pass_over is None or any(_key(name) == _key(key) for name in named):
            raise error
        if every:
            pass_over(error)
    return described.models


def members(set_name: str) -> tuple[ModelSpec, ...]:
    """The models of a set.

    Raises:
        UsageError: there is no such set.
    """
    if set_name not in SETS:
        raise UsageError(
            f"There is no model set {in_quotes(set_name)}.", f"Known sets: {', '.join(SETS)}."
        )
    return tuple(spec for spec in MODELS if set_name in spec.sets)


def _in_categories(spec: ModelSpec, categories: Iterable[str]) -> bool:
    known = {_key(word) for word in (*Family, *(m for s in MODELS for m in s.modalities))}
    own = {_key(word) for word in (spec.family, *spec.modalities)}
    for category in categories:
        if _key(category) not in known:
            words = sorted({*map(str, Family), *(m for s in MODELS for m in s.modalities)})
            raise UsageError(
                f"There is no category {in_quotes(category)}.",
                f"Known categories: {', '.join(words)}.",
            )
    return any(_key(category) in own for category in categories)


def _key(name: str) -> str:
    """What is left of a name when spelling is set aside; an owner keeps its slash."""
    return "".join(c for c in name.strip().lower() if c.isalnum() or c == "/")


def _near(key: str, names: Iterable[str]) -> list[str]:
    """Names to suggest: a slip of the fingers, or a rougher likeness that begins the same.

    Likeness alone would suggest gpt2-tiny to who asked for opt-tiny.
    """
    close = difflib.get_close_matches(key, list(names), n=8, cutoff=0.6)
    return [
        name
        for name in close
        if name[0] == key[0] or difflib.SequenceMatcher(None, key, name).ratio() > 0.8
    ]


@cache
def _names() -> dict[str, ModelSpec]:
    return _named(MODELS)


def _named(specs: Sequence[ModelSpec]) -> dict[str, ModelSpec]:
    """Models by their names; one of the user's own keeps its name from all others."""
    ordered = sorted(specs, key=lambda spec: CUSTOM in spec.sets)
    return {_key(name): spec for spec in ordered for name in names_of(spec)}


def called(names: Iterable[str], specs: Sequence[ModelSpec]) -> dict[str, str]:
    """What each of these models was called, by its id; names of other models are left out."""
    known = _named(specs)
    return {known[_key(name)].id: name for name in names if _key(name) in known}


def names_of(spec: ModelSpec) -> Iterator[str]:
    """Every spelling that finds a model: id, aliases, hub ids with and without their owner."""
    yield spec.id
    yield from spec.aliases
    for hub_id in spec.hub_ids:
        yield hub_id
        yield hub_id.rpartition("/")[2]
