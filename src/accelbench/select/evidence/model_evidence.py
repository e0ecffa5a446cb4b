"""What is known of the very model that is asked about: figures, failures, what is unlike. Pure.

A model as it is known whatever it was measured on: its weights and operations. Pure.

What was measured of a model and does not answer the question that is asked. Pure.

Many requests at once, other sizes, a batch that nobody says, a rate without the time of a step:
none of it is the time of the step that is asked about. That the platform runs the model is known
all the same, and how far it came is told as what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accelbench.analysis.questions import SHAPES
from accelbench.core.case import Shapes
from accelbench.core.errors import AccelbenchError
from accelbench.core.figures import MEANS, RATES_FIRST, TAILS, name_of
from accelbench.core.nouns import batch_text, listed
from accelbench.core.nouns import counted as so_many
from accelbench.core.rows import Json, number
from accelbench.core.vocabulary import SINGLE_STREAM, Mode
from accelbench.measure.launches import typical
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceAttempt,
    EvidenceCell,
    ModelKnowledge,
    is_imported,
    rounded,
    unit_of,
)
from accelbench.select.evidence.failures import Failure, in_the_way, lasting, ruled_out, standing
from accelbench.select.evidence.select_context import differs, meant, own_shapes
from accelbench.select.query.query import GENERATING, SIZES, Query

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


@dataclass(frozen=True)
class ModelEvidence:
    """Of one question, the batch aside.

    Attributes:
        cells: its figures.
        failures: what failed when it was last tried.
        others: figures of the model that do not answer: asked something else, without the time of a
            step, or of a batch that nobody says.
        inexact: its figures that do not count, being quantised without a known error and unasked.
        sizes: of the figures, else those that were asked for.
        context: sizes and circumstances of the figures.
        precisions: that were asked for, by their stored names; what was measured in others is told
            as that.
        unusable: measured as it is asked, and with times that nothing is chosen by.
        passed_over: what failed for reasons of a machine, or of what was asked of it.
    """

    cells: Sequence[EvidenceCell] = ()
    failures: Sequence[Failure] = ()
    others: Sequence[EvidenceCell] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    context: Mapping[str, object] = field(default_factory=dict)
    inexact: Sequence[EvidenceCell] = ()
    precisions: Sequence[str] = ()
    unusable: Sequence[EvidenceCell] = ()
    passed_over: Sequence[Failure] = ()

    def of(self, candidate: Candidate) -> ModelEvidence:
        """The same of one candidate."""
        return ModelEvidence(
            [cell for cell in self.cells if candidate.has(cell)],
            [failure for failure in self.failures if candidate.has(failure)],
            [cell for cell in self.others if candidate.has(cell)],
            self.sizes,
            self.context,
            [cell for cell in self.inexact if candidate.has(cell)],
            self.precisions,
            [cell for cell in self.unusable if candidate.has(cell)],
            [failure for failure in self.passed_over if candidate.has(failure)],
        )

    def failed_since(self, cell: EvidenceCell) -> str:
        """Why a newer run than a figure's came to nothing, which does not speak against it."""
        why = dict.fromkeys(failure.reason for failure in self.passed_over if failure.follows(cell))
        return ", ".join(why).replace("_", " ")

    @property
    def circumstances(self) -> dict[str, object]:
        """How it was asked, its sizes aside; nothing where there are no figures."""
        return {name: self.context[name] for name in CIRCUMSTANCES if name in self.context}

    def otherwise(self, candidate: Candidate) -> list[OtherMeasurement]:
        """What a candidate without any figure of this question has been measured at."""
        evidence = self.of(candidate)
        if evidence.cells:
            return []
        context = {**self.sizes, **self.context}
        return list(otherwise(candidate.name, evidence.others, context, self.precisions))

    def ruled_out(self, batch: int) -> list[Failure]:
        """Return the failure of each engine that leaves nothing to choose by it at a batch."""
        free, against = in_the_way(batch, self.cells, self.failures)
        return [] if free else ruled_out(against, self.precisions)


