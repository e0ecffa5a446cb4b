"""What the front page shows: three jobs with their real output, a recorded terminal, and pages.

Everything is measured here and now, in a folder of its own, with the engines that are installed:

- which hardware for my model: bert-tiny on three engines, then `recommend`;
- did my pull request get slower: a repository with a package, a branch whose change is slower, and
  `run --against commit:main`, which measures both sides in turns;
- my ONNX file on every engine: a graph exported from torch, then `compare --pivot`.

Commands and what they printed go to `docs/front-page/NAME.txt`, which the README quotes; what a
terminal showed of the last to `docs/images/terminal.svg`; pages of the dashboard over all of it and
over small models, each measured twice, to `docs/images/`, where Chromium is here.

    make pictures
    python benchmarks/front_page.py [--only onnx,gate,choose,pages] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEXTS, IMAGES = ROOT / "docs" / "front-page", ROOT / "docs" / "images"
PROGRAM = (sys.executable, "-m", "accelbench")
#: Columns of the recorded terminal, and of the outputs that the README quotes.
COLUMNS = 96
#: Where a reader would have run it.
HOME = "/home/you/work"
SIZE = {"width": 1280, "height": 860}
#: No picture of the front page may be larger.
MOST_BYTES = 200_000

MODULE = '''\
"""A block of a network, as its owner benchmarks it."""

import torch

from mylib import attention


class Block(torch.nn.Module):
    def forward(self, x):
        return attention(x, x, x)


def make():
    return Block(), {"x": torch.randn(1, 512, 64)}
'''
FUSED = """\
from torch.nn.functional import scaled_dot_product_attention as attention
"""
PLAIN = """\
import torch


def attention(q, k, v):
    rows = [torch.softmax(k @ row / len(row) ** 0.5, -1) @ v for row in q.flatten(0, -2)]
    return torch.stack(rows).view_as(q)
"""
EXPORT = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(32, 64, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(64, 128, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10),
).eval()
torch.onnx.export(net, (torch.randn(2, 3, 64, 64),), "mine.onnx", input_names=["image"],
                  dynamo=False, dynamic_axes={"image": {0: "batch"}})
"""
#: Findings are worked out beside the pages, which come again until these are there.
WORKED_OUT = "() => !document.body.innerText.includes('being worked out')"
#: The folder's name in a page is the reader's, as it is in the texts.
ELSEWHERE = """([from, to]) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode())
    walk.currentNode.data = walk.currentNode.data.replaceAll(from, to);
}"""
#: Words of each command, and whether its output is shown; without it, it is only run.
#: The engines that are timed; others are here too, but a reader has most likely these.
ENGINES = "--hardware cpu,openvino --framework pytorch,onnxruntime,openvino"
CHOOSE = (
    (f"run bert-tiny {ENGINES} --batch-sizes 1,8 --launches 5", False),
    ("recommend bert-tiny --batch-size 8", True),
)
_ONE = "--hardware cpu --framework pytorch --batch-sizes 1 --iterations 20"
GATE = ((f"run bench.py:make {_ONE} --against commit:main --threshold 0.1", True),)
ONNX = (
    ("run mine.onnx --hardware cpu,openvino --batch-sizes 1,8", False),
    ("compare mine.onnx --pivot", True),
)
SMALL = (
    (f"run --set small {ENGINES} --batch-sizes 1,8 --iterations 10", False),
    (f"run --set small {ENGINES} --batch-sizes 1,8 --iterations 10", False),
)
#: Pictures of pages: a name, the address with the keys of the first configurations in it, a theme.
PAGES = (
    ("overview", "/", "light"),
    ("dashboard-results", "/results?mode=inference&sort=-throughput", "light"),
    ("dashboard-cell", "/cell/{0}", "light"),
    ("dashboard-compare", "/compare?cell={0}&cell={1}&cell={2}", "light"),
    ("dashboard-model", "/model/bert-tiny", "light"),
    ("dashboard-explore", "/explore", "light"),
    ("dashboard-history", "/history?model=bert-tiny", "dark"),
)
#: The configurations of one model by its engines, which are what most people compare.
KEYS = "/results?model=bert-tiny&batch-min=8&batch-max=8"
Printed = Sequence[tuple[str, bool, str]]


def environment(columns: int) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ACCELBENCH")}
    source = str(ROOT / "src")
    return {**own, "PYTHONPATH": source, "COLUMNS": str(columns), "TERM": "xterm-256color"}


def ran(folder: Path, words: str) -> str:
    """What a command printed on a terminal, colours included; what it wiped is gone."""
    master, slave = pty.openpty()
    heard = bytearray()

    def listen() -> None:
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:
                return
            if not block:
                return
            heard.extend(block)

    listener = threading.Thread(target=listen)
    listener.start()
    process = subprocess.Popen(
        [*PROGRAM, *words.split()],
        cwd=folder,
        env=environment(COLUMNS),
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
    )
    process.wait()
    os.close(slave)
    listener.join()
    os.close(master)
    text = heard.decode().replace("\r\n", "\n").replace(str(folder), HOME)
    lines = (re.split(r"\r(?:\x1b\[\d*K)?", line)[-1] for line in text.split("\n"))
    return "\n".join(lines)


