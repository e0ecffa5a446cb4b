"""LiteRT: TensorFlow Lite models, by XNNPACK or its own kernels on the CPU."""

from __future__ import annotations

from accelbench.core.model import FileFormat
from accelbench.core.option_types import RuntimeOption
from accelbench.core.protocols import Job, RuntimeInfo, Session
from accelbench.engines.shared.engine import FileEngine

#: XNNPACK what it can and LiteRT's kernels the rest, those alone, or the plain ones in C++ that its
#: authors compare all others with.
KERNELS = ("xnnpack", "builtin", "reference")


class LitertRuntime(FileEngine):
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
        preload=("accelbench.engines.litert.session",),
        options=(RuntimeOption("kernels", "who computes", choices=KERNELS, default=KERNELS[0]),),
        generates=False,
        title="LiteRT",
        aliases=("tflite",),
        engine_packages=("ai-edge-litert",),
        dashes=(2, 5),
        place=7,
    )
    needs = ("ai_edge_litert",)
    quantised_by = "Name a model that was quantised when it was converted."

    def open(self, job: Job) -> Session:
        from accelbench.engines.litert.session import LitertSession

        return LitertSession(job, self.clock())
