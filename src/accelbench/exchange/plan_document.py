"""Plan files: keys, reading, checks, writing and JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from msgspec import ValidationError, convert

from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.formatting import split_words, suggest
from accelbench.core.run_options import PlanSection, RunField, field_of, plan_fields
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.imports.records import MalformedError, Record, to_record
from accelbench.exchange.plan_reading import SUFFIXES, read_document

#: Keys at the top other than the selection of models.
_TOP_KEYS = ("$schema", "name", "description", "matrix", "include", "exclude", "run")
#: Limit of entries of include or exclude, after their lists are expanded.
MAX_ENTRIES = 1000
#: Size limit of plans, which are written by people or by `run --save-plan`.
_MAX_BYTES = 2**20
_TRUTHS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false"}
_TRUTHS["off"] = "false"


@dataclass(frozen=True)
class PlanEntry:
    """Keys of a plan with their values as text."""

    file: Path  # the plan file
    path: str = ""  # of the entry in the file, such as `include[2]`; empty at the top
    line: int | None = None  # of the whole entry; None if it is not known
    #: by the field's key, also if the file has another name for it
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)  # of the keys, if they are known

    def refuse(self, name: str, error: UsageError) -> NoReturn:
        why, line = error.message.rstrip("."), self.lines.get(name, self.line)
        where = f"{self.path}.{name}".lstrip(".")
        raise MalformedError(self.file, line, where, why, error.advice) from error

    def combinations(self) -> Iterator[dict[str, str]]:
        """Yield every combination of one value of each key."""
        for values in product(*self.values.values()):
            yield dict(zip(self.values, values, strict=True))


@dataclass(frozen=True)
class PlanDocument:
    """Content of a plan file."""

    file: Path
    digest: str  # SHA-256 of its bytes
    selection: PlanEntry
    matrix: PlanEntry
    run: PlanEntry
    include: tuple[PlanEntry, ...] = ()
    exclude: tuple[PlanEntry, ...] = ()
    name: str | None = None
    description: str | None = None
    notes: tuple[str, ...] = ()  # ignored settings of another tool's file


def read_plan(file: Path) -> PlanDocument:
    """Read and check a plan file."""
    try:
        size, content = file.stat().st_size, b""
        if size <= _MAX_BYTES:
            content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from error
    if size > _MAX_BYTES:
        raise MalformedError(file, None, None, f"it has {size:,} bytes, more than {_MAX_BYTES:,}")
    whole, notes = read_document(file)
    top = {name: value for name, value in whole.values.items() if name not in _TOP_KEYS}
    document = PlanDocument(
        file,
        sha256(content).hexdigest(),
        selection=_read_entry(replace(whole, values=top), "", PlanSection.SELECTION),
        matrix=_read_entry(_optional_object(whole, "matrix"), "matrix", PlanSection.MATRIX),
        run=_read_entry(_optional_object(whole, "run"), "run", PlanSection.RUN),
        include=_read_entries(whole, "include"),
        exclude=_read_entries(whole, "exclude"),
        name=whole.text("name") if whole.has("name") else None,
        description=whole.text("description") if whole.has("description") else None,
        notes=tuple(notes),
    )
    if not (document.selection.values or document.include):
        why, advice = "it names no models", "Name them under models, or take a set: small."
        raise MalformedError(file, None, None, why, advice)
    return document


def _optional_object(whole: Record, name: str) -> Record:
    return whole.child(name) if name in whole.values else Record(whole.file, whole.line, {})


def _read_entries(whole: Record, name: str) -> tuple[PlanEntry, ...]:
    if name not in whole.values:
        return ()
    entries = []
    for number, value in enumerate(whole.list(name)):
        if not isinstance(value, Mapping) or not value:
            whole.refuse(f"{name}[{number}]", "it is not an object of keys and values")
        entries.append(_read_entry(to_record(whole.file, value), f"{name}[{number}]", None))
    count = sum(prod(map(len, entry.values.values())) for entry in entries)
    if count > MAX_ENTRIES:
        whole.refuse(name, f"it stands for {count:,} entries; the limit is {MAX_ENTRIES:,}")
    return tuple(entries)


def _read_entry(part: Record, path: str, section: PlanSection | None) -> PlanEntry:
    lines = part.lines or {}
    entry = PlanEntry(part.file, path, part.line if part.lines else None, lines=lines)
    values: dict[str, tuple[str, ...]] = {}
    own_lines: dict[str, int] = {}
    for name, value in part.values.items():
        known = field_of(name)
        if known is None or not _is_allowed(known, section):
            entry.refuse(name, _key_error(name, known, section))
        if known.key in values:
            entry.refuse(name, UsageError(f"it is the same as {known.key}, which is already set"))
        values[known.key] = read_texts(entry, name, value, known, section is PlanSection.RUN)
        if name in lines:
            own_lines[known.key] = lines[name]
    return replace(entry, values=values, lines=own_lines)


def _key_error(name: str, known: RunField | None, section: PlanSection | None) -> UsageError:
    if name in ("include", "exclude"):
        return UsageError("it belongs next to matrix, not in it")
    if known is None:
        own = list(_TOP_KEYS) if section is PlanSection.SELECTION else []
        names = [one.key for one in plan_fields() if _is_allowed(one, section)]
        return UsageError("it is not a key of plans", suggest(name, [*own, *names]))
    at_top = known.section is PlanSection.SELECTION
    where = "at the top of a plan" if at_top else f"under {known.section.value}"
    return UsageError(f"it belongs {where}", "Move it there.")


def _is_allowed(known: RunField, section: PlanSection | None) -> bool:
    if section is None:
        return known.section is PlanSection.MATRIX or known.key == "models"
    return known.section is section


def read_texts(
    entry: PlanEntry, name: str, value: Any, known: RunField, single: bool
) -> tuple[str, ...]:
    """Return the values of a key as text, checked for kind and range."""
    if isinstance(value, list) and single and not known.several:
        entry.refuse(name, UsageError("it has one value for the whole run, not a list"))
    found: dict[str, None] = {}
    for number, part in enumerate(value if isinstance(value, list) else [value]):
        try:
            text = _to_text(part)
            split = known.several and not known.is_path and not known.whole
            found |= dict.fromkeys(
                _check_value(known, one) for one in (split_words([text]) if split else (text,))
            )
        except UsageError as error:
            entry.refuse(f"{name}[{number}]" if isinstance(value, list) else name, error)
    if not found:
        entry.refuse(name, UsageError("the list is empty: name a value, or leave the key out"))
    return tuple(found)


def _to_text(value: Any) -> str:
    if value is None or value == "":
        raise UsageError("it is empty: give it a value, or leave it out")
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise UsageError("a word or a number was expected")
    return str(value).strip()


def _check_value(known: RunField, text: str) -> str:
    if known.kind == "truth":
        if text.lower() not in _TRUTHS:
            raise UsageError(f"it is true or false, not {in_quotes(text[:40])}")
        return _TRUTHS[text.lower()]
    if known.kind not in ("number", "fraction"):
        return text
    noun, type_ = ("whole number", int) if known.kind == "number" else ("number", float)
    try:
        number = convert(text, type_, strict=False)
    except ValidationError:
        raise UsageError(f"{in_quotes(text[:40])} is not a {noun}") from None
    least, most = known.least, known.most
    if (least is not None and number < least) or (most is not None and number > most):
        to = f" to {most:,}" if most is not None else " on"
        raise UsageError(f"{text} is not from {least}{to}")
    return str(number)


def convert_texts(known: RunField, texts: Sequence[str], folder: Path) -> Any:
    """Return an option's value for texts of a file; paths are relative to the folder."""
    if known.several:
        return list(texts)
    (text,) = texts
    if known.kind in _PARSERS:
        return _PARSERS[known.kind](text)
    if known.is_path and text not in known.words:
        path = folder / Path(text).expanduser()
        return path if known.kind == "path" else str(path)
    return text


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "truth": lambda text: text == "true",
    "number": int,
    "fraction": float,
}


