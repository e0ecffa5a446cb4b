"""A document of YAML, TOML or JSON as one object whose keys know their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import TOO_DEEP, Object, is_too_deep
from accelbench.exchange.imports.records import MalformedError, Record, object_of, text_of
from accelbench.exchange.imports.yamls import yaml_of
from accelbench.exchange.plans import optimum

#: What a plan file ends in.
SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
#: A key before its value, or the last of a table's name.
_TOML_KEY = re.compile(r"""(?:^|[{,\[.])\s*["']?([\w$-]+)["']?\s*(?:=|\])""")


def document_of(file: Path) -> tuple[Record, tuple[str, ...]]:
    """What a file says, in the form of a plan, and what was passed over on the way.

    Raises:
        MalformedError: it is no document of its kind, or no object.
    """
    suffix = file.suffix.lower()
    if suffix == ".json":
        return object_of(file), ()
    if suffix == ".toml":
        return toml_of(file), ()
    whole = yaml_of(file)
    return optimum.as_plan(whole) if optimum.is_config(whole) else (whole, ())


def toml_of(file: Path) -> Record:
    """A document of TOML; a key that is there once knows its line.

    Raises:
        MalformedError: it is none, or nested too deeply.
    """
    import tomllib

    text = text_of(file)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = _TOML_LINE.search(str(error))
        line = int(where[1]) if where and where[1] else None
        why = _TOML_LINE.sub("", str(error))
        raise MalformedError(file, line, None, why[:1].lower() + why[1:]) from error
    except RecursionError:
        raise MalformedError(file, None, None, TOO_DEEP) from None
    if is_too_deep(value):
        raise MalformedError(file, None, None, TOO_DEEP)
    made = _Lines(text, value).object(value, 1)
    return Record(file, 1, made, made.lines)


class _Lines:
    """The lines of keys, which tomllib does not tell: in order, where a text has each as often."""

    def __init__(self, text: str, value: Mapping[str, Any]) -> None:
        self._lines: dict[str, list[int]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            for key in _TOML_KEY.findall(line):
                self._lines.setdefault(key, []).append(number)
        counts = Counter(_keys(value))
        self._known = {key for key, lines in self._lines.items() if len(lines) == counts[key]}
        self._next: Counter[str] = Counter()

    def object(self, value: Mapping[str, Any], line: int) -> Object:
        """The same with lines; it begins where the first of its keys does."""
        made = Object(line)
        for key, entry in value.items():
            if key in self._known:
                made.lines[key] = self._lines[key][self._next[key]]
                self._next[key] += 1
            made[key] = self._converted(entry, made.lines.get(key, line))
        made.line = min(made.lines.values(), default=line)
        return made

    def _converted(self, entry: Any, line: int) -> Any:
        if isinstance(entry, Mapping):
            return self.object(entry, line)
        return [self._converted(part, line) for part in entry] if isinstance(entry, list) else entry


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    children = value.values() if isinstance(value, Mapping) else value
    for child in children:
        if isinstance(child, (Mapping, list)):
            yield from _keys(child)
