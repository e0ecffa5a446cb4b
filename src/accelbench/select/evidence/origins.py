"""Who measured what a figure is, or what it is estimated from: here, or others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.core.nouns import listed
from accelbench.core.vocabulary import Provenance
from accelbench.select.evidence.cells import EvidenceCell

#: Names of sources that are told in one sentence.
_MOST_NAMED = 4
BY_OTHERS = "measured by others"


@dataclass(frozen=True)
class FigureOrigin:
    """Whose measurements a figure rests on.

    Attributes:
        rests_on: the provenances of them, each once.
        sources: who measured those that were imported.
    """

    rests_on: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, cells: Iterable[EvidenceCell]) -> FigureOrigin:
        """Of a figure's cells."""
        several = list(cells)
        known = {str(cell.row.get("provenance") or "") for cell in several} - {""}
        names = {str(cell.row.get("source") or "") for cell in several if cell.imported} - {""}
        return cls(tuple(sorted(known, reverse=True)), tuple(sorted(names)))

    @property
    def by_others(self) -> bool:
        """Whether nothing of it was measured here."""
        return self.rests_on == (Provenance.IMPORTED,)

    @property
    def named(self) -> str:
        """The sources in words; what stands for them where none is named."""
        return listed(list(self.sources), _MOST_NAMED) or "imported"

    def to_dict(self) -> dict[str, object]:
        """As answers have it."""
        return {"rests_on": list(self.rests_on), "sources": list(self.sources)}


def is_imported(entry: Mapping[str, Any]) -> bool:
    """Whether an answer's figure is one that others measured."""
    return entry.get("provenance") == Provenance.IMPORTED


def of_others(entries: Iterable[Mapping[str, Any]]) -> str:
    """The sentence that figures of answers are of others, or rest on theirs; "" where none is."""
    several = [entry for entry in entries if Provenance.IMPORTED in (entry.get("rests_on") or ())]
    if not several:
        return ""
    names = sorted({str(name) for entry in several for name in entry.get("sources") or ()})
    whose = f" ({listed(names, _MOST_NAMED)})" if names else ""
    is_a_figure = any(map(is_imported, several))
    if not is_a_figure:
        return f"Estimated from what was {BY_OTHERS}{whose}, not here."
    return f"imported: {BY_OTHERS}{whose}, not here."