def write_plan(file: Path, document: Mapping[str, Any]) -> None:
    """Write a document of plain values to a new file."""
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{in_quotes(str(file))} does not have the suffix of a plan file.",
            "Use .yaml, .toml or .json.",
        )
    writers = {".json": _format_json, ".toml": _format_toml}
    text = writers.get(suffix, _format_yaml)(document)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        message = f"{in_quotes(str(file))} already exists."
        raise UsageError(message, "Name another file, or remove it.") from error
    except OSError as error:
        raise SurroundingsError(
            f"The plan {in_quotes(str(file))} cannot be written: {error.strerror or error}.",
            "Choose a folder that can be written.",
        ) from error


def _format_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _format_yaml(document: Mapping[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    return text


def _format_toml(document: Mapping[str, Any]) -> str:
    """Format plain values, then tables, then lists of tables; a plan has no deeper levels."""
    plain, tables = list[str](), list[str]()
    for name, value in document.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_format_key(name)}]", *_format_table(value)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for entry in value:
                tables += ["", f"[[{_format_key(name)}]]", *_format_table(entry)]
        else:
            plain += _format_table({name: value})
    return "\n".join([*plain, *tables]).strip() + "\n"


def _format_table(table: Mapping[str, Any]) -> Sequence[str]:
    return [f"{_format_key(name)} = {_format_toml_value(value)}" for name, value in table.items()]


