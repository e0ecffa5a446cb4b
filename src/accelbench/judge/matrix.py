"""The compatibility matrix: what each platform of one machine is worth for each model. Pure.

The rule is in docs/matrix.md and, in short, in `RULE`, which is what `--explain` prints.
Its constants are here and nowhere else.

From models to their family: what a platform is worth for the models of one kind. Pure.

Why what went through has no rating: nothing timed it, or nothing of the CPU is alike. Pure.

What a matrix is made of: cells, lines, levels. Plain values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from accelbench.core.devices import card_of, default_precision
from accelbench.core.formatting import NO_DATA
from accelbench.core.precision import MAX_ERROR
from accelbench.core.rows import Row
from accelbench.core.run_command import (
    default_precision_arguments,
    precision_arguments,
    run_command,
)
from accelbench.core.vocabulary import HARDWARE
from accelbench.evidence.launches import launches_of
from accelbench.judge.attempts import ASKED_IN, FEW_DIFFER, WRONG, Attempt, attempts
from accelbench.judge.speed_ups import SURE, PlatformRatio, Timed, fastest, ratio


class Rating(StrEnum):
    """The documents' four levels."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NONE = "n/a"


class Availability(StrEnum):
    """States that a rating alone does not distinguish."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    NOT_AVAILABLE = "not available"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class MatrixCell:
    """One platform for one model or one family."""

    availability: Availability
    rating: Rating = Rating.NONE
    reason: str = ""  # the whole sentence
    token: str = ""  # short and stable, where there is no rating or a low one for want of proof
    advice: str = ""
    speed: float | None = None  # times the CPU's throughput
    batches: tuple[int, ...] = ()  # over which
    runtimes: tuple[str, ...] = ()  # that were fastest, the one that was so most often first
    precisions: tuple[str, ...] = ()  # of these, where each platform is taken in its best
    verification: str = ""
    error: float | None = None
    workarounds: tuple[str, ...] = ()
    emulated: bool = False
    run_id: str = ""
    notes: tuple[str, ...] = ()  # what else happened there: failed launches, other runtimes

    @property
    def runtime(self) -> str:
        """The one that was fastest most often; empty where there is none."""
        return self.runtimes[0] if self.runtimes else ""

    @property
    def compatible(self) -> bool:
        return self.availability is Availability.COMPATIBLE

    @property
    def has_result(self) -> bool:
        """Whether a measurement shows if the platform can execute the model."""
        return self.availability in (Availability.COMPATIBLE, Availability.INCOMPATIBLE)

    @property
    def level_without_rating(self) -> str:
        """The level of a cell that is not compatible: `N/A`, or `untried` if it is not measured."""
        return "untried" if self.availability is Availability.NOT_MEASURED else "N/A"


@dataclass(frozen=True)
class MatrixLine:
    """One model, or one family, across the platforms."""

    name: str
    family: str  # empty where the line is a family itself
    cells: Mapping[str, MatrixCell]


@dataclass(frozen=True)
class Matrix:
    """Models and families down, platforms across."""

    hardware: tuple[str, ...]
    models: tuple[MatrixLine, ...] = ()
    families: tuple[MatrixLine, ...] = ()
    newest: str = ""  # when the newest of its results was measured


def untimed(many: Sequence[Attempt]) -> str:
    """What is known of the time of attempts that have no rate."""
    if why := next((attempt.unusable for attempt in many if attempt.unusable), ""):
        return f"no time of it is usable: {why}"
    if tails := [attempt.tail for attempt in many if attempt.tail]:
        return f"of its time a percentile alone is known ({tails[0]}), no mean and no rate"
    return "nothing was timed"


def how_to_time(many: Sequence[Attempt], without: str) -> str:
    """How what was not timed gets a time; of what others measured nothing here says one."""
    if all(attempt.imported for attempt in many):
        return "It was imported: only its source can say more of its time."
    return f"Measure it: accelbench run without {without}."


def unlike_cpu(mine: Timed, cpu: Timed, verified: Sequence[Attempt]) -> str:
    """Why a platform's time is compared with nothing of the CPU.

    Args:
        mine: what was timed on the platform.
        cpu: on the CPU.
        verified: attempts on the CPU that count, timed or not.
    """
    if mine and cpu:
        return f"the CPU's results that count are of something else: {_otherwise(mine, cpu)}"
    if verified:
        return f"the CPU has no such time: {untimed(verified)}"
    return "the CPU has no verified and usable result"


def _otherwise(mine: Timed, theirs: Timed) -> str:
    """What the others were asked otherwise, of the two questions that have most in common."""
    pairs = (
        [(name, a, b) for name, a, b in zip(ASKED_IN, here, there, strict=True) if a != b]
        for here in mine
        for there in theirs
    )
    return ", ".join(
        f"{name.replace('_', ' ')} {_word(name, b)} there, {_word(name, a)} here"
        for name, a, b in min(pairs, key=lambda differences: (len(differences), str(differences)))
    )


def _word(name: str, value: object) -> str:
    if name == "unit":  # by the kind of what is counted, in the singular
        return f"{value}s/s" if value else "items/s"
    return NO_DATA if value is None else str(value)


def how_to_measure(attempt: Attempt) -> str:
    """Return a failed attempt's advice; after a refused precision, the command for another one."""
    card = card_of(attempt.way.runtime)
    if not attempt.of_precision or card is None or not card.precisions:
        return attempt.advice
    command = run_command(
        attempt.model, attempt.hardware, precision_arguments(default_precision("", card.name))
    )
    return f"{attempt.advice} Measure it: {command}".strip()


