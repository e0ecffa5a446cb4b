"""The messages of cases that fail or are refused in a run: a reason code, a text and an advice."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.core.errors import ENGINE_FAULT_ADVICE, CaseError
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


_TEMPLATES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _message(name: str) -> Message:
    entry: dict[str, str] = _TEMPLATES[name]
    advice = entry.get("advice", "").replace("{fault}", ENGINE_FAULT_ADVICE)
    return Message(entry["reason"], entry["text"], advice)


# -- workers and memory

KILLED_FOR_MEMORY = _message("KILLED_FOR_MEMORY")
ENGINE_GONE = _message("ENGINE_GONE")
TIMED_OUT = _message("TIMED_OUT")
SMALLER_BATCH_FAILED = _message("SMALLER_BATCH_FAILED")
TOO_LARGE = _message("TOO_LARGE")
EXPORT_TOO_LARGE = _message("EXPORT_TOO_LARGE")
NO_EXPORTER = _message("NO_EXPORTER")
ARTEFACT_LOST = _message("ARTEFACT_LOST")
NOT_CALCULATED = _message("NOT_CALCULATED")

# -- outputs and precision

WRONG_OUTPUTS = _message("WRONG_OUTPUTS")
NOT_VERIFIED = _message("NOT_VERIFIED")
NOT_REAL = _message("NOT_REAL")
PRECISION_CHANGED = _message("PRECISION_CHANGED")
BAD_SHARE = _message("BAD_SHARE")
BAD_EVIDENCE = _message("BAD_EVIDENCE")
NO_PROOF = _message("NO_PROOF")
FELL_BACK = _message("FELL_BACK")
NOT_COMPILED = _message("NOT_COMPILED")
OTHERS_COLUMNS = _message("OTHERS_COLUMNS")
BAD_MEMORY = _message("BAD_MEMORY")

# -- timed steps

OTHER_STEPS = _message("OTHER_STEPS")
UNTRAINED = _message("UNTRAINED")
REQUESTS_DECODE_OTHERS = _message("REQUESTS_DECODE_OTHERS")
CHANGES_INPUTS = _message("CHANGES_INPUTS")
TOO_MANY_OPERATIONS = _message("TOO_MANY_OPERATIONS")
BLOCKS_DO_NOT_GROW = _message("BLOCKS_DO_NOT_GROW")
QUICKER_IN_BLOCKS = _message("QUICKER_IN_BLOCKS")
QUICKER_THAN_NEW = _message("QUICKER_THAN_NEW")
CHEAPER_INPUTS = _message("CHEAPER_INPUTS")
UNFINISHED = _message("UNFINISHED")
DOES_NOT_GROW = _message("DOES_NOT_GROW")
LATE_WAITS = _message("LATE_WAITS")
UNSYNCHRONISED = _message("UNSYNCHRONISED")
CACHED = _message("CACHED")
CACHED_PHASE = _message("CACHED_PHASE")
