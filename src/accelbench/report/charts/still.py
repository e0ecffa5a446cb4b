"""A specification for a page in which nothing is pointed at and marks say nothing. Pure.

Drawing works out what is told of every mark, and its words for whoever cannot see it. Of thousands
of marks that is a fourth of the time of a report, which has both as a table below its picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from accelbench.report.charts.axes import Spec

_TOLD = "tooltip"


def still(spec: Spec) -> Spec:
    """The same picture: without what is told of marks, and without figures that only this told."""
    bare = _untold(spec)
    assert isinstance(bare, dict)
    words = "\n".join(_words(bare))
    drawn = _of_fields(bare, words)
    assert isinstance(drawn, dict)
    return {**drawn, "config": {**drawn.get("config", {}), "aria": False}}


def _untold(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            name: member if _is_data(name, member) else _untold(member)
            for name, member in value.items()
            if name != _TOLD
        }
    return [_untold(member) for member in value] if isinstance(value, list | tuple) else value


def _words(value: object) -> Iterator[str]:
    """Every text but those of data: fields are named in channels, transforms and expressions."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if not _is_data(name, member):
                yield from _words(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _words(member)


def _of_fields(value: object, words: str) -> object:
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        for name, member in value.items():
            if _is_data(name, member):
                made[name] = {**member, "values": _named(member["values"], words)}
            else:
                made[name] = _of_fields(member, words)
        return made
    return (
        [_of_fields(member, words) for member in value]
        if isinstance(value, list | tuple)
        else value
    )


def _named(records: list[Any], words: str) -> list[Any]:
    """Records with the fields whose names stand anywhere in these words, and no other."""
    names = {name for record in records if isinstance(record, Mapping) for name in record}
    kept = {name for name in names if name in words}
    return [
        {name: value for name, value in record.items() if name in kept}
        if isinstance(record, Mapping)
        else record
        for record in records
    ]


def _is_data(name: str, member: object) -> bool:
    return name == "data" and isinstance(member, Mapping) and "values" in member
