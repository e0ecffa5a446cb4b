"""Passes besides the headline one: what they time would disturb it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Protocol

from accelbench.core.case import Case
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import refuse_other_tokens, samples_of

#: Duration of each pass, and its fewest steps.
SIDE_PASS_NS = 60_000_000
SIDE_PASS_STEPS = 3


class PhaseListener(Protocol):
    """Is called when a phase of the measurement begins."""

    def phase(self, name: str) -> None:
        """A phase begins."""
        ...


def is_parted(session: Session) -> bool:
    """Whether a step has phases; a request of one token is a prefill alone."""
    return tuple(session.phases) != ("step",)


def side_passes(
    session: Session, case: Case, inputs: Any, step_ns: float, listener: PhaseListener
) -> tuple[dict[str, Any], dict[str, Sequence[int]]]:
    """Time phases and device timers; return their columns and samples."""
    # Times are medians: of at least three steps, or of one if a step takes a second.
    least = SIDE_PASS_STEPS if step_ns * SIDE_PASS_STEPS < 1e9 else 1
    steps = max(least, int(SIDE_PASS_NS / max(step_ns, 1.0)))
    columns: dict[str, Any] = {}
    samples: dict[str, Sequence[int]] = {}
    if is_parted(session):
        listener.phase("phases")
        split = session.sample(inputs, steps, Timing.PHASES)
        for phase, times in split.phase_ns.items():
            samples[f"phase:{phase}"] = times
            columns[f"{phase}_ms"] = median(times) / 1e6
        if split.token_ns:
            refuse_other_tokens(split, case.shapes.new_tokens or 0)
            columns |= token_times(split.token_ns)
            samples["tokens"] = [stamp for request in split.token_ns for stamp in request]
    if session.device_timed:
        listener.phase("device timers")
        times = samples_of(session.sample(inputs, steps, Timing.DEVICE))
        samples["device"] = times
        columns["device_time_ms"] = median(times) / 1e6
    return columns, samples


def token_times(requests: Sequence[Sequence[int]]) -> dict[str, float | None]:
    """Return the time to the first token, and (last − first) ÷ (n − 1): medians of requests."""
    between = [(r[-1] - r[0]) / (len(r) - 1) for r in requests if len(r) > 1]
    return {
        "ttft_ms": median(r[0] for r in requests) / 1e6,
        "tpot_ms": median(between) / 1e6 if between else None,
    }
