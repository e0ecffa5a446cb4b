"""Keys of a plan file: one for each option of `run` that says what is measured, or how.

The command line hands them in, made of its own options: a new option is a new key here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


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
