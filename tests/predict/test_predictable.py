"""Configurations that no engine would run are not predicted, and the reason is the true one."""

from dataclasses import replace

import pytest

from accelbench.core.case import Shapes
from accelbench.models.find import find
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase
from accelbench.predict.questions import PredictionQuestion, configurations, why_not

CPU = CaseConfiguration("cpu", "A processor", "pytorch", "fp32", "inference")
V100 = CaseConfiguration("cuda", "Tesla V100-SXM2-32GB", "pytorch", "fp16", "inference")


@pytest.mark.parametrize(
    ("place", "generates", "words"),
    [
        (CPU, False, ""),
        (V100, False, ""),
        (replace(CPU, runtime="openvino"), False, "OpenVINO does not run on cpu"),
        (replace(CPU, runtime="tensorrt"), False, "there is no runtime tensorrt"),
        (replace(CPU, runtime="onnxruntime", mode="training"), False, "does not train"),
        (replace(V100, precision="int8", mode="training"), False, "int8 is not trained"),
        (replace(CPU, runtime="onnxruntime"), True, "does not generate token by token"),
        (replace(CPU, runtime="onnxruntime", precision="bf16"), False, "has no bf16"),
        (replace(CPU, precision="bf16"), False, "how fast A processor is in bf16 is not known"),
        (replace(V100, precision="bf16"), False, "no document gives a peak of Tesla V100"),
        (replace(V100, precision="amp-fp16"), False, ""),
    ],
)
def test_what_no_engine_would_run_has_its_reason(place, generates, words):
    why = why_not(place, (), generates=generates)
    assert words in why
    assert bool(words) == bool(why)


def test_a_calibrated_cpu_is_predicted_in_what_was_measured_of_it():
    assert why_not(replace(CPU, precision="bf16"), {("cpu", "A processor")}, generates=False) == ""


@pytest.mark.parametrize("precision", ["bf16", "int8", "fp16"])
def test_a_calibrated_cpu_is_calibrated_for_openvino_too(precision):
    place = replace(CPU, hardware="openvino", runtime="openvino", precision=precision)
    other = replace(place, device="Another processor")
    assert why_not(place, {("cpu", "A processor")}, generates=False) == ""
    assert "is not known" in why_not(other, {("cpu", "A processor")}, generates=False)


def test_a_measured_device_is_asked_for_by_its_name_alone():
    """“Samsung Galaxy S25” was no platform and no documented device, though it was measured."""
    places = [replace(V100, hardware=kind, device="Fridge 9", precision="fp32") for kind in "ab"]
    measured = [MeasuredCase(PredictedCase("m", "f", Shapes(1), p), 1.0, None) for p in places]
    question = PredictionQuestion((), hardware=("fridge 9",))
    assert configurations(question, measured, lambda _: None, []) == places


@pytest.mark.parametrize(
    ("builders", "word", "runtime"),
    [
        (("file:onnx",), "cuda:A100-SXM4-80GB", "onnxruntime"),
        (("file:onnx",), "openvino", "openvino"),
        (("file:torch.export",), "cuda:A100-SXM4-80GB", "pytorch"),
        (("file:onnx", "transformers:BertModel"), "cuda:A100-SXM4-80GB", "pytorch"),
        ((), "cuda:A100-SXM4-80GB", "pytorch"),
    ],
)
def test_files_are_predicted_on_an_engine_that_reads_them(builders, word, runtime):
    """PyTorch reads no ONNX files."""
    models = [replace(find("bert-tiny"), builder=builder) for builder in builders]
    question = PredictionQuestion(models, hardware=(word,))
    (place,) = configurations(question, [], lambda _: "AMD EPYC", [])
    assert place.runtime == runtime
