"""Validation of blocks, and the side passes that time phases and the device.

Every engine's block is checked on arrival, before it is used. A block that breaks a rule cannot be
repaired: a float among the samples would be in some tables only, and a time of zero would let the
warm-up run forever.

Side passes are separate from the main one because their timing would disturb it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

from accelbench.core.case import Case
from accelbench.core.errors import ENGINE_FAULT_ADVICE, CaseError
from accelbench.core.protocols import Block, Session
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Timing

#: The only phase of a timing without phases.
_WHOLE_STEP = ("step",)


#: Largest ratio of a block's last step to the others, the fewest steps to compare, and the time for
#: keeping the last outputs, which takes less than 20 µs.
LAST_IS_LONGER, FEWEST_COMPARED, _LAST_NS = 1.5, 4, 20e3

#: Only a clock coarser than this may show a short step as zero.
_COARSE_NS = 1000.0


def refuse_bad_block(
    block: Any, n: int, timing: Timing, phases: Sequence[str], tick_ns: float = 0.0
) -> None:
    """Raise CaseError if a block differs from the request or has impossible values.

    `tick_ns` is the resolution of the session's clock.
    """
    if not isinstance(block, Block):
        raise _block_error(f"it is a {type(block).__name__}")
    if not _is_whole(block.steps) or block.steps != n or block.timing is not timing:
        raise _block_error(
            f"{n} steps timed {timing} were requested, not {block.steps} {block.timing}"
        )
    _refuse_names(block.phase_ns, timing, phases)
    wanted = 1 if timing is Timing.WHOLE else n
    least = 0 if tick_ns > _COARSE_NS and timing is Timing.EACH else 1
    for name, times in block.phase_ns.items():
        _refuse_times(name, times, wanted, least)
    _refuse_stamps(block, timing)
    if block.losses and len(block.losses) != n:
        raise _block_error(f"{n} training steps have {len(block.losses)} losses")
    _refuse_compiling(block)


def copy_block(block: Any) -> Any:
    """Return a plain copy of a block, which an engine can no longer change.

    Each attribute is read once: a property, a subclass of list or a thread cannot give the checks
    other times than the result. Other objects are returned unchanged, for `refuse_bad_block`.
    """
    if not isinstance(block, Block):
        return block
    times, tokens = block.phase_ns, block.token_ns
    if isinstance(times, Mapping):
        times = {name: _to_list(values) for name, values in times.items()}
    tokens = [_to_list(stamps) for stamps in tokens] if _is_list(tokens) else tokens
    numbers = block.steps, block.timing, times, tokens, _to_list(block.losses)
    return Block(*numbers, block.compilations, block.compile_ns)


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes))


def _to_list(values: Any) -> Any:
    return list(values) if _is_list(values) else values


def refuse_other_tokens(block: Block, wanted: int) -> None:
    """Raise CaseError if a request has the wrong number of token times."""
    other = next((stamps for stamps in block.token_ns if len(stamps) != wanted), None)
    if other is not None:
        raise _block_error(f"a request for {wanted} tokens has the times of {len(other)}")


def refuse_bad_time(activity: str, ns: Any) -> None:
    """Raise CaseError if a reported time is not a whole number of nanoseconds."""
    if not _is_whole(ns) or ns < 0:
        raise _block_error(f"{activity} took {in_quotes(ns)} ns")


def sample_times(block: Block) -> list[int]:
    """Return the time of every sample of a block, its phases added up."""
    phases = list(block.phase_ns.values())
    return list(phases[0]) if len(phases) == 1 else [sum(t) for t in zip(*phases, strict=True)]


def is_last_longer(times: Sequence[float]) -> bool:
    """Return whether the last step of a block took clearly longer than the steps before it."""
    if len(times) < FEWEST_COMPARED:
        return False
    usual = median(times[:-1])
    return times[-1] > max(LAST_IS_LONGER * usual, usual + _LAST_NS)


def _refuse_names(phase_times: Any, timing: Timing, phases: Sequence[str]) -> None:
    if not isinstance(phase_times, Mapping):
        raise _block_error(f"its times are a {type(phase_times).__name__}")
    names = set(phase_times)
    allowed = [set(phases)] if timing is Timing.PHASES else [set(_WHOLE_STEP), set(phases)]
    if names not in allowed or not names:
        has = ", ".join(str(name) for name in phase_times) or "none"
        raise _block_error(f"it has the phases {has}, and the session has {', '.join(phases)}")


def _refuse_times(name: str, times: Any, wanted: int, least: int) -> None:
    if not _is_list(times):
        raise _block_error(f"the times of {name} are a {type(times).__name__}")
    if len(times) != wanted:
        raise _block_error(f"it has {len(times)} times of {name}, and {wanted} were requested")
    wrong = next((time for time in times if not _is_whole(time) or time < least), None)
    if wrong is not None:
        raise _block_error(f"a {name} took {in_quotes(wrong)} ns, not a positive whole number")


def _refuse_stamps(block: Block, timing: Timing) -> None:
    if not block.token_ns:
        return
    if timing is not Timing.PHASES or len(block.token_ns) != block.steps:
        raise _block_error(f"it has the tokens of {len(block.token_ns)} requests, timed {timing}")
    for stamps, whole in zip(block.token_ns, sample_times(block), strict=True):
        rising = all(a <= b for a, b in pairwise(stamps))
        if not all(_is_whole(stamp) and stamp > 0 for stamp in stamps) or not rising:
            raise _block_error("the times of its tokens are not positive whole numbers that rise")
        if stamps and stamps[-1] > whole:
            raise _block_error(f"a token came after {stamps[-1]} ns in a request of {whole} ns")


def _refuse_compiling(block: Block) -> None:
    count, ns = block.compilations, block.compile_ns
    if not _is_whole(count) or not _is_whole(ns) or count < 0 or ns < 0:
        raise _block_error(f"{in_quotes(count)} compilations took {in_quotes(ns)} ns of it")
    whole = sum(sample_times(block))
    if block.timing is not Timing.DEVICE and ns > whole:
        raise _block_error(f"compiling took {ns} ns of a block of {whole} ns")


def _is_whole(value: Any) -> bool:
    # The sum of a subclass of int may differ from its printed value.
    return type(value) is int


def _block_error(problem: str) -> CaseError:
    return CaseError(
        "bad_block",
        f"the engine reports an impossible block of steps: {problem}",
        ENGINE_FAULT_ADVICE,
    )


#: Duration of each pass, and its fewest steps.
SIDE_PASS_NS = 60_000_000
SIDE_PASS_STEPS = 3


class PhaseListener(Protocol):
    """Listener that is called when a phase of the measurement begins."""

    def phase(self, name: str) -> None:
        """Report the beginning of a phase."""


def has_phases(session: Session) -> bool:
    """Return whether a step has phases; a request of one token is only a prefill."""
    return tuple(session.phases) != ("step",)


def run_side_passes(
    session: Session, case: Case, inputs: Any, step_ns: float, listener: PhaseListener
) -> tuple[dict[str, Any], dict[str, Sequence[int]]]:
    """Time phases and device timers; return their columns and samples."""
    # Times are medians of at least three steps, or of one step if that takes a second.
    least = SIDE_PASS_STEPS if step_ns * SIDE_PASS_STEPS < 1e9 else 1
    steps = max(least, int(SIDE_PASS_NS / max(step_ns, 1.0)))
    columns: dict[str, Any] = {}
    samples: dict[str, Sequence[int]] = {}
    if has_phases(session):
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
        times = sample_times(session.sample(inputs, steps, Timing.DEVICE))
        samples["device"] = times
        columns["device_time_ms"] = median(times) / 1e6
    return columns, samples


def token_times(requests: Sequence[Sequence[int]]) -> dict[str, float | None]:
    """Return the median time to the first token, and (last − first) ÷ (n − 1)."""
    between = [(r[-1] - r[0]) / (len(r) - 1) for r in requests if len(r) > 1]
    return {
        "ttft_ms": median(r[0] for r in requests) / 1e6,
        "tpot_ms": median(between) / 1e6 if between else None,
    }
