"""The models that a command line asks for: by name, set, category or a models file.

A models file is JSON with comments:

    {
      // a model of the catalogue, by any of its names
      "bert_tiny": {"name": "prajjwal1/bert-tiny", "family": "embedding",
                    "size": "tiny", "modality": "text"},
      // a model of one's own, with random weights: from a folder with a config.json …
      "ours": {"name": "our-encoder", "path": "models/ours", "family": "embedding",
               "size": "small", "modality": "text"},
      // … or from a config in place
      "mine": {"name": "my-bert", "class": "BertModel", "config": {"hidden_size": 96, …}, …}
    }

An entry's key is an alias of its model. The file may restate a catalogue model's size, but must not
contradict its family or modality. Paths are relative to the file's folder.

A model that an installed package builds by name: `timm/resnet18`, `torchvision/resnet18`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.formatting import suggest
from accelbench.core.jsonc import JsonError, Object, parse, read
from accelbench.core.model import PACKAGE_MODELS, ModelSpec
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.vocabulary import FAMILIES, Family
from accelbench.models.catalogue import MODELS
from accelbench.models.code_models.loading import CodeWord, code_word
from accelbench.models.code_models.models import describe_code_model as code_notes
from accelbench.models.code_models.models import model_of_code
from accelbench.models.code_models.models import name_of as code_name_of
from accelbench.models.file_models.folders import CONFIG, is_folder_word, model_of_folder
from accelbench.models.file_models.folders import describe_layers as folder_notes
from accelbench.models.file_models.given_inputs import (
    NO_INPUT,
    OPTION,
    GivenInput,
    split_descriptions,
)
from accelbench.models.file_models.kinds import formats_by_suffix, is_file_word
from accelbench.models.file_models.models import describe_file_model as file_notes
from accelbench.models.file_models.models import model_of_file, path_of
from accelbench.models.file_models.models import name_of as file_name_of
from accelbench.models.find import (
    CUSTOM,
    LIST_THEM,
    every_model,
    find,
    find_exact,
    in_categories,
    key_of,
    members,
)
from accelbench.models.own import OwnModels, describe, refusal

#: Packages that build models, each with the extra of its name.
PACKAGES = ("timm", "torchvision")
_WORD = re.compile(rf"^(?:([^=/\\:]+)=)?({'|'.join(PACKAGES)})/([A-Za-z]\w*)(\.\w+)?$")


def is_package_word(word: str) -> bool:
    """Return whether a word names a package's model."""
    return _WORD.match(word) is not None


def model_of_package(word: str, given: Mapping[str, GivenInput] | None = None) -> ModelSpec:
    """Return the model, with random weights, that PACKAGE/NAME or CALLED=PACKAGE/NAME builds."""
    parts = _WORD.match(word)
    assert parts is not None, word
    called, package, name, weights = parts.groups()
    if find_spec(package) is None:
        raise MissingExtraError(package, package, f"Measuring {package}/{name}")
    if weights:
        raise UsageError(
            f"{package}/{name}{weights} names weights, and models of packages have random ones.",
            f"Leave them out: {package}/{name}",
        )
    made = CodeWord(called or f"{package}/{name}", f"{PACKAGE_MODELS}{package}", name)
    try:
        spec = model_of_code(made, given)
    except UsageError as error:
        error.message = error.message.replace(str(made), f"{package}/{name}", 1)
        raise
    aliases = (word,) if word != spec.id else ()
    return replace(spec, family=Family.VISION, modalities=("vision",), aliases=aliases)


SIZES = ("tiny", "small", "base", "medium", "large")
KEYS = ("name", "family", "size", "modality", "path", "class", "config")
#: What a model of one's own must say, since no catalogue does.
_OF_ITS_OWN = ("family", "size", "modality")


@dataclass(frozen=True)
class _Entry:
    file: Path
    key: str
    line: int
    said: Object

    def wrong(self, message: str, key: str | None = None, advice: str = "") -> UsageError:
        if key is None or key not in self.said.lines:
            return UsageError(
                f"{self.file}, line {self.line}, {in_quotes(self.key)}: {message}", advice
            )
        where = (
            f"{self.file}, line {self.said.lines[key]}, {in_quotes(key)} of {in_quotes(self.key)}"
        )
        return UsageError(f"{where}: {message}", advice)

    def text(self, key: str) -> str | None:
        value = self.said.get(key)
        if key in self.said and (not isinstance(value, str) or not value.strip()):
            raise self.wrong("it takes a text.", key)
        return value

    def word(self, key: str, known: Iterable[str]) -> str | None:
        value = self.text(key)
        words = list(known)
        if value is not None and value not in words:
            raise self.wrong(f"there is no {key} {in_quotes(value)}.", key, suggest(value, words))
        return value


@dataclass(frozen=True)
class Described:
    """A file's models in their order, and its errors by the entry's key."""

    models: tuple[ModelSpec, ...]
    wrong: Mapping[str, UsageError]


