"""What OpenVINO's runtime knows without the engine: its card, words, properties and profiles."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Evidence, Importing, Runtime
from accelbench.engines.openvino import OpenvinoRuntime
from accelbench.engines.openvino.session import Profile, understood
from accelbench.engines.openvino.units import PRECISIONS, engine_name, executing, places, properties
from accelbench.models.find import find

EPYC = ["BF16", "BIN", "EXPORT_IMPORT", "FP32", "INT8", "WINOGRAD"]
OLD = ["BIN", "FP32", "INT8"]
ARC = ["BIN", "EXPORT_IMPORT", "FP16", "FP32", "GPU_HW_MATMUL", "INT8"]
BOOST = ["EXPORT_IMPORT", "FP16", "INT8"]


def unit(name, capabilities, ordinal=0):
    return Device(
        "openvino",
        name,
        ordinal,
        unit=name.partition(".")[0],
        details={"device": name, "capabilities": capabilities},
    )


def case(precision="fp32", **fields):
    target = Target("openvino", "openvino", "cpu")
    return Case(find("bert-tiny"), target, precision, Shapes(2, sequence=16), **fields)


def test_the_card_has_units_properties_and_precisions():
    code = (
        "import sys, json\n"
        "from accelbench.engines.openvino import OpenvinoRuntime\n"
        "from accelbench.engines.openvino.units import properties\n"
        "OpenvinoRuntime().clock()\n"
        "print(json.dumps([n for n in ('openvino', 'nncf', 'torch', 'onnx', 'numpy')"
        " if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    runtime = OpenvinoRuntime()
    assert isinstance(runtime, Runtime)
    assert isinstance(runtime, Importing)
    assert not runtime.info.generates

    answer = OpenvinoRuntime().supports(case("fp16"), unit("cpu", EPYC))
    assert answer.message == "OpenVINO's CPU would compute fp16 in bf16 or fp32"
    found = properties("CPU", "int8", "throughput", None, EPYC)
    assert found == {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
    # An NPU has no fp32 for what is not quantised.
    assert properties("NPU", "int8", "latency", None, BOOST)["INFERENCE_PRECISION_HINT"] == "f16"
    assert engine_name(unit("gpu.1", ARC)) == "GPU.1"
    assert engine_name(Device("openvino", "x", unit="npu")) == "NPU"
    assert engine_name(Device("openvino", "x")) == "CPU"
    assert executing(["(CPU)", "GPU.0"]) == ["CPU", "GPU.0"]
    assert executing("NPU") == ["NPU"]
    assert executing("") == []
    assert places(unit("auto", EPYC), []) == ()


@pytest.mark.parametrize(
    ("name", "capabilities", "computes"),
    [
        ("cpu", EPYC, {"fp32", "bf16", "int8"}),
        ("cpu", OLD, {"fp32", "int8"}),
        ("gpu", ARC, {"fp32", "fp16", "int8"}),
        ("npu", BOOST, {"fp16", "int8"}),
        ("auto", sorted({*EPYC, *ARC}), {"fp32", "bf16", "fp16", "int8"}),
    ],
)
def test_a_precision_is_refused_where_it_would_be_another(name, capabilities, computes):
    for precision in PRECISIONS:
        answer = OpenvinoRuntime().supports(case(precision), unit(name, capabilities))
        assert answer.ok == (precision in computes), precision
        if not answer.ok:
            assert answer.reason == "precision"
            assert all(word in answer.advice for word in computes)


@pytest.mark.parametrize("name", ["CPU", "GPU.1", "NPU", "AUTO"])
@pytest.mark.parametrize("precision", list(PRECISIONS))
def test_the_precision_is_never_left_to_the_engine(name, precision):
    found = properties(name, precision, "latency", 3, EPYC)
    assert found["INFERENCE_PRECISION_HINT"] == PRECISIONS[precision].hint
    assert found["PERFORMANCE_HINT"] == "LATENCY"
    # Only where such a property exists: a unit refuses those that it does not know.
    assert ("INFERENCE_NUM_THREADS" in found) == (name in ("CPU", "AUTO"))
    assert ("NUM_STREAMS" in found) == (name in ("CPU", "GPU.1"))
    # While it compiles for another device, AUTO would answer from the CPU.
    assert (found.get("ENABLE_STARTUP_FALLBACK") is False) == (name == "AUTO")


@pytest.mark.parametrize(
    ("asked", "said", "fell_back"),
    [
        (unit("cpu", EPYC), ["CPU"], False),
        (unit("gpu", ARC, 1), ["GPU.0"], False),
        (unit("gpu.0", ARC, 1), ["GPU"], False),
        (unit("gpu.1", ARC, 2), ["GPU.1"], False),
        (unit("gpu.1", ARC, 2), ["GPU.0"], True),
        (unit("gpu", ARC, 1), ["CPU"], True),
        (unit("npu", BOOST, 2), ["NPU", "CPU"], True),
        (unit("npu", BOOST, 2), "NPU", False),  # a string: what a compiled model says
        (unit("npu.3720", BOOST, 2), "NPU", False),
        (unit("npu.3720", BOOST, 2), ["NPU.3720"], False),
        (unit("npu.3720", BOOST, 2), ["NPU.4000"], True),
        (unit("npu", BOOST, 2), ["NPU.4000"], False),
        (unit("npu", BOOST, 2), "CPU", True),
        (unit("auto", EPYC, 3), ["(CPU)"], False),
        (unit("auto", EPYC, 3), ["GPU.0"], False),
    ],
)
def test_a_unit_that_was_not_asked_for_is_a_fallback(asked, said, fell_back):
    evidence = Evidence(places(asked, said), requested=str(asked))
    assert evidence.fell_back == fell_back
    assert (str(asked) in evidence.devices) == (not fell_back or "NPU" in said)


def node(layer, kernel, time="10", **more):
    return {"layerType": layer, "primitiveType": kernel, "execTimeMcs": time, **more}


def test_profiles_count_by_kernels():
    found = understood(
        [
            node("FullyConnected", "brgemm_avx512_bf16", "60", runtimePrecision="f32"),
            node("MatMul", "gemm_mlas_f32", "20", runtimePrecision="u8"),
            node("Convolution", "brgconv_avx512_I8", "20"),
            node("Subgraph", "jit_avx512_f32", "100", runtimePrecision="bf16"),
            node("Const", "unknown_f32", "1000"),
            node("Transpose", "unknown_f32", "not_executed"),
            {"type": "a node of which nothing is told"},
        ]
    )
    assert found.computed_in == {"bf16": 0.6, "fp32": 0.2, "int8": 0.2}
    assert found.by_type == {"f32": 0.6, "bf16": 0.3, "i8": 0.1}
    assert found.kernels[0] == "jit_avx512_f32"
    assert json.loads(json.dumps(found.as_details(), allow_nan=False))["computed_in"]["bf16"] == 0.6

    found = understood([node("MatMul", "a_f32", "0"), node("MatMul", "b_i8", "0")])
    assert found.computed_in == {"fp32": 0.5, "int8": 0.5}
    assert understood([]).computed_in == {}

    silent = Profile({}, {}, why="the NPU counts nothing")
    assert silent.as_details() == {
        "computed_in": None,
        "computed_in_unknown": "the NPU counts nothing",
    }


KERNELS = st.sampled_from(["a_f32", "b_bf16", "c_f16", "d_I8", "e_i8", "f_u8", "g"])
LAYERS = st.sampled_from(["MatMul", "Convolution", "Softmax", "Const"])


@given(st.lists(st.tuples(LAYERS, KERNELS, st.integers(0, 10**6)), max_size=30))
def test_shares_add_up(rows):
    found = understood([node(layer, kernel, str(time)) for layer, kernel, time in rows])
    for shares in (found.computed_in, found.by_type):
        assert not shares or sum(shares.values()) == pytest.approx(1.0)
    products = [row for row in rows if row[0] in ("MatMul", "Convolution")]
    assert bool(found.computed_in) == bool(products)