def _format_key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else json.dumps(name)


def _format_toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


#: Some words look like numbers, such as seconds.
_WORD = ["string", "number"]
_TYPES: dict[str, Any] = {"number": "integer", "fraction": "number", "truth": "boolean"}


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of plan files."""
    matrix = {one.key: _describe_field(one, listed=True) for one in plan_fields(PlanSection.MATRIX)}
    models = next(one for one in plan_fields() if one.key == "models")
    columns = {
        name: {**_describe_field(one, listed=True), "description": f"The same as {one.key}."}
        for one in (*plan_fields(PlanSection.MATRIX), models)
        for name in one.columns
    }
    matrix_columns = {name: value for name, value in columns.items() if name not in models.columns}
    entry = _schema_object({"models": _describe_field(models, listed=True), **columns, **matrix})
    selection = plan_fields(PlanSection.SELECTION)
    top = {
        "$schema": {"type": "string"},
        "name": {"type": "string", "description": "The name of the plan."},
        "description": {"type": "string", "description": "Its purpose."},
        **{one.key: _describe_field(one, listed=one.several) for one in selection},
        "matrix": {
            "description": "The values of each key: every combination is measured.",
            **_schema_object({**matrix, **matrix_columns}),
        },
        "include": {
            "description": "Each entry is added to the combinations that have its values of the"
            " matrix; if there are none, it is a combination of its own.",
            "type": "array",
            "items": {"minProperties": 1, **entry},
        },
        "exclude": {
            "description": "Combinations that have all values of an entry are left out.",
            "type": "array",
            "items": {"minProperties": 1, **entry},
        },
        "run": {
            "description": "Settings of the whole run.",
            **_schema_object(
                {
                    one.key: _describe_field(one, listed=False)
                    for one in plan_fields(PlanSection.RUN)
                }
            ),
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan of accelbench",
        "description": "What `accelbench run plan.yaml` measures, and how.",
        **_schema_object(top),
    }


def _schema_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _describe_field(known: RunField, listed: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"type": _TYPES.get(known.kind, _WORD)}
    limits = {"minimum": known.least, "maximum": known.most}
    value |= {name: limit for name, limit in limits.items() if limit is not None}
    about = {"description": known.about}
    if not listed:
        return {**value, **about}
    return {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}], **about}
