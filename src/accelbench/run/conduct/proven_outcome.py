"""Add the verdict on outputs and the proof of the precision to a case's outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from accelbench.core.case import Case
from accelbench.core.errors import CaseError
from accelbench.core.protocols import Runtime
from accelbench.core.vocabulary import Outcome, Provenance, Status
from accelbench.run.messages import NOT_VERIFIED, OTHER_PRECISION, WRONG_OUTPUTS
from accelbench.run.plan.request import Planned
from accelbench.run.process.worker_client import WorkerTroubleError
from accelbench.run.verify.precision_proof import PrecisionProof, prove_precision
from accelbench.run.verify.verdicts import COMPUTES_NOTHING, FAILED, NOT_DONE, Verdict
from accelbench.run.verify.verification import cell_of


class FloatComputations:
    """Files stored in another precision that engines of a run compute in fp32."""

    # A user who named no precision did not ask for the one that a file is stored in.

    def __init__(self) -> None:
        self._cells: set[str] = set()  # at whatever batch

    def apply(self, planned: Planned) -> Planned:
        """Return a case in fp32 if its engine is known to compute it so."""
        if not planned.as_stored or cell_of(planned) not in self._cells:
            return planned
        return replace(planned, case=replace(planned.case, precision="fp32"))

    def learn(self, planned: Planned, outcome: Outcome) -> bool:
        """Return whether an outcome shows that a case is to be measured again in fp32."""
        if not planned.as_stored or outcome.reason != OTHER_PRECISION:
            return False
        if planned.case.precision == "fp32":
            return False
        self._cells.add(cell_of(planned))
        return True

    def note(self, planned: Planned, outcome: Outcome) -> Outcome:
        """Add a warning to an outcome if its precision is not the one of the file."""
        if outcome.status is not Status.OK or _cell_of_file(planned) not in self._cells:
            return outcome
        file, runtime = planned.case.model.graph, planned.case.target.runtime
        assert file is not None  # as it is in a cell
        warning = (
            f"The file is stored in {file.precision}, but {runtime} computed its products in"
            " floats: the result is of fp32."
        )
        return replace(outcome, warnings=[*outcome.warnings, warning])


def _cell_of_file(planned: Planned) -> str:
    file = planned.case.model.graph
    if file is None or not planned.as_stored:
        return ""
    return cell_of(replace(planned, case=replace(planned.case, precision=file.precision)))


def refused_by(verdict: Verdict, verify: str) -> Outcome | None:
    """Return the failure that a verdict causes, or None if the case passes."""
    if verdict.word == FAILED:
        return replace(
            WRONG_OUTPUTS.outcome(Status.FAILED, why=verdict.why),
            measurement={"metrics": verdict.columns},
        )
    if verdict.word == NOT_DONE and verify in ("require", "only"):
        option = f"--verify{'-only' if verify == 'only' else ' require'}"
        return NOT_VERIFIED.outcome(Status.FAILED, option=option, why=verdict.why)
    return None


def with_proof(
    case: Case,
    outcome: Outcome,
    verdict: Verdict,
    runtime: Runtime | None,
    columns: Mapping[str, Any],
) -> Outcome:
    """Return the outcome with its verdict and the proof of its precision, or a failure."""
    try:
        proof = _precision_proof(case, outcome, verdict, runtime)
    except CaseError as error:
        failed = WorkerTroubleError.of(error).outcome
        measurement = {"metrics": verdict.columns}
        return replace(failed, opened=outcome.opened, measurement=measurement)
    metrics = {**outcome.measurement.get("metrics", {}), **columns}
    return replace(
        outcome,
        measurement={
            **outcome.measurement,
            "metrics": {**metrics, **verdict.columns, **proof.columns},
        },
        warnings=[*outcome.warnings, *proof.warnings],
        null_reasons={**outcome.null_reasons, **verdict.reasons, **proof.reasons},
    )


def _precision_proof(
    case: Case, outcome: Outcome, verdict: Verdict, runtime: Runtime | None
) -> PrecisionProof:
    if runtime is not None and runtime.info.provenance is not Provenance.MEASURED:
        return PrecisionProof(None, COMPUTES_NOTHING)
    return prove_precision(case, outcome.measurement.get("evidence") or {}, verdict)
