"""Names that people type: near ones for slips, `gpu` for what is here, one set everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from shells import ended

from accelbench.api.config import BenchmarkConfig
from accelbench.api.enhanced import BenchmarkRequest
from accelbench.cli.arguments import resolved_values
from accelbench.cli.commands import recommend
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.formatting import suggest
from accelbench.core.protocols import Absent, Device
from accelbench.engines.shared.names import runtime_named, runtimes_named
from accelbench.hardware import detect as names
from accelbench.hardware.detect import find_gpu, parse_platform
from accelbench.judge.filters import filters_of
from accelbench.run.plan.expand import installed_runtimes

Found = Callable[[str], Sequence[Device | Absent]]


def having(*platforms: str, unit: str = "") -> Found:
    def detect(name: str) -> Sequence[Device | Absent]:
        if name not in platforms:
            return [Absent(name, f"no {name} driver", "Install it.")]
        return [Device(name, 0, "A card", name, f"{name}-1", unit=unit)]

    return detect


def test_a_slip_is_answered_with_names_like_it_and_else_with_all():
    assert suggest("Cudda", ["cpu", "cuda"]) == "Did you mean cuda or cpu?"
    assert suggest("toaster", ["cpu", "cuda"]) == "Known: cpu, cuda."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compar",), "There is no command 'compar'. Did you mean compare?"),
        (("import",), "There is no command 'import'. Did you mean accelbench db import?"),
        (("export",), "There is no command 'export'. Did you mean accelbench db export?"),
        (("db", "exprt"), "There is no command 'exprt'. Did you mean export?"),
        (("toast",), "There is no command 'toast'. Commands: run, fleet, hardware,"),
        (("run", "bert-tiny", "--hardware", "cudda"), "Did you mean cuda or cpu?"),
        (("run", "bert-tiny", "--framework", "onnxrt"), "Did you mean onnxruntime?"),
        (("plot", "--chart", "paretto"), "There is no chart 'paretto'. Did you mean pareto?"),
    ],
)
def test_slips_on_the_command_line(monkeypatch, capsys, words, said):
    assert ended(monkeypatch, *words) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("there", "platform"),
    [
        (("cuda",), "cuda"),
        (("rocm", "mps"), "rocm"),
        (("mps",), "mps"),
        (("directml",), "directml"),
    ],
)
def test_gpu_is_the_one_that_is_here(there, platform):
    assert find_gpu(having(*there)) == platform
    assert parse_platform("GPU:1", having(*there)) == f"{platform}:1"


def test_names_of_gpus():
    # Intels gpu is a device of openvino.
    assert parse_platform("gpu", having("openvino", unit="gpu")) == "openvino:gpu"
    with pytest.raises(SurroundingsError):
        find_gpu(having("openvino", unit="cpu"))
    with pytest.raises(SurroundingsError, match=r"No GPU is here\. cuda: no cuda driver; rocm: "):
        find_gpu(having())
    assert filters_of(hardware=["gpu"])["hardware"] == ("cuda", "rocm", "mps", "directml")


@pytest.mark.parametrize(
    ("there", "chosen"), [(("rocm",), ("rocm", "cpu")), ((), ("cuda", "rocm", "mps", "cpu"))]
)
def test_what_is_chosen_among_is_the_gpu_here_else_any_with_results(monkeypatch, there, chosen):
    monkeypatch.setattr(names, "find_gpu", lambda: find_gpu(having(*there)))
    assert recommend._names(["gpu,cpu"]) == chosen


@pytest.mark.parametrize(
    ("word", "runtime"),
    [("onnx", "onnxruntime"), ("ort", "onnxruntime"), ("torch", "pytorch"), ("JAX", "jax")],
)
def test_the_api_takes_the_names_of_the_command_line(word, runtime):
    assert runtimes_named([word]) == (runtime,)
    assert BenchmarkConfig(framework=word).runtime == runtime
    assert BenchmarkRequest(framework=word).request(()).runtimes == (runtime,)


def test_names_of_the_api():
    # The api answers slips as the command line does.
    with pytest.raises(UsageError, match=r"no framework named 'onnxrt'\. Did you mean onnxruntime"):
        BenchmarkConfig(framework="onnxrt")
    with pytest.raises(UsageError, match=r"no hardware named 'cudda'\. Did you mean cuda"):
        BenchmarkConfig(device_prefer="cudda")
    assert BenchmarkConfig(device_prefer="gpu").device_prefer == "gpu"  # asked when it runs
    assert resolved_values.models_named(["both", "gpt2"]) == ("resnet50", "vit_b_16", "gpt2")


def test_the_runtime_of_tests_is_no_choice_of_users(monkeypatch):
    monkeypatch.delenv("ACCELBENCH_SCRIPT", raising=False)
    with pytest.raises(UsageError, match="There is no runtime named 'scripted'"):
        runtime_named("scripted")
    with pytest.raises(UsageError, match="There is no framework named 'scripted'"):
        BenchmarkConfig(framework="scripted")
    with pytest.raises(UsageError):
        BenchmarkRequest(framework="scripted")
    assert "scripted" not in installed_runtimes()


def test_gpu_can_be_asked_about(command):
    code, out, err = command("hardware")("gpu")
    assert (code, err) == (0, "")
    assert "cuda" in out
    assert "cpu" not in out
