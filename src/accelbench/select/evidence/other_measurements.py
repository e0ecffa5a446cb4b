"""What was measured of a model and does not answer the question that is asked. Pure.

Many requests at once, other sizes, a batch that nobody says, a rate without the time of a step:
none of it is the time of the step that is asked about. That the platform runs the model is known
all the same, and how far it came is told as what it is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accelbench.core.absent import batch_text
from accelbench.core.figures import MEANS, name_of
from accelbench.core.nouns import counted as so_many
from accelbench.core.nouns import listed
from accelbench.core.rows import Json, number
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.measure.launches import typical
from accelbench.select.evidence.cells import EvidenceCell
from accelbench.select.evidence.origins import is_imported
from accelbench.select.evidence.select_context import differs
from accelbench.select.evidence.units import rounded, unit_of

#: Beside an answer no more than so many are told, unless all are asked for.
FEW = 4


@dataclass(frozen=True)
class OtherMeasurement:
    """Figures of one platform that do not answer, for the same reason.

    Attributes:
        hardware: the candidate's name.
        why: what they are of, in words; "" where only the batch or the figure is another.
        cells: all of them.
    """

    hardware: str
    why: str
    cells: Sequence[EvidenceCell]

    @cached_property
    def best(self) -> EvidenceCell:
        """The one that does most on a device: a larger cluster is no better hardware."""
        return min(self.cells, key=lambda cell: (-_pace(cell), cell.order))

    def to_dict(self) -> dict[str, object]:
        """As the answer has it."""
        cell = self.best
        row, rate = cell.row, _rate(cell)
        return {
            "hardware": self.hardware,
            "why": self.why,
            "results": len(self.cells),
            "scenario": row.get("scenario"),
            "batch_size": row.get("batch_size"),
            "device": row.get("device_name"),
            "devices": cell.devices,
            "runtime": row.get("runtime"),
            "precision": row.get("precision"),
            "engine_version": row.get("engine_version"),
            "latency": cell.latency if cell.latencies else None,
            "figure": str(cell.statistic) if cell.latencies else None,
            "throughput": rate,
            "throughput_per_device": None if rate is None else rate / (cell.devices or 1),
            "throughput_unit": None if rate is None else unit_of(row),
            "provenance": row.get("provenance"),
            "source": row.get("source"),
            "measured_at": row.get("moment"),
            "text": str(self),
        }

    def __str__(self) -> str:
        cell = self.best
        several = len(self.cells) > 1
        figures = f", {'the most ' if several else ''}{', '.join(_figures(cell))}"
        where = (cell.device, cell.row.get("runtime"), cell.precision)
        of = ", ".join(str(part) for part in (*where, _batch(cell)) if part)
        what = f"{self.why}: " if self.why else ""
        return f"{self.hardware}, {what}{so_many(len(self.cells), 'result')}{figures} ({of})"


def otherwise(
    name: str,
    cells: Iterable[EvidenceCell],
    context: Mapping[str, object],
    precisions: Sequence[str] = (),
) -> Iterator[OtherMeasurement]:
    """A platform's figures that do not answer, those together that are of the same.

    Args:
        name: the candidate's.
        cells: the figures.
        context: sizes and circumstances that are asked for.
        precisions: that are asked for; nothing stands for any.
    """
    groups: dict[tuple[str, str], list[EvidenceCell]] = {}
    for cell in cells:
        # Tokens and images stand apart.
        groups.setdefault((_why(cell, context, precisions), _counts(cell)), []).append(cell)
    for (why, _), several in sorted(groups.items()):
        yield OtherMeasurement(name, why, several)


def sentences(measurements: Sequence[OtherMeasurement], most: int | None = None) -> Iterator[str]:
    """What was measured otherwise, in lines."""
    return sentences_of([measurement.to_dict() for measurement in measurements], most)


def sentences_of(entries: Sequence[Json], most: int | None = None) -> Iterator[str]:
    """The same of an answer."""
    for entry in entries[:most]:
        whose = f" by others ({entry.get('source') or 'imported'})" if is_imported(entry) else ""
        yield f"Measured{whose}, though not as asked: {entry['text']}."
    if most is not None and len(entries) > most:
        yield f"{len(entries) - most} more such: --explain."


def reaching(measurements: Sequence[OtherMeasurement], least: float) -> Iterator[str]:
    """Which rates of a device reach a limit, though no time of a step shows that it is kept."""
    rates = [
        (number(measurement.to_dict(), "throughput_per_device"), measurement)
        for measurement in measurements
    ]
    known = sorted(
        ((rate, measurement) for rate, measurement in rates if rate is not None),
        key=lambda pair: (-pair[0], str(pair[1])),
    )
    enough = [_rate_said(rate, measurement) for rate, measurement in known if rate >= least]
    if enough:
        yield (
            f"As rates alone, these reach {least:g} a second: {listed(enough, FEW, '; ')}. What"
            " one request after the other comes to they do not show."
        )
    elif known:
        most = _rate_said(*known[0])
        yield f"None of these rates reaches {least:g} a second: the most is {most}."


def _rate_said(rate: float, measurement: OtherMeasurement) -> str:
    row, several = measurement.best.row, (measurement.best.devices or 1) > 1
    scenario = row.get("scenario")
    suffix = f" (scenario {scenario})" if scenario not in (None, SINGLE_STREAM) else ""
    each = " on each device" if several else ""
    return f"{measurement.hardware} {rounded(rate)} {unit_of(row)}/s{each}{suffix}"


def without_figure(names: Sequence[str], known: Container[str]) -> Iterator[str]:
    """What has no measured figure of a question: for want of one that counts, or of any."""
    matches = [name for name in names if name in known]
    never = [name for name in names if name not in known]
    if matches:
        yield f"Without a measured figure of what is asked: {', '.join(matches)}."
    if never:
        yield f"Not measured: {', '.join(never)}."


def _why(cell: EvidenceCell, context: Mapping[str, object], precisions: Sequence[str]) -> str:
    scenario = cell.row.get("scenario")
    reasons = [] if scenario in (None, SINGLE_STREAM) else [f"scenario {scenario}"]
    if precisions and cell.precision not in precisions:
        reasons.append(f"in {cell.precision}")
    rest = {n: value for n, value in context.items() if n != "scenario"}
    if apart := differs(cell, rest):
        reasons.append(apart)
    if not cell.latencies:
        reasons.append("no time of a step")
    elif not reasons and cell.statistic not in MEANS:
        reasons.append(f"{name_of(cell.statistic)} alone")
    return ", ".join(reasons)


def _counts(cell: EvidenceCell) -> str:
    return unit_of(cell.row) if cell.rates else ""


def _batch(cell: EvidenceCell) -> str:
    batch = cell.row.get("batch_size")
    return batch_text(batch)


def _figures(cell: EvidenceCell) -> Iterator[str]:
    rate = _rate(cell)
    if rate is not None:
        several = cell.devices or 1
        each = f" on {several} devices, {rounded(rate / several)} each" if several > 1 else ""
        yield f"{rounded(rate)} {unit_of(cell.row)}/s{each}"
    if cell.latencies:
        yield f"{name_of(cell.statistic)} {rounded(cell.latency)} ms a step"


def _rate(cell: EvidenceCell) -> float | None:
    return typical(cell.rates) if cell.rates else None


def _pace(cell: EvidenceCell) -> float:
    """By a rate, else by steps: what is alike is of one kind."""
    rate = _rate(cell)
    return (1.0 / cell.latency if rate is None else rate) / (cell.devices or 1)


def ran_at_all(measurements: Iterable[OtherMeasurement]) -> bool:
    """Whether a model is known to run there in a way that no prediction of one device tells of."""
    rows = (cell.row for measurement in measurements for cell in measurement.cells)
    return any(
        row.get("batch_size") is None or row.get("world_size") not in (None, 1) for row in rows
    )
