"""The onnxruntime runtime's card: readable without importing the engine."""

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
from accelbench.core.vocabulary import Belongs
from accelbench.engines.onnxruntime.providers import HARDWARE, PROVIDERS, names_on, serving
from accelbench.engines.shared.engine import ForwardEngine
from accelbench.engines.shared.names import CARDS_IN_ORDER
from accelbench.engines.shared.refusals import not_listed, refuse

#: How much of a graph is rewritten before it runs; the last is ONNX Runtime's own default.
LEVELS = ("disabled", "basic", "extended", "all")
#: In which version of its operators a graph is opened.
OPSETS = AS_STORED, CONVERTED = ("as_stored", "converted")
_OWN = (
    RuntimeOption(
        "provider",
        "who executes, where a platform has several",
        choices=tuple(provider.name for provider in PROVIDERS),
        default={hardware: names_on(hardware)[0] for hardware in HARDWARE},
    ),
    RuntimeOption(
        "optimization", "how much of a graph is rewritten", choices=LEVELS, default=LEVELS[-1]
    ),
    RuntimeOption(
        "opset",
        "whether a graph of operators before opset 7 is converted to those",
        choices=OPSETS,
        default=OPSETS[0],
    ),
)
_FORMATS = {"fp32": "onnx", "fp16": "onnx-fp16", "int8": "onnx-int8"}


class OnnxruntimeRuntime(ForwardEngine):
    """Runs ONNX graphs exported from PyTorch."""

    info = RuntimeInfo(
        name="onnxruntime",
        hardware=HARDWARE,
        default_for=("directml",),
        package="onnxruntime",
        extra="onnx",
        precisions=("fp32", "fp16", "int8"),
        isolation="fork",
        consumes="onnx",
        files=(FileFormat.ONNX,),
        preload=("onnxruntime", "accelbench.engines.onnxruntime.session"),
        # TensorRT and cuDNN would compute fp32 in TF32, and read no option that says otherwise.
        environment={**CARDS_IN_ORDER, "ORT_DISABLE_TELEMETRY": "1", "NVIDIA_TF32_OVERRIDE": "0"},
        options=_OWN,
        generates=False,
        spills=True,
        title="ONNX Runtime",
        short="ort",
        aliases=("onnx", "ort"),
        engine_packages=("onnxruntime",),
        # Builds for other hardware carry the same module under names of their own.
        packages=("onnxruntime-gpu", "onnxruntime-openvino", "onnx", "onnxscript"),
        dashes=(7, 3),
        place=1,
        reasons={"provider": Belongs.QUESTION, "provider_missing": Belongs.MACHINE},
    )

    needs = ("onnxruntime", "onnx")
    remark = "its graphs are optimised anyway"

    def probe(self) -> list[Device | Absent]:
        import onnxruntime

        has = onnxruntime.get_available_providers()
        devices: dict[str, Device | Absent] = {}
        for provider in PROVIDERS:
            if provider.engine in has:
                devices[provider.hardware] = Device(provider.hardware, provider.engine)
        return list(devices.values())

    def refusals(self, case: Case, device: Device) -> Iterator[Support | None]:
        yield from super().refusals(case, device)
        hardware, named = case.target.hardware, case.options.get("provider")
        provider = serving(hardware, None if named is None else str(named))
        if provider is None:
            known = ", ".join(names_on(hardware))
            yield refuse("provider", provider=named, hardware=hardware, known=known)
            return
        why = {
            case.precision: f"the {provider.name} provider does not run {case.precision}",
            **(provider.why_not or {}),
        }
        yield not_listed(self.info.name, case, provider.precisions, why)

    def wants(self, case: Case) -> ArtifactFormat:
        return ArtifactFormat("onnx" if case.is_run_as_stored else _FORMATS[case.precision])

    def open(self, job: Job) -> Session:
        from accelbench.engines.onnxruntime.session import OnnxruntimeSession

        return OnnxruntimeSession(job, self.clock())
