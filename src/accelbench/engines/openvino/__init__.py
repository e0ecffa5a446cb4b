"""The openvino runtime's card: readable without importing the engine."""

from __future__ import annotations

from collections.abc import Iterator

from accelbench.core.case import Case
from accelbench.core.model import FileFormat
from accelbench.core.option_types import RuntimeOption
from accelbench.core.protocols import (
    Absent,
    ArtifactFormat,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
)
from accelbench.engines.openvino.units import (
    HINTS,
    LATENCY,
    PRECISIONS,
    computed,
    engine_name,
    not_computed,
)
from accelbench.engines.shared.engine import ForwardEngine
from accelbench.engines.shared.refusals import missing, not_listed, refuse

_OWN = (
    RuntimeOption("hint", "what compiling is for", choices=HINTS, default=LATENCY),
    RuntimeOption(
        "model_cache", "keep compiled models for the next run", kind="truth", default=False
    ),
)


class OpenvinoRuntime(ForwardEngine):
    """Runs OpenVINO IR, made of graphs exported from PyTorch."""

    info = RuntimeInfo(
        name="openvino",
        hardware=("openvino",),
        default_for=("openvino",),
        package="openvino",
        extra="openvino",
        precisions=tuple(PRECISIONS),
        # Seen to be good after an import alone; after ov.Core() a child would hang.
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.ONNX, FileFormat.OPENVINO),
        domains=("org.openvinotoolkit", "org.pytorch.aten", "mmdeploy"),
        preload=("accelbench.engines.openvino.session",),
        compiles=True,
        options=_OWN,
        generates=False,
        title="OpenVINO",
        engine_packages=("openvino",),
        packages=("nncf", "onnx", "onnxscript"),
        dashes=(9, 3, 2, 3),
        place=2,
    )

    needs = ("openvino", "onnx")
    remark = "its models are always compiled"

    def probe(self) -> list[Device | Absent]:
        from accelbench.hardware.openvino import OpenvinoDetector, main

        return OpenvinoDetector(probe=lambda *_: main()).detect()

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        if case.precision == "int8":
            yield missing(self.info.name, (*self.needs, "nncf"), self.info.extra)
        yield from super().refusals(case, device)
        hint = case.options.get("hint", LATENCY)
        if hint not in HINTS:
            yield refuse("option/hint", hint=hint, known=" and ".join(HINTS))
        yield not_listed(self.info.name, case, tuple(PRECISIONS))
        capabilities = device.details.get("capabilities") or ()
        why = not_computed(case.precision, engine_name(device), capabilities)
        if why is not None:
            yield refuse("precision/unit", why=why, known=", ".join(computed(capabilities)))

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("ir" if case.is_run_as_stored else PRECISIONS[case.precision].format)

    def open(self, job: Job) -> Session:
        from accelbench.engines.openvino.session import OpenvinoSession

        return OpenvinoSession(job, self.clock())
