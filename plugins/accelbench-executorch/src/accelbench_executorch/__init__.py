"""ExecuTorch for accelbench: programs of torch.export, by XNNPACK or its own kernels on the CPU."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.protocols import Job, RuntimeInfo, Session, Support
from accelbench.engines.shared.engine import FileEngine
from accelbench.engines.shared.refusals import no

PTE = FileFormat.declare(
    "executorch",
    "ExecuTorch program",
    suffix=".pte",
    packages=("executorch",),
    largest=2**33,
    mark=b"ET12",
    uncounted="a program holds what each backend made of its operators, in the backend's own form",
    reference_engine="executorch",
    unverifiable="a program holds what was made for one backend, and not the model that it was"
    " lowered from",
)


class ExecutorchRuntime(FileEngine):
    """Runs ExecuTorch programs as they were lowered."""

    info = RuntimeInfo(
        name="executorch",
        hardware=("cpu",),
        package="executorch",
        extra="executorch",
        precisions=("fp32", "fp16", "int8"),
        isolation="spawn",
        consumes="onnx",
        files=(PTE,),
        reader="accelbench_executorch.reader",
        generates=False,
        title="ExecuTorch",
        engine_packages=("executorch",),
        packages=("torch",),
        dashes=(6, 2, 2, 2),
        place=9,
    )
    needs = ("executorch", "torch")
    quantised_by = "Name a program that was quantised before it was lowered."

    def refused(self, case: Case) -> Support | None:
        """Return a refusal of another precision than the program's: nothing in it can change."""
        file = case.model.file
        if file is None or case.precision == file.precision:
            return None
        return no(
            "precision",
            f"{case.model.id} was lowered in {file.precision}",
            f"Use --precision {file.precision}, or lower the model in {case.precision}.",
        )

    def open(self, job: Job) -> Session:
        from accelbench_executorch.session import ExecutorchSession

        return ExecutorchSession(job, self.clock())
