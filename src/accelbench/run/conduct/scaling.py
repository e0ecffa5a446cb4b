"""Scaling efficiency: several processes compared with one, both measured in the same run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.columns import step_ms
from accelbench.core.vocabulary import Status
from accelbench.hardware.machine import threads_of_each
from accelbench.run.plan.request import Planned
from accelbench.run.plan.sharing import one_process

COLUMN = "scaling_efficiency"

#: Of what was estimated: how far the largest process's memory may be from it unsaid.
ESTIMATE_BOUND = 0.15


@dataclass
class OneProcessTimes:
    """The last time of a step in one process, by case and device."""

    _seen: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> OneProcessTimes:
        """Return the times of results before a run was cut off."""
        times = cls()
        for row in rows:
            times._note(row)
        return times

    def look(self, body: MutableMapping[str, Any], planned: Planned, nodes: int) -> None:
        """Note one process's time; give several processes their efficiency, or why there is
        none."""
        # Launches alternate in their order: the last time before is the nearest one.
        if body.get("status") != Status.OK:
            return
        case = planned.case
        if case.world_size == 1:
            self._note(body)
            return
        _hold_estimate(body)
        asked = case.options.get("threads")
        threads = threads_of_each(None if asked is None else int(asked), case.world_size // nodes)
        alone = self._seen.get((one_process(case, threads).case_id, str(body["device"])))
        together = step_ms(body)
        if alone is None or not together:
            nulls = {**(body.get("nulls") or {}), COLUMN: "one process was not measured before it"}
            body["nulls"] = nulls
            return
        body[COLUMN] = alone / (case.world_size * together)
        body["nulls"] = {k: why for k, why in (body.get("nulls") or {}).items() if k != COLUMN}

    def _note(self, row: Mapping[str, Any]) -> None:
        duration = step_ms(row)
        if row.get("status") == Status.OK and row.get("world_size") == 1 and duration:
            self._seen[(str(row["case_id"]), str(row["device"]))] = duration


def _hold_estimate(body: MutableMapping[str, Any]) -> None:
    """Warn if the estimate that the plan relied on was wrong."""
    estimate, peak = body.get("memory_estimate_mb"), body.get("memory_peak_mb")
    if not estimate or peak is None or abs(peak / estimate - 1) <= ESTIMATE_BOUND:
        return
    text = (
        f"The largest process took {peak:.0f} MB where {estimate:.0f} MB were estimated,"
        f" {abs(peak / estimate - 1):.0%} {'more' if peak > estimate else 'less'}."
    )
    body["warnings"] = [*(body.get("warnings") or ()), text]
