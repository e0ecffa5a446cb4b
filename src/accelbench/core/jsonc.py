"""Readers of JSON from users and programs, with errors that name the line.

`parse` reads JSON that people write, with comments, and keeps the line of every key for messages.
`loads` reads JSON that programs wrote, ten times as fast. Both refuse NaN and nesting that would
exhaust the stack.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from accelbench.core.safe_text import in_quotes

#: A string (kept) or a comment.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)

#: White space in JSON, which is less than in Unicode.
_BLANKS = re.compile(r"[ \t\n\r]*")


#: Most levels of lists and objects. Configs have ten and results six. A recursive walk in Python
#: handles about 400, and C libraries fewer than a hostile file can have.
DEEPEST = 100
TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


class JsonError(ValueError):
    """Error in a text, with its line, and for a number the key."""

    def __init__(self, line: int, message: str, key: str | None = None) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message
        self.key = key


class Object(dict[str, Any]):
    """JSON object with the line where it begins and the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def parse(text: str) -> Any:
    """Return the value of a text, with objects as `Object`; raise JsonError if it is invalid."""
    return _Reader(blank_comments(text)).read()


def loads(
    text: str,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    *,
    allow_infinity: bool = False,
) -> Any:
    """Return the value of JSON without comments; `pairs` makes an object of its keys and values.

    `allow_infinity` accepts Infinity, as in the configs that transformers writes for state-space
    models; NaN is never accepted. Raises JsonError if it is not JSON, or nested too deeply.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_constant=_infinite if allow_infinity else _refuse_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise JsonError(error.lineno, error.msg[:1].lower() + error.msg[1:]) from error
    except RecursionError:
        raise JsonError(1, TOO_DEEP) from None
    except ValueError as error:
        raise JsonError(1, str(error)) from error
    if is_too_deep(value):
        raise JsonError(1, TOO_DEEP)
    return value


def read(path: Path, *, allow_infinity: bool = False) -> Any:
    """Return the value of a file without comments, as `loads` does; raise OSError or JsonError."""
    try:
        return loads(path.read_text(encoding="utf-8-sig"), allow_infinity=allow_infinity)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise JsonError(line, "it is not text in UTF-8") from error


def is_too_deep(value: Any) -> bool:
    """Return whether a value has more than DEEPEST levels, without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        level = [
            child
            for whole in level
            for child in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(child, (dict, list))
        ]
    return bool(level)


def blank_comments(text: str) -> str:
    """Return the text with comments blanked, so that lines and columns stay the same."""

    def blank(match: re.Match[str]) -> str:
        part = match[0]
        if part.startswith('"'):
            return part
        if part == "/*":
            raise JsonError(_line(text, match.start()), "a comment that begins here does not end")
        return re.sub(r"[^\n]", " ", part)

    return _STRING_OR_COMMENT.sub(blank, text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not valid JSON")


def _infinite(word: str) -> float:
    return float(word) if word.endswith("Infinity") else _refuse_constant(word)


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):  # 1e999
        raise ValueError(f"{word[:20]} is too large for a number")
    return value


class _Reader:
    """Reader that keeps the lines of objects and lists; the standard decoder reads the rest."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
        self._depth = 0
        self._key: str | None = None

    def read(self) -> Any:
        if not self._next():
            raise JsonError(1, "it is empty")
        value = self._value()
        if self._next():
            raise self._error(f"nothing was expected after the end, not {in_quotes(self._next())}")
        return value

    def _value(self) -> Any:
        begins = self._next()
        if begins not in ("{", "["):
            return self._plain()
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(TOO_DEEP)
        value = self._object() if begins == "{" else self._list()
        self._depth -= 1
        return value

    def _object(self) -> Object:
        made = Object(self._line_number())
        self._at += 1
        while self._next() != "}":
            if made:
                self._take(",", "a comma between two keys, or the object's end")
            if self._next() != '"':
                raise self._error("a key in double quotes was expected")
            line = self._line_number()
            key = self._plain()
            if key in made:
                raise JsonError(line, f"the key {in_quotes(key)} is there twice")
            self._take(":", f"a colon after {in_quotes(key)}")
            made.lines[key] = line
            self._key = key
            made[key] = self._value()
        self._at += 1
        return made

    def _list(self) -> list[Any]:
        made: list[Any] = []
        self._at += 1
        while self._next() != "]":
            if made:
                self._take(",", "a comma between two values, or the list's end")
            made.append(self._value())
        self._at += 1
        return made

    def _plain(self) -> Any:
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise JsonError(error.lineno, error.msg[:1].lower() + error.msg[1:]) from error
        except ValueError as error:
            raise JsonError(self._line_number(), str(error), self._key) from error
        return value

    def _next(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        blank = _BLANKS.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str, what: str) -> None:
        if self._next() != sign:
            raise self._error(f"{what} was expected")
        self._at += 1

    def _line_number(self) -> int:
        return bisect_left(self._line_ends, self._at) + 1

    def _error(self, message: str) -> JsonError:
        return JsonError(self._line_number(), message)


#: Errors of Python's zip reader for archives that are damaged, encrypted or packed by an unknown
#: method.
ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
