"""The litert runtime's card: readable without importing the engine."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.model import FileFormat
from accelbench.core.options import RuntimeOption
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
from accelbench.runtimes.litert.kernels import KERNELS
from accelbench.runtimes.shared.refusals import (
    beyond_forward,
    missing,
    no,
    not_listed,
    not_quantised,
)

_OWN = (RuntimeOption("kernels", "who computes", choices=KERNELS, default=KERNELS[0]),)
_OPTIONS = frozenset({"threads", *(option.name for option in _OWN)})


class LitertRuntime:
    """Runs TensorFlow Lite models as they are."""

    info = RuntimeInfo(
        name="litert",
        hardware=("cpu",),
        package="ai_edge_litert",
        extra="litert",
        precisions=("fp32", "int8"),
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.TFLITE,),
        preload=("accelbench.runtimes.litert.session",),
        options=_OWN,
        generates=False,
        title="LiteRT",
        aliases=("tflite",),
        engine_packages=("ai-edge-litert",),
        dashes=(2, 5),
        place=7,
    )

    def probe(self) -> list[Device | Absent]:
        """The CPU; runs in a throw-away process."""
        return [Device("cpu", "LiteRT's CPU")]

    def supports(self, case: Case, device: Device) -> Support:
        name = self.info.name
        return (
            missing(name, ("ai_edge_litert",), "litert")
            or _of_a_file(case)
            or beyond_forward(name, case, _OPTIONS, "its models are never compiled")
            or not_listed(name, case, self.info.precisions)
            or not_quantised(case, "Name a model that was quantised when it was converted.")
            or SUPPORTED
        )

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("tflite")

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.litert.session import LitertSession

        return LitertSession(job, self.clock())


def _of_a_file(case: Case) -> Support | None:
    if case.model.graph is not None:
        return None
    return no(
        "format",
        f"LiteRT opens TensorFlow Lite models, and {case.model.id} is not converted to one",
        "Name a .tflite file, or use --framework pytorch, onnxruntime or openvino.",
    )
