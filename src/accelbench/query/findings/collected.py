"""All findings of some results, the most important first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.analysis.checking import Check
from accelbench.analysis.points import Point
from accelbench.analysis.run_noise import Histories
from accelbench.core.rows import Row
from accelbench.query.findings.best import best_findings
from accelbench.query.findings.changes import change_findings
from accelbench.query.findings.engines import engine_findings
from accelbench.query.findings.failures import failure_findings
from accelbench.query.findings.finding import StoreFinding, foremost, ranked
from accelbench.query.findings.phrases import crowded
from accelbench.query.findings.precisions import FULL, precision_findings
from accelbench.query.findings.steadiness import steadiness_findings
from accelbench.query.findings.tasks import TaskBest, best_of_tasks
from accelbench.query.findings.unmeasured import unmeasured_findings
from accelbench.query.findings.versus import every_versus

#: What is said where there is nothing to say.
NOTHING = "Nothing here says enough for a finding: nothing stands beside anything else."


@dataclass(frozen=True)
class Findings:
    """What some results say.

    Attributes:
        every: all findings, the most important first.
        tasks: what is best of each task.
        check: what became of it since the runs before; None where nobody asked or nothing was.
    """

    every: Sequence[StoreFinding] = ()
    tasks: Sequence[TaskBest] = ()
    check: Check | None = None

    @property
    def foremost(self) -> list[StoreFinding]:
        """Those that stand at the top."""
        return foremost(self.every)


def findings_of(
    rows: Sequence[Row],
    points: Sequence[Point],
    known: Histories,
    check: Check | None = None,
    sign: str = "$",
) -> Findings:
    """What results of one machine say.

    Args:
        rows: of every status.
        points: what of them has figures.
        known: the older runs of these.
        check: the newest run against those before.
        sign: of the currency that costs are in.
    """
    several = crowded(rows)
    tasks = best_of_tasks(points, known, several, sign)
    engines = every_versus(rows, "runtime", known)
    precisions = every_versus(rows, "precision", known, FULL)
    won = [*(("runtime", versus) for versus in engines)]
    won += [("precision", versus) for versus in precisions]
    every = [
        *change_findings(check),
        *failure_findings(rows, points),
        *best_findings(tasks, several),
        *engine_findings(engines, several),
        *precision_findings(precisions, several),
        *steadiness_findings(points),
        *unmeasured_findings(rows, won, several),
    ]
    return Findings(ranked(every), tasks, check)
