"""The openvino runtime's card: readable without importing the engine."""

from __future__ import annotations

from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.clock import Clock, MonotonicClock
from accelbench.core.protocols import (
    SUPPORTED,
    Absent,
    Device,
    Job,
    RuntimeInfo,
    Session,
    Support,
    Wanted,
)
from accelbench.core.words import Mode
from accelbench.runtimes.openvino.units import (
    HINTS,
    PRECISIONS,
    computed,
    engine_name,
    not_computed,
)

_OPTIONS = frozenset({"threads", "hint", "model_cache"})


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
        preload=("accelbench.runtimes.openvino.session",),
        generates=False,
    )

    def probe(self) -> list[Device | Absent]:
        """The devices of the installed plugins; runs in a throw-away process."""
        from accelbench.hardware.openvino import OpenvinoDetector, main

        return OpenvinoDetector(probe=lambda *_: main()).detect()

    def supports(self, case: Case, device: Device) -> Support:
        return _installed(case) or _asked(case) or _computes(case, device) or SUPPORTED

    def wants(self, case: Case) -> Wanted:
        return Wanted(PRECISIONS[case.precision].format)

    def clock(self) -> Clock:
        return MonotonicClock()

    def open(self, job: Job) -> Session:
        from accelbench.runtimes.openvino.session import OpenvinoSession

        return OpenvinoSession(job, self.clock())


def _installed(case: Case) -> Support | None:
    packages = ["openvino", "onnx", *(["nncf"] if case.precision == "int8" else [])]
    for package in packages:
        if find_spec(package) is None:
            return Support(
                ok=False,
                reason="package_missing",
                message=f"the openvino runtime needs the package {package}, which is not installed",
                advice="Install it with: pip install 'accelbench[openvino]'",
            )
    return None


def _asked(case: Case) -> Support | None:
    """Modes and options."""
    if case.mode is Mode.TRAINING:
        return Support(
            ok=False,
            reason="mode",
            message="the openvino runtime does not train",
            advice="Use --framework pytorch or jax, or --mode inference.",
        )
    if case.generates:
        return Support(
            ok=False,
            reason="generation",
            message="the openvino runtime does not generate token by token",
            advice="Measure a forward pass: --new-tokens 0.",
        )
    unknown = set(case.options) - _OPTIONS
    if unknown:
        return Support(
            ok=False,
            reason="option",
            message=f"the openvino runtime has no option {', '.join(sorted(unknown))}",
            advice=f"It has {', '.join(sorted(_OPTIONS))}; its models are always compiled.",
        )
    hint = case.options.get("hint")
    if hint is not None and hint not in HINTS:
        return Support(
            ok=False,
            reason="option",
            message=f"OpenVINO has no performance hint {hint}",
            advice=f"It has {' and '.join(HINTS)}.",
        )
    return None


def _computes(case: Case, device: Device) -> Support | None:
    """Whether the unit computes in the precision that is asked for."""
    if case.precision not in PRECISIONS:
        return Support(
            ok=False,
            reason="precision",
            message=f"the openvino runtime does not run {case.precision}",
            advice=f"It runs {', '.join(PRECISIONS)}.",
        )
    capabilities = device.details.get("capabilities") or ()
    why = not_computed(case.precision, engine_name(device), capabilities)
    if why is None:
        return None
    return Support(
        ok=False,
        reason="precision",
        message=why,
        advice=f"It computes {', '.join(computed(capabilities))} there.",
    )
