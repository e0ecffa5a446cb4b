"""YAML documents whose objects know the lines of their keys; every word in them stays text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.jsonc import Object
from accelbench.exchange.imports.records import MalformedError, Record, record, text_of

_NULL = "tag:yaml.org,2002:null"


def yaml_of(file: Path) -> Record:
    """A document that is one object.

    Raises:
        MalformedError: it is none, or has a key twice.
    """
    import yaml

    try:
        # Written in C where it is there: ten times as fast.
        root = yaml.compose(text_of(file), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise MalformedError(file, line, None, error.problem or "it is no YAML") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise MalformedError(file, None, None, f"it is no YAML: {error}") from error
    if not isinstance(root, yaml.MappingNode):
        raise MalformedError(file, 1, None, "an object was expected")
    return record(file, _value(file, root))


def _value(file: Path, node: Any) -> Any:
    if isinstance(node.value, str):
        return None if node.tag == _NULL else node.value
    if node.id == "sequence":
        return [_value(file, one) for one in node.value]
    made = Object(node.start_mark.line + 1)
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = str(key.value)
        if name in made:
            raise MalformedError(file, line, name, "it is there twice")
        made.lines[name] = line
        made[name] = _value(file, value)
    return made
