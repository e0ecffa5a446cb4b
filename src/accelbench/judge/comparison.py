"""Sides of a question against one of them: how many times as fast, and what has to be said. Pure.

The ratio itself is made in one place, `ratios`. Where the sides are of different runs it has in it
by how much runs of the same thing differ, as `check` judges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.result_statistics import item_count
from accelbench.core.rows import Row, texts
from accelbench.core.unusable_reasons import (
    failed_launches_text,
    is_mostly_failed,
    source_of,
    why_unusable,
)
from accelbench.core.vocabulary import SINGLE_STREAM, Status
from accelbench.evidence.launches import latest_start, launches_of
from accelbench.judge.conditions import differences
from accelbench.judge.questions import AXES, DESCRIBING, SHAPES, ComparisonAxis, Key, plain
from accelbench.judge.ratios import Ratio, ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.sides import Side, meet, sides

#: What makes figures those of different things; whoever wants them compared all the same says so.
REFUSED = ("weights", "workarounds", "emulated", "source")
#: Why two sides are not compared with each other that one tells a median of, and the other a mean.
NO_FIGURE = "they have no figure in common"
#: The axes along which one run may have measured more than one place.
_OF_ONE_RUN = ("hardware", "runtime", "precision", "batch", "mode")
#: A batch that is as fast as this share of the fastest is fast enough.
KNEE_SHARE = 0.9


@dataclass(frozen=True)
class Compared:
    """One side beside the side that it is compared with."""

    side: Side
    baseline: Side | None  # None where the question was not answered there
    ratio: Ratio | None = None  # items in the same time; None for the baseline itself
    memory_ratio: float | None = None
    efficiency: float | None = None  # of a batch: speed-up, as a share of how much larger it is
    knee: bool = False  # the smallest batch that is nearly as fast as any
    refused: str = ""  # why it is not compared
    differs: tuple[str, ...] = ()  # what else is not alike
    failed_since: tuple[str, ...] = ()  # why newer runs of it came to nothing

    @property
    def is_baseline(self) -> bool:
        """Whether it is what others are compared with."""
        return self.baseline is self.side

    @property
    def speedup(self) -> float | None:
        """Items in the same time; None where nothing can be told."""
        if self.ratio is not None:
            return self.ratio.value if self.ratio.told else None
        return 1.0 if self.is_baseline else None


def compared(
    rows: Iterable[Row],
    axis: ComparisonAxis,
    baseline: tuple[str, ...] = (),
    allow: Sequence[str] = (),
    *,
    known: Histories,
) -> list[list[Compared]]:
    """Each question's sides against its baseline; questions with one side alone are left out.

    Args:
        rows: of one machine; what nobody measured is not among them.
        axis: along which is compared.
        baseline: the place on it to compare others with, by words of which the first that means
            one counts; without any its first.
        allow: of `REFUSED`, what is compared all the same.
        known: the older runs of what is compared.
    """
    rows, groups = launches_of(rows), []
    for by_place in sides(rows, axis, lambda places: _place_of(places, axis, baseline), fewest=2):
        ordered = _ordered(by_place, axis)
        place = _place_of(by_place, axis, baseline)
        base = None if place is None else by_place[place]
        if axis.name == "run" and not baseline:
            base = ordered[0]
        lines = [compared_side(side, base, axis, allow, known) for side in ordered]
        groups.append(_with_knee(lines, known) if axis.name == "batch" else lines)
    failed = _failures(rows, axis)
    return _in_order([[_with_failures(line, failed, axis) for line in lines] for lines in groups])


#: Reasons by question and place, each with the moment of the run, and its id.
Failures = Mapping[tuple[Key, Key], Sequence[tuple[str, object, str]]]


def _failures(rows: Iterable[Row], axis: ComparisonAxis) -> Failures:
    """Where a run came to nothing: no launch of it answered, or so few that they are of no use."""
    runs: dict[tuple[Key, Key, object], list[Row]] = {}
    for row in rows:
        if row.get("status") != Status.SKIPPED:
            place = (axis.question(row), axis.value(row))
            runs.setdefault((*place, row.get("run_id")), []).append(row)
    failures: dict[tuple[Key, Key], list[tuple[str, object, str]]] = {}
    for (question, value, run), launches in runs.items():
        if why := _came_to_nothing(launches):
            failures.setdefault((question, value), []).append((latest_start(launches), run, why))
    return failures


def _came_to_nothing(launches: Sequence[Row]) -> str:
    """Why a run's launches of a configuration have no figures, or none of use; else ""."""
    good = [row for row in launches if row["answered"]]
    mostly = failed_launches_text(good) if is_mostly_failed(good) else ""
    if good and not mostly:
        return ""
    if any(row["wrong_outputs"] for row in launches):
        return "wrong outputs"
    last = next(row for row in reversed(launches) if not row["answered"])
    why = str(last.get("reason") or last.get("status"))
    return f"{mostly}: {why}" if mostly else why


