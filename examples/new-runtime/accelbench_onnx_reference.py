"""A runtime outside accelbench: ONNX's reference evaluator, which is plain NumPy.

The standard defines its operators in Python, and this runs a graph by those definitions:
slow, and as independent of every fast engine as can be. What a runtime has to say is
here in full: a card that can be read without the engine, and a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Device,
    Evidence,
    Job,
    RuntimeInfo,
    Session,
    Support,
    Wanted,
)
from accelbench.core.words import Mode
from accelbench.runtimes.arrays import ArraySession


class OnnxReferenceRuntime:
    """The card: nothing of the engine is imported until a session is opened."""

    info = RuntimeInfo(
        name="onnxreference",
        hardware=("cpu",),
        package="onnx",
        extra="onnx",
        isolation="fork",
        consumes="onnx",
        preload=("onnx.reference",),
        generates=False,
    )

    def probe(self) -> list[Device | Absent]:
        return [Device("cpu", "NumPy")]

    def supports(self, case: Case, device: Device) -> Support:
        if find_spec("onnx") is None:
            return _no("package_missing", "the package onnx is not installed")
        if case.mode is Mode.TRAINING or case.generates:
            return _no("mode", "it makes one forward pass, and nothing else")
        if case.precision != "fp32":
            return _no("precision", "it computes in fp32")
        if set(case.options) - {"threads"}:
            return _no("option", "it has no options")
        return SUPPORTED

    def wants(self, case: Case) -> Wanted:
        return Wanted("onnx")

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        return OnnxReferenceSession(job, self.clock())


def _no(reason: str, why: str) -> Support:
    return Support(ok=False, reason=reason, message=f"onnxreference: {why}", advice="Use another.")


class OnnxReferenceSession(ArraySession):
    """A graph, evaluated operator by operator."""

    def _open(self) -> None:
        from onnx.reference import ReferenceEvaluator

        self._evaluator = ReferenceEvaluator(str(self.model_path))
        self._takes = set(self._evaluator.input_names)

    def _bind(self, arrays: Mapping[str, Any]) -> Any:
        return {name: value for name, value in arrays.items() if name in self._takes}

    def _run(self, bound: Any) -> Any:
        return self._evaluator.run(None, bound)

    def _read(self, result: Any) -> list[Any]:
        return list(result)

    def evidence(self) -> Evidence:
        import numpy
        import onnx

        device = str(self._job.device)
        return Evidence(
            devices=(device,),  # NumPy has no other
            requested=device,
            engine=f"onnx {onnx.__version__} reference, numpy {numpy.__version__}",
            details=self.details(),
        )
