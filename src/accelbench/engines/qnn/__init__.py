"""The qnn runtime's card: readable without importing the engine."""

from __future__ import annotations

from collections.abc import Iterator

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.protocols import (
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.core.vocabulary import Belongs
from accelbench.engines.shared.engine import ForwardEngine
from accelbench.engines.shared.refusals import not_listed

#: NPUs want every size fixed, the batch too.
_WANTED = {
    "int8": ArtifactFormat("onnx-qnn-int8", static=True),
    "fp16": ArtifactFormat("onnx-fp16", static=True),
}

_WHY_NOT = {
    # Seen on the emulation: files in fp32 come out 0.001 to 0.02 off, as fp16 does.
    "fp32": "the NPU computes fp32 graphs in fp16, so it would be no fp32 result",
    "bf16": "the NPU has no bf16 arithmetic",
}


class QnnRuntime(ForwardEngine):
    """Runs graphs exported from PyTorch on the Hexagon NPU, all of a graph or nothing."""

    info = RuntimeInfo(
        name="qnn",
        hardware=("qnn",),
        package="onnxruntime_qnn",
        extra="qnn",
        default_for=("qnn",),
        precisions=("int8", "fp16"),
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.ONNX,),
        preload=("onnxruntime", "accelbench.engines.qnn.session"),
        environment={"ORT_DISABLE_TELEMETRY": "1"},
        generates=False,
        title="QNN",
        packages=("onnxruntime-qnn", "onnx", "onnxscript"),
        dashes=(12, 4),
        place=5,
        reasons={"no_cpu_to_hold_against": Belongs.CELL},
    )

    needs = ("onnxruntime", "onnx", "onnxruntime_qnn")
    remark = "the NPU's compiler always optimises"

    def probe(self) -> list[Device | Absent]:
        from accelbench.engines.qnn.backend import devices
        from accelbench.hardware.qnn import QnnDetector

        entries = QnnDetector().detect()
        if isinstance(entries[0], Device) and not devices():
            return [
                Absent(
                    "qnn",
                    "ONNX Runtime loads the QNN provider and is offered no device by it",
                    "Update the NPU's driver, or: pip install -U onnxruntime onnxruntime-qnn",
                )
            ]
        return entries

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        yield from super().refusals(case, device)
        yield not_listed(self.info.name, case, tuple(_WANTED), _WHY_NOT)

    def wants(self, case: Case) -> ArtifactFormat:
        if case.is_run_as_stored:
            return ArtifactFormat("onnx", static=True)
        return _WANTED[case.precision]

    def open(self, job: Job) -> Session:
        from accelbench.engines.qnn.session import QnnSession

        return QnnSession(job, self.clock())
