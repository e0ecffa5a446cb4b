"""Why what went through has no rating: nothing timed it, or nothing of the CPU is alike. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.analysis.attempts import ASKED_IN, Attempt
from accelbench.analysis.speed import Timed
from accelbench.core.absent import NO_DATA
from accelbench.core.cards import cards, default_precision
from accelbench.core.run_words import default_precision_words, precision_words, run_command


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
    card = cards().get(attempt.way.runtime)
    if not attempt.of_precision or card is None or not card.precisions:
        return attempt.advice
    command = run_command(
        attempt.model, attempt.hardware, precision_words(default_precision("", card.name))
    )
    return f"{attempt.advice} Measure it: {command}".strip()


def command_to_try(model: str, hardware: str) -> str:
    """Return the command that measures a model on hardware where nothing of it was tried."""
    return run_command(model, hardware, default_precision_words(hardware))
