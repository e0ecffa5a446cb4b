"""A machine's noise floor as a document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from accelbench.exchange.titles import title
from accelbench.judge.run_noise import NoiseFloor
from accelbench.present.document import Document, GroupedTable, Notes, TableGroup, columns
from accelbench.present.texts import phrase


def noise_document(floors: Sequence[NoiseFloor]) -> Document:
    """Return what launches of the same differ by, and which changes they detect."""
    groups = [
        TableGroup(name, [_row(floor) for floor in several])
        for name, several in groupby(floors, key=lambda floor: title(floor.row))
    ]
    labels = ("figure", "noise", phrase("hardware.changes-launches-detect"), "against itself")
    note = phrase("hardware.noise-legend")
    return Document("", (GroupedTable("what", columns(labels), groups), Notes([note])))


def _row(floor: NoiseFloor) -> tuple[str, ...]:
    finds = ", ".join(f"{k}: {shown:.1%}" for k, _, shown in floor.finds() if shown)
    against = f"against itself: {floor.against_itself.answer.value}"
    return (floor.metric.name, f"noise {floor.noise:.2%}", f"launches find {finds}", against)
