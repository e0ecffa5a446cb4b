"""Lines of a table or objects of a document, read by field.

A file is read completely or not at all. An error names the file, the line and the field.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from accelbench.core.errors import UsageError
from accelbench.core.jsonc import JsonError, Object, loads, parse
from accelbench.core.plausible_values import ABOVE_ZERO
from accelbench.core.ranges import Range
from accelbench.core.safe_text import brief, from_csv_cell, in_quotes, visible
from accelbench.store.body_to_row import MisfitError, convert_value

#: Texts that stand for a missing value in other programs' tables.
_MISSING = frozenset({"", "nan", "none", "null", "n/a"})

_BOOLEANS = {"true": True, "false": False}


class MalformedError(UsageError):
    """A file does not have the content of its format."""

    def __init__(
        self,
        file: Path,
        line: int | None,
        field: str | None,
        why: str,
        advice: str = "",
        name: str = "",
    ) -> None:
        where = [str(file)]
        # A document of one line has every result on line 1.
        where += [f"line {line}"] if line is not None and not (name and line == 1) else []
        where += [name] if name else []
        where += [in_quotes(field)] if field is not None else []
        super().__init__(f"{', '.join(where)}: {why}.", advice)
        self.file, self.line, self.field = file, line, field


@dataclass(frozen=True)
class Record:
    """Named values with their place in a file."""

    file: Path
    line: int
    values: Mapping[str, Any]
    lines: Mapping[str, int] | None = None  # of each value, if they have separate lines
    name: str = ""  # its name in the document

    def refuse(self, field: str, why: str, error: Exception | None = None) -> NoReturn:
        line = (self.lines or {}).get(field, self.line)
        raise MalformedError(self.file, line, field, why, name=self.name) from error

    def has(self, field: str) -> bool:
        value = self.values.get(field)
        return value is not None and str(value).strip().lower() not in _MISSING

    def text(self, field: str) -> str:
        value = self.values.get(field)
        if not self.has(field):
            self.refuse(
                field,
                f"{in_quotes(value)} stands for a missing value" if value else "it is missing",
            )
        if isinstance(value, (dict, list)):
            self.refuse(field, "a word was expected")
        return str(value).strip()

    def number(self, field: str, above: float | None = None, within: Range | None = None) -> float:
        """Return a finite number, above another and within bounds if given."""
        text = self.text(field)
        try:
            value = float(text)
        except ValueError as error:
            self.refuse(field, f"{brief(text)} is not a number", error)
        if not text.isascii() or "_" in text:  # Python accepts those, and no table means them
            self.refuse(field, f"{brief(text)} is not a number")
        if not math.isfinite(value):
            self.refuse(field, f"{brief(text)} is not a finite number")
        if above is not None and value <= above:
            self.refuse(field, f"{value:g} is not above {above:g}")
        if within is not None and (why := within.explain_misfit(value)):
            self.refuse(field, why)
        return value

    def whole(self, field: str, above: float | None = 0, within: Range | None = None) -> int:
        """Return a whole number, also one written as 1024.0."""
        value = self.number(field, above, within)
        if value != int(value):
            self.refuse(field, f"{brief(self.text(field))} is not a whole number")
        digits = self.text(field).removeprefix("-")
        # A float has 53 bits, which round larger numbers.
        return int(self.text(field)) if digits.isdecimal() else int(value)

    def boolean(self, field: str) -> bool:
        """Return a boolean; the text must be true or false."""
        word = self.text(field).lower()
        if word not in _BOOLEANS:
            self.refuse(field, f"{brief(word)} is not true or false")
        return _BOOLEANS[word]

    def time(self, field: str) -> str:
        text = self.text(field)
        try:
            return str(convert_value("time", text))
        except MisfitError as error:
            self.refuse(field, f"{brief(text)} is not a date and time", error)

    def optional_text(self, field: str) -> str | None:
        return self.text(field) if self.has(field) else None

    def optional_whole(self, field: str) -> int | None:
        return self.whole(field) if self.has(field) else None

    def texts(self, *fields: str) -> dict[str, str]:
        return {field: self.text(field) for field in fields if self.has(field)}

    def wholes(self, *fields: str, above: float = 0) -> dict[str, int]:
        return {field: self.whole(field, above) for field in fields if self.has(field)}

    def measurements(self, columns: Mapping[str, str], scale: float = 1) -> dict[str, float]:
        return {
            column: self.number(field, above=0 if column in ABOVE_ZERO else None) * scale
            for field, column in columns.items()
            if self.has(field)
        }

    def child_or_empty(self, field: str) -> Record:
        return self.child(field) if self.has(field) else replace(self, values={}, lines=None)

    def child(self, field: str) -> Record:
        value = self.values.get(field)
        if not isinstance(value, Mapping):
            self.refuse(
                field, "an object was expected" if field in self.values else "it is missing"
            )
        return to_record(self.file, value, (self.lines or {}).get(field, self.line))

    def list(self, field: str) -> Sequence[Any]:
        value = self.values.get(field)
        if not isinstance(value, list):
            self.refuse(field, "a list was expected" if field in self.values else "it is missing")
        return value

    def numbers(self, field: str) -> Sequence[float]:
        values = self.list(field)
        wrong = next((value for value in values if not _is_finite(value)), None)
        if wrong is not None or None in values:
            self.refuse(field, f"numbers were expected, and {brief(str(wrong))} is among them")
        return [float(value) for value in values]


def _is_finite(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # an int may be larger than any float


def to_record(file: Path, value: Mapping[str, Any], line: int = 1) -> Record:
    """Return an object of a document as a record."""
    if isinstance(value, Object):
        return Record(file, value.line, value, value.lines)
    return Record(file, line, value)


def read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise MalformedError(file, line, None, "it is not text in UTF-8") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from error


def read_json(file: Path) -> Any:
    """Parse a JSON document whose objects know their lines."""
    try:
        return parse(read_text(file))
    except JsonError as error:
        raise MalformedError(file, error.line, error.key, error.message) from error


def read_object_fast(file: Path) -> Record | None:
    """Parse like `read_object` without lines, ten times as fast.

    Returns None if something may be wrong, which `read_object` then reports with its line.
    """
    try:
        value = loads(read_text(file), _refuse_duplicates)
    except JsonError:
        return None
    return Record(file, 1, value) if isinstance(value, dict) else None


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice")
    return made


def read_object(file: Path) -> Record:
    """Parse a JSON document that is one object."""
    value = read_json(file)
    if not isinstance(value, Mapping):
        raise MalformedError(file, 1, None, "an object was expected")
    return to_record(file, value)


def iter_objects(file: Path, values: Sequence[Any], field: str | None = None) -> Iterator[Record]:
    """Yield the objects of a list."""
    for number, value in enumerate(values, 1):
        if not isinstance(value, Mapping):
            name = f"{field or 'entry'} {number}"
            raise MalformedError(file, None, name, "an object was expected")
        found = to_record(file, value)
        known = value.get("result_id")
        name = f"{field or 'entry'} {number}" + (f" ({known})" if isinstance(known, str) else "")
        yield replace(found, name=visible(name))


def read_table(file: Path, needed: Sequence[str]) -> Iterator[Record]:
    """Yield the lines of a CSV file, below a header that has at least these names."""
    text = read_text(file)
    # An export's cell may have all samples as JSON; no cell is longer than the text.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    # Not `splitlines`, which ends a line at characters that a cell may contain.
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(lines, [])
        for name in needed:
            if name not in header:
                raise MalformedError(file, 1, name, "the header lacks it")
        twice = next((name for name in header if header.count(name) > 1), None)
        if twice is not None:
            raise MalformedError(file, 1, twice, "the header has it twice")
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                why = f"it has {len(cells)} fields, and the header has {len(header)}"
                raise MalformedError(file, lines.line_num, None, why)
            values = map(from_csv_cell, cells)
            yield Record(file, lines.line_num, dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise MalformedError(file, lines.line_num, None, str(error)) from error
