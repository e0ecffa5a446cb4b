"""`check --rerun`: what seems worse is measured again before it is said to be.

Suspects run in as many fresh launches as the noise asks for, in turns with each other: a slow
moment of the machine falls on all of them. What the second time gives no figure for stays as the
first judged it.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accelbench.analysis.checking import BAD, Check, CheckedQuestion, Outcome
from accelbench.cli.services.measuring import measured
from accelbench.core.errors import UsageError
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.query.baselines import rows_of_runs
from accelbench.query.histories import RERUN_OF
from accelbench.run.conduct import lifecycle

if TYPE_CHECKING:
    from accelbench.query.baselines import Baseline
    from accelbench.store.database import Database

_SUSPECT = (*BAD, Outcome.CANNOT_TELL)


def rerun_of(
    database: Database, check: Check, baseline: Baseline, threshold: float | None
) -> tuple[Check, Baseline]:
    """Measure suspects again, and judge those by what that gives; the rest stays as it was."""
    suspects = [
        question
        for question in check.questions
        if question.outcome in _SUSPECT and _may_help(question)
    ]
    if not suspects:
        return check, baseline
    runs = _measured(database, suspects, _launches(suspects))
    again = replace(baseline, now=rows_of_runs(database, runs)).check(threshold)
    second = {
        str(question.row["case_id"]): question for question in again.questions if question.figures
    }
    questions = tuple(
        second.get(str(question.row["case_id"]), question) if question in suspects else question
        for question in check.questions
    )
    return replace(check, questions=questions), replace(baseline, runs=(*baseline.runs, *runs))


def _may_help(question: CheckedQuestion) -> bool:
    """Whether more launches of now could decide it: not where the baseline has too few."""
    if question.before is None:
        return False
    return question.outcome is not Outcome.CANNOT_TELL or any(
        figure.required is not None for figure in question.figures
    )


def _launches(questions: Sequence[CheckedQuestion]) -> int:
    """As many as the noise of the loudest asks for."""
    wanted = [figure.required or 0 for question in questions for figure in question.figures]
    return max([FEWEST_LAUNCHES, *wanted])


def _measured(database: Database, questions: Sequence[CheckedQuestion], launches: int) -> list[str]:
    """Run the cases of those questions as they were planned; the runs that this made."""
    by_run: dict[str, set[str]] = {}
    for question in questions:
        by_run.setdefault(str(question.row["run_id"]), set()).add(str(question.row["case_id"]))
    command = shlex.join(["accelbench", *sys.argv[1:]])
    return measured(
        database,
        lambda hardware, _: (
            lifecycle.again(
                _begun(database, run),
                cases,
                launches,
                {"command": command, "label": f"{RERUN_OF}{run}"},
                hardware,
            )
            for run, cases in by_run.items()
        ),
    )


def _begun(database: Database, run: str) -> dict[str, Any]:
    """What the run said when it began."""
    _, rows = database.query(
        "SELECT body::VARCHAR FROM fact WHERE kind = 'run_started' AND run_id = ? ORDER BY line",
        [run],
    )
    body: dict[str, Any] = json.loads(str(rows[0][0])) if rows else {}
    if "plan" not in body:
        raise UsageError(f"Run {run} was not measured here: it cannot be measured again.")
    _, rows = database.query(
        "SELECT body->'plan' FROM fact WHERE kind = 'run_extended' AND run_id = ? ORDER BY line",
        [run],
    )
    body["plan"] = [*body["plan"], *(case for (more,) in rows for case in json.loads(str(more)))]
    return body
