"""Task accuracy beside speed: what a result's is, and what it is above or below another's. Pure.

Two are compared with each other on the same samples alone, pair by pair: an interval of each for
itself is wider by far than what an engine or a precision changes.

Whether outputs are still known to be what they were: what a gain in speed counts beside. Pure.

Whoever computes less is faster. A figure is called better only where its outputs are as well
verified as those of before; and where their error went beyond what a chosen result may be off by,
nothing is told of its speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from accelbench.core.columns import ACCURACY_COLUMN_NAMES, AccuracyMetric
from accelbench.core.precision import MAX_ERROR, error_of
from accelbench.core.rows import Row, number, text
from accelbench.core.vocabulary import VERIFIED
from accelbench.judge.stored_results import rows_of

if TYPE_CHECKING:
    from accelbench.measure.accuracy import AccuracyDifference
    from accelbench.store.database import Database


#: What a sentence says where the interval of a difference has nothing in it.
NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class TaskAccuracy:
    """What a result's outputs are worth against labels."""

    metric: AccuracyMetric
    value: float
    low: float | None
    high: float | None
    samples: int
    digest: str
    scores: Sequence[float]

    @property
    def shown(self) -> str:
        """The figure alone."""
        return shown(self.metric, self.value)

    @property
    def interval(self) -> str:
        """Its two ends; "" where there are none."""
        if self.low is None or self.high is None:
            return ""
        return f"{shown(self.metric, self.low)} to {shown(self.metric, self.high)}"


@dataclass(frozen=True)
class AccuracyCost:
    """What one side's accuracy is above its baseline's; or why that cannot be said."""

    metric: AccuracyMetric
    samples: int
    difference: AccuracyDifference | None = None
    refused: str = ""


def shown(metric: AccuracyMetric, value: float) -> str:
    """A share in per cent, a perplexity as it is; three digits and no more."""
    if metric is AccuracyMetric.PERPLEXITY:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return f"{100 * value:.1f} %"


def accuracy_of(row: Row) -> TaskAccuracy | None:
    """A result's accuracy; None where it has none."""
    value, word = number(row, "accuracy"), text(row, "accuracy_metric")
    if value is None or word not in list(AccuracyMetric):
        return None
    scores = row.get("accuracy_per_sample")
    return TaskAccuracy(
        AccuracyMetric(word),
        float(value),
        number(row, "accuracy_low"),
        number(row, "accuracy_high"),
        int(number(row, "accuracy_samples") or 0),
        text(row, "accuracy_digest"),
        scores if isinstance(scores, (list, tuple)) else (),
    )


def accuracy_among(rows: Sequence[Row]) -> TaskAccuracy | None:
    """That of launches: of the first that has one, as all open the same model."""
    return next((known for row in rows if (known := accuracy_of(row)) is not None), None)


@dataclass(frozen=True)
class AccuracyPlace:
    """What an accuracy is of, whichever run measured it; batches of it are one place."""

    model: str
    engine: str
    precision: str
    machine: str

    def as_fp32(self) -> AccuracyPlace:
        """The place that its cost is compared with."""
        return replace(self, precision="fp32")


def accuracy_places(
    rows: Iterable[Row], machines: Mapping[str, str]
) -> dict[AccuracyPlace, list[Row]]:
    """The results that have an accuracy, by their places, at each the newest first.

    Args:
        rows: results of any run: a later one that had no labelled data hides no accuracy.
        machines: the machine of each run.
    """
    places: dict[AccuracyPlace, list[Row]] = {}
    for row in rows:
        if accuracy_of(row) is not None:
            places.setdefault(place_of(row, machines.get(str(row.get("run_id")), "")), []).append(
                row
            )
    for several in places.values():
        several.sort(
            key=lambda row: (text(row, "started_at"), text(row, "result_id")), reverse=True
        )
    return places


def place_of(row: Row, machine: str) -> AccuracyPlace:
    """The place of a result on a machine."""
    engine = f"{row.get('runtime')}/{row.get('hardware')}"
    return AccuracyPlace(str(row.get("model")), engine, str(row.get("precision")), machine)


def like_for_like(row: Row, base: Sequence[Row]) -> Row | None:
    """The newest result that a row's accuracy can be compared with: same samples, same weights.

    Where there is none it is the newest of the same weights, of which the reason can be said.

    Args:
        row: whose accuracy.
        base: results that have one, the newest first.
    """
    alike = [other for other in base if other.get("weights_digest") == row.get("weights_digest")]
    same = [
        other
        for other in alike
        if all(other.get(name) == row.get(name) for name in ("accuracy_digest", "accuracy_metric"))
    ]
    return next(iter(same or alike), None)


def accuracy_heading(rows: Sequence[Row]) -> str:
    """What a column of accuracies is called."""
    titles = {known.metric.heading for row in rows if (known := accuracy_of(row)) is not None}
    return titles.pop() if len(titles) == 1 else "accuracy"


def accuracy_against(rows: Sequence[Row], base: Sequence[Row]) -> AccuracyCost | None:
    """What launches' accuracy is above others'; None where either side has none."""
    ours, theirs = accuracy_among(rows), accuracy_among(base)
    if ours is None or theirs is None:
        return None
    refused = _refused(ours, theirs)
    if refused:
        return AccuracyCost(ours.metric, ours.samples, refused=refused)
    from accelbench.measure.accuracy import compare_scores

    return AccuracyCost(
        ours.metric, ours.samples, compare_scores(ours.metric, theirs.scores, ours.scores)
    )


