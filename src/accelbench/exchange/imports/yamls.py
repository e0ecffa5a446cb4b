"""YAML documents whose objects know the lines of their keys; every word in them stays text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import DEEPEST, TOO_DEEP, Object
from accelbench.exchange.imports.records import MalformedError, Record, record, text_of

_NULL = "tag:yaml.org,2002:null"


def yaml_of(file: Path) -> Record:
    """A document that is one object.

    Raises:
        MalformedError: it is none, or has a key twice.
    """
    import yaml

    # Written in C where it is there: ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text_of(file)
    try:
        _refuse_hostile(file, yaml.parse(text, Loader=loader))
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise MalformedError(file, line, None, error.problem or "it is no YAML") from error
    except yaml.YAMLError as error:
        raise MalformedError(file, None, None, f"it is no YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise MalformedError(file, 1, None, "an object was expected")
    return record(file, _value(file, root))


def _refuse_hostile(file: Path, events: Iterable[Any]) -> None:
    """Before anything is built: a document in a document ends the process, in C, without a word.

    An alias stands for as much as it names: ten lines of them for a billion values.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        line = event.start_mark.line + 1
        if kind == "AliasEvent":
            raise MalformedError(file, line, None, "an alias is not read: write what it stands for")
        depth += kind in ("SequenceStartEvent", "MappingStartEvent")
        depth -= kind in ("SequenceEndEvent", "MappingEndEvent")
        if depth > DEEPEST:
            raise MalformedError(file, line, None, TOO_DEEP)


def _value(file: Path, node: Any) -> Any:
    if isinstance(node.value, str):
        return None if node.tag == _NULL else node.value
    if node.id == "sequence":
        return [_value(file, child) for child in node.value]
    made = Object(node.start_mark.line + 1)
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = str(key.value)
        if name in made:
            raise MalformedError(file, line, name, "it is there twice")
        made.lines[name] = line
        made[name] = _value(file, value)
    return made
