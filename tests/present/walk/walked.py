"""A walk over every place that shows figures of a database: which of them no source row carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from carried import Carried, Kind
from printed import Printed
from surfaces import Surface


@dataclass
class Walk:
    """What a walk came past.

    Attributes:
        figures: how many were looked at, by their kind.
        strange: those that no row carries, each with its place.
    """

    surfaces: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    strange: list[str] = field(default_factory=list)

    def past(self, surfaces: Iterable[Surface], carried: Carried) -> None:
        """Look at some places.

        Args:
            surfaces: of some models.
            carried: what the source says of those.
        """
        for surface in surfaces:
            self.surfaces += 1
            self.figures.update(one.kind.value for one in surface.figures)
            for one in foreign(surface.figures, carried):
                self.strange.append(f"{surface.name}: {one.value:g} {one.kind} in {one.context}")

    @property
    def said(self) -> str:
        """The counts as a line."""
        by_kind = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.figures.items()))
        return f"{self.surfaces:,} surfaces, {self.figures.total():,} figures ({by_kind})"


def foreign(figures: Sequence[Printed], carried: Carried) -> list[Printed]:
    """Those that no source row carries, nor a stated mean or ratio of several."""
    return [
        one
        for one in figures
        if one.value
        and not (one.kind is Kind.RATIO and carried.dense)
        and not carried.has(one.kind, one.value, one.reach)
    ]