def _refused(ours: TaskAccuracy, theirs: TaskAccuracy) -> str:
    if ours.metric is not theirs.metric:
        return f"one is {theirs.metric.heading}, the other {ours.metric.heading}"
    if not ours.digest or ours.digest != theirs.digest:
        return "they are not of the same samples"
    if not ours.scores or len(ours.scores) != len(theirs.scores):
        return "no score of each sample is kept"
    return ""


def cost_sentence(name: str, against: str, cost: AccuracyCost) -> str:
    """What accuracy a side costs.

    Args:
        name: of the side.
        against: of its baseline.
        cost: between them.
    """
    title, held = cost.metric.heading, cost.difference
    if held is None:
        return f"{name}: {title} is not compared with {against}: {cost.refused}."
    lead = f"{name}: {title} {_signed(cost.metric, held)} against {against}"
    if not held.is_significant:
        lead = f"{name}: {NO_DIFFERENCE} in {title} against {against}, {_signed(cost.metric, held)}"
    lead = f"{lead}, on the same {cost.samples:,} {cost.metric.item}"
    if held.lost is None:
        return f"{lead}."
    return f"{lead}: {held.lost:,} lost, {held.gained:,} gained."


def _signed(metric: AccuracyMetric, held: AccuracyDifference) -> str:
    unit = " %" if metric is AccuracyMetric.PERPLEXITY else " points"
    value, low, high = (f"{100 * part:+.1f}" for part in (held.value, held.low, held.high))
    return f"{value}{unit} ({low} to {high})".replace("-", "−")


NO_LONGER = "outputs are no longer verified"
#: Errors differ by small factors where only the order of sums does. Ten times as large is a digit
#: lost, as by another precision within a step.
_A_DIGIT = 10.0
#: Below that an error is rounding of single precision, and says nothing by how often it fits.
_ROUNDING = 1e-6


class Outputs(NamedTuple):
    """What is known of the outputs of some launches."""

    verified: bool = False  # in one launch at least: all of a run compute the same
    error: float | None = None  # the largest that was seen
    checked: bool = False  # a second run gave the same


def outputs_of(rows: Iterable[Row]) -> Outputs:
    """What is known of the outputs of launches."""
    every = list(rows)
    errors = [error for row in every if (error := error_of(row)) is not None]
    return Outputs(
        any(row.get("verification") in VERIFIED for row in every),
        max(errors, default=None),
        any(row.get("self_check") == "ok" for row in every),
    )


def outputs_differ(before: Outputs, now: Outputs) -> list[str]:
    """What is not known of outputs any more, or is otherwise, each in words."""
    differences = []
    if before.verified and not now.verified:
        differences.append("verification ok → not done")
    if before.checked and not now.checked:
        differences.append("self check ok → not done")
    if before.error is not None and now.error is not None:
        low, high = sorted((before.error, now.error))
        if high >= _A_DIGIT * max(low, _ROUNDING) or (low <= MAX_ERROR < high):
            differences.append(_errors(before.error, now.error))
    return differences


def why_no_gain(before: Outputs, now: Outputs) -> str:
    """Why what became faster is not called better; empty where it may be."""
    return NO_LONGER if before.verified and not now.verified else ""


def why_other_outputs(before: Outputs, now: Outputs) -> str:
    """Why nothing is told of what computes something else; empty where it may be.

    What a result may be off by that is chosen is the bound here, too: it was within, and is beyond.
    """
    if before.error is None or now.error is None or not before.error <= MAX_ERROR < now.error:
        return ""
    return f"outputs are further off: {_errors(before.error, now.error)}, of {MAX_ERROR:g} at most"


def of_level(points: Sequence[Outputs]) -> Outputs:
    """The same of runs one after the other, of which not each was verified: by the last error."""
    errors = [outputs.error for outputs in points if outputs.error is not None]
    return Outputs(
        any(outputs.verified for outputs in points),
        errors[-1] if errors else None,
        any(outputs.checked for outputs in points),
    )


def _errors(before: float, now: float) -> str:
    return f"error {before:.2g} → {now:.2g}"


#: What tells two accuracies of a model apart; of each the newest is read, as scores are many.
_APART = (
    *("model", "runtime", "hardware", "precision", "weights_digest"),
    *("accuracy_digest", "accuracy_metric"),
)
_READ = (*_APART, *ACCURACY_COLUMN_NAMES, "result_id", "run_id", "started_at")


def accuracies_in(
    database: Database, where: str, values: Sequence[object], machine: str
) -> dict[AccuracyPlace, list[Row]]:
    """Results that have an accuracy, by their places, at each the newest first.

    Args:
        where: which results count, in SQL: those of one machine.
    """
    apart = ", ".join(f'"{name}"' for name in _APART)
    newest = (
        f"result_id IN (SELECT result_id FROM benchmark_results WHERE {where}"  # noqa: S608
        f" AND accuracy IS NOT NULL QUALIFY row_number() OVER (PARTITION BY {apart}"
        " ORDER BY started_at DESC, result_id DESC) = 1)"
    )
    rows = rows_of(database, list(dict.fromkeys(_READ)), newest, values)
    return accuracy_places(rows, {str(row.get("run_id")): machine for row in rows})