def own_of(
    query: Query,
    cells: Sequence[EvidenceCell],
    failures: Sequence[Failure],
    *,
    any_batch: bool = False,
    inexact: bool = False,
    unusable: Sequence[EvidenceCell] = (),
) -> ModelEvidence:
    """Of all that is stored of a model, what answers what is asked, perhaps at another batch.

    Args:
        query: the question.
        cells: its figures.
        failures: what failed when it was last tried.
        any_batch: its batch is none of the question.
        inexact: quantised figures count as well, as a limit of the error is asked about apart.
        unusable: what was measured of it, and has no time to choose by.
    """
    of_mode = [cell for cell in cells if cell.mode == query.mode]
    known = [cell for cell in of_mode if query.takes(cell.precision)]
    apart = [cell for cell in of_mode if not query.takes(cell.precision)]
    unasked = query.precision is None and not inexact
    left_out = [cell for cell in known if unasked and cell.timed and not cell.exact]
    # What works in int8 has worked, whether or not it counts.
    every = [cell for cell in known if cell.timed]
    still = standing([failure for failure in failures if _fits(failure, query)], every)
    fitting = [cell for cell in every if not unasked or cell.exact]
    selection = meant(
        lasting(fitting, still), None if any_batch else query.batch, query.shapes, query.spec
    )
    sizes = selection.sizes if selection.cells else dict(query.shapes)
    wanted = sizes if selection.cells else {**own_shapes(query.spec), **query.shapes}
    counted, aside = of_one_figure(selection.cells)
    return ModelEvidence(
        counted,
        [failure for failure in still if _is_of(failure, wanted, selection.context)],
        [*selection.others, *aside, *(cell for cell in known if not cell.timed), *apart],
        sizes,
        selection.context,
        left_out,
        query.precisions,
        [
            cell
            for cell in unusable
            if _fits(cell, query) and _is_of(cell, wanted, selection.context)
        ],
        [failure for failure in failures if _fits(failure, query) and not failure.counts],
    )


def of_one_figure(cells: Sequence[EvidenceCell]) -> tuple[list[EvidenceCell], list[EvidenceCell]]:
    """The figures of the one kind that says most, and the rest: means, medians, one percentile.

    None says how it would compare with another. Of percentiles alone the most usual one counts.
    """
    kinds = Counter(name_of(cell.statistic) for cell in cells)

    def place(kind: str) -> tuple[int, int, str]:
        plain = [name_of(statistic) for statistic in RATES_FIRST if statistic not in TAILS]
        return plain.index(kind) if kind in plain else len(plain), -kinds[kind], kind

    most = min(kinds, key=place, default="")
    kept = [cell for cell in cells if name_of(cell.statistic) == most]
    return kept, [cell for cell in cells if name_of(cell.statistic) != most]


def _fits(attempt: EvidenceAttempt, query: Query) -> bool:
    row = attempt.row
    return row.get("mode") == query.mode and query.takes(row.get("precision"))


def _is_of(
    attempt: EvidenceAttempt, sizes: Mapping[str, int], context: Mapping[str, object]
) -> bool:
    """Whether something was asked what is asked, as far as either is known."""
    row = attempt.row
    alike = (row.get(name) in (None, value) for name, value in sizes.items())
    same = (
        value is None or row.get(name) in (None, value)
        for name, value in context.items()
        if name not in SHAPES
    )
    return all(alike) and all(same)


def known_of(
    query: Query, own: Sequence[EvidenceCell], flops: float | None = None, kin: str = ""
) -> ModelKnowledge:
    """What is known of the model: by who asks, by the catalogue, by results anywhere."""
    parameters = query.size.parameters
    counted = flops or _counted(query)
    for cell in own:
        parameters = parameters or cell.row.get("parameters")
        operations = cell.row.get("flops")
        if not counted and operations:
            counted = float(operations) / cell.batch
        kin = kin or str(cell.row.get("kin") or "")
    return ModelKnowledge(None if parameters is None else int(parameters), counted, kin)


def _counted(query: Query) -> float | None:
    """Operations of an item, as the catalogue counts them; None where it does not."""
    if query.spec is None:
        return None
    from accelbench.catalog.cost import flops

    sizes: dict[str, Any] = {SIZES[name]: value for name, value in query.shapes.items()}
    if query.mode == Mode.TRAINING:
        sizes = {name: value for name, value in sizes.items() if name not in GENERATING}
    try:
        operations = flops(query.spec, Shapes(query.batch, **sizes), query.mode)
    except AccelbenchError:
        return None
    return None if operations is None else operations / query.batch
