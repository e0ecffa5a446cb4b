"""Plan files: their keys, reading and checking, writing, and their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, NoReturn

from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.jsonc import Object
from accelbench.core.nouns import meant, words
from accelbench.core.visible import in_quotes
from accelbench.exchange.imports.records import MalformedError, Record, record
from accelbench.exchange.plans.reading import SUFFIXES, document_of


class PlanSection(StrEnum):
    """Where in a plan file a key stands."""

    SELECTION = "selection"  # at its top: which models
    MATRIX = "matrix"  # each value makes cases of its own
    RUN = "run"  # one value for the whole run


@dataclass(frozen=True)
class PlanKey:
    """Key of a plan file.

    Attributes:
        name: of the option, without its dashes and with underscores.
        parameter: of the command, which takes the value.
        section: where it stands.
        kind: of one value.
        several: whether the option takes a list.
        least, most: of a number.
        help: what the option says of itself.
        path: whether a value is a path, which is taken from the file's folder.
        aliases: other names, those of columns of results.
        words: values of a path that are none.
    """

    name: str
    parameter: str
    section: PlanSection
    kind: Literal["text", "number", "truth"] = "text"
    several: bool = False
    least: int | None = None
    most: int | None = None
    help: str = ""
    path: bool = False
    aliases: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class PlanKeys:
    """Every key, by its names."""

    def __init__(self, keys: Sequence[PlanKey]) -> None:
        self._keys = tuple(keys)
        names = [(name, key) for key in keys for name in (*key.aliases, key.name)]
        self._by_name: Mapping[str, PlanKey] = dict(names)

    def __iter__(self) -> Iterator[PlanKey]:
        return iter(self._keys)

    def get(self, name: str) -> PlanKey | None:
        """The key of a name; dashes may stand for underscores."""
        return self._by_name.get(name.replace("-", "_"))

    def of(self, section: PlanSection) -> list[PlanKey]:
        """Those of a section, in their order."""
        return [key for key in self._keys if key.section is section]


#: Beside the selection of models.
_OWN = ("$schema", "name", "description", "matrix", "include", "exclude", "run")
#: Entries of include or exclude, once their lists are written out.
MOST_ENTRIES = 1000
#: A plan is written by people, or by `run --save-plan`.
_MOST_BYTES = 2**20
_TRUTHS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false"}
_TRUTHS["off"] = "false"


@dataclass(frozen=True)
class PlanEntry:
    """Keys with their values as text, and where they stand.

    Attributes:
        file: the plan file.
        line: of the whole entry; None where it is not known.
        values: by the key's own name, whatever name was written.
        lines: of the keys, where they are known.
    """

    file: Path
    line: int | None = None
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def refuse(self, name: str, error: UsageError) -> NoReturn:
        """What is wrong with a value, with where it stands."""
        why = error.message.rstrip(".")
        line = self.lines.get(name, self.line)
        raise MalformedError(self.file, line, name, why, error.advice) from error

    def singles(self) -> Iterator[dict[str, str]]:
        """Of each key one value: an entry for each combination of its lists."""
        for values in product(*self.values.values()):
            yield dict(zip(self.values, values, strict=True))


@dataclass(frozen=True)
class PlanDocument:
    """Plan file as it is written."""

    file: Path
    digest: str  # SHA-256 of its bytes
    selection: PlanEntry
    matrix: PlanEntry
    run: PlanEntry
    include: tuple[PlanEntry, ...] = ()
    exclude: tuple[PlanEntry, ...] = ()
    name: str | None = None
    description: str | None = None
    notes: tuple[str, ...] = ()  # what of another tool's file is passed over


def read_plan(file: Path, keys: PlanKeys) -> PlanDocument:
    """A plan file.

    Raises:
        UsageError: it cannot be read, or something in it is wrong: one sentence with file, line
            and key.
    """
    try:
        size, content = file.stat().st_size, b""
        if size <= _MOST_BYTES:
            content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from error
    if size > _MOST_BYTES:
        raise MalformedError(file, None, None, f"it has {size:,} bytes, which no plan has")
    whole, notes = document_of(file)
    return _Reader(file, keys).plan(whole, sha256(content).hexdigest(), notes)


class _Reader:
    """Sections, keys and values of one file."""

    def __init__(self, file: Path, keys: PlanKeys) -> None:
        self._file = file
        self._keys = keys

    def plan(self, whole: Record, digest: str, notes: Sequence[str]) -> PlanDocument:
        selection = Object(whole.line)
        selection.lines = dict(whole.lines or {})
        for name in whole.values:
            if name in _OWN:
                continue
            key = self._keys.get(name)
            if key is None or key.section is not PlanSection.SELECTION:
                self._refuse_key(whole, name, PlanSection.SELECTION)
            selection[name] = whole.values[name]
        document = PlanDocument(
            self._file,
            digest,
            selection=self._entry(record(self._file, selection), PlanSection.SELECTION),
            matrix=self._entry(self._object(whole, "matrix"), PlanSection.MATRIX),
            run=self._entry(self._object(whole, "run"), PlanSection.RUN),
            include=self._entries(whole, "include"),
            exclude=self._entries(whole, "exclude"),
            name=whole.text("name") if whole.has("name") else None,
            description=whole.text("description") if whole.has("description") else None,
            notes=tuple(notes),
        )
        if not (document.selection.values or document.include):
            why = "it names no models"
            advice = "Name them under models, or take a set: small."
            raise MalformedError(self._file, None, None, why, advice)
        return document

    def _object(self, whole: Record, name: str) -> Record:
        if name not in whole.values:
            return Record(self._file, whole.line, {})
        return whole.of(name)

    def _entries(self, whole: Record, name: str) -> tuple[PlanEntry, ...]:
        if name not in whole.values:
            return ()
        entries = []
        for value in whole.list(name):
            if not isinstance(value, Mapping) or not value:
                whole.wrong(name, "each entry is an object of keys and values")
            entries.append(self._entry(record(self._file, value), None))
        count = sum(prod(map(len, entry.values.values())) for entry in entries)
        if count > MOST_ENTRIES:
            whole.wrong(name, f"it stands for {count:,} entries, and may for {MOST_ENTRIES:,}")
        return tuple(entries)

    def _entry(self, part: Record, section: PlanSection | None) -> PlanEntry:
        """The values of a section; without one, of an entry of include or exclude."""
        values: dict[str, tuple[str, ...]] = {}
        lines: dict[str, int] = {}
        for name in part.values:
            key = self._keys.get(name)
            if key is None or not _may_stand(key, section):
                self._refuse_key(part, name, section)
            if key.name in values:
                part.wrong(name, f"it is the same as {key.name}, which is there already")
            values[key.name] = self._values(part, name, key, section)
            if part.lines and name in part.lines:
                lines[key.name] = part.lines[name]
        line = part.line if part.lines else None
        return PlanEntry(self._file, line, values, lines)

    def _values(
        self, record: Record, name: str, key: PlanKey, section: PlanSection | None
    ) -> tuple[str, ...]:
        value = record.values[name]
        listed = key.several or section in (PlanSection.MATRIX, None)
        if isinstance(value, list) and not listed:
            record.wrong(name, "it has one value for the whole run, not a list")
        given = [_text(record, name, part) for part in _listed(value)]
        if key.several and not key.path and key.name != "option":
            given = [word for text in given for word in words([text])]
        if not given:
            record.wrong(name, "the list is empty: name a value, or leave the key out")
        return tuple(dict.fromkeys(_checked(record, name, key, text) for text in given))

    def _refuse_key(self, record: Record, name: str, section: PlanSection | None) -> NoReturn:
        line = (record.lines or {}).get(name) or (record.line if record.lines else None)
        key = self._keys.get(name)
        if name in ("include", "exclude"):
            why, advice = "it stands beside matrix, not in it", ""
        elif key is not None:
            where = {PlanSection.SELECTION: "at the top of a plan"}
            why = f"it stands {where.get(key.section, f'under {key.section.value}')}"
            advice = "Move it there."
        else:
            why = "no plan has such a key"
            advice = meant(name, _names(self._keys, section))
        raise MalformedError(self._file, line, name, why, advice)


def _names(keys: PlanKeys, section: PlanSection | None) -> list[str]:
    own = list(_OWN) if section is PlanSection.SELECTION else []
    return [*own, *(key.name for key in keys if _may_stand(key, section))]


def _may_stand(key: PlanKey, section: PlanSection | None) -> bool:
    if section is None:
        return key.section is PlanSection.MATRIX or key.name == "models"
    return key.section is section


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _text(record: Record, name: str, value: Any) -> str:
    if value is None or value == "":
        record.wrong(name, "it is empty: give it a value, or leave it out")
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        record.wrong(name, "a word or a number was expected")
    return str(value).strip()


def _checked(record: Record, name: str, key: PlanKey, text: str) -> str:
    if key.kind == "truth":
        if text.lower() not in _TRUTHS:
            record.wrong(name, f"it is true or false, not {in_quotes(text[:40])}")
        return _TRUTHS[text.lower()]
    if key.kind == "number":
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
            record.wrong(name, f"{in_quotes(text[:40])} is no whole number")
        least, most = key.least, key.most
        if (least is not None and int(text) < least) or (most is not None and int(text) > most):
            to = f" to {most:,}" if most is not None else " on"
            record.wrong(name, f"{text} is not from {least}{to}")
        return str(int(text))
    return text


def write_plan(file: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain values to a file that is not there yet.

    Raises:
        UsageError: its suffix is of no plan, or it exists.
        SurroundingsError: it cannot be written.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{in_quotes(str(file))} does not end as a plan file does.",
            "Use .yaml, .toml or .json.",
        )
    writers = {".json": _json, ".toml": _toml}
    text = writers.get(suffix, _yaml)(document)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        message = f"{in_quotes(str(file))} exists already."
        raise UsageError(message, "Name another file, or remove it.") from error
    except OSError as error:
        raise SurroundingsError(
            f"The plan {in_quotes(str(file))} cannot be written: {error.strerror or error}.",
            "Choose a folder that can be written.",
        ) from error


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _yaml(document: Mapping[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    return text


def _toml(document: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then lists of tables: two levels are all that a plan has."""
    plain, tables = list[str](), list[str]()
    for name, value in document.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_key(name)}]", *_lines(value)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for entry in value:
                tables += ["", f"[[{_key(name)}]]", *_lines(entry)]
        else:
            plain += _lines({name: value})
    return "\n".join([*plain, *tables]).strip() + "\n"


