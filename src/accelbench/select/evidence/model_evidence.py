"""What is known of the very model that is asked about: figures, failures, what is unlike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accelbench.analysis.questions import SHAPES
from accelbench.core.figures import RATES_FIRST, TAILS, name_of
from accelbench.select.evidence.candidates import Candidate
from accelbench.select.evidence.cells import CIRCUMSTANCES, EvidenceAttempt, EvidenceCell
from accelbench.select.evidence.failures import Failure, in_the_way, lasting, ruled_out, standing
from accelbench.select.evidence.other_measurements import OtherMeasurement, otherwise
from accelbench.select.evidence.select_context import meant, own_shapes
from accelbench.select.query.query import Query


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
