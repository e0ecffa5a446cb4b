"""The models that a command line asks for: by name, set, category or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from accelbench.catalog.code_models.models import described as code_notes
from accelbench.catalog.code_models.models import model_of_code
from accelbench.catalog.code_models.models import name_of as code_name_of
from accelbench.catalog.code_models.words import code_word
from accelbench.catalog.custom import models_in
from accelbench.catalog.file_models.folders import CONFIG, is_folder_word, model_of_folder
from accelbench.catalog.file_models.folders import described as folder_notes
from accelbench.catalog.file_models.given_inputs import NO_INPUT, OPTION, GivenInput, said_of
from accelbench.catalog.file_models.kinds import FORMATS, is_file_word
from accelbench.catalog.file_models.models import described as file_notes
from accelbench.catalog.file_models.models import model_of_file, path_of
from accelbench.catalog.file_models.models import name_of as file_name_of
from accelbench.catalog.find import (
    CUSTOM,
    LIST_THEM,
    find,
    in_categories,
    key_of,
    known_as,
    members,
)
from accelbench.catalog.models import MODELS
from accelbench.catalog.package_models.models import is_package_word, model_of_package
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes, visible


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
    inputs: Mapping[str, GivenInput] | None = None,
    reference: str = "",
) -> tuple[ModelSpec, ...]:
    """The models a command line asks for, each once, named ones first.

    Args:
        models: names, as `find` takes them; those of the models file come first.
        set_name: "key", "architectures", "small", or "custom" for those of the models file.
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
        inputs: what is said of inputs of models that are files or code: of all that are named, or
            as MODEL:NAME of one of them.
        reference: of callables of one's own, an attribute whose answers are the right ones.
    """
    models, categories, specific = tuple(models), tuple(categories), tuple(specific)
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} leaves no model.", "Use a limit of 1 or more.")
    if set_name == CUSTOM and models_file is None:
        raise UsageError("The set custom needs a file.", "Name it with --models-file FILE.")
    own: tuple[ModelSpec, ...] = ()
    if models_file is not None:
        own = _described(models_file, (*models, *specific), pass_over, every=not models)
    start = [_fed(name, models, own, inputs or {}, reference) for name in models]
    if inputs and not any(spec.is_own for spec in start):
        read = ", ".join(spec.name for spec in start[0].inputs) if start else ""
        of_catalogue = (
            f" {start[0].id} is from the catalogue: its inputs are {read}." if start else ""
        )
        raise UsageError(
            f"--input and --input-file describe the inputs of your own models.{of_catalogue}",
            "Leave them out.",
        )
    if set_name == CUSTOM or not models:
        start += own
    if set_name is not None and set_name != CUSTOM:
        start += members(set_name)
    if all_models or (categories and not start):
        start += MODELS
    if not start:
        raise UsageError("No model is named.", f"Name one, or use --set or --all. {LIST_THEM}")
    picked = (find(name, own) for name in specific)
    wanted = {name for spec in picked for name in (spec.id, spec.small_variant)}
    chosen = [
        spec
        for spec in {spec.id: spec for spec in start}.values()
        if (not categories or in_categories(spec, categories))
        and (not specific or spec.id in wanted)
    ]
    if not chosen:
        raise UsageError("No model is left after the filters.", LIST_THEM)
    return tuple(chosen[:limit])


def is_model_word(word: str) -> bool:
    """Return whether a word can only mean a model: a name, a file or a folder with a config."""
    code = code_word(word)
    return (
        known_as(word) is not None
        or (code is not None and code.is_file)
        or Path(word).suffix.lower() in FORMATS
        or is_package_word(word)
        or is_folder_word(word)
    )


def notes_on(spec: ModelSpec) -> list[str]:
    """What is said of a model of one's own: what it is, and what each of its inputs holds."""
    return [note for say in (file_notes, code_notes, folder_notes) for note in say(spec)]


def _fed(
    word: str,
    words: Sequence[str],
    own: Sequence[ModelSpec],
    inputs: Mapping[str, GivenInput],
    reference: str,
) -> ModelSpec:
    """The model of a name, with what is said of its inputs."""
    labels = _labels(word)
    every = {label for name in words for label in _labels(name)}
    of_all, of_one = said_of(inputs, labels, every)
    try:
        spec = _named(word, own, {**of_all, **of_one}, reference)
    except UsageError as error:
        if len(words) > 1 and NO_INPUT.lower() in error.message.lower():
            error.advice = (
                f"{error.advice} What is of one model alone is said with its name:"
                f" {OPTION} MODEL:NAME=…"
            )
        raise
    if of_one and not spec.is_own:
        raise UsageError(
            f"{OPTION} {visible(word)}:{visible(next(iter(of_one)))} is of no model of your own:"
            f" what {spec.id} reads is known.",
            "Leave it out.",
        )
    return spec


def _labels(word: str) -> set[str]:
    """What a model may be called before the name of one of its inputs."""
    name, path = path_of(word)
    code = code_word(word)
    labels = {word, name, str(path), path.name, file_name_of(path)}
    if code is not None:
        labels |= {code.name, str(code), code_name_of(code)}
    return labels - {""}


def _named(
    name: str,
    own: Sequence[ModelSpec],
    inputs: Mapping[str, GivenInput] | None,
    reference: str,
) -> ModelSpec:
    """The model of a name; of a folder, code or a file where no model has that name."""
    try:
        return find(name, own)
    except UsageError:
        if is_package_word(name) and not Path(name).exists():
            return model_of_package(name, inputs)
        if is_folder_word(name):
            return model_of_folder(name)
        code = code_word(name)
        if code is not None:
            return model_of_code(code, inputs, reference)
        if not is_file_word(name):
            if Path(name).expanduser().is_dir():
                raise UsageError(
                    f"The folder {in_quotes(name)} has no {CONFIG} of a model.",
                    "Name a folder with one, or a model file in the folder.",
                ) from None
            raise
    return model_of_file(name, inputs)


def _described(
    path: Path,
    named: Sequence[str],
    pass_over: Callable[[UsageError], None] | None,
    *,
    every: bool,
) -> tuple[ModelSpec, ...]:
    """The models of a file, and a word of each entry that is wrong, where all are asked for."""
    described = models_in(path)
    for key, error in described.wrong.items():
        if pass_over is None or any(key_of(name) == key_of(key) for name in named):
            raise error
        if every:
            pass_over(error)
    return described.models
