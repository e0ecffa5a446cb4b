"""Names for entries of one question: no more than tells them apart, and no name twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from accelbench.core.devices import mark_of
from accelbench.core.provenance import source_of

Row = Mapping[str, Any]
Fact = Callable[[Row], str]

#: What makes figures of one question those of different things.
KINDS = ("weights_digest", "workarounds")
#: Of a digest as much as tells two apart.
_DIGEST = 8

#: Words of somebody's conditions that are longer say more than a name can hold.
_LONGEST = 40


def told_apart(question: str, rows: Sequence[Row]) -> list[str]:
    """A name for each entry, by one of its rows; the question alone where there is one entry."""
    words: list[list[str]] = [[] for _ in rows]
    if len(rows) > 1:
        for fact in _FACTS:
            _add(words, [fact(row) for row in rows], always=True)
        for alike in _not_apart(words):
            some, shared = [rows[i] for i in alike], [words[i] for i in alike]
            for fact in _ladder(some):
                if not _not_apart(shared):
                    break
                _add(shared, [fact(row) for row in some])
    return [_name(question, parts) for parts in words]


def _name(question: str, parts: Sequence[str]) -> str:
    known = [word for word in parts if word]
    return f"{question} ({', '.join(known)})" if known else question


def _add(words: list[list[str]], more: Sequence[str], *, always: bool = False) -> None:
    """Add a fact in which entries differ; unless always, only where it tells more of them apart."""
    together = [[*parts, word] for parts, word in zip(words, more, strict=True)]
    if len(set(more)) > 1 if always else _different(together) > _different(words):
        for entry, word in zip(words, more, strict=True):
            entry.append(word)


def _different(words: Sequence[Sequence[str]]) -> int:
    return len({tuple(word for word in parts if word) for parts in words})


def _not_apart(words: Sequence[Sequence[str]]) -> list[list[int]]:
    """Of the entries that have one name, which they are."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, parts in enumerate(words):
        groups.setdefault(tuple(word for word in parts if word), []).append(number)
    return [alike for alike in groups.values() if len(alike) > 1]


def _ladder(rows: Sequence[Row]) -> Iterator[Fact]:
    """What may tell entries apart that ran in one place, from what says most to what says least."""
    conditions = [dict(_leaves(row.get("conditions"))) for row in rows]
    yield mark_of
    yield _workarounds
    yield _weights
    names = list(dict.fromkeys(name for leaves in conditions for name in leaves))
    for name in sorted(names, key=lambda name: not _is_a_word(conditions, name)):
        yield lambda row, name=name: _condition(row, name)  # type: ignore[misc]
    yield lambda row: f"run {row.get('run_id')}"
    yield lambda row: f"result {row.get('result_id')}"


def _is_a_word(conditions: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether it is a version or a label, no figure and no text."""
    values = [leaves[name] for leaves in conditions if name in leaves]
    return all(isinstance(value, str) and len(value) <= _LONGEST for value in values)


def _condition(row: Row, name: str) -> str:
    value = dict(_leaves(row.get("conditions"))).get(name)
    return "" if value in (None, "") else f"{name}={value}"


def _leaves(conditions: Any) -> Iterator[tuple[str, Any]]:
    """Conditions by name, those within others too."""
    for name, value in conditions.items() if isinstance(conditions, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif not isinstance(value, list):
            yield str(name), value


def _workarounds(row: Row) -> str:
    done = ",".join(map(str, row.get("workarounds") or ()))
    return f"workarounds {done}" if done else ""


def _weights(row: Row) -> str:
    digest = str(row.get("weights_digest") or "").rpartition(":")[2]
    return f"weights {digest[:_DIGEST]}" if digest else ""


def _threads(row: Row) -> str:
    count = row.get("threads")
    return "" if count is None else f"{count} thread{'' if count == 1 else 's'}"


_FACTS: tuple[Fact, ...] = (
    lambda row: str(row.get("device_name") or ""),
    _threads,
    lambda row: "compiled" if row.get("compiled") else "",
    lambda row: f"of {source_of(row)}" if source_of(row) else "",
)