def command_to_try(model: str, hardware: str) -> str:
    """Return the command that measures a model on hardware where nothing of it was tried."""
    return run_command(model, hardware, default_precision_arguments(hardware))


_ORDER = (Rating.NONE, Rating.LOW, Rating.MEDIUM, Rating.HIGH)


def family_lines(models: Sequence[MatrixLine], hardware: Sequence[str]) -> tuple[MatrixLine, ...]:
    """One line a family, from the lines of its models."""
    of_family: dict[str, list[MatrixLine]] = defaultdict(list)
    for line in models:
        of_family[line.family].append(line)
    return tuple(
        MatrixLine(
            name,
            "",
            {hw: _families_cell([(m.name, m.cells[hw]) for m in lines]) for hw in hardware},
        )
        for name, lines in sorted(of_family.items())
    )


def _families_cell(named: Sequence[tuple[str, MatrixCell]]) -> MatrixCell:
    tried = [(n, c) for n, c in named if c.has_result]
    if not tried:
        return _same([cell for _, cell in named])
    runs = [(name, cell) for name, cell in tried if cell.compatible]
    broken = [name for name, cell in tried if not cell.compatible]
    if not runs:
        first = tried[0][1]
        reason = f"none of {_models(len(tried))} goes through; {tried[0][0]}: {first.reason}"
        return MatrixCell(
            Availability.INCOMPATIBLE, reason=reason, token=first.token, advice=first.advice
        )
    rating = _middle([cell.rating for _, cell in runs], len(broken))
    emulated = all(cell.emulated for _, cell in runs)
    return MatrixCell(
        Availability.COMPATIBLE,
        rating,
        _said(runs, broken, [cell for _, cell in named if not cell.has_result]),
        token=_token([cell for _, cell in runs]) if rating is Rating.NONE else "",
        emulated=emulated,
        runtimes=tuple(sorted({runtime for _, cell in runs for runtime in cell.runtimes})),
        workarounds=tuple(dict.fromkeys(w for _, cell in runs for w in cell.workarounds)),
    )


def _token(runs: Sequence[MatrixCell]) -> str:
    """Of models without a rating, why most of them have none."""
    counted = Counter(cell.token for cell in runs)
    return min(counted, key=lambda token: (-counted[token], token))


