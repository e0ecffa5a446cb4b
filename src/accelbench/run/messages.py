"""The messages of cases that fail or are refused in a run: a reason code, a text and an advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accelbench.core.errors import RUNTIMES_FAULT, CaseError
from accelbench.core.vocabulary import Outcome, Status

#: Reasons that other code looks for.
ESTIMATED = "out_of_memory_estimated"
NO_WORKER = "worker_did_not_start"
WRONG_STEPS = "wrong_steps"
OTHER_PRECISION = "precision_changed"
INPUTS_CHANGED = "inputs_changed"


@dataclass(frozen=True)
class Message:
    """A reason code with templates of its text and its advice."""

    reason: str
    text: str
    advice: str = ""

    def error(self, why: str = "", **values: Any) -> CaseError:
        text, advice = self.text.format(why=why, **values), self.advice.format(**values)
        return CaseError(self.reason, text, advice)

    def outcome(self, status: Status, **values: Any) -> Outcome:
        text, advice = self.text.format(**values), self.advice.format(**values)
        return Outcome(status, self.reason, text, advice)


# -- workers and memory

KILLED_FOR_MEMORY = Message(
    "killed_for_memory", "the kernel killed the worker for memory while {phase}"
)
ENGINE_GONE = Message(
    "no_runtime",
    "the runtime {name} is not installed here any more",
    "Install what provides it, and start a new run.",
)
TIMED_OUT = Message(
    "timeout",
    "not finished after {seconds:g} s, ended while {phase}",
    "Allow more time with --timeout, or use a smaller batch.",
)
SMALLER_BATCH_FAILED = Message(
    "smaller_batch_out_of_memory",
    "batch {batch} ran out of memory, so this larger one was not tried",
)
TOO_LARGE = Message(
    ESTIMATED, "an estimated {need} is needed and {free} is free; nothing was allocated"
)
EXPORT_TOO_LARGE = Message(
    ESTIMATED,
    "exporting it needs an estimated {need:.1f} GiB and {free:.1f} GiB is free; nothing was"
    " allocated",
)
NO_EXPORTER = Message(
    "package_missing",
    "models are exported by PyTorch, which is not installed",
    "Install it with: accelbench setup torch",
)
ARTEFACT_LOST = Message(
    "artefact_lost",
    "what was exported is not in the cache: another process may have cleared it",
    "Run it again.",
)
NOT_CALCULATED = Message(
    "hardware_absent",
    "{place} is not present, and nothing here calculates what it would do",
    "Use the command line: accelbench run --simulate.",
)

# -- outputs and precision

WRONG_OUTPUTS = Message(
    "wrong_outputs",
    "its outputs differ from the reference's: {why}",
    "The timed work is not this model's, so no time is kept. --benchmark-only measures without"
    " verification.",
)
NOT_VERIFIED = Message(
    "not_verified",
    "{option} requires verification, which is not possible: {why}",
    "Leave out {option}, or choose a case that can be verified here.",
)
NOT_REAL = Message(
    "not_real",
    "the outputs of {model} do not depend on its {ignored}",
    "What was timed is not this model's work; look at what the runtime executes.",
)
PRECISION_CHANGED = Message(
    OTHER_PRECISION,
    "{precision} was requested, but the engine computed in another precision: {why}",
    "This is not a result in {precision}. Request the precision that it computes in, or use another"
    " engine.",
)
BAD_SHARE = Message(
    "bad_evidence", "the evidence of the precision gives {name} a share of {share}", RUNTIMES_FAULT
)
BAD_EVIDENCE = Message(
    "bad_evidence", "the evidence of where the work ran contradicts itself: {why}", RUNTIMES_FAULT
)
NO_PROOF = Message("no_proof", "there is no evidence of where the work ran: {why}", RUNTIMES_FAULT)
FELL_BACK = Message(
    "fallback",
    "asked for {asked}, but the work ran on {where}{left}",
    "No figure is given for a device that did not do the work.",
)
NOT_COMPILED = Message(
    "compile_failed",
    "nothing was compiled: the steps ran eagerly",
    "Unset TORCHDYNAMO_DISABLE and TORCH_COMPILE_DISABLE, look for functions that disable"
    " compilation, or leave out --compile.",
)
OTHERS_COLUMNS = Message(
    "bad_evidence",
    "the engine reports values for {names}, which accelbench measures itself",
    RUNTIMES_FAULT,
)
BAD_MEMORY = Message(
    "bad_block", "the runtime says that {value} bytes of memory were used", RUNTIMES_FAULT
)

# -- timed steps

_MANY_AT_ONCE = "Look at how the runtime runs many steps at once."
_NOT_ALL = "not all of them are done"

OTHER_STEPS = Message(
    WRONG_STEPS,
    "the outputs of the steps that were timed are not those that are verified: {why}",
    f"What was timed is not this model's work, whatever its outputs are. {RUNTIMES_FAULT}",
)
UNTRAINED = Message(
    WRONG_STEPS,
    "the timed steps did not train: {why}",
    f"Check what the engine executes in a training step. {RUNTIMES_FAULT}",
)
REQUESTS_DECODE_OTHERS = Message(
    WRONG_STEPS,
    "timed requests did not decode the tokens of their outputs: {why}",
    f"Every request has to decode all of its tokens. {RUNTIMES_FAULT}",
)
CHANGES_INPUTS = Message(
    INPUTS_CHANGED,
    "each call of {model} changes what it is called with, and the next makes something else of"
    " that",
    "Let it copy what it changes, so that every call that is timed does the same.",
)
TOO_MANY_OPERATIONS = Message(
    "implausible",
    "{reached:.2g} operations a second would have been done, and {device} cannot do more than"
    " {most:.2g}: not all the work was done in the time",
    "Look at what the runtime executes; its time is not this model's.",
)
BLOCKS_DO_NOT_GROW = Message(
    "work_skipped",
    "blocks of {many} steps took {grown:.2g} times as long as blocks of {few}, or less:"
    f" {_NOT_ALL}",
    _MANY_AT_ONCE,
)
QUICKER_IN_BLOCKS = Message(
    "work_skipped",
    "of {count} steps at once each took {many_ms:.3g} ms, and one alone {alone_ms:.3g} ms or more:"
    f" {_NOT_ALL}",
    _MANY_AT_ONCE,
)
QUICKER_THAN_NEW = Message(
    "work_skipped",
    "of {count} steps at once each took {many_ms:.3g} ms, and one with new inputs {new_ms:.3g} ms"
    f" or more: {_NOT_ALL}",
    "Look for outputs that the runtime keeps, and for steps that it leaves out.",
)
CHEAPER_INPUTS = Message(
    "work_skipped",
    "a step takes {own_ms:.3g} ms with the inputs that were measured, and {other_ms:.3g} ms with"
    " others of the same sizes: it does less for the first ones",
    "Look at how the runtime prepares inputs, and at what it recognises them by.",
)
UNFINISHED = Message(
    "work_skipped",
    "a step of {units} tokens or passes took {took_ms:.3g} ms; by its short steps it requires"
    f" {{required_ms:.3g}} ms: {_NOT_ALL}",
    f"Every step has to do all of its tokens or passes. {RUNTIMES_FAULT}",
)
DOES_NOT_GROW = Message(
    "work_skipped",
    "from a batch of {small} to one of {large} the time until outputs are there has grown from"
    " {small_ms:.3g} to {large_ms:.3g} ms, and a step is said to take {step_ms:.3g} ms: it does"
    " not do all the work",
    "Look at what the runtime executes in a step; its time is not this model's.",
)
LATE_WAITS = Message(
    "unsynchronised",
    "the last step of each of {tries} blocks took {times:g} times as long as the steps before it,"
    " or more: only the last step waits for the work, or does all of it",
    "The runtime has to do all work of a step, and to wait for its device, before the step ends.",
)
UNSYNCHRONISED = Message(
    "unsynchronised",
    "after {steps} steps that were said to be over, their outputs were still waited for:"
    " {longer_ms:.1f} ms more than on an idle device",
    "The runtime has to wait for its device before a step ends.",
)
CACHED = Message(
    "cached",
    "each of {tries} first steps with new inputs took {first_ms:.3g} ms or more, and"
    " {usual_ms:.3g} ms is usual with inputs seen before: outputs are remembered, not computed",
    "Look for a cache of outputs in the runtime.",
)
CACHED_PHASE = Message(
    "cached",
    "with new inputs each {phase} took {first_ms:.3g} ms or more, and {usual_ms:.3g} ms is usual"
    " with inputs seen before: it is remembered, not computed",
    "Look for a cache of prompts or outputs in the runtime.",
)
