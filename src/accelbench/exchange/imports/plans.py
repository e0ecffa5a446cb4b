"""The plan of a result file's run: the cases and devices that its results must be of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.case import QUESTION
from accelbench.core.serial import case_from_json, device_from_json
from accelbench.exchange.imports.records import Record
from accelbench.exchange.run_facts import RUN

#: Errors of an entry that is not a case and a device of this version.
_OTHER_VERSION = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class StoredPlan:
    """Parts of each planned question by case_id, and each device's name by its fingerprint."""

    questions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def complete(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a result with the parts of its question, if the plan has its case."""
        conditions = body.get("conditions") or {}
        parts = self.questions.get(str(body.get("case_id")))
        if parts is None or QUESTION in conditions:
            return body
        return {**body, "conditions": {**conditions, QUESTION: parts}}


def read_plan(whole: Record) -> StoredPlan:
    """Return the plan of a document; empty if it has none that this version reads."""
    run = whole.values.get(RUN)
    entries = run.get("plan") if isinstance(run, Mapping) else None
    questions, names = {}, {}
    for entry in entries if isinstance(entries, list) else ():
        try:
            case, device = case_from_json(entry["case"]), entry.get("device")
            questions[case.case_id] = case.unlisted
            if device is not None:
                known = device_from_json(device)
                names[known.fingerprint] = known.name
        except _OTHER_VERSION:
            continue
    return StoredPlan(questions, names)
