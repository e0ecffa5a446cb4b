"""What runtimes declare as their own options is what they take, and what the documents list."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from array_sessions import case_of, opened

from accelbench.core.model import FileFormat, ModelFile
from accelbench.core.protocols import Device
from accelbench.engines.browser import BrowserRuntime
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.litert import LitertRuntime
from accelbench.engines.onnxruntime import OnnxruntimeRuntime
from accelbench.engines.openvino import OpenvinoRuntime
from accelbench.engines.pytorch import PytorchRuntime
from accelbench.engines.qnn import QnnRuntime
from accelbench_executorch import ExecutorchRuntime
from accelbench_ncnn import NcnnRuntime

RUNTIMES = (
    PytorchRuntime(), OnnxruntimeRuntime(), OpenvinoRuntime(), JaxRuntime(), QnnRuntime(),
    BrowserRuntime(), LitertRuntime(), NcnnRuntime(), ExecutorchRuntime(),
)  # fmt: skip
#: Runtimes that open files alone, which nothing is converted to.
OF_FILES = {"litert": FileFormat.TFLITE, "ncnn": FileFormat("ncnn")}
#: What an option is of, where it changes nothing without that.
BESIDE = {"compile_mode": {"compile": True}}
OWN = [(one, option) for one in RUNTIMES for option in one.info.options]
DOCUMENT = Path(__file__).parents[2] / "docs" / "measuring.md"


def values(option):
    return option.choices or {"truth": (True, False), "number": (1,), "text": ("x",)}[option.kind]


@pytest.mark.parametrize(
    ("runtime", "option"), OWN, ids=[f"{r.info.name}.{o.name}" for r, o in OWN]
)
def test_every_declared_value_is_taken_somewhere(runtime, option):
    for value in values(option):
        answers = []
        for hardware in runtime.info.hardware:
            case = case_of("bert-tiny", target=f"{runtime.info.name}/{hardware}")
            if runtime.info.name in OF_FILES:
                file = ModelFile(OF_FILES[runtime.info.name], "net", "", "", "fp32", ())
                case = dataclasses.replace(case, model=dataclasses.replace(case.model, file=file))
            case = dataclasses.replace(
                case, options={option.name: value, **BESIDE.get(option.name, {})}
            )
            answers.append(runtime.supports(case, Device(hardware, "a device")))
        # Where npm or an engine is not, that is all that is found.
        taken = [one.ok or one.reason in ("not_set_up", "package_missing") for one in answers]
        assert any(taken), (value, [one.message for one in answers])


@pytest.mark.parametrize(
    ("runtime", "option"), OWN, ids=[f"{r.info.name}.{o.name}" for r, o in OWN]
)
def test_what_is_the_default_is_one_of_its_values(runtime, option):
    for hardware in runtime.info.hardware:
        default = option.default_on(hardware)
        # A text that nobody gave is none at all.
        assert default in values(option) or (option.kind == "text" and default is None)


def test_the_document_lists_them_and_no_others():
    listed = re.findall(r"^\| `([\w-]+\.[\w-]+)` \|(.*?)\|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(name for name, _ in listed) == sorted(f"{r.info.name}.{o.name}" for r, o in OWN)
    by_name = {f"{r.info.name}.{o.name}": o for r, o in OWN}
    for name, takes in listed:
        said = set(re.findall(r"`([\w-]+)`", takes))
        kinds = {"truth": ("yes", "no"), "text": ()}
        assert said == set(by_name[name].choices or kinds[by_name[name].kind]), name


def test_onnxruntime_rewrites_a_graph_as_far_as_it_is_told():
    """And whatever it rewrites, it computes the same."""
    found = {}
    for level, name in (("disabled", "ORT_DISABLE_ALL"), (None, "ORT_ENABLE_ALL")):
        case = case_of("bert-tiny", **({"optimization": level} if level else {}))
        with opened(OnnxruntimeRuntime(), case, Device("cpu", "a CPU")) as session:
            inputs = session.prepare(case)
            found[level] = session.outputs(inputs)
            details = session.evidence().details
            assert details["graph_optimization_level"] == name
            found[level, "nodes"] = sum(details["provider_nodes"].values())
    assert found["disabled", "nodes"] > found[None, "nodes"]
    for output, value in found[None].items():
        assert np.allclose(value, found["disabled"][output], atol=1e-5)
