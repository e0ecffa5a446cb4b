"""The compatibility matrix in the documents' shape, and which source each entry is from. Pure.

Sources are asked one after the other: a file that was named, the database, ./CLAUDE.md, the
defaults. What one does not speak of, the next one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.analysis.matrix import rating
from accelbench.core.vocabulary import FAMILIES, Family, Mode
from accelbench.select.estimate.engine_abilities import cannot_generate, is_refused_by_all
from accelbench.select.estimate.platform_rules import family_rating
from accelbench.select.evidence.cells import Tried
from accelbench.select.query.config import ANY_FAMILY, PlatformEntry

CONFIG, DATABASE, DEFAULT = "the configuration", "the database", "the default"


@dataclass(frozen=True)
class MatrixEntry:
    """What a source says of a platform for a family."""

    compatible: bool
    rating: str | None = None  # None: it runs, and nothing says how well
    reason: str = ""
    source: str = ""


#: Why a platform that is compatible with a family is not offered for whole requests.
FORWARD_ONLY = "forward passes only: no engine of it generates token by token"

#: By family, platform, and mode; "" is both modes.
Entries = Mapping[tuple[str, str, str], MatrixEntry]


@dataclass(frozen=True)
class MatrixLayer:
    """One source with what it says."""

    name: str
    entries: Entries


@dataclass(frozen=True)
class Matrices:
    """Sources in the order in which they are believed; the default is asked last and knows all."""

    layers: Sequence[MatrixLayer]

    @property
    def source(self) -> str:
        """The first that is no configuration and says anything at all."""
        names = (layer.name for layer in self.layers if layer.entries and layer.name != CONFIG)
        return next(names, DEFAULT)

    def entry(self, family: str, hardware: str, mode: str) -> MatrixEntry:
        """What the first source that speaks of it says; a rating may be a later one's."""
        rated: MatrixEntry | None = None
        for layer in self.layers:
            for name in (family, ANY_FAMILY):
                cell = layer.entries.get((name, hardware, mode)) or layer.entries.get(
                    (name, hardware, "")
                )
                if cell is None:
                    continue
                if cell.rating or not cell.compatible:
                    return cell
                rated = rated or cell
        return rated or MatrixEntry(compatible=True, source=DEFAULT)

    def platforms(self) -> list[str]:
        return list(dict.fromkeys(key[1] for layer in self.layers for key in layer.entries))

    def document(self, hardware: Sequence[str], timestamp: str) -> dict[str, object]:
        """The whole as the documents have it, with each entry's source."""
        families = {}
        for family in FAMILIES:
            entries = {}
            for name in hardware:
                entry = self.entry(family.value, name, Mode.INFERENCE.value)
                level = entry.rating or family_rating(name, family.value)
                is_text = entry.compatible and family is Family.TEXT_GENERATION
                reason = entry.reason or (FORWARD_ONLY if is_text and cannot_generate(name) else "")
                entries[name] = {
                    "compatible": entry.compatible,
                    "performance_rating": level if entry.compatible else "n/a",
                    "source": entry.source,
                    **({"reason": reason} if reason else {}),
                }
            families[family.value] = {"hardware_compatibility": entries}
        return {
            "timestamp": timestamp,
            "source": self.source,
            "hardware_types": list(hardware),
            "model_families": families,
        }


def of_results(tried: Iterable[Tried]) -> MatrixLayer:
    """What results say: it runs where a model of the family went through there.

    It does not if all engines of the platform refused all that was tried. A platform that was
    missing, or a full disk, says nothing.
    """
    entries: dict[tuple[str, str, str], MatrixEntry] = {}
    for outcome in tried:
        key = (outcome.family, outcome.hardware, outcome.mode)
        reason = f"{outcome.through} of {outcome.models} models went through"
        if outcome.through:
            speed = 1.0 if outcome.hardware == "cpu" else outcome.speed
            level = None if speed is None else str(rating(speed, outcome.best))
            entries[key] = MatrixEntry(True, level, reason, DATABASE)
        elif is_refused_by_all(outcome.hardware, outcome.refused_by):
            entries[key] = MatrixEntry(False, None, f"{reason}: {outcome.reason}", DATABASE)
    return MatrixLayer(DATABASE, entries)


def of_config(compatibility: Mapping[str, Mapping[str, PlatformEntry]]) -> MatrixLayer:
    """Entries of the configuration: how hardware of one's own comes in."""
    return MatrixLayer(
        CONFIG,
        {
            (family, hardware, ""): MatrixEntry(
                entry["compatible"], entry["performance_rating"], source=CONFIG
            )
            for family, entries in compatibility.items()
            for hardware, entry in entries.items()
        },
    )
