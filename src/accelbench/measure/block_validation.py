"""Validation of blocks: every engine's block is checked when it arrives, before it is used.

A block that breaks a rule cannot be mended: a float among the samples would be left out of some
tables and not of others; a time of zero would have a step last no time and the warm-up go on for
ever. The passes besides the headline one are here too: what they time would disturb it.
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

#: What a timing without phases is called by.
_WHOLE_STEP = ("step",)


#: How much longer than the others the last step of a block may be, from so many steps on. Keeping
#: its outputs takes less than 20 µs.
LAST_IS_LONGER, FEWEST_COMPARED, _LAST_NS = 1.5, 4, 20e3

#: A clock that shows no less than this may show a short step as nothing; no other may.
_COARSE_NS = 1000.0


def refuse_bad_block(
    block: Any, n: int, timing: Timing, phases: Sequence[str], tick_ns: float = 0.0
) -> None:
    """Raise CaseError if a block is not what was asked for, or has values that cannot be.

    `tick_ns` is the smallest difference that the session's clock shows.
    """
    if not isinstance(block, Block):
        raise _bad(f"it is a {type(block).__name__}")
    if not _is_whole(block.steps) or block.steps != n or block.timing is not timing:
        raise _bad(f"{n} steps timed {timing} were asked for, not {block.steps} {block.timing}")
    _refuse_names(block.phase_ns, timing, phases)
    wanted = 1 if timing is Timing.WHOLE else n
    least = 0 if tick_ns > _COARSE_NS and timing is Timing.EACH else 1
    for name, times in block.phase_ns.items():
        _refuse_times(name, times, wanted, least)
    _refuse_stamps(block, timing)
    if block.losses and len(block.losses) != n:
        raise _bad(f"{n} training steps have {len(block.losses)} losses")
    _refuse_compiling(block)


def copied(block: Any) -> Any:
    """Return a plain copy of a block, which an engine can no longer change.

    Each attribute is read once: a property, a subclass of list or a thread cannot give the checks
    other times than the result. Anything else is returned as it is, for `refuse_bad_block`.
    """
    if not isinstance(block, Block):
        return block
    times, tokens = block.phase_ns, block.token_ns
    if isinstance(times, Mapping):
        times = {name: _listed(values) for name, values in times.items()}
    tokens = [_listed(stamps) for stamps in tokens] if _is_list(tokens) else tokens
    numbers = block.steps, block.timing, times, tokens, _listed(block.losses)
    return Block(*numbers, block.compilations, block.compile_ns)


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes))


def _listed(values: Any) -> Any:
    return list(values) if _is_list(values) else values


def refuse_other_tokens(block: Block, wanted: int) -> None:
    """Raise CaseError where a request's tokens are not as many as it was for."""
    other = next((stamps for stamps in block.token_ns if len(stamps) != wanted), None)
    if other is not None:
        raise _bad(f"a request for {wanted} tokens has the times of {len(other)}")


def refuse_bad_time(what: str, ns: Any) -> None:
    """Raise CaseError where a time that a session tells is no whole number of nanoseconds."""
    if not _is_whole(ns) or ns < 0:
        raise _bad(f"{what} took {in_quotes(ns)} ns")


def samples_of(block: Block) -> list[int]:
    """Return the time of every sample of a block, its phases added up."""
    phases = list(block.phase_ns.values())
    return list(phases[0]) if len(phases) == 1 else [sum(t) for t in zip(*phases, strict=True)]


def last_is_longer(times: Sequence[float]) -> bool:
    """Return whether the last step of a block took clearly longer than the steps before it."""
    if len(times) < FEWEST_COMPARED:
        return False
    usual = median(times[:-1])
    return times[-1] > max(LAST_IS_LONGER * usual, usual + _LAST_NS)


def _refuse_names(phase_times: Any, timing: Timing, phases: Sequence[str]) -> None:
    if not isinstance(phase_times, Mapping):
        raise _bad(f"its times are a {type(phase_times).__name__}")
    names = set(phase_times)
    allowed = [set(phases)] if timing is Timing.PHASES else [set(_WHOLE_STEP), set(phases)]
    if names not in allowed or not names:
        has = ", ".join(str(name) for name in phase_times) or "none"
        raise _bad(f"it has the phases {has} where the session has {', '.join(phases)}")


def _refuse_times(name: str, times: Any, wanted: int, least: int) -> None:
    if not _is_list(times):
        raise _bad(f"the times of {name} are a {type(times).__name__}")
    if len(times) != wanted:
        raise _bad(f"it has {len(times)} times of {name} where {wanted} were asked for")
    wrong = next((time for time in times if not _is_whole(time) or time < least), None)
    if wrong is not None:
        raise _bad(f"a {name} took {in_quotes(wrong)} ns, which is no positive whole number")


def _refuse_stamps(block: Block, timing: Timing) -> None:
    """Tokens come one after another, and the last is there before its request is over."""
    if not block.token_ns:
        return
    if timing is not Timing.PHASES or len(block.token_ns) != block.steps:
        raise _bad(f"it has the tokens of {len(block.token_ns)} requests, timed {timing}")
    for stamps, whole in zip(block.token_ns, samples_of(block), strict=True):
        rising = all(a <= b for a, b in pairwise(stamps))
        if not all(_is_whole(stamp) and stamp > 0 for stamp in stamps) or not rising:
            raise _bad("the times of its tokens are not positive whole numbers that rise")
        if stamps and stamps[-1] > whole:
            raise _bad(f"a token came after {stamps[-1]} ns in a request of {whole} ns")


def _refuse_compiling(block: Block) -> None:
    count, ns = block.compilations, block.compile_ns
    if not _is_whole(count) or not _is_whole(ns) or count < 0 or ns < 0:
        raise _bad(f"{in_quotes(count)} compilations took {in_quotes(ns)} ns of it")
    whole = sum(samples_of(block))
    if block.timing is not Timing.DEVICE and ns > whole:
        raise _bad(f"compiling took {ns} ns of a block of {whole} ns")


def _is_whole(value: Any) -> bool:
    # A subclass of int may add up to something else than it is written as.
    return type(value) is int


def _bad(what: str) -> CaseError:
    return CaseError(
        "bad_block",
        f"the runtime reports an impossible block of steps: {what}",
        ENGINE_FAULT_ADVICE,
    )


#: Duration of each pass, and its fewest steps.
SIDE_PASS_NS = 60_000_000
SIDE_PASS_STEPS = 3


class PhaseListener(Protocol):
    """Is called when a phase of the measurement begins."""

    def phase(self, name: str) -> None:
        """Return a phase begins."""


def is_parted(session: Session) -> bool:
    """Return whether a step has phases; a request of one token is a prefill alone."""
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
