"""The executorch runtime's card: readable without importing the engine."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.model import FileFormat
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
from accelbench.runtimes.shared.refusals import (
    beyond_forward,
    missing,
    no,
    not_listed,
    not_quantised,
)

_OPTIONS = frozenset({"threads"})


class ExecutorchRuntime:
    """Runs ExecuTorch programs as they were lowered."""

    info = RuntimeInfo(
        name="executorch",
        hardware=("cpu",),
        package="executorch",
        extra="executorch",
        precisions=("fp32", "fp16", "int8"),
        isolation="spawn",
        consumes="onnx",
        files=(FileFormat.EXECUTORCH,),
        generates=False,
        title="ExecuTorch",
        engine_packages=("executorch",),
        packages=("torch",),
        dashes=(6, 2, 2, 2),
        place=9,
    )

    def probe(self) -> list[Device | Absent]:
        """The CPU; runs in a throw-away process."""
        return [Device("cpu", "ExecuTorch's CPU")]

    def supports(self, case: Case, device: Device) -> Support:
        name = self.info.name
        return (
            missing(name, ("executorch", "torch"), "executorch")
            or _of_a_file(case)
            or beyond_forward(name, case, _OPTIONS, "its programs were lowered before")
            or not_listed(name, case, self.info.precisions)
            or not_quantised(case, "Name a program that was quantised before it was lowered.")
            or _as_lowered(case)
            or SUPPORTED
        )

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("pte")

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.executorch.session import ExecutorchSession

        return ExecutorchSession(job, self.clock())


def _of_a_file(case: Case) -> Support | None:
    if case.model.file is not None:
        return None
    return no(
        "format",
        f"ExecuTorch opens its own programs, and {case.model.id} is not lowered to one",
        "Name a .pte file, or use --framework pytorch, onnxruntime or openvino.",
    )


def _as_lowered(case: Case) -> Support | None:
    """Another precision than a program was lowered in: nothing in it can be changed."""
    file = case.model.file
    if file is None or case.precision == file.precision:
        return None
    return no(
        "precision",
        f"{case.model.id} was lowered in {file.precision}",
        f"Use --precision {file.precision}, or lower the model in {case.precision}.",
    )
