"""A finding: one sentence that is true by its evidence, with what it rests on. Plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from accelbench.core.rows import Row
from accelbench.exchange.titles import title

#: Findings that stand at the top of a report and of the overview.
MOST_SHOWN = 7
#: Of each kind, so that the fastest of ten tasks do not hide what broke.
_MOST_OF_KIND = 2
#: What is named in a sentence; more is counted, and stands in the evidence.
NAMED = 3


class FindingKind(StrEnum):
    """What a finding is about."""

    CHANGE = "change"
    OUTPUTS = "outputs"
    FASTEST = "fastest"
    ENGINES = "engines"
    PRECISION = "precision"
    CHEAPEST = "cheapest"
    PRECISE = "most precise"
    FAILURES = "failures"
    UNSTEADY = "unsteady"
    LAUNCHES = "launches"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class ConfigurationEvidence:
    """A configuration that a finding rests on.

    Attributes:
        name: as tables and titles have it.
        results: the ids of its launches.
    """

    name: str
    results: tuple[str, ...]


@dataclass(frozen=True)
class StoreFinding:
    """One sentence, and what it rests on.

    Attributes:
        sentence: what a reader passes on; it holds without anything around it.
        importance: the larger, the sooner it is told.
        evidence: the configurations it rests on.
        filters: column → values that narrow a store to what it is about.
        value: the figure of the sentence, where it has one.
        interval: of that figure; None where nothing is known of it.
        command: what brings the next answer; "" where there is nothing to do.
    """

    kind: FindingKind
    sentence: str
    importance: float
    evidence: tuple[ConfigurationEvidence, ...] = ()
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    value: float | None = None
    interval: tuple[float, float] | None = None
    command: str = ""


def evidence_of(launches: Iterable[Sequence[Row]]) -> tuple[ConfigurationEvidence, ...]:
    """Configurations by their launches, each once."""
    known = {
        (title(rows[0]), tuple(str(row["result_id"]) for row in rows if row.get("result_id"))): None
        for rows in launches
        if rows
    }
    return tuple(ConfigurationEvidence(name, results) for name, results in known)


def ranked(findings: Iterable[StoreFinding]) -> list[StoreFinding]:
    """All of them, the most important first."""
    return sorted(findings, key=lambda finding: (-finding.importance, finding.sentence))


def foremost(findings: Iterable[StoreFinding], most: int = MOST_SHOWN) -> list[StoreFinding]:
    """Those at the top: of each kind two at most, so that no kind hides the others."""
    chosen: list[StoreFinding] = []
    for finding in ranked(findings):
        alike = sum(other.kind is finding.kind for other in chosen)
        if alike < _MOST_OF_KIND and len(chosen) < most:
            chosen.append(finding)
    return chosen
