"""A model held against itself: same seed, same outputs; other inputs or weights, other outputs.

What ignores its inputs or its weights is no model: its time is nobody's. The
check runs after everything of a case is measured, once a worker, at the
smallest batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Doubtable, Session

Outputs = Mapping[str, Any]

#: A seed that nobody draws inputs from otherwise.
_OTHER_SEED = 0x5EED


@dataclass(frozen=True)
class SelfCheck:
    """What was seen. None: it could not be asked."""

    outputs_digest: str
    repeatable: bool
    inputs_matter: bool | None
    weights_matter: bool | None

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the model being real."""
        return self.inputs_matter is not False and self.weights_matter is not False

    def warnings(self) -> list[str]:
        """What a reader should know."""
        if self.repeatable:
            return []
        return ["The same seeded inputs gave other outputs the second time."]

    def refuse(self, model: str) -> None:
        """Raise CaseError where the model is not real."""
        ignored = [
            what
            for what, matters in (("inputs", self.inputs_matter), ("weights", self.weights_matter))
            if matters is False
        ]
        if ignored:
            raise CaseError(
                "not_real",
                f"the outputs of {model} do not depend on its {' and '.join(ignored)}",
                "What was timed is not this model's work; look at what the runtime executes.",
            )


def self_check(session: Session, case: Case) -> SelfCheck:
    """Run a case's seeded inputs twice, other inputs once, and other weights once."""
    inputs = session.prepare(case)
    first = session.outputs(inputs)
    weights_matter = None
    if isinstance(session, Doubtable):
        with session.other_weights():
            weights_matter = _differ(first, session.outputs(inputs))
    second = session.outputs(session.prepare(case))
    inputs_matter = None
    if _inputs_vary(case):
        inputs_matter = _differ(first, session.outputs(session.prepare(case, seed=_OTHER_SEED)))
    return SelfCheck(
        outputs_digest=outputs_digest(first),
        repeatable=not _differ(first, second),
        inputs_matter=inputs_matter,
        weights_matter=weights_matter,
    )


def outputs_digest(outputs: Outputs) -> str:
    """A digest of names, shapes and bits: equal only where everything is."""
    total = hashlib.sha256()
    for name, values in sorted(outputs.items()):
        array = np.ascontiguousarray(values)
        total.update(f"{name} {array.shape} {array.dtype}".encode())
        total.update(array.tobytes())
    return total.hexdigest()[:16]


def _differ(one: Outputs, other: Outputs) -> bool:
    """Whether any value differs; a NaN is equal to a NaN."""
    return any(
        not np.array_equal(
            one[name], other[name], equal_nan=np.asarray(one[name]).dtype.kind == "f"
        )
        for name in one
    )


def _inputs_vary(case: Case) -> bool:
    """Whether another seed draws other inputs at all."""
    return any(one.constant is None and one.row is None for one in case.model.inputs)
