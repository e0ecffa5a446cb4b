"""A runtime outside accelbench: ONNX's reference evaluator, which is plain NumPy.

The standard defines its operators in Python, and this runs a graph by those definitions:
slow, and as independent of every fast engine as can be. This is the card, which is read
without the engine; the session is in a file beside it.
"""

from __future__ import annotations

from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.vocabulary import Mode


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
        title="ONNX reference",
        short="onnxref",
        engine_packages=("onnx",),
        packages=("numpy",),
        dashes=(3, 1),
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

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("onnx")

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        # Only now: a card is read wherever names are looked up.
        from accelbench_onnx_reference_session import OnnxReferenceSession

        return OnnxReferenceSession(job, self.clock())


def _no(reason: str, why: str) -> Support:
    return Support(ok=False, reason=reason, message=f"onnxreference: {why}", advice="Use another.")
