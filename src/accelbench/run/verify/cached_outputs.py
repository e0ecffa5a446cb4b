"""Refuse what is remembered: first steps with new inputs are compared with steps of used inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accelbench.core.abilities import SimilarInputs
from accelbench.core.case import Case
from accelbench.core.protocols import Block
from accelbench.core.vocabulary import Timing
from accelbench.measure.block_validation import samples_of
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.messages import CACHED, CACHED_PHASE
from accelbench.run.verify.block_lengths import SingleStep
from accelbench.run.verify.self_check import prepare_other
from accelbench.run.verify.timed_steps import RandomSource

#: With four processes a core beside it, PyTorch's steps of 1 ms took 20 ms at the median and
#: up to a second; in 22 of 40 tries a first step took four times its successor, and then the
#: shortest was a fraction of the usual all the same.
_TRIES = 16
#: A first step with new inputs takes 1.0 to 1.1 times as long as the next ones with ONNX Runtime;
#: after an idle moment up to six times, so a step with other inputs comes before it.
TIMES_FASTER, _SAVED_NS = 1.5, 0.05e6
#: Seeds of new inputs are drawn: a cache on a disk knows those of the launch before.
LAST_SEED = 2**62
#: Steps in which new inputs may be computed, of which the slowest counts.
_MOST_FIRST = 3
#: Bytes a second at which new inputs are read that are in no cache of the processor.
_READ_PER_S = 8e9
#: What a question about new inputs may take beside, in this process: as in `timed_steps.py`.
_BESIDE_FIRST_NS = 1e6
#: Bytes a second at which inputs are brought to where they are read, at least.
_FETCHED_PER_S = 0.2e9


def refuse_cached(
    checked: CheckedSession,
    case: Case,
    chance: RandomSource,
    single: SingleStep,
    used: Any = None,
    steady: Any = None,
) -> Any:
    """Raise CaseError if the quickest first step with new inputs is slower than steps with used
    inputs.

    `used` are inputs that were used before, `steady` those of the steady state: a cache may hold
    only what was asked for many times. Return inputs that were used.
    """
    # Steps with used inputs are taken between the first steps, and as few at once: another process
    # may have changed the speed since the steady state, and pipelined steps take less among many
    # (block_lengths.py compares those with single steps). Time of a question about new inputs that
    # no step explains counts as part of its first step, less what other questions leave and what it
    # takes to bring the inputs there. Compilation that is reported each time counts as well.
    trials = CacheTrials(checked, case, chance, single, used, steady)
    # Sixteen trials are over within one bad moment of a machine: sixteen more, in turns with others
    # that begin as they do.
    alike: list[float] = []
    for number in range(2 * _TRIES):
        # In turns with the others each first step is a single one, as theirs are.
        repeats = trials.time_first_step(1 if number >= _TRIES else _MOST_FIRST)
        # A quick one: where every other step is left out, the median may be of neither kind. A
        # repeat that was struck is no excuse for a first that was not.
        if not trials.saves(_quick(repeats)):
            return trials.inputs
        if number >= _TRIES:
            alike.append(trials.time_control_step())
    if not trials.saves(usual := sorted(alike)[1]):
        return trials.inputs
    raise CACHED.error(tries=2 * _TRIES, first_ms=min(trials.firsts) / 1e6, usual_ms=usual / 1e6)


def _quick(times: Sequence[float]) -> float:
    return sorted(times)[(len(times) - 1) // 4]  # if half of them are quick, the quickest of four


class CacheTrials:
    """First steps with new inputs, and steps with inputs that were used before."""

    def __init__(
        self,
        checked: CheckedSession,
        case: Case,
        chance: RandomSource,
        single: SingleStep,
        used: Any,
        steady: Any,
    ) -> None:
        """Ask nothing yet."""
        self.firsts: list[float] = []
        self.inputs = used
        self._steady = steady
        self._checked, self._case, self._chance, self._single = checked, case, chance, single
        self._brought = _BESIDE_FIRST_NS + _input_bytes(case) / _FETCHED_PER_S * 1e9
        self._cold = cold_ns(case)
        self._repeats: list[float] = []

    def time_first_step(self, most: int) -> Sequence[float]:
        """Take up to `most` first steps with new inputs; return all times with used inputs."""
        checked, single = self._checked, self._single
        used = self.inputs if self._steady is None else self._steady
        self.inputs = self._made()
        if used is not None:  # threads that were idle while inputs were made are awake then
            self._repeats.append(single.step(used))
        # Two after the first: if every other step is left out, one of them is.
        steps = self._chance.randint(1, most)
        block = checked.sample_some(self.inputs, steps, steps + self._chance.randint(0, 7))
        hidden, times = checked.hidden_ns, samples_of(block)
        first = max(times) + single.wait_ns()  # any of them may be the one that computed
        self._repeats += sorted(times)[:-1]
        usually_hidden = []
        for _ in range(max(1, 3 - len(times))):
            self._repeats.append(single.step(self.inputs))
            usually_hidden.append(checked.hidden_ns)
        self.firsts.append(first + max(0.0, hidden - self._brought - max(usually_hidden)))
        return self._repeats

    def time_control_step(self) -> float:
        """Return the time of a step with used inputs under the conditions of a first step."""
        # To make inputs is work: on a machine with nine processes a core, ONNX Runtime's process
        # had by then used its turn, and each of 16 first steps took 5.4 ms instead of 1.1 ms.
        self._made()
        used = self.inputs if self._steady is None else self._steady
        self._single.step(self.inputs)
        if self._chance.randint(0, 1):  # if every other step is left out, perhaps this one is
            self._single.step(used)
        step = self._single.step(used)
        return step + max(0.0, self._checked.hidden_ns - self._brought)

    def saves(self, usual: float) -> bool:
        """Return whether first steps take so much longer that the others cannot be doing their
        work."""
        return min(self.firsts) >= max(usual * TIMES_FASTER, usual + self._cold)

    def _made(self) -> Any:
        checked, seed = self._checked, self._chance.randint(0, LAST_SEED)
        if isinstance(checked.behind, SimilarInputs) and not self._case.model.inputs:
            return prepare_other(checked.behind, self._case, seed)
        return checked.session.prepare(self._case, seed=seed)


def refuse_cached_phases(checked: CheckedSession, case: Case, chance: RandomSource) -> None:
    """Raise CaseError if a phase, such as the prefill, is remembered from the step before.

    `case` is a short step of what was measured.
    """
    # A phase may be so short a part of the step that the step's own time hides it.
    session, cold = checked.session, cold_ns(case)
    used = session.prepare(case)  # as in the steady state
    new_ns: dict[str, list[float]] = {}
    used_ns: dict[str, list[float]] = {}
    for _ in range(2 * _TRIES):
        inputs = session.prepare(case, seed=chance.randint(0, LAST_SEED))
        session.sample(used, 1, Timing.EACH)  # threads that were idle are awake then
        _note_phases(session.sample(inputs, 1, Timing.PHASES), new_ns)
        _note_phases(session.sample(used, 1, Timing.PHASES), used_ns)
        cached = [
            name
            for name, times in new_ns.items()
            if min(times) >= max(TIMES_FASTER * (usual := _quick(used_ns[name])), usual + cold)
        ]
        if not cached:
            return
    name = cached[0]
    raise CACHED_PHASE.error(
        phase=name, first_ms=min(new_ns[name]) / 1e6, usual_ms=_quick(used_ns[name]) / 1e6
    )


def _note_phases(block: Block, times: dict[str, list[float]]) -> None:
    for name, (ns,) in block.phase_ns.items():
        times.setdefault(name, []).append(float(ns))


def cold_ns(case: Case) -> float:
    """Return what a step with new inputs may take more: they are in no cache of the processor."""
    return _SAVED_NS + _input_bytes(case) / _READ_PER_S * 1e9


def _input_bytes(case: Case) -> int:
    from accelbench.models.inputs import input_bytes

    return input_bytes(case.model, case.shapes, mode=case.mode)
