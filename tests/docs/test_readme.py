"""The README's commands are understood by the program: runs are planned, the rest is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from map_running import in_process, on_its_own

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """Every accelbench command of the shell blocks, without redirections and comments."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.split(" > ")[0] for block in blocks for line in block.splitlines()]
    found = [shlex.split(line, comments=True) for line in lines if "accelbench " in line]
    return sorted({shlex.join(words[1:]) for words in found if words[0].endswith("accelbench")})


COMMANDS = commands()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where something was measured: once, and copied for each command that looks at it."""
    folder = tmp_path_factory.mktemp("measured")
    # A median of two steps on two threads was 108 ms on a busy machine, and a limit is 100 ms.
    few = "--batch-sizes 1 --iterations 5 --warmup 1 --threads 1"
    words = f"run bert-tiny --hardware cpu {few}"
    assert on_its_own(folder, *words.split()).returncode == 0
    return folder


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that another command of the page writes."""
    folder = tmp_path_factory.mktemp("planned")
    (saving,) = (command for command in COMMANDS if "--save-plan nightly.yaml" in command)
    assert in_process(folder, *shlex.split(saving)).returncode == 0
    return folder / "nightly.yaml"


def write_graph(path: Path) -> None:
    """A file with one product, whose batch is free."""
    onnx = pytest.importorskip("onnx")
    given = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 64])
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 32])
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [64, 32], [0.5] * 2048)
    product = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([product], "product", [given], [made], [weights])
    onnx.save(onnx.helper.make_model(graph), path)


def write_config(folder: Path) -> None:
    """A folder with the config of a small model."""
    folder.mkdir()
    config = {"architectures": ["BertModel"], "hidden_size": 16, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 100}
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) > 5


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_is_understood(
    command: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    words = shlex.split(command)
    if words[0] == "run" and "--dry-run" not in words:
        words.append("--dry-run")
    if words[0] in ("matrix", "recommend"):  # of what was measured, so something has to be
        shutil.copytree(request.getfixturevalue("measured"), tmp_path, dirs_exist_ok=True)
    if "--verify" in words:  # measures for minutes, which tests of the command do
        words.remove("--verify")
    for name in {"model.onnx", "mine.onnx"} & set(words):
        write_graph(tmp_path / name)
    if "ops.py:product" in words:
        (tmp_path / "ops.py").write_text("def product(x, y):\n    return x @ y\n")
    if "./my-bert" in words:
        write_config(tmp_path / "my-bert")
    if words[:2] == ["run", "nightly.yaml"]:
        shutil.copy(request.getfixturevalue("planned"), tmp_path)
    if words[0] == "db":
        assert in_process(tmp_path, "db", "init").returncode == 0
    done = in_process(tmp_path, *words)
    assert done.returncode == 0, done.stderr