def _middle(ratings: Sequence[Rating], broken: int) -> Rating:
    """The lower of the two middle ratings; what is broken is the lowest, and nothing is high then.

    What goes through without a rating neither raises nor lowers it.
    """
    rated = [rating for rating in ratings if rating is not Rating.NONE]
    if not rated:
        return Rating.NONE
    levels = sorted([_ORDER.index(rating) for rating in rated] + [0] * broken)
    # Something does go through there: low, not none.
    middle = max(1, levels[(len(levels) - 1) // 2])
    return _ORDER[min(middle, 2) if broken else middle]


def _said(
    runs: Sequence[tuple[str, MatrixCell]], broken: Sequence[str], others: Sequence[MatrixCell]
) -> str:
    tried = len(runs) + len(broken)
    levels = [
        f"{sum(c.rating is r for _, c in runs)} {r}"
        for r in reversed(_ORDER)
        if any(c.rating is r for _, c in runs)
    ]
    summary = f"{len(runs)} of {_models(tried)} tried go through: {', '.join(levels)}"
    summary = summary.replace(" n/a", " without a rating")
    if broken:
        summary += f"; incompatible: {', '.join(broken)}"
    counts = sorted(Counter(cell.availability.value for cell in others).items())
    return "".join([summary, *(f"; {count} {availability}" for availability, count in counts)])


def _models(count: int) -> str:
    return f"{count} model{'' if count == 1 else 's'}"


def _same(cells: Sequence[MatrixCell]) -> MatrixCell:
    """Where nothing was tried, every model says why; the first speaks for all."""
    first = cells[0]
    return MatrixCell(
        first.availability, reason=first.reason, token=first.token, advice=first.advice
    )


#: A platform this many times as fast as the machine's CPU is rated high.
HIGH = 2.0
#: Launches alone differ by 3 to 7 %: what is within a tenth of the fastest is as good as it.
NEAR_BEST = 0.9
#: A fifth slower than the CPU, and the platform is a reason to stay on the CPU.
MEDIUM = 0.8

#: Tokens of what goes through and has no rating, as nobody compared or measured enough.
NOT_VERIFIED, NOT_SURE = "not_verified", "not_sure"
#: As tables call them.
UNRATED: Mapping[str, str] = {NOT_VERIFIED: "not verified", NOT_SURE: "not sure"}
_SURER = "Measure it again without --iterations, or with --launches 5."

RULE = (
    "One matrix is of one machine and one mode; of each case the run that says most counts.",
    (
        "Unless one is named, each platform is taken in the best precision that ran, which its cell"
        " says where it is not fp32; quantised ones count beside others where their verified error"
        f" is at most {MAX_ERROR:g}."
    ),
    "cpu is the fastest of the runtimes measured on the CPU itself; each cell says which.",
    (
        "Speed is the geometric mean of throughput ÷ the CPU's, over every batch and shape that"
        " both measured, verified on both sides, with the same threads asked for."
    ),
    (
        f"High: at least {HIGH:g}× the CPU, or at least {NEAR_BEST:.0%} of every other platform"
        " measured alike on this machine. The best of one is not high."
    ),
    f"Medium: at least {MEDIUM:g}× the CPU.",
    "Low: slower than that, or its outputs were wrong at another batch or in another launch.",
    "Not verified: it went through, and its outputs were not compared; most imports are so.",
    (
        f"Not sure: the interval of its speed is wider than a factor of {SURE:g}, and its ends are"
        f" of two levels. Fewer than 30 samples may be off by a factor of {FEW_DIFFER:g}."
    ),
    "N/A, incompatible: refused or failed (wrong outputs, export, memory, operators …).",
    (
        "N/A, not available: the hardware or a package is not there, or what ended it was the"
        " machine around it or what was asked (a full disk, a timeout …)."
    ),
    "Untried: the platform may be here, and nothing was measured on it.",
    (
        "Compatible without a rating: emulated, not timed, or no verified CPU result at the same"
        " shapes, threads, scenario and unit. What was timed before and only verified since keeps"
        " its time."
    ),
    (
        "A family's rating is the middle one of its models, the lower of two; incompatible models"
        " count as the lowest, and with one of them it is at most medium."
    ),
)


def matrix(
    rows: Iterable[Row],
    absences: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    *,
    best_precision: bool = False,
) -> Matrix:
    """The matrix of the rows of one machine, one mode, and one precision or the best of each.

    Args:
        rows: results by column name; only those measured or imported count.
        absences: why a platform that has no results is not there, where that is known.
        only: the platforms to show; all that the documents name, and any with results, if empty.
        best_precision: rows are of any precision: each platform is taken in the best that ran.
    """
    tried = attempts(
        (row for row in launches_of(rows) if row["comparable"]), any_precision=best_precision
    )
    by_model: dict[str, dict[str, list[Attempt]]] = defaultdict(lambda: defaultdict(list))
    for attempt in tried:
        by_model[attempt.model][attempt.hardware].append(attempt)
    hardware = tuple(only) or platforms(attempt.hardware for attempt in tried)
    lines = []
    for model in sorted(by_model, key=lambda m: (_family(by_model[m]), m)):
        cells = _cells(by_model[model], hardware, absences or {})
        lines.append(MatrixLine(model, _family(by_model[model]), cells))
    newest = max((attempt.moment for attempt in tried), default="")
    return Matrix(hardware, tuple(lines), family_lines(lines, hardware), newest)


#: Shown only when something was tried on them: the documents' matrix has the eight before.
_RARE = ("wasm", "tpu")


def platforms(tried: Iterable[str]) -> tuple[str, ...]:
    """The documents' platforms in their order, then what else was tried."""
    names = set(tried)
    own = tuple(name for name in HARDWARE if name not in _RARE or name in names)
    return (*own, *sorted(names - set(own)))


def _family(by_hardware: Mapping[str, Sequence[Attempt]]) -> str:
    """As the newest result says it: a custom model may have changed its family."""
    return max(
        (attempt.moment, attempt.family) for many in by_hardware.values() for attempt in many
    )[1]


def _cells(
    tried: Mapping[str, Sequence[Attempt]], hardware: Sequence[str], absences: Mapping[str, str]
) -> dict[str, MatrixCell]:
    timed = {name: fastest(_countable(many)) for name, many in tried.items()}
    model = min((attempt.model for many in tried.values() for attempt in many), default="MODEL")
    theirs = all(attempt.imported for many in tried.values() for attempt in many)
    untried = {
        # A matrix is of one machine: what runs here never stands beside what others measured.
        name: f"No result of this source on {name} is here: import some, where it has any."
        if theirs
        else f"Measure it: {command_to_try(model, name)}"
        for name in hardware
    }
    return {
        name: _cell(
            tried.get(name, ()),
            name,
            timed,
            tried.get("cpu", ()),
            absences.get(name, ""),
            untried[name],
        )
        for name in hardware
    }


def _countable(many: Sequence[Attempt]) -> list[Attempt]:
    """What may be compared by time: real, verified, and wrong at no other batch either.

    Of several precisions those that are quantised only within a small error, unless there is no
    other: what an NPU computes in int8 alone is what it is worth.
    """
    wrong = {attempt.way for attempt in many if attempt.wrong}
    candidates = [
        attempt
        for attempt in many
        if attempt.verified and not attempt.emulated and attempt.way not in wrong
    ]
    exact = [attempt for attempt in candidates if attempt.exact]
    return exact if exact and any(attempt.way.precision for attempt in candidates) else candidates


def _cell(
    many: Sequence[Attempt],
    name: str,
    timed: Mapping[str, Timed],
    of_cpu: Sequence[Attempt],
    absence: str,
    untried: str,
) -> MatrixCell:
    good = [attempt for attempt in many if attempt.ok]
    if not good:
        return _impossible(many, absence, untried)
    real = [attempt for attempt in good if not attempt.emulated]
    if not real:
        return _emulated(many, good)
    mine = timed[name]
    if mine:
        return _rated(name, many, list(mine.values()), timed, of_cpu)
    counted = _countable(many)
    if counted:
        reason = f"its outputs are verified; {untimed(counted)}"
        return _found(
            many,
            counted,
            Rating.NONE,
            reason,
            "not_timed",
            how_to_time(counted, "--verify-only"),
        )
    if not any(attempt.throughput for attempt in real):
        reason = f"it went through; {untimed(real)}, and nothing verified: {_unverified(many)}"
        return _found(
            many,
            real,
            Rating.NONE,
            reason,
            "nothing_shown",
            how_to_time(real, "--verify-only and --benchmark-only"),
        )
    if any(attempt.wrong for attempt in many):
        why = f"its outputs are not trusted: {_unverified(many)}"
        return _found(
            many, real, Rating.LOW, why, WRONG, "Look into it: accelbench matrix --explain"
        )
    imported = all(attempt.imported for attempt in real)
    return _found(
        many,
        real,
        Rating.NONE,
        f"its outputs are not verified: {_unverified(many)}",
        NOT_VERIFIED,
        "It was imported, and imports verify nothing: measure it with "
        + command_to_try(real[0].model, real[0].hardware)
        if imported
        else "Measure it again without --benchmark-only.",
    )


def _impossible(many: Sequence[Attempt], absence: str, untried: str) -> MatrixCell:
    """Nothing went through: what the hardware refuses comes before what is missing around it."""
    refused = [attempt for attempt in many if attempt.refused]
    worst = min(refused or many, key=_gravity, default=None)
    if worst is None:
        state = Availability.NOT_AVAILABLE if absence else Availability.NOT_MEASURED
        reason = f"not here: {absence}" if absence else "nothing was measured on it"
        token = "hardware_absent" if absence else "never_measured"
        advice = "accelbench hardware says what would bring it." if absence else untried
        return MatrixCell(state, reason=reason, token=token, advice=advice)
    cause = f"{worst.reason}: {worst.message}" if worst.message else worst.reason
    by = "" if worst.way.runtime in ("none", "") else f"{worst.way.runtime}: "
    return MatrixCell(
        Availability.INCOMPATIBLE if refused else Availability.NOT_AVAILABLE,
        reason=f"{by}{cause}" if refused else cause,
        token=worst.reason,
        advice=how_to_measure(worst),
        runtimes=(worst.way.runtime,) if by else (),
        verification=worst.verification,
        workarounds=worst.workarounds,
        emulated=worst.emulated,
        run_id=worst.run_id,
        notes=_notes([attempt for attempt in many if not _alike(attempt, worst)]),
    )


def _alike(attempt: Attempt, other: Attempt) -> bool:
    return (attempt.way.runtime, attempt.reason, attempt.message) == (
        other.way.runtime, other.reason, other.message,
    )  # fmt: skip


def _gravity(attempt: Attempt) -> tuple[bool, str, int, str]:
    """Failures before refusals, small batches before large."""
    return attempt.status == "unsupported", attempt.way.runtime, attempt.batch, attempt.reason


def _emulated(many: Sequence[Attempt], good: Sequence[Attempt]) -> MatrixCell:
    verified = [attempt for attempt in good if attempt.verified and not _is_wrong(attempt, many)]
    reason = "compatible (emulated): software stood in for the device, so its times mean nothing"
    if not verified:
        reason += f"; its outputs are not verified: {_unverified(many)}"
    return _found(many, verified or good, Rating.NONE, reason, "emulated", emulated=True)


def _is_wrong(attempt: Attempt, many: Sequence[Attempt]) -> bool:
    return any(other.wrong and other.way == attempt.way for other in many)


def _unverified(many: Sequence[Attempt]) -> str:
    wrong = next((attempt for attempt in many if attempt.wrong), None)
    if wrong is not None:
        return f"they were wrong at batch {wrong.batch}"
    return next(
        (attempt.why_unverified for attempt in many if attempt.why_unverified),
        "nothing was compared",
    )


def _rated(
    name: str,
    many: Sequence[Attempt],
    used: Sequence[Attempt],
    timed: Mapping[str, Timed],
    of_cpu: Sequence[Attempt],
) -> MatrixCell:
    pace = ratio(timed[name], timed.get("cpu", {}))
    if pace is None:
        why = f"timed, but {unlike_cpu(timed[name], timed.get('cpu', {}), _countable(of_cpu))}"
        return _found(
            many, used, Rating.NONE, why, "no_cpu_result", "Measure the same with --hardware cpu."
        )
    others = [
        other_ratio
        for other, them in timed.items()
        if other != name and (other_ratio := ratio(timed[name], them))
    ]
    best = bool(others) and all(other.value >= NEAR_BEST and other.sure for other in others)
    summary = _speed_said(name, pace, best, used)
    low, high = (rating(end, best) for end in pace.ends)
    if low is not high and not pace.sure:
        least, most = pace.ends
        why = f"{summary}, and may be {least:.2g} to {most:.2g}×, which is {low} to {high}"
        return _found(many, used, Rating.NONE, why, NOT_SURE, _SURER, speed=pace)
    return _found(many, used, rating(pace.value, best), summary, speed=pace)


def rating(speed: float, among_best: bool) -> Rating:
    """The level of a verified platform that is so many times as fast as the CPU."""
    if speed >= HIGH or among_best:
        return Rating.HIGH
    return Rating.MEDIUM if speed >= MEDIUM else Rating.LOW


def _speed_said(name: str, pace: PlatformRatio, best: bool, used: Sequence[Attempt]) -> str:
    over = f"batch {', '.join(map(str, pace.batches))}"
    if name == "cpu":
        summary = f"the CPU itself, by {' and '.join(_runtimes(used))}, over {over}"
    else:
        summary = f"{pace.value:.2f}× the CPU's throughput over {over}{_in_precisions(used)}"
    if best and pace.value < HIGH:
        summary += f"; at least {NEAR_BEST:.0%} of every other platform measured alike"
    return summary


def _in_precisions(used: Sequence[Attempt]) -> str:
    """In which precision, where the CPU's may be another."""
    names = _precisions(used)
    return f", in {' and '.join(names)}, each in the best that ran" if names else ""


def _precisions(used: Sequence[Attempt]) -> tuple[str, ...]:
    """Of the ways that were fastest, where several precisions stand beside each other."""
    counted = Counter(attempt.way.precision for attempt in used if attempt.way.precision)
    return tuple(sorted(counted, key=lambda name: (-counted[name], name)))


def _runtimes(used: Sequence[Attempt]) -> tuple[str, ...]:
    """Who was fastest, the one that was so most often first."""
    counted = Counter(str(attempt.way) for attempt in used)
    return tuple(sorted(counted, key=lambda way: (-counted[way], way)))


def _found(
    many: Sequence[Attempt],
    used: Sequence[Attempt],
    level: Rating,
    reason: str,
    token: str = "",
    advice: str = "",
    *,
    speed: PlatformRatio | None = None,
    emulated: bool = False,
) -> MatrixCell:
    """A compatible cell, with what its results say of themselves."""
    newest = max(used, key=lambda attempt: (attempt.moment, attempt.run_id))
    unlike = [attempt.verification for attempt in used if not attempt.verified]
    return MatrixCell(
        Availability.COMPATIBLE,
        level,
        reason,
        token,
        advice,
        speed=None if speed is None else speed.value,
        batches=() if speed is None else speed.batches,
        runtimes=_runtimes(used),
        precisions=_precisions(used),
        verification=unlike[0] if unlike else used[0].verification,
        error=max((attempt.error for attempt in used if attempt.error is not None), default=None),
        workarounds=tuple(dict.fromkeys(w for attempt in used for w in attempt.workarounds)),
        emulated=emulated,
        run_id=newest.run_id,
        notes=_notes(many),
    )


def _notes(many: Sequence[Attempt]) -> tuple[str, ...]:
    """What else happened on the platform, each thing once with the batches it happened at."""
    at: dict[str, list[int]] = defaultdict(list)
    for attempt in many:
        way = f"{attempt.way} {attempt.way.precision}".rstrip()
        for lost in attempt.lost:
            at[f"{way}: {len(attempt.lost)} of {attempt.launches} launches failed, {lost}"].append(
                attempt.batch
            )
        if attempt.timed_in:
            at[f"{way}: timed in run {attempt.timed_in}, verified since"].append(attempt.batch)
        if not attempt.ok:
            failure = f"{attempt.reason}, {attempt.message}" if attempt.message else attempt.reason
            at[f"{way}: {failure}"].append(attempt.batch)
    return tuple(
        f"{note} (batch {', '.join(map(str, sorted(set(batches))))})"
        for note, batches in sorted(at.items())
    )