def _with_failures(line: Compared, failed: Failures, axis: ComparisonAxis) -> Compared:
    known = failed.get((axis.question(line.side.row), line.side.value), ())
    since, shown = latest_start(line.side.rows), {row.get("run_id") for row in line.side.rows}
    why = dict.fromkeys(
        why.replace("_", " ")
        for moment, run, why in known
        if moment > since and (run is None or run not in shown)
    )
    return replace(line, failed_since=tuple(why)) if why else line


def _in_order(groups: Sequence[list[Compared]]) -> list[list[Compared]]:
    """Questions of a model together, in the order in which models came, small ones before large."""
    models: dict[object, int] = {}
    for lines in groups:
        models.setdefault(lines[0].side.row.get("model"), len(models))

    def size(lines: Sequence[Compared]) -> tuple[object, ...]:
        row = lines[0].side.row
        return models[row.get("model")], *(row.get(name) or 0 for name in (*SHAPES, "batch_size"))

    return sorted(groups, key=size)


def along_every_axis(rows: Sequence[Row]) -> dict[str, list[list[Compared]]]:
    """What a run's own results can be compared by, in the order of people's questions."""
    alone = Histories()  # launches of one run are compared with each other without older ones
    groups_by_axis = {name: compared(rows, AXES[name], known=alone) for name in _OF_ONE_RUN}
    return {name: lines for name, lines in groups_by_axis.items() if lines}


def axes_with_answers(rows: Sequence[Row]) -> list[str]:
    """Every axis along which a comparison would come to something."""
    return [name for name, axis in AXES.items() if meet(rows, axis)]


def answers_to(value: Key, word: str) -> bool:
    """Whether a place is meant by a word: its name, or a part of its device's."""
    low = word.lower()
    return any(low == str(part).lower() for part in value) or any(
        low in str(part).lower() for part in value[1:]
    )


def _place_of(places: Iterable[Key], axis: ComparisonAxis, words: tuple[str, ...]) -> Key | None:
    """The place that others are compared with; None where none is what was asked for."""
    if not words:
        return min(places, key=lambda place: _rank(place, axis))  # of hardware the CPU, where it is
    ordered = sorted(places, key=_name)
    named = (place for word in words for place in ordered if answers_to(place, word))
    return next(named, None)


def _name(place: Key) -> tuple[object, ...]:
    return tuple((part is None, str(part)) for part in place)


_FIRST = {"cpu": 0, "pytorch": 0, "fp32": 0, "inference": 0}


def _rank(place: Key, axis: ComparisonAxis) -> tuple[object, ...]:
    """By size where the axis has an order, else the usual first and then by name."""
    if axis.name in ("batch", "threads"):
        return (place[0] or 0,)
    return _FIRST.get(str(place[0]), 1), _name(place)


def _ordered(by_place: Mapping[Key, Side], axis: ComparisonAxis) -> list[Side]:
    if axis.name == "run":
        return sorted(by_place.values(), key=lambda s: str(s.row.get("started_at") or ""))
    return [by_place[place] for place in sorted(by_place, key=lambda value: _rank(value, axis))]


def compared_side(
    side: Side, base: Side | None, axis: ComparisonAxis, allow: Sequence[str], known: Histories
) -> Compared:
    """A side beside the one that it is compared with, or why it is not."""
    if base is None:
        return Compared(side, None, refused="its baseline was not measured")
    differs = differing(base, side, axis)
    if side is base:
        return Compared(side, base, efficiency=1.0 if axis.name == "batch" else None)
    why = [cause for cause in unlike(base.rows, side.rows, axis.name) if cause not in allow]
    if why:
        return Compared(side, base, refused=f"not alike: {', '.join(why)}", differs=differs)
    if useless := _unusable(side, base):
        why_not = why_unusable(side.rows if not side.usable else base.rows)
        return Compared(side, base, refused=f"{useless}: {why_not}", differs=differs)
    speedup = ratio(side.rows, base.rows, known)
    if speedup is None:
        return Compared(side, base, refused=NO_FIGURE, differs=differs)
    larger = item_count(side.row) / item_count(base.row)
    return Compared(
        side,
        base,
        speedup,
        side.memory_mb / base.memory_mb if side.memory_mb and base.memory_mb else None,
        speedup.value / larger if axis.name == "batch" and speedup.told else None,
        differs=differs,
    )


def differing(base: Side, side: Side, axis: ComparisonAxis) -> tuple[str, ...]:
    """What is not alike of two sides of one question, each as a word and its two values."""
    return (
        *_other_figures(base, side),
        *_ran_otherwise(base.row, side.row, axis),
        *(said for said in differences(base.row, side.row) if not _of_axis(said, axis)),
    )


def _of_axis(said: str, axis: ComparisonAxis) -> bool:
    """Whether it is what stands on the axis, said once more: two engines are never of one name."""
    return "runtime" in axis.columns and said.startswith("engine ")


