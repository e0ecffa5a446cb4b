"""What was measured and has no time to choose by, as its interval is too wide. Pure.

It stands where it is shown, chooses nothing, and is said: whoever measured it must not think that
nobody has. What it took of memory is as good as any other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accelbench.core.absent import batch_text
from accelbench.core.nouns import counted as so_many
from accelbench.core.rows import Json, number
from accelbench.core.worth import explain_unusable
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import EvidenceCell
from accelbench.select.evidence.origins import is_imported
from accelbench.select.evidence.units import rounded


def set_aside(
    candidates: Iterable[Candidate], cells: Sequence[EvidenceCell]
) -> list[dict[str, object]]:
    """The unusable results of each candidate, as an answer has them."""
    return [
        _told(candidate.name, cell)
        for candidate in candidates
        for cell in sorted(cells, key=lambda cell: (cell.row.get("batch_size") or 0, cell.order))
        if candidate.has(cell)
    ]


def sentences_of(
    cases: Sequence[Json], most: int | None = None, memory_mb: float | None = None
) -> Iterator[str]:
    """The same in lines, with what each says of a limit of memory."""
    for case in cases[:most]:
        whose = f" by others ({case.get('source') or 'imported'})" if is_imported(case) else ""
        room = _room(case, memory_mb)
        yield f"Measured{whose}, and set aside: {case['text']}: {case['reason']}{room}."
    if most is not None and len(cases) > most:
        yield f"{len(cases) - most} more set aside: --explain."


def _told(name: str, cell: EvidenceCell) -> dict[str, object]:
    row = cell.row
    device = "" if not cell.device or cell.device in name else f" ({cell.device})"
    way = " ".join(str(part) for part in (row.get("runtime"), cell.precision) if part)
    batch = row.get("batch_size")
    return {
        "hardware": name,
        "device": row.get("device_name"),
        "runtime": row.get("runtime"),
        "precision": row.get("precision"),
        "engine_version": row.get("engine_version"),
        "batch_size": batch,
        "launches": cell.launches,
        "memory_mb": row.get("memory_peak_mb"),
        "provenance": row.get("provenance"),
        "source": row.get("source"),
        "measured_at": row.get("moment"),
        "run_id": row.get("run_id"),
        "reason": f"its times are not usable, {explain_unusable(row)}",
        "text": f"{name}{device} {way}, {batch_text(batch)}"
        f" ({so_many(cell.launches, 'launch', 'launches')})",
    }


def _room(case: Json, limit: float | None) -> str:
    took = number(case, "memory_mb")
    if limit is None or took is None:
        return ""
    return f"; its {rounded(took)} MB are {'above' if took > limit else 'within'} {limit:g}"
