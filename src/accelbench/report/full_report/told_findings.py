"""Findings at the head of a report, each with links to what it rests on, and its tasks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accelbench.core.absent import NO_DATA
from accelbench.core.nouns import counted
from accelbench.query.findings.collected import NOTHING, Findings
from accelbench.query.findings.finding import ConfigurationEvidence, FindingKind, StoreFinding
from accelbench.query.findings.phrases import crowded, model, question, way, whose
from accelbench.query.findings.tasks import Best
from accelbench.report.full_report.contents import (
    Block,
    EvidenceLink,
    Section,
    Sentence,
    Table,
    Text,
)

#: The sections that findings lead to.
RESULTS, FAILURES = "results", "without-a-figure"
VERIFICATION = "verification-and-workarounds"
#: Configurations that a sentence leads to one by one.
_MOST_LINKS = 3
_SECTIONS: Mapping[FindingKind, str] = {
    FindingKind.FAILURES: FAILURES,
    FindingKind.OUTPUTS: FAILURES,
    FindingKind.PRECISION: VERIFICATION,
    FindingKind.PRECISE: VERIFICATION,
}


def told_findings(findings: Findings, anchors: Mapping[str, str]) -> list[Sentence]:
    """Those that stand at the head; that there is nothing to say is one as well.

    Args:
        findings: all of them.
        anchors: of each result that a table has, the line it is in.
    """
    foremost = findings.foremost
    if not foremost:
        return [Sentence(NOTHING)]
    return [_told(finding, anchors) for finding in foremost]


def _told(finding: StoreFinding, anchors: Mapping[str, str]) -> Sentence:
    return Sentence(finding.sentence, list(_links(finding, anchors)), finding.command)


def _links(finding: StoreFinding, anchors: Mapping[str, str]) -> Iterable[EvidenceLink]:
    section = _SECTIONS.get(finding.kind, RESULTS)
    lines = [(each, anchor) for each in finding.evidence if (anchor := _anchor(each, anchors))]
    if finding.evidence and len(lines) == len(finding.evidence) <= _MOST_LINKS:
        yield from (EvidenceLink(each.name, anchor) for each, anchor in lines)
    elif finding.evidence:
        yield EvidenceLink(counted(len(finding.evidence), "configuration"), section)


def _anchor(evidence: ConfigurationEvidence, anchors: Mapping[str, str]) -> str:
    return next((anchors[key] for key in evidence.results if key in anchors), "")


def task_section(findings: Findings) -> list[Section]:
    """For each task what is fastest, cheapest and most precise; nothing of no task."""
    if not findings.tasks:
        return []
    several = crowded(point.row for task in findings.tasks for point in task.points)
    rows = [
        [
            task.task.replace("_", " "),
            counted(len(task.points), "configuration"),
            *(_best(best, several) for best in (task.fastest, task.cheapest, task.precise)),
        ]
        for task in findings.tasks
    ]
    headers = ("task", "among", "fastest", "cheapest", "most precise")
    caption = (
        "At the batch size that most devices ran, of as many devices as most have, like with like"
    )
    return [Section("By task", [Table(headers, rows, caption=caption)])]


def _best(best: Best | None, several: frozenset[str]) -> str:
    if best is None:
        return NO_DATA
    row = best.point.row
    subject = f"{model(row)} by {way(row, several)}, {question(row)}{whose(row)}"
    return f"{subject}: {best.figure}; {best.beside}"


def more_findings(findings: Findings) -> list[Section]:
    """What is less important than what stands at the head."""
    foremost = findings.foremost
    rest: Sequence[str] = [
        f"{finding.sentence} {_next(finding)}".rstrip()
        for finding in findings.every
        if finding not in foremost
    ]
    block: Block = Text(rest, listed=True)
    return [Section("More findings", [block])] if rest else []


def _next(finding: StoreFinding) -> str:
    return f"Next: {finding.command}" if finding.command else ""
