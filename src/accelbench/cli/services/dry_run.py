"""`accelbench run --dry-run`: what a run would do, and roughly how long it would take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, Any

from accelbench.cli.services.asked import AskedRun
from accelbench.cli.services.forecasting import outlook
from accelbench.cli.services.running import OutputPlaces, prepare
from accelbench.core.axes import AXES
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK
from accelbench.core.visible import visible
from accelbench.hardware.machine import busy_warning, snapshot
from accelbench.present.terminal.terminal import complain, print_line
from accelbench.present.terminal.words import duration
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.execute import here
from accelbench.run.plan.estimates import tried_groups
from accelbench.run.plan.request import Planned
from accelbench.run.plan.run_forecast import CaseForecast, PlanForecast
from accelbench.run.plan.targets import (
    NAMED,
    lacking,
    missing_places,
    nothing_measured,
    planned_rows,
)


def show_plan(asked: AskedRun, places: OutputPlaces, stream: IO[str], as_json: bool) -> int:
    """Show what a run would do and how long it would take; nothing is measured.

    Returns:
        The exit code: that of a run which measures all that would be tried.
    """
    planned = prepare(asked, places, *here())
    expected = outlook(planned, places.open_database())
    seconds = expected.seconds
    launches = planned.settings.launches
    busy = busy_warning(snapshot()) if planned.measurements else None
    notes = [*planned.plan.notes, *expected.notes, *([busy] if busy else [])]
    if as_json:
        document = {
            "cases": [_case_entry(p, expected.forecast) for p in planned.plan.cases],
            "launches": launches,
            "against": planned.other.against.name if planned.other else None,
            "notes": notes,
            **({"plan_files": asked.plans.about} if asked.plans.about else {}),
            "seconds_low": seconds.low,
            "seconds_high": seconds.high,
            "predicted_cases": seconds.predicted,
            "learned_from": expected.forecast.learned_from,
            "learned_imported": expected.forecast.learned_imported,
        }
        stream.write(json.dumps(document) + "\n")
        return _exit_code(planned)
    for note in notes:
        print_line(f"Note: {note}", stream)
    for number, entry in enumerate(planned.plan.cases, 1):
        why = f": {entry.refusal.status.value} — {entry.refusal.message}" if entry.refusal else ""
        why = why or (": simulated, not measured" if entry.roofline else "")
        threads = entry.case.options.get("threads")
        own = f" · {threads} thread{'s' * (threads != 1)}" if threads else ""
        print_line(f"{number:4d}  {entry.case}{own}{why}", stream)
    times = f" × {launches} launches" if launches > 1 else ""
    times += f", in turns with {visible(planned.other.against.name)}" if planned.other else ""
    noun = "case" if len(planned.plan.cases) == 1 else "cases"
    how_long = (
        f"between {duration(seconds.low)} and {duration(seconds.high)}, {expected.rests_on}"
        if any(tried_groups(plan) for _, plan, _ in planned.arms)
        else _why_none(planned.plan.cases)
    )
    print_line(f"{len(planned.plan.cases)} {noun}{times}; {how_long}.", stream)
    return _exit_code(planned)


def _exit_code(planned: PlannedRun) -> int:
    """Name the targets that would have no result, and return 3 if there are any."""
    tried = [entry for group in tried_groups(planned.plan) for entry in group]
    rows = planned_rows(planned.plan.cases, tried)
    lacks = lacking(planned.about.get(NAMED) or {}, rows)
    for place in missing_places(lacks):
        complain(f"Nothing would be measured {place}")
    return EXIT_ENVIRONMENT if lacks or nothing_measured(rows) else EXIT_OK


def _why_none(cases: Sequence[Planned]) -> str:
    refused = sum(entry.refusal is not None for entry in cases)
    simulated = sum(entry.refusal is None and entry.roofline is not None for entry in cases)
    large = len(cases) - refused - simulated
    counts = {"refused": refused, "larger than memory": large, "simulated": simulated}
    words = [f"{count:,} {name}" for name, count in counts.items() if count]
    return f"nothing would be measured: {', '.join(words)}"


def _case_entry(planned: Planned, forecast: PlanForecast) -> dict[str, Any]:
    known = forecast.cases.get(planned.key)
    case, refusal = planned.case, planned.refusal
    will_be = "planned" if planned.roofline is None else "simulated"
    return {
        "case_id": case.case_id,
        "model": case.model.id,
        "runtime": case.target.runtime,
        "hardware": case.target.hardware,
        "device": str(planned.device) if planned.device else None,
        "precision": case.precision,
        "batch_size": case.shapes.batch,
        **{axis.column: getattr(case.shapes, axis.field) for axis in AXES},
        "mode": case.mode.value,
        "options": dict(case.options),
        "status": refusal.status.value if refusal else will_be,
        "reason": refusal.message if refusal else None,
        "predicted": None if known is None else _prediction(known),
    }


def _prediction(known: CaseForecast) -> dict[str, float | None]:
    step, memory = known.step, known.memory_bytes
    return {
        "step_seconds": step.middle,
        "step_seconds_low": step.low,
        "step_seconds_high": step.high,
        "memory_mb": None if memory is None else memory / 2**20,
    }
