"""The openvino runtime's card: readable without importing the engine."""

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
from accelbench.runtimes.openvino.units import (
    HINTS,
    LATENCY,
    PRECISIONS,
    computed,
    engine_name,
    not_computed,
)
from accelbench.runtimes.shared.refusals import beyond_forward, missing, no, not_listed

_OWN = (
    RuntimeOption("hint", "what compiling is for", choices=HINTS, default=LATENCY),
    RuntimeOption(
        "model_cache", "keep compiled models for the next run", kind="truth", default=False
    ),
)
_OPTIONS = frozenset({"threads", *(option.name for option in _OWN)})


class OpenvinoRuntime:
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
        preload=("accelbench.runtimes.openvino.session",),
        compiles=True,
        options=_OWN,
        generates=False,
        title="OpenVINO",
        engine_packages=("openvino",),
        packages=("nncf", "onnx", "onnxscript"),
        dashes=(9, 3, 2, 3),
        place=2,
    )

    def probe(self) -> list[Device | Absent]:
        """The devices of the installed plugins; runs in a throw-away process."""
        from accelbench.hardware.openvino import OpenvinoDetector, main

        return OpenvinoDetector(probe=lambda *_: main()).detect()

    def supports(self, case: Case, device: Device) -> Support:
        name = self.info.name
        packages = ("openvino", "onnx", *(("nncf",) if case.precision == "int8" else ()))
        return (
            missing(name, packages, "openvino")
            or beyond_forward(name, case, _OPTIONS, "its models are always compiled")
            or _hinted(case)
            or _computes(case, device)
            or SUPPORTED
        )

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("ir" if case.as_stored else PRECISIONS[case.precision].format)

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.openvino.session import OpenvinoSession

        return OpenvinoSession(job, self.clock())


def _hinted(case: Case) -> Support | None:
    hint = case.options.get("hint")
    if hint is not None and hint not in HINTS:
        return no(
            "option",
            f"OpenVINO has no performance hint {hint}",
            f"It has {' and '.join(HINTS)}.",
        )
    return None


def _computes(case: Case, device: Device) -> Support | None:
    unlisted = not_listed(OpenvinoRuntime.info.name, case, PRECISIONS)
    if unlisted is not None:
        return unlisted
    capabilities = device.details.get("capabilities") or ()
    why = not_computed(case.precision, engine_name(device), capabilities)
    if why is None:
        return None
    return no(
        "precision",
        why,
        f"It computes {', '.join(computed(capabilities))} there.",
    )
