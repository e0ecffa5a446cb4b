"""Verification: the outputs of every measured case compared with the reference's.

After a case is timed, its worker runs as many of the reference's items as its batch has, and
reports how far the outputs are off (`agreement.py`). Wrong outputs make the case fail. Training is
verified by its losses.

Some models amplify rounding beyond every tolerance: outputs that rounding alone takes so far cannot
be compared. timm's starnet_s1 with random weights multiplies branches block after block: PyTorch in
fp32 is 0.17 to 0.28 from itself in fp64 over four draws of inputs, one unit in the last place of
the inputs moves it by 0.19 to 0.31, and ONNX Runtime, OpenVINO and the same graph without
optimisations are 0.16 to 0.33 off: at most 1.23 times as much. A fault is larger: all zeros are
0.71 to 0.91 off there, outputs of other inputs 1.0, and fp32 that is silently computed in bf16 0.65
to 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accelbench.core.case import Case
from accelbench.core.vocabulary import Mode, Provenance
from accelbench.run.plan.request import Planned
from accelbench.run.process.worker_client import WorkerContext
from accelbench.run.verify.reference import OwnRounding, References, batchless, is_own
from accelbench.run.verify.verdicts import (
    COMPUTES_NOTHING,
    FAILED,
    ITSELF,
    NOT_ASKED_FOR,
    NOT_DONE,
    OK,
    ONE_WAY,
    Verdict,
    judged,
    large,
)

#: How many times the reference's own rounding an engine's may be, as long as outputs are nearer to
#: the reference's than half of what other inputs change: another order of summation rounds more
#: (`verification.py`).
_ROUNDINGS = 4.0

#: Beyond that half rounding does not grow with the number of roundings any more, and other faults
#: lie near: two independent roundings are 1.4 of one apart, and 1.23 was seen.
_HALF, _ROUNDINGS_BEYOND = 0.5, 2.0


def undetermined(verdict: Verdict, own_rounding: OwnRounding) -> Verdict | None:
    """Return the verdict on outputs that miss the tolerance by rounding; None if the verdict
    stays."""
    # Each output that misses it is compared with its own rounding: one that is not determined
    # excuses no other.
    tolerance = verdict.tolerance
    if tolerance is None:
        return None
    missed = {name: large(error) for name, error in verdict.errors.items()}
    missed = {name: error for name, error in missed.items() if error > tolerance}
    if not missed or verdict.error is None:
        return None
    for name, error in missed.items():
        moved = own_rounding.errors.get(name, 0.0)
        if moved <= tolerance or error > explained(moved):
            return None
    worst = max(missed, key=lambda name: missed[name])
    moved = own_rounding.errors[worst]
    return Verdict(
        NOT_DONE,
        f"{own_rounding.by} alone moves the reference's output {worst} by {moved:.2g} of"
        f" what other inputs change, where {tolerance:.2g} is allowed: that outputs are"
        f" {missed[worst]:.2g} off shows neither that they are wrong nor that they are right",
    )


def explained(moved: float) -> float:
    """Return how far off an output may be that rounding moves by so much."""
    return min(_ROUNDINGS * moved, max(_HALF, _ROUNDINGS_BEYOND * moved))


#: Some models amplify rounding: Mamba-130M in fp32 is 1.9e-4 from itself in fp64, and 2.7e-4 from
#: another order of summation that is no further from fp64. Two roundings add up, and the worse of
#: two is no cause for doubt; TF32, bf16 and fp16 round thousands of times as much.
_OWN_ROUNDINGS = 4.0

#: What is further off than so many tolerances never agrees: TF32 or fp16 might explain it as well
#: as a rounding of fp32. X-CLIP comes near: its attention has all but ties, which another rounding
#: decides the other way, and of five draws one is 4e-3 from itself in fp64, four 5e-6. A model
#: whose own rounding takes it that far is not verified (`undetermined.py`).
_MOST_ROUNDINGS = 50.0


class Verifications:
    """The verdicts on a run's cases."""

    def __init__(self) -> None:
        self.yardsticks = References()
        self._found: dict[str, Verdict] = {}  # of a case on a device
        self._wrong: dict[str, Verdict] = {}  # of a cell at whatever batch
        self._alone: set[str] = set()  # cells that are another graph at each batch

    def gather(self, context: WorkerContext, planned: Planned, batches: Sequence[int]) -> None:
        """Have the reference of a case, or a reason why there is none."""
        case = planned.case
        if context.settings.verify == "off" or _scripted(context, case):
            return
        if planned.refusal is None and self._known(planned) is None:
            self.yardsticks.gather(context, case, batches)

    def at_each_batch(self, planned: Planned) -> None:
        """Note that a case is another graph at each batch: a wrong one says nothing of another."""
        self._alone.add(cell_of(planned))

    def known(self, context: WorkerContext, planned: Planned) -> Verdict | None:
        """Return the verdict that is known without asking the worker, or None."""
        if context.settings.verify == "off":
            return Verdict(NOT_DONE, NOT_ASKED_FOR)
        if _scripted(context, planned.case):
            return Verdict(NOT_DONE, COMPUTES_NOTHING)
        verdict = self._known(planned)
        if verdict is not None:
            return verdict
        yardstick = self.yardsticks.of(planned.case)
        if yardstick is not None and yardstick.folder is None:
            return Verdict(NOT_DONE, f"there is no reference: {yardstick.why}")
        return None

    def _known(self, planned: Planned) -> Verdict | None:
        case = planned.case
        if is_own(case):
            return ITSELF
        if case.mode is Mode.TRAINING:
            return Verdict(NOT_DONE, "training is verified by its losses")
        return self._found.get(_key(planned)) or self._wrong.get(cell_of(planned))

    def request(self, context: WorkerContext, planned: Planned) -> Mapping[str, Any]:
        self.yardsticks.trust(planned.case)
        return self.yardsticks.comparison(context, planned.case)

    def settle_doubts(
        self,
        context: WorkerContext,
        planned: Planned,
        answer: Mapping[str, Any],
        ask: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Return the comparison that decides: that of the items in doubt, if they are wrong.

        `answer` is the comparison with the items that the reference has computed.
        """
        if not answer.get("doubted"):
            return answer
        if not self.yardsticks.doubt(context, planned.case, answer["doubted"]):
            return {**answer, "unsettled": True}
        closer = ask(self.yardsticks.comparison(context, planned.case))
        return closer if judged(closer).word == FAILED else answer

    def judge(self, planned: Planned, answer: Mapping[str, Any], other_way: str = "") -> Verdict:
        """Return the verdict on a worker's outputs, and remember it.

        `other_way` is the line of code that decides for a way which no drawn input took.
        """
        verdict, other = judged(answer), self.held_against(planned.case)
        verdict = replace(verdict, rounded=self._cost_of_rounding(planned.case, answer))
        if verdict.word == FAILED and other:
            why = f"{other}, gives other outputs ({verdict.why}); which are right is not known"
            verdict = Verdict(NOT_DONE, why)
        if verdict.word == OK and other_way:
            verdict = Verdict(NOT_DONE, ONE_WAY.format(other_way))
        return self._keep(planned, verdict)

    def _cost_of_rounding(self, case: Case, answer: Mapping[str, Any]) -> float | None:
        """Return the error that a narrow precision alone costs, or None if it shows nothing."""
        # A file that is run as it is stored is compared with itself, which rounds the same numbers.
        # Decisions, such as token ids, may agree by chance.
        if (
            case.is_run_as_stored
            or not answer.get("numeric", True)
            or self.yardsticks.of(case) is None
        ):
            return None
        return self.yardsticks.rounded(case)

    def held_against(self, case: Case) -> str:
        """Return what a case is compared with if that is not the model as it is; else an empty
        text."""
        yardstick = self.yardsticks.of(case)
        return "" if yardstick is None else yardstick.other

    def give_up(self, planned: Planned, why: str) -> Verdict:
        """Remember that a worker could not be asked."""
        return self._keep(planned, Verdict(NOT_DONE, f"running it to compare failed: {why}"))

    def reconsider(self, context: WorkerContext, planned: Planned, verdict: Verdict) -> Verdict:
        """Return a verdict that the reference's own rounding or random numbers may explain."""
        if verdict.word != FAILED or not verdict.errors:
            return verdict
        case = planned.case
        excuse = self._rounded(context, planned, verdict) or self._drawn(context, planned, verdict)
        if excuse is None and not self.yardsticks.drawn(context, case):
            excuse = undetermined(verdict, self.yardsticks.own_rounding(context, case))
        if excuse is None:
            return verdict
        self.forget(planned)
        return self._keep(planned, excuse)

    def _rounded(
        self, context: WorkerContext, planned: Planned, verdict: Verdict
    ) -> Verdict | None:
        """Accept an fp32 error that the reference's own distance from fp64 explains."""
        error, tolerance = verdict.error, verdict.tolerance
        if error is None or tolerance is None or planned.case.precision != "fp32":
            return None
        most = _MOST_ROUNDINGS * tolerance
        if error > most:
            return None
        allowed = min(_OWN_ROUNDINGS * self.yardsticks.fp64(context, planned.case), most)
        if error > allowed:
            return None
        return Verdict(OK, "", error, allowed, verdict.errors)

    def _drawn(self, context: WorkerContext, planned: Planned, verdict: Verdict) -> Verdict | None:
        """Ignore outputs that the reference draws anew each time, such as dropout that is left
        on."""
        # The rest has to be right.
        drawn = self.yardsticks.drawn(context, planned.case)
        rest = {name: error for name, error in verdict.errors.items() if name not in drawn}
        if len(rest) == len(verdict.errors):
            return None
        if not rest:
            return Verdict(NOT_DONE, "the reference's own outputs differ from run to run")
        worst = max(rest.values(), key=large)
        if verdict.tolerance is None or large(worst) > verdict.tolerance:
            return None
        return Verdict(OK, "", worst, verdict.tolerance, rest)

    def forget(self, planned: Planned) -> None:
        self._found.pop(_key(planned), None)
        self._wrong.pop(cell_of(planned), None)

    def _keep(self, planned: Planned, verdict: Verdict) -> Verdict:
        if verdict.word == FAILED and cell_of(planned) not in self._alone:
            self._wrong.setdefault(cell_of(planned), verdict)
        return self._found.setdefault(_key(planned), verdict)


def _scripted(context: WorkerContext, case: Case) -> bool:
    runtime = context.runtimes.get(case.target.runtime)
    return runtime is not None and runtime.info.provenance is not Provenance.MEASURED


def _key(planned: Planned) -> str:
    """Return the key of a case on one device: that cuda:0 is right says nothing of cuda:1."""
    return f"{planned.case.case_id} {planned.device}"


def cell_of(planned: Planned) -> str:
    """Return what a case is without its batch: the model as an engine opens it on a device."""
    return f"{batchless(planned.case)} {planned.device}"
