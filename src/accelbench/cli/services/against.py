"""`run --against`: the other arm of a run, and what the two come to beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.cli.arguments.resolved_values import runtime_options
from accelbench.core.case import Option
from accelbench.core.errors import EXIT_INCONCLUSIVE, EXIT_NO, EXIT_OK, UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.run.plan.request import Against, AgainstKind, OtherArm, asked_otherwise, meant

if TYPE_CHECKING:
    from accelbench.core.run_options import RunSettings
    from accelbench.judge.regressions import Check
    from accelbench.run.plan.request import Plan, Request

_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


def against_of(word: str | None) -> Against | None:
    """What `--against` names."""
    return None if word is None else meant(word)


def other_of(
    against: Against | None,
    requests: Sequence[Request],
    settings: RunSettings,
    plan: Plan,
    planned: Callable[[Sequence[Request]], Plan],
) -> OtherArm | None:
    """The arm that a run is compared with."""
    if against is None:
        return None
    if against.kind is not AgainstKind.SETTING:
        return OtherArm(against, plan, settings)
    setting, theirs = _setting(against), settings
    otherwise = []
    for request in requests:
        changed, theirs = asked_otherwise(request, settings, *setting)
        otherwise.append(changed)
    other = planned(otherwise)
    before = {(case.case.case_id, theirs.threads) for case in other.cases}
    if before == {(case.case.case_id, settings.threads) for case in plan.cases}:
        raise UsageError(
            f"--against {against.word} changes nothing: it is what every case has already, or of a"
            " runtime that none is of.",
            "Name a setting that differs.",
        )
    return OtherArm(against, other, theirs)


def _setting(against: Against) -> tuple[str, Option | Mapping[str, Option]]:
    name, value = against.setting
    if name == "threads":
        if not value.isdigit() or int(value) < 1:
            raise UsageError(
                f"--against threads={value}: {in_quotes(value)} is no number of threads."
            )
        return name, int(value)
    if name == "compile":
        if value.lower() not in _YES_OR_NO:
            raise UsageError(f"--against compile={value}: it is yes or no.")
        return name, _YES_OR_NO[value.lower()]
    ((runtime, options),) = runtime_options([against.word]).items()
    return runtime, options


def held(
    rows: Sequence[Mapping[str, Any]], started: Mapping[str, Any], threshold: float | None
) -> tuple[Check, dict[str, Any]] | None:
    """Return the check of a run's arms and what has to be known of it; None if it has no arms."""
    from accelbench.judge.arms import checked_arms, names_of_arms
    from accelbench.judge.machines import machine_of

    names = names_of_arms(rows)
    if not names:
        return None
    run = str(started.get("run_id"))
    about = {
        "baseline": names[0],
        "runs": [run],
        "labels": {run: started["label"]} if started.get("label") else {},
        "machine": str(machine_of(run, started.get("environment"))),
        "threshold": threshold,
        "notes": [],
    }
    return checked_arms(rows, threshold), about


def exit_code(check: Check) -> int:
    """Return the exit code of a check."""
    from accelbench.judge.regressions import Outcome

    exits = {Outcome.WORSE: EXIT_NO, Outcome.CANNOT_TELL: EXIT_INCONCLUSIVE}
    return exits.get(check.outcome, EXIT_OK)
