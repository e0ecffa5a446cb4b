"""The compatibility matrix: what each platform of one machine is worth for each model. Pure.

The rule is in docs/matrix.md and, in short, in `RULE`, which is what `--explain` prints.
Its constants are here and nowhere else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from accelbench.analysis.attempts import FEW_DIFFER, WRONG, Attempt, attempts
from accelbench.analysis.cells import Availability, Matrix, MatrixCell, MatrixLine, Rating
from accelbench.analysis.families import family_lines
from accelbench.analysis.speed import SURE, PlatformRatio, Timed, fastest, ratio
from accelbench.analysis.unrated import (
    command_to_try,
    how_to_measure,
    how_to_time,
    unlike_cpu,
    untimed,
)
from accelbench.core.exactness import MOST_ERROR
from accelbench.core.provenance import comparable
from accelbench.core.rows import Row
from accelbench.core.vocabulary import HARDWARE

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
        f" is at most {MOST_ERROR:g}."
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
    tried = attempts(filter(comparable, rows), any_precision=best_precision)
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