def models_in(path: Path) -> Described:
    """Return the models of a file, each once; a wrong one does not stop the others.

    Raises UsageError, with file, line and key, if the file or every entry is wrong.
    """
    wrong: dict[str, UsageError] = {}
    entries, own = dict[str, _Entry](), dict[str, OwnModels]()
    for entry in _read(path, wrong):
        try:
            _check(entry)
            if _is_own(entry):
                own[entry.key] = _own(entry)
            entries[entry.key] = entry
        except UsageError as error:
            wrong[entry.key] = error
    described = dict(zip(own, describe(list(own.values())) if own else (), strict=True))
    specs: dict[str, ModelSpec] = {}
    for key, entry in entries.items():
        try:
            spec = described.get(key) or _from_catalogue(entry)
            if isinstance(spec, str):
                raise entry.wrong(spec, "class" if "class" in entry.said else "path")
            if spec.id in specs:
                raise entry.wrong(f"{spec.id} is in the file twice.", "name", "Leave one out.")
            specs[spec.id] = spec
        except UsageError as error:
            wrong[key] = error
    if not specs:
        raise next(iter(wrong.values()))
    return Described(tuple(specs.values()), wrong)


def _read(path: Path, wrong: dict[str, UsageError]) -> list[_Entry]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text in UTF-8.", "Save it as UTF-8.") from error
    except OSError as error:
        raise UsageError(
            f"The models file {path} cannot be read: {error.strerror}.", "Check its path."
        ) from error
    try:
        whole = parse(text)
    except JsonError as error:
        raise UsageError(f"{path}, line {error.line}: {error.message}.") from error
    if not isinstance(whole, Object):
        raise UsageError(
            f"{path}, line 1: a models file is an object with an entry a model.",
            'Begin it with {"some_name": {"name": …}}.',
        )
    if not whole:
        raise UsageError(f"{path}, line {whole.line}: there is no model in it.", "Describe one.")
    entries = []
    for key, body in whole.items():
        if isinstance(body, Object):
            entries.append(_Entry(path, key, whole.lines[key], body))
        else:
            wrong[key] = UsageError(
                f"{path}, line {whole.lines[key]}, {in_quotes(key)}: a model is an object with"
                " keys.",
                f"Keys: {', '.join(KEYS)}.",
            )
    return entries


def _check(entry: _Entry) -> None:
    for key in entry.said:
        if key not in KEYS:
            raise entry.wrong("there is no such key.", key, suggest(key, KEYS, "Keys"))
    if entry.text("name") is None:
        raise entry.wrong("it has no 'name'.", advice='Give it one, such as "name": "t5-small".')
    entry.word("family", map(str, FAMILIES))
    entry.word("size", SIZES)
    entry.word("modality", _modalities())
    if _is_own(entry):
        for key in _OF_ITS_OWN:
            if key not in entry.said:
                raise entry.wrong(f"a model of your own needs a {in_quotes(key)}.")


def _modalities() -> list[str]:
    known = {tag for spec in every_model() for tag in spec.modalities}
    return sorted(known | {"text", "vision", "audio", "multimodal"})


def _is_own(entry: _Entry) -> bool:
    return bool({"path", "config", "class"} & entry.said.keys())


def _from_catalogue(entry: _Entry) -> ModelSpec:
    try:
        spec = find(entry.said["name"])
    except UsageError as error:
        advice = (
            f"{error.advice.rstrip('.')}. A model of your own needs a 'path', or a 'class' and a"
            " 'config'."
        )
        message = error.message[:1].lower() + error.message[1:]
        raise entry.wrong(message, "name", advice) from error
    family, modality = entry.said.get("family"), entry.said.get("modality")
    if family is not None and family != spec.family:
        raise entry.wrong(
            f"{spec.id} is of the family {spec.family.value}, not {family}.", "family",
            "Correct it, or leave it out.",
        )  # fmt: skip
    tags = {*spec.modalities, *(["multimodal"] if len(spec.modalities) > 1 else [])}
    if modality is not None and modality not in tags:
        raise entry.wrong(
            f"{spec.id} is a model of {' and '.join(spec.modalities)}, not of {modality}.",
            "modality", "Correct it, or leave it out.",
        )  # fmt: skip
    size = entry.said.get("size", spec.size)
    return replace(spec, size=size, aliases=_add_alias(spec.aliases, entry.key, spec.id))


def _add_alias(aliases: tuple[str, ...], key: str, model_id: str) -> tuple[str, ...]:
    return aliases if key in (*aliases, model_id) else (*aliases, key)


def _own(entry: _Entry) -> OwnModels:
    name = str(entry.said["name"])
    try:
        taken = find(name)
    except UsageError:
        pass
    else:
        raise entry.wrong(
            f"the catalogue's {taken.id} has that name.", "name",
            "Give your own model another one; real weights of the catalogue's are taken by"
            " --weights FOLDER.",
        )  # fmt: skip
    config, class_name = _config(entry)
    why = refusal(config)
    if why is not None:
        raise entry.wrong(f"{why}.", "config" if "config" in entry.said else "path")
    return OwnModels(
        id=name,
        model_class=class_name,
        config=config,
        family=Family(entry.said["family"]),
        size=entry.said["size"],
        modalities=(entry.said["modality"],),
        aliases=_add_alias((), entry.key, name),
    )


