"""A specification for a page in which nothing is pointed at and marks say nothing. Pure.

Drawing works out what is told of every mark, and its words for whoever cannot see it. Of thousands
of marks that is a fourth of the time of a report, which has both as a table below its picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accelbench.core.rows import Row
from accelbench.report.charts.axes import Spec

_TOLD = "tooltip"
#: As expressions call a record.
_OF_A_RECORD = "datum"


def still(spec: Spec) -> Spec:
    """The same picture: without what is told of marks, and without figures that only this told."""
    bare = _untold(spec)
    assert isinstance(bare, dict)
    drawn = _of_fields(bare, _Named(frozenset(_words(bare))))
    assert isinstance(drawn, dict)
    return {**drawn, "config": {**drawn.get("config", {}), "aria": False}}


@dataclass(frozen=True)
class _Named:
    """What a specification names: a field is a text of its own, or is within an expression."""

    words: frozenset[str]

    @cached_property
    def expressions(self) -> str:
        """All of them, where nobody looks for more than a name."""
        return "\n".join(word for word in self.words if _OF_A_RECORD in word)

    def names(self, field: str) -> bool:
        """Whether a field may be drawn by."""
        return field in self.words or field in self.expressions


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


def _of_fields(value: object, named: _Named) -> object:
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        for name, member in value.items():
            if _is_data(name, member):
                made[name] = {**member, "values": _drawn(member["values"], named)}
            else:
                made[name] = _of_fields(member, named)
        return made
    if isinstance(value, list | tuple):
        return [_of_fields(member, named) for member in value]
    return value


def _drawn(records: Sequence[Row], named: _Named) -> list[Row]:
    """Records with the fields that are named, and no other."""
    fields = {field for record in records for field in record}
    kept = {field for field in fields if named.names(field)}
    return [
        {field: value for field, value in record.items() if field in kept} for record in records
    ]


def _is_data(name: str, member: object) -> bool:
    return name == "data" and isinstance(member, Mapping) and "values" in member
