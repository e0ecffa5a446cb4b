"""ncnn for accelbench: networks of a .param and a .bin, by its own kernels on the CPU."""

from __future__ import annotations

import platform

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.option_types import RuntimeOption
from accelbench.core.protocols import Job, RuntimeInfo, Session, Support
from accelbench.engines.shared.engine import FileEngine
from accelbench.engines.shared.refusals import no

#: As ncnn would by itself, or without what makes it fast: packed layouts, Winograd's and GEMM's
#: convolutions, types of 16 bits, threads, and batches: each item is computed alone.
KERNELS = ("optimized", "plain")
#: Processors whose layers ncnn has in fp16.
_HALF = ("arm64", "aarch64")

PARAM = FileFormat.declare(
    "ncnn",
    "ncnn network",
    suffix=".param",
    packages=("ncnn",),
    largest=2**26,  # its text has none of the weights in it
    reference_engine="ncnn",
    reference_options={"kernels": "plain"},
)


class NcnnRuntime(FileEngine):
    """Runs ncnn networks as they are."""

    info = RuntimeInfo(
        name="ncnn",
        hardware=("cpu",),
        package="ncnn",
        extra="ncnn",
        precisions=("fp32", "fp16", "bf16", "int8"),
        isolation="fork",
        consumes="onnx",
        files=(PARAM,),
        reader="accelbench_ncnn.reader",
        preload=("accelbench_ncnn.session",),
        options=(RuntimeOption("kernels", "how it computes", choices=KERNELS, default=KERNELS[0]),),
        generates=False,
        title="ncnn",
        engine_packages=("ncnn",),
        dashes=(5, 2, 1, 2),
        place=8,
    )
    needs = ("ncnn",)
    quantised_by = "Quantise it with ncnn2int8, and name what that writes."

    def refused(self, case: Case) -> Support | None:
        """Return a refusal of fp16 on processors for which ncnn would compute it in fp32."""
        machine = platform.machine().lower()
        if case.precision != "fp16" or machine in _HALF:
            return None
        return no(
            "precision",
            f"ncnn has no layers in fp16 for {machine}: it would compute in fp32",
            "Use --precision fp32 or bf16.",
        )

    def open(self, job: Job) -> Session:
        from accelbench_ncnn.session import NcnnSession

        return NcnnSession(job, self.clock())
