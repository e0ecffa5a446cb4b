"""The ncnn runtime's card: readable without importing the engine."""

from __future__ import annotations

import platform

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
from accelbench.runtimes.ncnn.kernels import KERNELS
from accelbench.runtimes.shared.refusals import (
    beyond_forward,
    missing,
    no,
    not_listed,
    not_quantised,
)

_OWN = (RuntimeOption("kernels", "how it computes", choices=KERNELS, default=KERNELS[0]),)
_OPTIONS = frozenset({"threads", *(option.name for option in _OWN)})
#: Processors whose layers ncnn has in fp16.
_HALF = ("arm64", "aarch64")


class NcnnRuntime:
    """Runs ncnn networks as they are."""

    info = RuntimeInfo(
        name="ncnn",
        hardware=("cpu",),
        package="ncnn",
        extra="ncnn",
        precisions=("fp32", "fp16", "bf16", "int8"),
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.NCNN,),
        preload=("accelbench.runtimes.ncnn.session",),
        options=_OWN,
        generates=False,
        title="ncnn",
        engine_packages=("ncnn",),
        dashes=(5, 2, 1, 2),
        place=8,
    )

    def probe(self) -> list[Device | Absent]:
        """The CPU; runs in a throw-away process."""
        return [Device("cpu", "ncnn's CPU")]

    def supports(self, case: Case, device: Device) -> Support:
        name = self.info.name
        return (
            missing(name, ("ncnn",), "ncnn")
            or _of_a_file(case)
            or beyond_forward(name, case, _OPTIONS, "its networks are never compiled")
            or not_listed(name, case, self.info.precisions)
            or not_quantised(case, "Quantise it with ncnn2int8, and name what that writes.")
            or _half_of_this_processor(case)
            or SUPPORTED
        )

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("ncnn")

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.ncnn.session import NcnnSession

        return NcnnSession(job, self.clock())


def _of_a_file(case: Case) -> Support | None:
    if case.model.file is not None:
        return None
    return no(
        "format",
        f"ncnn opens its own networks, and {case.model.id} is not converted to one",
        "Name a .param file, or use --framework pytorch, onnxruntime or openvino.",
    )


def _half_of_this_processor(case: Case) -> Support | None:
    """fp16 where ncnn has no layer in it: it would compute in fp32."""
    machine = platform.machine().lower()
    if case.precision != "fp16" or machine in _HALF:
        return None
    return no(
        "precision",
        f"ncnn has no layers in fp16 for {machine}: it would compute in fp32",
        "Use --precision fp32 or bf16.",
    )
