"""What the onnxruntime runtime takes on, and what it refuses with a reason."""

from dataclasses import replace

import pytest
from array_sessions import case_of

from accelbench.core.protocols import ArtifactFormat, Device, Importing
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.onnxruntime.providers import CUDA, PROVIDERS, chain, names_on, serving

RUNTIME = OnnxruntimeRuntime()
CPU = Device("cpu", "a processor")


def answer(case):
    return RUNTIME.supports(case, replace(CPU, hardware=case.target.hardware))


@pytest.mark.parametrize(("precision", "kind"), [("fp32", "onnx"), ("int8", "onnx-int8")])
def test_what_it_takes_on_the_cpu(precision, kind):
    case = case_of("bert-tiny", precision)
    assert answer(case).ok
    assert isinstance(RUNTIME, Importing)
    assert RUNTIME.wants(case) == ArtifactFormat(kind, static=False)


def test_the_card_has_providers_platforms_and_precisions():
    case = case_of("bert-tiny", "fp16", target="onnxruntime/cuda")
    assert RUNTIME.wants(case) == ArtifactFormat("onnx-fp16")
    assert serving("cuda") == PROVIDERS[1]
    assert serving("cuda", "directml") is None  # its numbers are not CUDA's
    assert serving("tpu") is None
    assert names_on("rocm") == ["migraphx", "rocm"]
    ((engine, asked),) = given("mps")
    assert engine == "CoreMLExecutionProvider"
    assert asked == {"ModelFormat": "MLProgram", "MLComputeUnits": "CPUAndGPU"}
    assert given("directml") == [("DmlExecutionProvider", {"device_id": "2"})]
    assert given("cpu") == ["CPUExecutionProvider"]
    found = RUNTIME.probe()
    assert "cpu" in [one.hardware for one in found]
    assert {one.hardware for one in found} <= set(RUNTIME.info.hardware)
    info = RUNTIME.info
    assert not info.generates
    assert info.consumes == "onnx"
    assert info.isolation == "fork"


def given(hardware, name=None, precision="fp32"):
    provider = serving(hardware, name)
    assert provider is not None
    return chain(provider, 2, precision, {one.engine for one in PROVIDERS})


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_fp32_on_a_card_is_never_tf32(precision):
    assert given("cuda", precision=precision) == [(CUDA, {"device_id": "2", "use_tf32": "0"})]
    # TensorRT has no option for it: cuDNN and cuBLAS, too, heed the variable.
    assert RUNTIME.info.environment["NVIDIA_TF32_OVERRIDE"] == "0"


@pytest.mark.parametrize(
    ("precision", "asked"),
    [("fp32", {}), ("fp16", {"trt_fp16_enable": "True"}), ("int8", {"trt_int8_enable": "True"})],
)
def test_tensorrt_is_asked_for_the_precision_and_has_cuda_behind_it(precision, asked):
    first, second = given("cuda", "tensorrt", precision)
    assert first == ("TensorrtExecutionProvider", {"device_id": "2", **asked})
    assert second == (CUDA, {"device_id": "2", "use_tf32": "0"})
    tensorrt = serving("cuda", "tensorrt")
    assert len(chain(tensorrt, 0, precision, {tensorrt.engine})) == 1
