"""The findings of `accelbench doctor` as a document."""

from __future__ import annotations

from itertools import groupby

from accelbench.hardware.doctor.checks import Examined, well
from accelbench.hardware.doctor.world import ILL, Finding, Health
from accelbench.present.document import (
    Document,
    DocumentSection,
    Facts,
    Table,
    TableColumn,
    Tone,
    TonedText,
)
from accelbench.present.texts import phrase

_TONES = {
    Health.OK: Tone.GOOD,
    Health.HINT: Tone.WARNING,
    Health.MISSING: Tone.FAINT,
    Health.BROKEN: Tone.BAD,
    Health.CLASH: Tone.BAD,
}


def doctor_document(findings: Examined) -> Document:
    """Return the findings by group, then what mends what is ill and brings what is missing."""
    groups = [
        DocumentSection(group, [_table([finding for _, finding in pairs])])
        for group, pairs in groupby(findings, key=lambda pair: pair[0])
    ]
    ones = [finding for _, finding in findings]
    remedies = [
        DocumentSection(title, [Facts(pairs)])
        for title, healths in (
            ("To mend", ILL),
            ("Worth knowing", (Health.HINT,)),
            (phrase("hardware.remedies-of-missing"), (Health.MISSING,)),
        )
        if (pairs := [(o.name, o.remedy) for o in ones if o.health in healths and o.remedy])
    ]
    counts = ", ".join(f"{sum(o.health is health for o in ones)} {health}" for health in Health)
    is_well = well(findings)
    verdict = phrase("hardware.nothing-installed-broken") if is_well else "Something needs mending"
    tone = Tone.GOOD if is_well else Tone.BAD
    return Document("", [*groups, *remedies], verdict=f"{verdict}: {counts}", tone=tone)


def _table(findings: list[Finding]) -> Table:
    rows = [(o.name, TonedText(o.health.value, _TONES[o.health]), o.said) for o in findings]
    return Table(
        [TableColumn(""), TableColumn("", is_whole=True), TableColumn("")], rows, is_compact=True
    )
