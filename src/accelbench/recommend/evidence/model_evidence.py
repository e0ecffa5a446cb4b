"""The evidence of one model for a question, and its results that do not answer it. Pure.

Many requests at once, other sizes, an unknown batch or a rate alone are no time of the step that is
asked about. They show that the platform runs the model.

The sizes and circumstances that a question is answered for. Pure.

A value that an import does not record may be anything, so it matches cells that record it. Our own
results record everything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from accelbench.core.axes import COLUMN_ORDER, axes_of
from accelbench.core.formatting import format_batch, join_first
from accelbench.core.formatting import format_count as so_many
from accelbench.core.model import ModelSpec
from accelbench.core.result_statistics import MEANS, RATES_FIRST, TAILS, statistic_name
from accelbench.core.rows import Json, number
from accelbench.core.vocabulary import SINGLE_STREAM
from accelbench.judge.questions import SHAPES
from accelbench.measure.launch_verdicts import geometric_mean
from accelbench.recommend.evidence.candidates import Candidate
from accelbench.recommend.evidence.cells import (
    CIRCUMSTANCES,
    EvidenceAttempt,
    EvidenceCell,
    Failure,
    in_the_way,
    is_imported,
    lasting,
    rounded,
    ruled_out,
    sizes_of,
    standing,
    unit_of,
)
from accelbench.recommend.query import Query

_NAMES = (*SHAPES, *CIRCUMSTANCES)
#: A value that an import does not record.
_ANYTHING = object()
Context = tuple[object, ...]


@dataclass(frozen=True)
class SelectedContext:
    """The cells of one context."""

    cells: Sequence[EvidenceCell]  # what can be compared
    context: Mapping[str, object]  # its sizes and circumstances by name, as far as they are known
    others: Sequence[EvidenceCell]  # cells of the model in other contexts

    @property
    def sizes(self) -> dict[str, int]:
        return sizes_of(self.context)


def meant(
    cells: Sequence[EvidenceCell],
    batch: int | None,
    shapes: Mapping[str, int],
    spec: ModelSpec | None,
) -> SelectedContext:
    """Return the cells of the context that is meant.

    The named sizes are required. Contexts are then preferred, in this order, for the model's own
    sizes, single requests on one device, the number of devices with this batch, the number of
    devices, and the number of cells.
    """
    by_context: dict[Context, list[EvidenceCell]] = defaultdict(list)
    for cell in cells:
        if all(cell.row.get(name) == value for name, value in shapes.items()):
            by_context[_said(cell)].append(cell)
    if not by_context:
        return SelectedContext((), {}, tuple(cells))
    own = own_shapes(spec)
    most_said_first = sorted(
        by_context, key=lambda context: (context.count(_ANYTHING), _order(context))
    )
    groups = {context: _grown(context, most_said_first) for context in by_context}

    def merit(context: Context) -> tuple[object, ...]:
        whole, members = groups[context]
        settings = dict(zip(_NAMES, whole, strict=True))
        group = [cell for member in members for cell in by_context[member]]
        here = {(c.hardware, c.device) for c in group if batch in (None, c.batch)}
        return (
            -sum(settings[name] == value for name, value in own.items()),
            settings["scenario"] not in (None, _ANYTHING, SINGLE_STREAM),
            settings["world_size"] not in (None, _ANYTHING, 1),
            -len(here),
            -len({(c.hardware, c.device) for c in group}),
            -len(group),
            _order(whole),
        )

    whole, members = groups[min(groups, key=merit)]
    kept = {id(cell) for member in members for cell in by_context[member]}
    known = {n: None if v is _ANYTHING else v for n, v in zip(_NAMES, whole, strict=True)}
    return SelectedContext(
        [cell for cell in cells if id(cell) in kept],
        known,
        [cell for cell in cells if id(cell) not in kept],
    )


def own_shapes(spec: ModelSpec | None) -> dict[str, int]:
    """Return the default sizes of a model of the catalogue."""
    if spec is None:
        return {}
    sizes = {axis.column: axis.default_size(spec) for axis in axes_of(*COLUMN_ORDER)}
    return {name: value for name, value in sizes.items() if value is not None}


def differs(cell: EvidenceCell, context: Mapping[str, object]) -> str:
    """Return what differs in a cell of another context, as a text."""
    settings = dict(zip(_NAMES, cell.context, strict=True))
    differences = [
        f"{name} {settings[name]}"
        for name, value in context.items()
        if settings[name] not in (None, value)
    ]
    return ", ".join(differences)


def _said(cell: EvidenceCell) -> Context:
    if not cell.imported:
        return cell.context
    return tuple(_ANYTHING if part is None else part for part in cell.context)


def _grown(start: Context, contexts: Sequence[Context]) -> tuple[Context, list[Context]]:
    """Return a context completed by those that may be the same, and these.

    They are taken one after the other, so that no two of them contradict each other.
    """
    whole, members = start, [start]
    for context in contexts:
        if context != start and _may_be(whole, context):
            whole = tuple(b if a is _ANYTHING else a for a, b in zip(whole, context, strict=True))
            members.append(context)
    return whole, members


def _may_be(context: Context, other: Context) -> bool:
    return all(
        a is _ANYTHING or b is _ANYTHING or a == b for a, b in zip(context, other, strict=True)
    )


def _order(context: Context) -> tuple[tuple[bool, str], ...]:
    """Return a sort key: known values before unknown ones, and no None among texts."""
    return tuple(
        (part is None or part is _ANYTHING, "" if part is _ANYTHING else str(part))
        for part in context
    )


#: So many are shown next to an answer, unless all are asked for.
FEW = 4


@dataclass(frozen=True)
class OtherMeasurement:
    """Cells of one candidate that do not answer, for the same reason."""

    hardware: str
    why: str  # what they are of, in words; "" if only the batch or the statistic differs
    cells: Sequence[EvidenceCell]

    @cached_property
    def best(self) -> EvidenceCell:
        return min(self.cells, key=lambda cell: (-_pace(cell), cell.order))

    def to_dict(self) -> dict[str, object]:
        cell = self.best
        row, rate = cell.row, _rate(cell)
        return {
            "hardware": self.hardware,
            "why": self.why,
            "results": len(self.cells),
            "scenario": row.get("scenario"),
            **cell.facts(),
            "devices": cell.devices,
            "latency": cell.latency if cell.latencies else None,
            "figure": str(cell.statistic) if cell.latencies else None,
            "throughput": rate,
            "throughput_per_device": None if rate is None else rate / (cell.devices or 1),
            "throughput_unit": None if rate is None else unit_of(row),
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
    """Yield the cells of a candidate that do not answer, grouped by the reason."""
    groups: dict[tuple[str, str], list[EvidenceCell]] = {}
    for cell in cells:
        groups.setdefault((_why(cell, context, precisions), _counts(cell)), []).append(cell)
    for (why, _), several in sorted(groups.items()):
        yield OtherMeasurement(name, why, several)


def sentences(measurements: Sequence[OtherMeasurement], most: int | None = None) -> Iterator[str]:
    """Yield notes on results that do not answer."""
    return sentences_of([measurement.to_dict() for measurement in measurements], most)


def sentences_of(entries: Sequence[Json], most: int | None = None) -> Iterator[str]:
    """Yield notes on the `measured_otherwise` of an answer."""
    for entry in entries[:most]:
        whose = f" by others ({entry.get('source') or 'imported'})" if is_imported(entry) else ""
        yield f"Measured{whose}, though not as asked: {entry['text']}."
    if most is not None and len(entries) > most:
        yield f"{len(entries) - most} more such: --explain."


def reaching(measurements: Sequence[OtherMeasurement], least: float) -> Iterator[str]:
    """Yield which rates of a device reach a limit, although no time of a step shows it."""
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
            f"As rates alone, these reach {least:g} a second: {join_first(enough, FEW, '; ')}. What"
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
    """Yield which candidates have no result that counts, and which have none at all."""
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
        reasons.append(f"{statistic_name(cell.statistic)} alone")
    return ", ".join(reasons)


def _counts(cell: EvidenceCell) -> str:
    return unit_of(cell.row) if cell.rates else ""


def _batch(cell: EvidenceCell) -> str:
    batch = cell.row.get("batch_size")
    return format_batch(batch)


def _figures(cell: EvidenceCell) -> Iterator[str]:
    rate = _rate(cell)
    if rate is not None:
        several = cell.devices or 1
        each = f" on {several} devices, {rounded(rate / several)} each" if several > 1 else ""
        yield f"{rounded(rate)} {unit_of(cell.row)}/s{each}"
    if cell.latencies:
        yield f"{statistic_name(cell.statistic)} {rounded(cell.latency)} ms a step"


def _rate(cell: EvidenceCell) -> float | None:
    return geometric_mean(cell.rates) if cell.rates else None


def _pace(cell: EvidenceCell) -> float:
    """Return items or steps a second of a device; cells of a group have the same kind."""
    rate = _rate(cell)
    return (1.0 / cell.latency if rate is None else rate) / (cell.devices or 1)


def ran_at_all(measurements: Iterable[OtherMeasurement]) -> bool:
    """Return whether a model ran there in a way that a prediction of one device cannot cover."""
    rows = (cell.row for measurement in measurements for cell in measurement.cells)
    return any(
        row.get("batch_size") is None or row.get("world_size") not in (None, 1) for row in rows
    )


@dataclass(frozen=True)
class ModelEvidence:
    """The evidence for a question, at any batch."""

    cells: Sequence[EvidenceCell] = ()  # those that answer it
    failures: Sequence[Failure] = ()  # of configurations that failed when they were last tried
    #: cells that do not answer: another question, no time of a step, an unknown batch
    others: Sequence[EvidenceCell] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)  # of the cells, else of the question
    #: sizes and circumstances of the cells
    context: Mapping[str, object] = field(default_factory=dict)
    #: quantised cells without a known error, which count only if they are asked for
    inexact: Sequence[EvidenceCell] = ()
    precisions: Sequence[str] = ()  # of the question, in their stored spellings
    unusable: Sequence[EvidenceCell] = ()  # cells with unusable times
    passed_over: Sequence[Failure] = ()  # failures because of a machine or of the request

    def of(self, candidate: Candidate) -> ModelEvidence:
        parts = ("cells", "failures", "others", "inexact", "unusable", "passed_over")
        own: dict[str, Any] = {
            name: list(filter(candidate.has, getattr(self, name))) for name in parts
        }
        return replace(self, **own)

    def failed_since(self, cell: EvidenceCell) -> str:
        """Return why newer runs of a cell failed without affecting it; "" if none did."""
        why = dict.fromkeys(failure.reason for failure in self.passed_over if failure.follows(cell))
        return ", ".join(why).replace("_", " ")

    @property
    def circumstances(self) -> dict[str, object]:
        return {name: self.context[name] for name in CIRCUMSTANCES if name in self.context}

    def otherwise(self, candidate: Candidate) -> list[OtherMeasurement]:
        """Return the other measurements of a candidate that has no cell that answers."""
        evidence = self.of(candidate)
        if evidence.cells:
            return []
        context = {**self.sizes, **self.context}
        return list(otherwise(candidate.name, evidence.others, context, self.precisions))

    def ruled_out(self, batch: int) -> list[Failure]:
        """Return the failure of each engine if no way is left for a batch."""
        free, against = in_the_way(batch, self.cells, self.failures)
        return [] if free else ruled_out(against, self.precisions)

    def wrong_outputs(self, batch: int) -> list[Failure]:
        """Return the failures by wrong outputs at a batch that other ways still run."""
        free, against = in_the_way(batch, self.cells, self.failures)
        return [failure for failure in against if free and failure.has_wrong_outputs]


def own_of(
    query: Query,
    cells: Sequence[EvidenceCell],
    failures: Sequence[Failure],
    *,
    any_batch: bool = False,
    inexact: bool = False,
    unusable: Sequence[EvidenceCell] = (),
) -> ModelEvidence:
    """Return the evidence of a model for a question, at any batch.

    With `any_batch` the batch is no part of the question. With `inexact` quantised cells count,
    because a limit of the error applies.
    """
    of_mode = [cell for cell in cells if cell.mode == query.mode]
    known = [cell for cell in of_mode if query.takes(cell.precision)]
    apart = [cell for cell in of_mode if not query.takes(cell.precision)]
    unasked = query.precision is None and not inexact
    left_out = [cell for cell in known if unasked and cell.timed and not cell.exact]
    # A quantised cell shows that its way works, whether or not it counts.
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
    """Return the cells of the preferred statistic, and the rest: statistics do not compare.

    Means come before medians. Of percentiles alone, the most frequent one counts.
    """
    kinds = Counter(statistic_name(cell.statistic) for cell in cells)

    def place(kind: str) -> tuple[int, int, str]:
        plain = [statistic_name(statistic) for statistic in RATES_FIRST if statistic not in TAILS]
        return plain.index(kind) if kind in plain else len(plain), -kinds[kind], kind

    most = min(kinds, key=place, default="")
    kept = [cell for cell in cells if statistic_name(cell.statistic) == most]
    return kept, [cell for cell in cells if statistic_name(cell.statistic) != most]


def _fits(attempt: EvidenceAttempt, query: Query) -> bool:
    row = attempt.row
    return row.get("mode") == query.mode and query.takes(row.get("precision"))


def _is_of(
    attempt: EvidenceAttempt, sizes: Mapping[str, int], context: Mapping[str, object]
) -> bool:
    """Return whether an attempt has the sizes and circumstances, as far as they are known."""
    row = attempt.row
    alike = (row.get(name) in (None, value) for name, value in sizes.items())
    same = (
        value is None or row.get(name) in (None, value)
        for name, value in context.items()
        if name not in SHAPES
    )
    return all(alike) and all(same)
