"""Cases of devices that are not here: calculated, said to be so, and never measured.

Nothing is started for them — no worker, no export, no reference — and nothing is learned
from them. How a case is calculated is handed in: it is not of this room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from accelbench.core.case import Case
from accelbench.core.columns import COLUMNS
from accelbench.core.facts import RESULT, Fact, utc_now
from accelbench.core.outcome import Outcome
from accelbench.core.provenance import SIMULATION
from accelbench.core.vocabulary import Mode, Provenance, Status
from accelbench.run.conduct.missing_reasons import RETRIEVES, TRAINS
from accelbench.run.conduct.results import LaunchFacts, compose
from accelbench.run.plan.request import Planned
from accelbench.run.plan.simulated_cases import counted_as
from accelbench.run.process import process_control
from accelbench.run.process.memory_guard import MemoryGuard

if TYPE_CHECKING:
    from accelbench.run.conduct.launch_context import LaunchContext

_NOTHING_RAN = "simulated: nothing was run"

#: Empty for a reason of the case or of the catalogue, whether it runs or not.
_OF_THE_CASE = {
    "reason", "message", "advice", "flops", "bytes_moved", "memory_estimate_mb", "extra",
    "tokens_per_second", "ttft_ms", "tpot_ms", "prefill_ms", "decode_ms", "data_load_ms",
    "data_digest", "cost_usd",
}  # fmt: skip


def simulate_group(
    context: LaunchContext,
    launch_facts: LaunchFacts,
    cases: Sequence[Planned],
    first: int,
    total: int,
) -> None:
    """Record what each case of a group comes to."""
    room = MemoryGuard(context)
    for number, planned in enumerate(cases, first):
        context.observer.case_started(planned.case, launch_facts.launch, number, total)
        started_at = utc_now()
        body = compose(
            launch_facts,
            planned,
            _told(planned, _outcome(context, planned, room)),
            Provenance.SIMULATED,
            context.cost(planned),
            started_at,
            utc_now(),
            context.estimate(planned.case),
        )
        with process_control.undisturbed():
            context.append(Fact(RESULT, body["result_id"], body))
            context.tally.add(counted_as(body))
            context.observer.case_finished(body)


def _outcome(context: LaunchContext, planned: Planned, room: MemoryGuard) -> Outcome:
    no = planned.refusal
    if no is not None:
        return Outcome(no.status, no.reason, no.message, no.advice)
    room.look(planned)
    refused = room.refused(planned)
    if refused is not None:
        advice = f"{refused.advice} {room.advice(planned)}".strip()
        return replace(refused, advice=advice)
    assert planned.roofline is not None
    if context.simulate is None:
        place = planned.case.target.place
        return Outcome(
            Status.UNSUPPORTED,
            "hardware_absent",
            f"{place} is not present, and nothing here calculates what it would do",
            "Use the command line: accelbench run --simulate.",
        )
    return context.simulate(planned.case, planned.roofline)


def _told(planned: Planned, outcome: Outcome) -> Outcome:
    """An outcome with the device it is of, and why all else is empty."""
    roofline = planned.roofline
    assert roofline is not None
    metrics = outcome.measurement.get("metrics", {})
    about = {
        "device": roofline.device,
        "source": roofline.source,
        "bytes_per_second": roofline.bytes_per_second,
        "memory_bytes": roofline.memory_bytes,
        **outcome.conditions,
    }
    return replace(
        outcome,
        measurement={"metrics": {"device_name": roofline.device, **metrics}},
        conditions={SIMULATION: about},
        null_reasons=_not_run(planned.case) if outcome.status is Status.OK else {},
    )


def _not_run(case: Case) -> dict[str, str]:
    """Why whatever can only be measured is empty."""
    kind = set() if case.mode is Mode.TRAINING else set(TRAINS)
    if not (case.procedure == "rag" and case.generates):
        kind |= RETRIEVES
    names = {col.name for col in COLUMNS if col.role != "case"} | {"threads", "device_fingerprint"}
    return dict.fromkeys(names - kind - _OF_THE_CASE, _NOTHING_RAN)