def _lines(table: Mapping[str, Any]) -> Sequence[str]:
    return [f"{_key(name)} = {_toml_value(value)}" for name, value in table.items()]


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


#: A word may look like a number, as seconds do.
_TYPES: dict[str, Any] = {"text": ["string", "number"], "number": "integer", "truth": "boolean"}


def schema_of(keys: PlanKeys) -> dict[str, Any]:
    """The schema, by the keys."""
    matrix = {key.name: _property(key, listed=True) for key in keys.of(PlanSection.MATRIX)}
    models = {key.name: key for key in keys.of(PlanSection.SELECTION)}["models"]
    columns = {
        alias: {**_property(key, listed=True), "description": f"The same as {key.name}."}
        for key in (*keys.of(PlanSection.MATRIX), models)
        for alias in key.aliases
    }
    matrix_columns = {name: value for name, value in columns.items() if name not in models.aliases}
    entry = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {"models": _property(models, listed=True), **columns, **matrix},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan of accelbench",
        "description": "What `accelbench run plan.yaml` measures, and how.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string"},
            "name": {"type": "string", "description": "What the plan is called."},
            "description": {"type": "string", "description": "What it is for."},
            **{
                key.name: _property(key, listed=key.several)
                for key in keys.of(PlanSection.SELECTION)
            },
            "matrix": {
                "description": "Of each key its values: every combination is measured.",
                "type": "object",
                "additionalProperties": False,
                "properties": {**matrix, **matrix_columns},
            },
            "include": {
                "description": "Each entry is added to the combinations that have its values of"
                " the matrix; where none has, it is a combination of its own.",
                "type": "array",
                "items": entry,
            },
            "exclude": {
                "description": "Combinations that have all values of an entry are left out.",
                "type": "array",
                "items": entry,
            },
            "run": {
                "description": "What holds for the whole run.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    key.name: _property(key, listed=False) for key in keys.of(PlanSection.RUN)
                },
            },
        },
    }


def _property(key: PlanKey, listed: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"type": _TYPES[key.kind]}
    if key.kind == "number":
        if key.least is not None:
            value["minimum"] = key.least
        if key.most is not None:
            value["maximum"] = key.most
    about = {"description": key.help} if key.help else {}
    if not listed:
        return {**value, **about}
    several = {"type": "array", "items": value, "minItems": 1}
    return {"anyOf": [value, several], **about}
