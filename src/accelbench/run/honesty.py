"""Whether the time was the work's: checks on a runtime that returns early, or remembers.

They run after everything of a case is measured, once a worker, and take some ten steps.
What they look for cannot come from noise: it would have to strike every one of several
tries, by several times as much as noise was ever seen to.

    unsynchronised   a step returns before its work is done: whoever asks for the
                     outputs then waits for all the steps before
    cached           the second step with the same inputs takes a small part of the first
    implausible      more operations a second than any such device can do
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import AccelbenchError, CaseError
from accelbench.core.protocols import Device, Session
from accelbench.core.words import Mode, Timing
from accelbench.run.selfcheck import other_seed

#: Longer steps are not repeated for a check; one that returns early looks short.
LONGEST_STEP_NS = 250e6

_TRIES = 3
_STEPS = 4
#: On a machine that others load, three waits in a row were seen to be 4 ms longer than the
#: shortest of three before; what is only queued is waited for however often one tries.
_WAITS = 6
#: What waits behind a block, at least: this part of the block itself, and so many nanoseconds.
_PENDING_SHARE, _PENDING_NS = 0.5, 2e6
#: A first look at new inputs has been seen to take up to six times as long as the next.
_TIMES_FASTER, _SAVED_NS = 20.0, 2e6

#: Operations a second of one unit that nothing reaches, by platform: a core with two 512-bit
#: units at 6 GHz does 0.4e12 in fp32, one with matrix tiles 25e12 in narrow types; the fastest
#: accelerators announced do 2e16 in four bits.
_CORE_FP32, _CORE_NARROW = 0.5e12, 5e13
_ACCELERATOR = 5e16


def refuse_dishonest(
    session: Session, case: Case, device: Device, seed: int, clock: Clock, median_ns: float
) -> None:
    """Raise CaseError where the time that was measured cannot be the work's."""
    refuse_implausible(case, device, median_ns)
    if case.mode is Mode.TRAINING or median_ns > LONGEST_STEP_NS:
        return
    refuse_cached(session, case, seed)
    refuse_unsynchronised(session, case, clock)


def refuse_implausible(case: Case, device: Device, median_ns: float) -> None:
    """More operations a second than there can be."""
    from accelbench.catalog.cost import flops

    try:
        operations = flops(case.model, case.shapes, case.mode)
    except AccelbenchError:
        return  # not counted: nothing can be said
    if not operations or median_ns <= 0:
        return
    reached = operations / (median_ns / 1e9)
    most = fastest(device, case.precision)
    if reached > most:
        raise CaseError(
            "implausible",
            f"{reached:.2g} operations a second would have been done, and {device.name} cannot"
            f" do more than {most:.2g}: not all the work was done in the time",
            "Look at what the runtime executes; its time is not this model's.",
        )


def fastest(device: Device, precision: str) -> float:
    """Operations a second that no such device reaches."""
    if device.hardware in ("cpu", "wasm") or device.unit == "cpu":
        each = _CORE_FP32 if precision == "fp32" else _CORE_NARROW
        return each * max(device.count, 1)
    return _ACCELERATOR


def refuse_cached(session: Session, case: Case, seed: int) -> None:
    """The second step with the same inputs is no step."""
    for number in range(_TRIES):
        inputs = session.prepare(case, seed=other_seed(seed) + number)
        first, again = (_one(session, inputs) for _ in range(2))
        if again * _TIMES_FASTER > first or first - again < _SAVED_NS:
            return
    raise CaseError(
        "cached",
        f"each of {_TRIES} first steps with new inputs took more than {_TIMES_FASTER:.0f} times as"
        " long as the second with the same ones: outputs are remembered, not computed",
        "Look for a cache of outputs in the runtime.",
    )


def _one(session: Session, inputs: Any) -> float:
    block = session.sample(inputs, 1, Timing.EACH)
    return float(sum(sum(times) for times in block.phase_ns.values()))


def refuse_unsynchronised(session: Session, case: Case, clock: Clock) -> None:
    """Somebody who wants outputs waits for steps that were said to be over."""
    inputs = session.prepare(case)

    def waited() -> float:
        return _timed(clock, lambda: session.outputs(inputs))

    waited()  # for what the checks before have left queued
    behind = []
    for _ in range(_WAITS):
        before = waited()
        block = session.sample(inputs, _STEPS, Timing.EACH)
        longer = waited()
        said = float(sum(_steps(block.phase_ns)))
        # An idle device on both sides: what slows the machine down meanwhile slows these too.
        longer -= max(before, waited())
        if longer < max(_PENDING_SHARE * said, _PENDING_NS):
            return
        behind.append(longer / 1e6)
    raise CaseError(
        "unsynchronised",
        f"after {_STEPS} steps that were said to be over, their outputs were still waited for:"
        f" {min(behind):.1f} ms more than on an idle device",
        "The runtime has to wait for its device before a step ends.",
    )


def _steps(phase_ns: Mapping[str, Any]) -> list[float]:
    return [float(value) for times in phase_ns.values() for value in times]


def _timed(clock: Clock, do: Callable[[], Any]) -> float:
    start = clock.now_ns()
    do()
    return float(clock.now_ns() - start)
