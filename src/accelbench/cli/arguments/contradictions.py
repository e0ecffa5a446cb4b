"""Options of `accelbench run` that would silently be ignored beside others are refused instead."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.cli.arguments.run_words import Typed
from accelbench.core.errors import UsageError
from accelbench.core.word_lists import words

#: What may stand beside --resume: everything else was settled when the run began.
_BESIDE_RESUME = frozenset(
    {"resume", "db", "db_path", "no_database", "output_dir", "output_ci", "as_json", "quiet"}
    | {"save", "compare", "create_report", "prices", "threshold"}
)


def refuse_contradictions(given: Mapping[str, str], typed: Typed) -> None:
    """Refuse what contradicts itself.

    Args:
        given: the parameters that were given, and how each is named to people.
        typed: the values of all parameters.
    """
    settled = [option for name, option in given.items() if name not in _BESIDE_RESUME]
    if "resume" in given and settled:
        raise UsageError(
            f"A resumed run keeps what it began with: {settled[0]} cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    if "profile" in given and "verify_only" in given:
        raise UsageError(
            "--profile and --verify-only contradict each other: what is not timed has no profile.",
            "Leave one out.",
        )
    _refuse_unlike_fed(given)
    if "energy" in given and "verify_only" in given:
        raise UsageError(
            "--energy and --verify-only contradict each other: what does not step takes no energy.",
            "Leave one out.",
        )
    if "against" in given and (beside := given.keys() & {"profile", "verify_only", "simulate"}):
        word = given[min(beside)]
        raise UsageError(
            f"--against and {word} contradict each other: it compares times with each other.",
            "Leave one out.",
        )
    if "threshold" in given and not given.keys() & {"against", "resume"}:
        raise UsageError(
            "--threshold is of --against: a run alone is compared with nothing.",
            "Name what it is compared with, or check it afterwards with `accelbench check`.",
        )
    if "prices" in given and not given.keys() & {"compare", "create_report"}:
        raise UsageError("--prices shows in --compare and --create-report.", "Add one of them.")
    if "simulate" in given:
        _refuse_unlike_simulating(given, typed)
    if "no_database" in given and ("db" in given or "db_path" in given):
        raise UsageError("--no-database and --db contradict each other.", "Leave one out.")


def _refuse_unlike_fed(given: Mapping[str, str]) -> None:
    """What is fed comes from one place, and labels come with it."""
    if "input_file" in given and "data" in given:
        raise UsageError(
            "--input-file and --data contradict each other: both are what is fed.", "Leave one out."
        )
    beside = given.keys() & {"accuracy", "accuracy_samples", "preprocessing"}
    if beside and "data" not in given:
        raise UsageError(
            f"{given[min(beside)]} is of labelled data, and none is named.", "Name it with --data."
        )


def _refuse_unlike_simulating(given: Mapping[str, str], typed: Typed) -> None:
    """What is calculated has no outputs."""
    if "verify_only" in given or typed["verify"] == "require":
        word = "--verify-only" if "verify_only" in given else "--verify require"
        raise UsageError(
            f"--simulate and {word} contradict each other: what is not run has no outputs.",
            "Leave one out.",
        )


def refuse_simulating_all(simulate: bool, hardware: list[str] | None) -> None:
    """Only what is named can be missed, and is then simulated."""
    named = [name.lower() for name in words(hardware)]
    if simulate and (not named or named in (["all"], ["auto"])):
        raise UsageError(
            "--simulate needs --hardware: only what is named, and is not here, is simulated.",
            "Name it, such as --hardware cuda:a100-80gb.",
        )
