"""Models files: the document's custom model sets, as JSON in which comments are allowed.

    {
      // a model of the catalogue, by any of its names
      "bert_tiny": {"name": "prajjwal1/bert-tiny", "family": "embedding",
                    "size": "tiny", "modality": "text"},
      // a model of one's own, with seeded random weights: from a folder with a config.json …
      "ours": {"name": "our-encoder", "path": "models/ours", "family": "embedding",
               "size": "small", "modality": "text"},
      // … or from a config in place
      "mine": {"name": "my-bert", "class": "BertModel", "config": {"hidden_size": 96, …}, …}
    }

`name` is what the column `model` shows; of a catalogue model that is the
catalogue's own name, whichever alias the file uses. An entry's key is one more
alias: either is a name on the command line. Of a catalogue model the file may
say the size in its own word, but not contradict the family or modality. Paths
are taken from the file's folder.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.catalog.find import every_model, find
from accelbench.catalog.own import OwnModels, describe, refusal
from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, Object, parse, read
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import FAMILIES, Family

SIZES = ("tiny", "small", "base", "medium", "large")
KEYS = ("name", "family", "size", "modality", "path", "class", "config")
#: What a model of one's own must say, since no catalogue does.
_OF_ITS_OWN = ("family", "size", "modality")


@dataclass(frozen=True)
class _Entry:
    """One model of a file, and where it stands in it."""

    file: Path
    key: str
    line: int
    said: Object

    def wrong(self, message: str, key: str | None = None, advice: str = "") -> UsageError:
        """An error that names file, line and key."""
        if key is None or key not in self.said.lines:
            return UsageError(
                f"{self.file}, line {self.line}, {in_quotes(self.key)}: {message}", advice
            )
        where = (
            f"{self.file}, line {self.said.lines[key]}, {in_quotes(key)} of {in_quotes(self.key)}"
        )
        return UsageError(f"{where}: {message}", advice)

    def text(self, key: str) -> str | None:
        """The text under a key; None where the key is absent."""
        value = self.said.get(key)
        if key in self.said and (not isinstance(value, str) or not value.strip()):
            raise self.wrong("it takes a text.", key)
        return value

    def word(self, key: str, known: Iterable[str]) -> str | None:
        """One of the known words under a key."""
        value = self.text(key)
        words = list(known)
        if value is not None and value not in words:
            advice = _meant(value, words) or f"Known: {', '.join(words)}."
            raise self.wrong(f"there is no {key} {in_quotes(value)}.", key, advice)
        return value


@dataclass(frozen=True)
class Described:
    """What a file describes: its models in their order, and what is wrong, by the entry's key."""

    models: tuple[ModelSpec, ...]
    wrong: Mapping[str, UsageError]


def models_in(path: Path) -> Described:
    """The models that a file describes, each once; one that is wrong does not stop the others.

    Raises:
        UsageError: the file is wrong, or all that is in it: one sentence with the file, the line
            and the key.
        MissingExtraError: a model of one's own needs transformers to be described.
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
            spec = described.get(key) or _of_the_catalogue(entry)
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
    """Refuse an entry whose keys or words are none that are known."""
    for key in entry.said:
        if key not in KEYS:
            advice = _meant(key, KEYS) or f"Keys: {', '.join(KEYS)}."
            raise entry.wrong("there is no such key.", key, advice)
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


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.lower(), list(known), n=2, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else ""


def _of_the_catalogue(entry: _Entry) -> ModelSpec:
    try:
        spec = find(entry.said["name"])
    except UsageError as error:
        advice = (
            f"{error.advice.rstrip('.')}. A model of your own needs a 'path', or a 'class' and a"
            " 'config'."
        )
        raise entry.wrong(_begun_small(error.message), "name", advice) from error
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
    return replace(spec, size=size, aliases=_with(spec.aliases, entry.key, spec.id))


def _with(aliases: tuple[str, ...], key: str, model_id: str) -> tuple[str, ...]:
    return aliases if key in (*aliases, model_id) else (*aliases, key)


def _own(entry: _Entry) -> OwnModels:
    """A model of the user's own, as far as the file describes it."""
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
        aliases=_with((), entry.key, name),
    )


def _config(entry: _Entry) -> tuple[dict[str, Any], str]:
    """The config and the class that is built from it."""
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
        return read(path, infinite=True)
    except OSError as error:
        raise entry.wrong(
            f"{path} cannot be read: {error.strerror}.", "path",
            "Name a folder with the model's config.json.",
        ) from error  # fmt: skip
    except JsonError as error:
        raise entry.wrong(f"{path}, {error}.", "path") from error


def _begun_small(sentence: str) -> str:
    """A sentence as it goes on after a colon."""
    return sentence[:1].lower() + sentence[1:]
