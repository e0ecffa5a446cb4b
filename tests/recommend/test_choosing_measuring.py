"""The command that fills a gap asks for what the question asks; where none can, it is said."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from choosing_world import result, selector

from accelbench.judge.suggestions import command_for
from accelbench.models.find import find
from accelbench.recommend.selector import HardwareSelector

RUN = "accelbench run bert-tiny --hardware"
GPT2 = "accelbench run gpt2-tiny --hardware cuda --batch-sizes 1"


@pytest.fixture
def usual() -> HardwareSelector:
    """Over the usual database, which is not there."""
    return HardwareSelector()


def gap(chosen: HardwareSelector, hardware: str = "cuda", **question: Any) -> dict[str, Any]:
    """What is missing of one candidate."""
    asked = {"model_name": "bert-tiny", "available_hardware": [hardware], **question}
    answer = chosen.select_hardware(**asked)
    (missing,) = [one for one in answer["missing"] if one["hardware"].startswith(hardware[:3])]
    return {**missing, "explanation": answer["explanation"]}


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ({}, f"{RUN} cuda --batch-sizes 1"),
        ({"shapes": {"sequence_length": 32}}, f"{RUN} cuda --batch-sizes 1 --sequence-lengths 32"),
        ({"precision": "float16"}, f"{RUN} cuda --batch-sizes 1 --precision fp16"),
        # Training in half precision is autocast, and stored without saying so.
        (
            {"precision": "amp-bf16", "mode": "training"},
            f"{RUN} cuda --batch-sizes 1 --mode training --precision bf16",
        ),
        ({"hardware": "cuda:1"}, f"{RUN} cuda:1 --batch-sizes 1"),
        ({"hardware": "openvino:GPU"}, f"{RUN} openvino:gpu --batch-sizes 1"),
        # `run` takes fp32 by default, which the NPU of Qualcomm refuses.
        ({"hardware": "qnn"}, f"{RUN} qnn --batch-sizes 1 --precision int8"),
        # A name with spaces is a list of names to `run`.
        ({"hardware": "cuda:NVIDIA H200"}, f"{RUN} cuda --batch-sizes 1"),
        (
            {"model_name": "resnet-tiny", "shapes": {"image": 64}},
            "accelbench run resnet-tiny --hardware cuda --batch-sizes 1 --image-sizes 64",
        ),
        (
            {"model_name": "gpt2-tiny", "shapes": {"sequence_length": 16}},
            f"{GPT2} --sequence-lengths 16 --new-tokens 0",
        ),
        (
            {"model_name": "gpt2-tiny", "shapes": {"prompt_tokens": 16}},
            f"{GPT2} --prompt-tokens 16 --new-tokens 8",
        ),
    ],
)
def test_a_command_asks_for_what_the_question_asks(usual, question, command):
    found = gap(usual, **question)
    assert found["command"] == command
    assert found["explanation"].endswith(command)


@pytest.mark.parametrize("name", ["mine net.onnx", "net.py:make"])
def test_a_file_or_code_here_is_measured_by_its_name(usual, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name.partition(":")[0]).touch()
    found = gap(usual, model_name=name, model_family="vision", shapes={"image_size": 64})
    assert shlex.split(found["command"])[:3] == ["accelbench", "run", name]
    assert found["command"].endswith("--hardware cuda --batch-sizes 1 --image-sizes 64")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (
            {"model_name": "of-ours", "model_family": "vision"},
            "of-ours is neither in the catalogue nor here",
        ),
        ({"model_name": "", "model_family": "vision"}, "no model is named"),
        ({"shapes": {"image_size": 64}}, "bert-tiny has no image size to be set"),
        ({"shapes": {"sequence_length": 9999}}, "bert-tiny takes at most"),
        ({"hardware": "cuda:8x NVIDIA H200"}, "8x NVIDIA H200 is several devices"),
    ],
)
def test_where_no_command_can_the_answer_says_why(usual, question, why):
    found = gap(usual, **question)
    assert found["command"] is None
    assert why in found["reason"]
    assert f"No command measures it as it stands: {found['reason']}." in found["explanation"]


def test_hardware_that_no_plugin_knows_is_measured_by_no_command(tmp_path):
    config = {"hardware_preferences": {"npu9": {"cost_factor": 1.0}}}
    found = gap(selector(tmp_path, config_path=config), "npu9")
    assert found["command"] is None
    assert "npu9 is hardware that no plugin knows" in found["reason"]
    # Beside what can be measured, the command is what is said.
    answer = selector(tmp_path, config_path=config).select_hardware(
        model_name="bert-tiny", available_hardware=["npu9", "cpu"]
    )
    assert "To measure: accelbench run bert-tiny --hardware cpu" in answer["explanation"]


def test_what_is_missing_is_measured_as_what_it_stands_beside_was(tmp_path):
    hub = find("bert-tiny").hub_ids[0]
    beside = result(sequence_length=64, weights=hub, data_source="/lab/texts")
    command = gap(selector(tmp_path, beside), "cuda")["command"]
    # Which weights and inputs they were makes no difference to a time.
    assert "--sequence-lengths 64 --db " in command
    trained = result(mode="training", optimizer="sgd")
    command = gap(selector(tmp_path, trained), "cuda", mode="training")["command"]
    assert "--mode training --sequence-lengths 128 --optimizer sgd" in command


@pytest.mark.parametrize(
    ("circumstances", "why"),
    [
        ({"scenario": "server"}, "of the scenario server"),
        ({"world_size": 8}, "of 8 devices or processes together"),  # none that is asked about
    ],
)
def test_what_run_measures_otherwise_fills_no_gap(tmp_path, circumstances, why):
    found = gap(selector(tmp_path, result(**circumstances)), "cuda")
    assert found["command"] is None
    assert why in found["reason"]


def test_processes_on_a_cpu_fill_no_gap_as_processes(tmp_path):
    answer = selector(tmp_path, result(world_size=8)).select_hardware(
        model_name="bert-tiny", available_hardware=["cpu", "cuda"]
    )
    assert "of 8 processes together" in answer["explanation"]
    assert "devices together" not in answer["explanation"]


def test_a_device_of_another_machine_is_named_beside_the_command(tmp_path):
    card = result(hardware="cuda", device_name="NVIDIA GeForce RTX 4090", batch_size=8)
    found = gap(selector(tmp_path, result(), card), "cuda:NVIDIA GeForce RTX 4090")
    assert found["command"].startswith(f"{RUN} cuda --batch-sizes 1 --sequence-lengths 128")
    assert (
        "To measure, where there is NVIDIA GeForce RTX 4090: accelbench run"
        in (found["explanation"])
    )


@pytest.mark.parametrize(
    ("files", "asked", "words"),
    [
        ((), "mine.duckdb", "--db mine.duckdb"),
        ((), "folder", "--output-dir folder"),
        (("folder/raw_results/a.json",), "folder", "--output-dir folder"),
        (("folder/a.json",), "folder", "--output-ci folder/measured.json"),
    ],
)
def test_results_go_where_they_are_looked_for(tmp_path, files, asked, words):
    (tmp_path / "folder").mkdir()
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[]")
    assert gap(HardwareSelector(asked))["command"] == f"{RUN} cuda --batch-sizes 1 {words}"


def test_among_files_deep_in_a_folder_nothing_can_be_put(tmp_path):
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "a.json").write_text("[]")
    found = gap(HardwareSelector("folder"))
    assert found["command"] is None
    assert "use a database" in found["reason"]


def test_results_under_another_spelling_stay_known_beside_ones_own(tmp_path):
    theirs = result(model="BERT_tiny", hardware="cuda", latency_p50_ms=1.0)
    answer = selector(tmp_path, theirs, result()).select_hardware(model_name="bert-tiny")
    assert {answer["all_scores"][name]["basis"] for name in ("cpu", "cuda")} == {"measured"}


def test_what_generates_is_asked_to_on_every_platform(tmp_path):
    """Else one measures a forward pass, which stands beside no other's tokens."""
    spec = find("gpt2-tiny")
    assert spec.generation is not None
    makes = spec.generation
    wanted = f"--prompt-tokens {makes.prompt_tokens} --new-tokens {makes.new_tokens}"
    answer = selector(tmp_path).select_hardware(
        model_name="gpt2-tiny", available_hardware=["cpu", "openvino"]
    )
    assert all(wanted in one["command"] for one in answer["missing"])


def test_commands_under_limits_name_a_precision_that_the_platform_computes(usual):
    answer = usual.best_under(
        {"max_latency_ms": 10}, model_name="bert-tiny", available_hardware=["qnn"]
    )
    commands = [case["command"] for part in ("to_verify", "to_search") for case in answer[part]]
    assert f"{RUN} qnn --batch-sizes 1 --precision int8" in commands


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"hardware": ("qnn",)}, "--hardware qnn --precision int8"),
        ({"hardware": ("cpu", "qnn")}, "--hardware cpu,qnn --precision fp32,int8"),
        ({"hardware": ("qnn",), "precision": ("fp16",)}, "--hardware qnn --precision fp16"),
        ({"runtime": ("qnn",)}, "--framework qnn --precision int8"),
        ({"hardware": ("cuda",)}, "--hardware cuda"),
    ],
)
def test_commands_for_filters_name_a_precision_that_the_platform_computes(asked, words):
    assert command_for({"model": ("bert-tiny",), **asked}).endswith(f" bert-tiny {words}")
