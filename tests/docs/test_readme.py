"""Commands of the README and of the pages that one starts with are understood by the program.

Runs are planned, the rest is run. What the README shows of outputs is what was printed, and the
start page of the documentation leads to every page.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from map_running import in_process, on_its_own

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import front_page  # noqa: E402

DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Pages whose commands are all tried.
PAGES = ("README.md", "docs/README.md", "docs/installing.md", "docs/running.md", "docs/terminal.md")
#: Where the commands and outputs are that `make pictures` writes.
FRONT_PAGE = DOCS / "front-page"


def commands() -> list[str]:
    """Every accelbench command of the shell blocks, without redirections and comments."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    texts += [f"```sh\n{command}\n```" for command in shown_commands()]
    blocks = [block for text in texts for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    lines = [line.split(" > ")[0] for block in blocks for line in block.splitlines()]
    found = [shlex.split(line, comments=True) for line in lines if "accelbench " in line]
    return sorted({shlex.join(words[1:]) for words in found if words[0].endswith("accelbench")})


def shown_commands() -> list[str]:
    """The commands before outputs."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ accelbench ")]


COMMANDS = commands()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where something was measured: once, and copied for each command that looks at it."""
    folder = tmp_path_factory.mktemp("measured")
    # A median of two steps on two threads was 108 ms on a busy machine, and a limit is 100 ms.
    few = "--batch-sizes 1,2 --iterations 5 --warmup 1 --threads 1"
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


def write_what_is_named(folder: Path, words: list[str]) -> None:
    """The files of a reader's own that a command names."""
    for name in {"model.onnx", "mine.onnx"} & set(words):
        write_graph(folder / name)
    if "ops.py:product" in words:
        (folder / "ops.py").write_text("def product(x, y):\n    return x @ y\n")
    if "bench.py:make" in words:
        front_page.a_repository(folder)
    if "./my-bert" in words:
        write_config(folder / "my-bert")


def test_pages():
    assert len(COMMANDS) > 35
    assert len(shown_commands()) >= 4
    # What it is, two commands, three jobs, the peers, links; the rest is in docs/.
    assert len(README.splitlines()) <= 150
    assert README.count("\n### ") == 3
    assert "make demo" in README
    assert "make test" in README
    assert "(docs/README.md)" in README
    # Outputs of the readme are what was printed.
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    printed = [path.read_text(encoding="utf-8") for path in sorted(FRONT_PAGE.glob("*.txt"))]
    assert len(blocks) == len(printed) == 3
    for block in blocks:
        # Lines may be left out, where an ellipsis says so; none is changed.
        (whole,) = [text for text in printed if text.splitlines()[0] == block.splitlines()[0]]
        lines = iter(whole.splitlines())
        assert all(line in lines for line in block.splitlines() if line != "…"), block
    # Pictures of the readme are here and small.
    pictures = re.findall(r"!\[[^\]]+\]\((docs/images/[^)]+)\)", README)
    assert {Path(name).suffix for name in pictures} == {".svg", ".png"}
    for name in pictures:
        assert 0 < (ROOT / name).stat().st_size <= 200_000
    drawn = ElementTree.parse(DOCS / "images" / "terminal.svg")
    text = "".join(drawn.getroot().itertext()).replace("\xa0", " ")
    for command in (FRONT_PAGE / "onnx.txt").read_text(encoding="utf-8").splitlines():
        if command.startswith("$ "):
            assert command in text
    # Nothing is fetched to show it.
    assert "http" not in (DOCS / "images" / "terminal.svg").read_text().replace(
        "http://www.w3.org/2000/svg", ""
    ).replace("https://www.textualize.io", "")
    # The start page leads to every page.
    start = links(DOCS / "README.md")
    pages = {path for path in DOCS.glob("*") if path.suffix in (".md", ".json")}
    assert not sorted(path.name for path in pages - start - {DOCS / "README.md"})
    own = links(DOCS / "models" / "README.md")
    assert not set((DOCS / "models").glob("*.md")) - own - {DOCS / "models" / "README.md"}
    # Anchors too: each is a heading of the page that it leads to.
    dead = []
    for page in [ROOT / "README.md", *(DOCS / name for name in ("README.md", "installing.md"))]:
        for target, anchor in re.findall(
            r"\]\(([^)#]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")
        ):
            if target.startswith("https://"):
                continue
            path = page.parent / target if target else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                dead.append((page.name, target, anchor))
    assert not dead


def links(page: Path) -> set[Path]:
    """The files of this repository that a page leads to."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    here = [target for target in targets if not target.startswith(("https://", "http://"))]
    return {(page.parent / target).resolve() for target in here}


def anchors(page: Path) -> set[str]:
    """How headings of a page are linked to."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.usefixtures("present")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_is_understood(command, tmp_path, request):
    words = shlex.split(command)
    if words[0] == "run" and "--dry-run" not in words:
        words.append("--dry-run")
    if words[0] == "compare":
        words = ["bert-tiny" if word == "mine.onnx" else word for word in words]
    # Of what was measured, so something has to be.
    if words[0] in ("matrix", "recommend", "compare"):
        shutil.copytree(request.getfixturevalue("measured"), tmp_path, dirs_exist_ok=True)
    if "--verify" in words:  # measures for minutes, which tests of the command do
        words.remove("--verify")
    write_what_is_named(tmp_path, words)
    if words[:2] == ["run", "nightly.yaml"]:
        shutil.copy(request.getfixturevalue("planned"), tmp_path)
    if words[0] == "db":
        assert in_process(tmp_path, "db", "init").returncode == 0
    done = in_process(tmp_path, *words)
    absent = "Nothing would be measured" in done.stderr  # hardware that this machine has not
    assert done.returncode == (3 if absent else 0), done.stderr