def _config(entry: _Entry) -> tuple[dict[str, Any], str]:
    if "path" in entry.said and "config" in entry.said:
        raise entry.wrong("a config comes from a path or stands here, not both.", "config")
    config = _config_of_folder(entry) if "path" in entry.said else entry.said.get("config")
    if not isinstance(config, dict):
        raise entry.wrong("a model of your own needs a 'path' or a 'config', an object.", "config")
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    class_name = entry.text("class") or first
    if not isinstance(class_name, str):
        raise entry.wrong(
            "its config names no architecture.", "config" if "config" in entry.said else "path",
            'Name the class of transformers, such as "class": "BertModel".',
        )  # fmt: skip
    return json.loads(json.dumps(config)), class_name


def _config_of_folder(entry: _Entry) -> Any:
    location = entry.text("path") or ""
    folder = entry.file.parent / Path(location).expanduser()
    path = folder / "config.json"
    try:
        return read(path, allow_infinity=True)
    except OSError as error:
        raise entry.wrong(
            f"{path} cannot be read: {error.strerror}.", "path",
            "Name a folder with the model's config.json.",
        ) from error  # fmt: skip
    except JsonError as error:
        raise entry.wrong(f"{path}, {error}.", "path") from error


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
    """Return the models that a command line asks for, each once, named ones first.

    Args:
        models: names, as `find` takes them; those of the models file come first.
        set_name: "key", "architectures", "small", or "custom" for those of the models file.
        categories: families or modality tags; they narrow names or a set, and choose from
            everything without them.
        specific: keep only these. A model also answers for its small variant: "bert" picks
            bert-tiny.
        limit: keep at most so many.
        all_models: take the whole catalogue.
        models_file: more names for `models`; without `models`, all of its models are taken.
        pass_over: is called with each wrong entry of that file that was not named; without it, a
            wrong entry is an error.
        inputs: descriptions of inputs of files and code, of all models or as MODEL:NAME of one.
        reference: of callables, an attribute whose answers are right.
    """
    models, categories, specific = tuple(models), tuple(categories), tuple(specific)
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} leaves no model.", "Use a limit of 1 or more.")
    if set_name == CUSTOM and models_file is None:
        raise UsageError("The set custom needs a file.", "Name it with --models-file FILE.")
    own: tuple[ModelSpec, ...] = ()
    if models_file is not None:
        own = _models_of_file(models_file, (*models, *specific), pass_over, every=not models)
    start = [_find_fed(name, models, own, inputs or {}, reference) for name in models]
    if inputs and not any(spec.is_user_model for spec in start):
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
        find_exact(word) is not None
        or (code is not None and code.is_file)
        or Path(word).suffix.lower() in formats_by_suffix()
        or is_package_word(word)
        or is_folder_word(word)
    )


def notes_on(spec: ModelSpec) -> list[str]:
    """Return notes about a model of one's own: what it is, and the values of its inputs."""
    return [note for say in (file_notes, code_notes, folder_notes) for note in say(spec)]


def _find_fed(
    word: str,
    words: Sequence[str],
    own: Sequence[ModelSpec],
    inputs: Mapping[str, GivenInput],
    reference: str,
) -> ModelSpec:
    labels = _labels(word)
    every = {label for name in words for label in _labels(name)}
    of_all, of_one = split_descriptions(inputs, labels, every)
    try:
        spec = _find_model(word, own, {**of_all, **of_one}, reference)
    except UsageError as error:
        if len(words) > 1 and NO_INPUT.lower() in error.message.lower():
            error.advice = (
                f"{error.advice} What is of one model alone is said with its name:"
                f" {OPTION} MODEL:NAME=…"
            )
        raise
    if of_one and not spec.is_user_model:
        raise UsageError(
            f"{OPTION} {visible(word)}:{visible(next(iter(of_one)))} is of no model of your own:"
            f" what {spec.id} reads is known.",
            "Leave it out.",
        )
    return spec


def _labels(word: str) -> set[str]:
    name, path = path_of(word)
    code = code_word(word)
    labels = {word, name, str(path), path.name, file_name_of(path)}
    if code is not None:
        labels |= {code.name, str(code), code_name_of(code)}
    return labels - {""}


def _find_model(
    name: str, own: Sequence[ModelSpec], inputs: Mapping[str, GivenInput] | None, reference: str
) -> ModelSpec:
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


def _models_of_file(
    path: Path, named: Sequence[str], pass_over: Callable[[UsageError], None] | None, *, every: bool
) -> tuple[ModelSpec, ...]:
    described = models_in(path)
    for key, error in described.wrong.items():
        if pass_over is None or any(key_of(name) == key_of(key) for name in named):
            raise error
        if every:
            pass_over(error)
    return described.models