def session(folder: Path, commands: Sequence[tuple[str, bool]]) -> Printed:
    """Commands, whether their outputs are quoted, and these."""
    printed = []
    for words, quoted in commands:
        print(f"$ accelbench {words}", flush=True)
        printed.append((words, quoted, ran(folder, words)))
    return printed


def text_of(printed: Printed, every: bool = False) -> str:
    """What stood in the terminal: the commands, and the outputs that are quoted, or every one."""
    parts = []
    for words, quoted, output in printed:
        parts.append(f"$ accelbench {words}")
        parts += [output.rstrip("\n")] if quoted or every else []
    return "\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Without colours, and without blanks at the ends of lines."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def a_repository(folder: Path) -> None:
    """A package on main, and the checked-out branch whose change is slower."""

    def git(*words: str) -> None:
        about = ("-c", "user.name=you", "-c", "user.email=you@example.org")
        subprocess.run(["git", *about, *words], cwd=folder, check=True, capture_output=True)

    package = folder / "mylib"
    package.mkdir(parents=True)
    git("init", "-b", "main")
    (folder / "bench.py").write_text(MODULE)
    (package / "__init__.py").write_text(FUSED)
    git("add", "."), git("commit", "-m", "Attention, fused")
    git("switch", "-c", "readable-attention")
    (package / "__init__.py").write_text(PLAIN)
    git("commit", "-am", "Attention that can be read")


def svg(text: str, title: str) -> str:
    """A terminal's text as a picture, in its colours; no font is fetched from anywhere."""
    from rich.console import Console
    from rich.text import Text

    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False
    )
    for line in text.rstrip("\n").split("\n"):
        shown = Text.from_ansi(line)
        if line.startswith("$ "):
            shown = Text.assemble(("$ ", "bold green"), (line[2:], "bold"))
        console.print(shown, soft_wrap=False)
    made = console.export_svg(title=title, unique_id="terminal")
    made = re.sub(r"@font-face \{.*?\}\s*", "", made, flags=re.DOTALL)
    fonts = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
    made = made.replace("Fira Code, monospace", fonts)
    return "\n".join(line.rstrip() for line in made.splitlines()) + "\n"


def pages(folder: Path) -> None:
    """Pages of the dashboard over what was measured, as a browser shows them."""
    sys.path.insert(0, str(ROOT / "src"))
    from playwright.sync_api import sync_playwright

    from accelbench.hardware.browsers import InstalledPrograms

    chromium = [one.path for one in InstalledPrograms().find() if one.engine == "chromium"]
    if not chromium:
        print("No Chromium is here: accelbench setup browser --with-chromium", file=sys.stderr)
        return
    server = subprocess.Popen(
        [*PROGRAM, "dashboard", "--port", "0", "--no-open"],
        cwd=folder,
        env=environment(COLUMNS),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        found: Any = None
        while found is None:
            found = re.search(r"http://[^/\s]+", server.stdout.readline())
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=str(chromium[0]))
            page = browser.new_page(viewport=SIZE)
            page.goto(found[0] + KEYS)
            links = page.locator("tbody a[href^='/cell/']")
            links.first.wait_for()
            hrefs = [link.get_attribute("href") or "" for link in links.all()]
            keys = list(dict.fromkeys(href.removeprefix("/cell/") for href in hrefs))
            for name, path, theme in PAGES:
                page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                answer = page.goto(found[0] + path.format(*keys))
                assert answer is not None
                assert answer.ok, f"{path}: {answer.status}"
                page.wait_for_load_state("networkidle")
                page.wait_for_function(WORKED_OUT, timeout=120_000)
                page.evaluate(ELSEWHERE, [str(folder), HOME])
                page.screenshot(path=str(IMAGES / f"{name}.png"))
                _made_small(IMAGES / f"{name}.png")
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def _made_small(picture: Path) -> None:
    """A picture in 256 colours, which a page of text and bars does not exceed by much."""
    from PIL import Image

    with Image.open(picture) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)
    assert picture.stat().st_size <= MOST_BYTES, picture.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description="Make what the front page shows.")
    every = ("onnx", "gate", "choose", "pages")
    parser.add_argument("--only", default=",".join(every), help="Some of them, with commas.")
    parser.add_argument("--keep", type=Path, help="Measure in this folder, and leave it.")
    asked = parser.parse_args()
    wanted = asked.only.split(",")
    TEXTS.mkdir(exist_ok=True)
    folder = asked.keep or Path(tempfile.mkdtemp(prefix="front-page-"))
    folder.mkdir(exist_ok=True, parents=True)
    try:
        results, repository = folder / "results", folder / "repository"
        results.mkdir(exist_ok=True)
        if "onnx" in wanted:
            subprocess.run([sys.executable, "-c", EXPORT], cwd=results, check=True)
            printed = session(results, ONNX)
            (TEXTS / "onnx.txt").write_text(plain(text_of(printed)))
            (IMAGES / "terminal.svg").write_text(svg(text_of(printed, every=True), "accelbench"))
        if "gate" in wanted:
            shutil.rmtree(repository, ignore_errors=True)
            a_repository(repository)
            (TEXTS / "gate.txt").write_text(plain(text_of(session(repository, GATE))))
        if "choose" in wanted:
            (TEXTS / "choose.txt").write_text(plain(text_of(session(results, CHOOSE))))
        if "pages" in wanted:
            session(results, SMALL)
            pages(results)
    finally:
        if asked.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