def doubtful(differs: Iterable[str]) -> list[str]:
    """Of differences those that make a ratio doubtful: ≠ stands behind it.

    What only describes a result in words is none.
    """
    return [text for text in differs if text.partition(" ")[0] not in DESCRIBING]


def nearest_axis(a: Row, b: Row) -> tuple[ComparisonAxis, list[str]]:
    """The axis along which two results may be compared, and what is asked otherwise.

    Anybody may choose two results of different questions. What is beside the axis that leaves least
    of it makes their ratio doubtful; a scenario is on no axis, and makes it one of different things
    (`refused_along`).
    """
    names = [name for name in CONFIGURATION_COLUMNS if _usual(name, a) != _usual(name, b)]

    def beside(axis: ComparisonAxis) -> list[str]:
        return [name for name in names if name not in (*axis.columns, *axis.along)]

    best = min(AXES.values(), key=lambda axis: len(beside(axis)))
    return best, beside(best)


def refused_along(asked_otherwise: Iterable[str]) -> str:
    """Why results of different questions are not compared with each other; "" where they may be."""
    names = [name for name in asked_otherwise if name in _OTHER_THINGS]
    return f"not alike: {', '.join(names)}" if names else ""


#: How requests came says what a figure is: a rate of all at once is none of one after another.
_OTHER_THINGS = ("scenario",)
_USUAL = {"scenario": SINGLE_STREAM, "world_size": 1, "options": "{}"}


def _usual(name: str, row: Row) -> object:
    value = plain(row.get(name))
    return _USUAL.get(name) if value is None else value


def _unusable(side: Side, base: Side) -> str:
    """Which of two sides is of no use."""
    if side.usable and base.usable:
        return ""
    if base.usable:
        return "unusable"
    return "its baseline is unusable" if side.usable else "unusable, like its baseline"


def _ran_otherwise(a: Row, b: Row, axis: ComparisonAxis) -> Iterable[str]:
    """How the ways that were fastest differ, beside what stands in the table.

    Some engines always compile, and others never: of two engines that says nothing.
    """
    engines = a.get("runtime") != b.get("runtime")
    for name in (*SHAPES, *(() if engines else ("compiled",)), "threads"):
        pair = (a.get(name), b.get(name))
        if name in axis.along and None not in pair and pair[0] != pair[1]:
            yield f"{name} {pair[0]} → {pair[1]}"


def _other_figures(a: Side, b: Side) -> Iterable[str]:
    """Where one is timed by another figure, or counts other items."""
    if a.statistic is not b.statistic:
        yield f"figure {a.statistic} → {b.statistic}"
    units = (a.row.get("throughput_unit"), b.row.get("throughput_unit"))
    if all(units) and units[0] != units[1]:
        yield f"unit {units[0]} → {units[1]}"


def refusals(a: Row, b: Row, axis: str = "") -> Iterable[str]:
    """What makes two rows figures of different things; along some axes weights have to differ."""
    digests = (a.get("weights_digest"), b.get("weights_digest"))
    if all(digests) and digests[0] != digests[1] and axis not in ("model", "mode"):
        yield "weights"
    if texts(a, "workarounds") != texts(b, "workarounds"):
        yield "workarounds"
    if a.get("emulated") or b.get("emulated"):
        yield "emulated"
    if (a.get("provenance"), source_of(a)) != (b.get("provenance"), source_of(b)):
        yield "source"


def unlike(these: Sequence[Row], those: Sequence[Row], axis: str = "") -> list[str]:
    """The same of all launches of two sides: one that is not alike is enough."""
    causes = {cause for a in _kinds(these) for b in _kinds(those) for cause in refusals(a, b, axis)}
    return [cause for cause in REFUSED if cause in causes]


def _kinds(launches: Sequence[Row]) -> list[Row]:
    """One launch of each kind, by what makes figures those of different things."""
    names = ("weights_digest", "workarounds", "emulated", "provenance")
    return list({str([row.get(n) for n in names]): row for row in launches}.values())


def _with_knee(lines: Sequence[Compared], known: Histories) -> list[Compared]:
    """Mark the smallest batch that reaches nearly the throughput of the best.

    Where it cannot be told how it compares with the best, or whether a smaller one is slower than
    that at all, none is marked.
    """
    rated = ((line, line.side.throughput) for line in lines if line.ratio or line.is_baseline)
    rates = [(line, rate) for line, rate in rated if rate is not None]
    if len(rates) < 2:
        return list(lines)
    best, most = max(rates, key=lambda pair: pair[1])
    at = next(n for n, (_, rate) in enumerate(rates) if rate >= KNEE_SHARE * most)
    knee = rates[at][0]
    smaller = [ratio(line.side.rows, best.side.rows, known) for line, _ in rates[:at]]
    itself = ratio(knee.side.rows, best.side.rows, known) if knee is not best else None
    if knee is not best and (itself is None or not itself.told):
        return list(lines)
    if not all(speedup and (speedup.high is None or speedup.high < 1.0) for speedup in smaller):
        return list(lines)
    return [replace(line, knee=True) if line is knee else line for line in lines]
