"""Holds docs/from-the-guides.md: nothing is missing, and what it says works does.

A `works` line is believed only as far as it can be checked: its commands are run
for real, on the small variants of the models they name and with few iterations,
and whatever else it names in backticks must be there.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from urllib.request import urlopen

import pytest

from accelbench.store.database import Database

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "from-the-guides.md"
INVENTORY = json.loads((Path(__file__).parent / "inventory.json").read_text(encoding="utf-8"))

PIECES = (
    "The measuring core",
    "Models and modes",
    "Runtimes",
    "The browser",
    "Knowing",
    "Seeing",
    "Choosing",
    "Predicting",
    "Fleets",
)

#: What a command of the map is run with instead, so that all of them take little time.
SMALL = {
    "bert": "bert-tiny",
    "bert-base-uncased": "bert-tiny",
    "clap": "clap-tiny",
    "clip": "clip-tiny",
    "detr": "detr-tiny",
    "gpt2": "gpt2-tiny",
    "llama": "llama-tiny",
    "llava": "llava-tiny",
    "llava-next": "llava-next-tiny",
    "qwen2": "qwen2-tiny",
    "resnet50": "resnet-tiny",
    "t5": "t5-tiny",
    "vit-base": "vit-tiny",
    "vit_b_16": "vit-tiny",
    "wav2vec2": "wav2vec2-tiny",
    "whisper": "whisper-mini",
    "xclip": "xclip-tiny",
}
#: Sizes of batches where a line has larger ones: steps take long, and JAX compiles for each.
FEW = ("1", "2", "4", "8")
#: On a thread of its own: of two commands at a time that both count on all cores, each waits at
#: every step for threads that do not run. Training in fp16 took 84 s of the cores' time, and 32 s
#: on one thread.
QUICK = {"--iterations": "3", "--warmup": "1", "--batch-sizes": "1", "--threads": "1"}
#: Where a processor only plays the part of what is asked for, few tokens show as much: fp16 took
#: 16 s then, and a GPU of a browser 48 s, where it was 68 s.
SHORT = ("--sequence-lengths", "16")
#: What looks at stored results is run after something was measured; what they name is there.
_MEASURED = (
    "accelbench run bert resnet50 --hardware cpu,openvino:cpu --mode inference,training"
    " --batch-sizes 1,2 --output-dir benchmark_results"
)
_LOOKED_AT = (
    _MEASURED,
    "accelbench db export results.json",
    "accelbench db merge accelbench.duckdb --db benchmark_db.duckdb",
)
_LOOKING = ("plot", "report", "dashboard", "recommend", "matrix", "compare")
BEFORE = {
    **dict.fromkeys(_LOOKING, _LOOKED_AT),
    "check": (
        "accelbench run bert --hardware cpu",
        "accelbench db export baseline.csv",
        "accelbench run bert --hardware cpu",
    ),
}
#: How a command may end: three iterations on a busy machine may well differ by more than a
#: tenth, and a check that says so works. Ending with 4 would say that nothing was judged.
ENDS = {"check": (0, 1)}
#: Shows that all hardware that is present is taken; elsewhere the CPU stands for all of it.
WHOLE = "accelbench run bert"


@dataclass(frozen=True)
class Line:
    """One line of the map."""

    document: str
    says: str
    form: str
    state: str

    @property
    def works(self) -> bool:
        return self.state == "works"

    @property
    def references(self) -> list[str]:
        """What the line names in backticks."""
        return re.findall(r"`([^`]+)`", self.form)

    @property
    def commands(self) -> list[str]:
        return [r for r in self.references if r.startswith("accelbench ")]


def read_map() -> list[Line]:
    """Every table line below a document's heading."""
    lines, document = [], ""
    for text in MAP.read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            document = text[3:].strip()
        elif document and text.startswith("| ") and not text.startswith(("| what the", "| ---")):
            cells = re.split(r"(?<!\\)\|", text)[1:-1]
            assert len(cells) == 3, text
            lines.append(Line(document, *(c.strip().replace("\\|", "|") for c in cells)))
    return lines


LINES = read_map()
COMMANDS = sorted({c for line in LINES if line.works for c in line.commands})


def accelbench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, without the user's own database."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH_")}
    return subprocess.run(
        [sys.executable, "-m", "accelbench", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def with_fewer(words: list[str]) -> list[str]:
    """Batches of eight items at most: as many as a line has, and spelled as it does."""
    if "--batch-sizes" not in words:
        return words
    first = words.index("--batch-sizes") + 1
    last = next((n for n in range(first, len(words)) if words[n].startswith("--")), len(words))
    asked = words[first:last]
    sizes = [size for word in asked for size in word.split(",")]
    if all(int(size) <= int(FEW[-1]) for size in sizes):
        return words
    few = FEW[: len(sizes)]
    return [*words[:first], *(few if len(asked) > 1 else [",".join(few)]), *words[last:]]


def quickened(command: str) -> list[str]:
    """The words of a map's command; a `run` is made small and short."""
    words = shlex.split(command)[1:]
    if words[0] in ("run", "compare", "plot", "recommend"):
        words = [SMALL.get(word, word) for word in words]
    if words[0] != "run":
        return words
    words = with_fewer(words)
    if command != WHOLE and not {"--hardware", "--device"} & set(words):
        words += ["--hardware", "cpu"]
    for option, value in QUICK.items():
        if option not in words:
            words += [option, value]
        elif option != "--batch-sizes":
            words[words.index(option) + 1] = value
    if {"fp16", "training"} <= set(words) or "webgpu" in hardware_in(words) or command == WHOLE:
        words += SHORT
    return of_small_set(words)


def of_small_set(words: list[str]) -> list[str]:
    """With two of the small models where a command chooses its models itself."""
    if "--set" in words and words[words.index("--set") + 1] != "custom":
        words[words.index("--set") + 1] = "small"
    elif {"--category", "--model-families", "--all"} & set(words):
        words += ["--set", "small"]
    # What such a command shows is that it chooses and runs; that every small model runs is
    # shown once, in tests/run/test_small_set.py.
    several = {"--set", "--category", "--model-families", "--all"} & set(words)
    if several and "--limit" not in words:
        words += ["--limit", "2"]
    return words


def hardware_in(words: list[str]) -> set[str]:
    """The platforms that a command names."""
    named: set[str] = set()
    taken = False
    for word in words:
        taken = word in ("--hardware", "--device") or (taken and not word.startswith("--"))
        named |= set(word.split(",")) if taken else set()
    return named


MODELS_FILE = """{
  "bert_tiny": {
    "name": "prajjwal1/bert-tiny", "family": "embedding", "size": "tiny", "modality": "text"
  }
}
"""


#: A result with a figure.
FIGURE = {
    "result_id": "x",
    "model": "bert-tiny",
    "family": "embedding",
    "mode": "inference",
    "hardware": "cpu",
    "device_name": "A processor",
    "runtime": "pytorch",
    "precision": "fp32",
    "batch_size": 1,
    "status": "ok",
    "provenance": "imported",
    "options": {},
    "latency_p50_ms": 8.0,
    "throughput": 125.0,
    "started_at": "2026-01-01T00:00:00Z",
}
#: In the documents' own shapes.
CONFIG = """{
  "selection_criteria": {"inference": {"latency_weight": 0.4, "throughput_weight": 0.3}},
  "hardware_preferences": {
    "cpu": {"cost_factor": 1.0, "availability_factor": 1.0, "power_factor": 0.8}
  },
  "batch_size_thresholds": {"small": 1, "medium": 8, "large": 32}  // as the guide has them
}
"""
MATRIX = """| Model Family | CUDA | CPU | OpenVINO |
| --- | --- | --- | --- |
| Embedding (BERT) | ✅ High | ✅ Medium | ⚠️ Low |
"""


def furnish(folder: Path) -> None:
    """The files that the documents' commands name: models, images in classes, what chooses."""
    from PIL import Image

    (folder / "my_config.json").write_text(CONFIG, encoding="utf-8")
    (folder / "CLAUDE.md").write_text(MATRIX, encoding="utf-8")
    (folder / "lake").mkdir()
    (folder / "path" / "to").mkdir(parents=True)
    (folder / "path" / "to" / "models.json").write_text(MODELS_FILE)
    for number, name in enumerate(("cat", "dog")):
        images = folder / "data" / "imagenet100" / name
        images.mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (90, 70), (40 * i, 80 * number, 120)).save(images / f"{i}.png")


# -- nothing is missing -----------------------------------------------------------------


@pytest.mark.parametrize("document", INVENTORY)
def test_everything_the_document_names_has_a_line(document: str) -> None:
    said = {line.says for line in LINES if line.document == document}
    missing = [e["says"] for e in INVENTORY[document] if e["says"] not in said]
    assert not missing, f"no line in {MAP.name} under {document!r} for: {missing}"


def test_the_inventory_is_not_empty_and_nothing_is_listed_twice() -> None:
    keys = [(line.document, line.says) for line in LINES]
    assert len(keys) == len(set(keys))
    assert {line.document for line in LINES} == set(INVENTORY)
    assert all(len(entries) > 50 for entries in INVENTORY.values())


def test_every_state_is_works_or_due_with_a_named_piece() -> None:
    allowed = {"works", *(f"due with {piece}" for piece in PIECES)}
    wrong = [(line.document, line.says, line.state) for line in LINES if line.state not in allowed]
    assert not wrong


# -- what works is there ----------------------------------------------------------------


@cache
def options(command: str) -> frozenset[str]:
    """Every spelling that a command takes, hidden ones included."""
    import typer

    found = typer.main.get_command(import_module(f"accelbench.cli.{command}").app)
    return frozenset(s for p in found.params for s in (*p.opts, *p.secondary_opts))


def has_column(name: str) -> bool:
    from accelbench.core.columns import BY_NAME

    return name in BY_NAME


def has_extra(name: str) -> bool:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return name in project["optional-dependencies"]


def has_target(name: str) -> bool:
    return bool(re.search(rf"^{re.escape(name)}:", (ROOT / "Makefile").read_text(), re.MULTILINE))


def has_parameter(name: str) -> bool:
    from dataclasses import fields

    from accelbench import BenchmarkConfig

    return name in {f.name for f in fields(BenchmarkConfig)}


def has_key(name: str) -> bool:
    from accelbench.exchange.guide_csv import COLUMNS

    return name in COLUMNS


def has_entry(name: str) -> bool:
    from accelbench.catalog.custom import KEYS

    return name in KEYS


def keys_in(whole: object) -> frozenset[str]:
    """Every key in nested objects."""
    if not isinstance(whole, Mapping):
        return frozenset()
    return frozenset(whole).union(*(keys_in(value) for value in whole.values()))


def has_method(name: str) -> bool:
    from accelbench import EnhancedHardwareBenchmarkRunner, HardwareSelector

    return hasattr(HardwareSelector, name) or hasattr(EnhancedHardwareBenchmarkRunner, name)


@cache
def answered() -> frozenset[str]:
    """Every key of an answer that rests on a figure."""
    from accelbench import HardwareSelector

    with TemporaryDirectory() as folder:
        database = Database(Path(folder) / "some.duckdb")
        database.bring_in("r", [], [FIGURE])
        answer = HardwareSelector(database.path).select_hardware("embedding", "bert-tiny")
    return keys_in(answer)


@cache
def mapped() -> frozenset[str]:
    from accelbench import HardwareSelector

    return keys_in(HardwareSelector("nothing.duckdb").create_hardware_selection_map())


def has_setting(name: str) -> bool:
    from accelbench.select.config import DEFAULTS

    return name in keys_in(DEFAULTS)


def has_task(name: str) -> bool:
    from accelbench.select.task import TASKS

    return name in TASKS


def has_rule(name: str) -> bool:
    from accelbench.select.rules import RULES

    return any(rule.hardware == name for rule in RULES)


def has_logger(name: str) -> bool:
    import_module("accelbench.select.selector")
    return name in logging.root.manager.loggerDict


CHECKS: Mapping[str, Callable[[str], bool]] = {
    "asks": lambda name: name in options("recommend"),
    "method": has_method,
    "answer": lambda name: name in answered(),
    "mapped": lambda name: name in mapped(),
    "setting": has_setting,
    "task": has_task,
    "rule": has_rule,
    "logger": has_logger,
    "parameter": has_parameter,
    "key": has_key,
    "entry": has_entry,
    "column": has_column,
    "option": lambda name: name in options("run"),
    "extra": has_extra,
    "make": has_target,
    "file": lambda name: (ROOT / name).exists(),
    "table": lambda name: True,  # asked of a real database below
    "writes": lambda name: True,  # looked for after the line's command below
    "prints": lambda name: True,
}


def checked(reference: str) -> bool | None:
    """Whether what a reference names is there; None where it is prose."""
    if reference.startswith("accelbench "):
        return True  # run below
    if match := re.fullmatch(r"(accelbench[\w.]*):(\w+)", reference):
        return hasattr(import_module(match[1]), match[2])
    kind, _, name = reference.partition(" ")
    return CHECKS[kind](name) if kind in CHECKS and name else None


def test_every_works_line_names_something_that_is_there() -> None:
    absent, unproved = [], []
    for line in LINES:
        if not line.works:
            continue
        answers = {reference: checked(reference) for reference in line.references}
        absent += [(line.says, r) for r, answer in answers.items() if answer is False]
        if not any(answers.values()):
            unproved.append(line.says)
    assert not absent, "named, but not there"
    assert not unproved, "nothing on these lines can be checked"


def test_the_tables_exist_in_a_new_database(tmp_path: Path) -> None:
    tables = sorted({r[6:] for ln in LINES if ln.works for r in ln.references if r[:6] == "table "})
    assert len(tables) >= 4
    assert accelbench(tmp_path, "db", "init").returncode == 0
    query = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
    done = accelbench(tmp_path, "db", "sql", query, "--json")
    assert done.returncode == 0, done.stderr


def test_every_model_that_a_works_line_names_is_known() -> None:
    from accelbench.catalog.find import find

    named = {w for c in COMMANDS for w in shlex.split(c) if w in SMALL}
    assert named
    for name in named:
        small = find(SMALL[name])
        assert find(name).small_variant == small.id


# -- what works is run --------------------------------------------------------------------


def lines_with(command: str, kind: str) -> list[str]:
    """What the works lines of a command say it `writes` or `prints`."""
    return [
        reference.partition(" ")[2]
        for line in LINES
        if line.works and command in line.commands
        for reference in line.references
        if reference.startswith(f"{kind} ")
    ]


def check_results(shown: str, anywhere: bool) -> None:
    """A run is no proof where nothing ran: on the CPU, at least, there must be figures."""
    results = json.loads(shown)["results"]
    assert results
    for result in results:
        assert result["status"] in {"ok", "unsupported"}, result["message"]
        assert result["status"] == "ok" or (result["reason"] and result["advice"])
        assert result["status"] == "unsupported" or result["latency_mean_ms"] > 0
    if anywhere:
        assert any(r["status"] == "ok" and r["hardware"] == "cpu" for r in results)


@dataclass(frozen=True)
class Tried:
    """A command of the map, as it was run, and where."""

    words: list[str]
    folder: Path
    done: subprocess.CompletedProcess[str]


def tried(command: str, folder: Path, prepared: Prepared) -> Tried:
    """Run a command where what it needs has been prepared."""
    words = quickened(command)
    furnish(folder)
    prepared.into(folder, words[0])
    if words[:2] == ["db", "status"]:  # looks at a database, so there has to be one
        database = ["--db", words[-1]] if len(words) > 2 else []
        assert accelbench(folder, "db", "init", *database).returncode == 0
    if "--overwrite" in words:
        assert accelbench(folder, *(w for w in words if w != "--overwrite")).returncode == 0
    if words[0] == "dashboard":
        return Tried(words, folder, looked_at(folder, words))
    return Tried(words, folder, accelbench(folder, *told(command)))


class Prepared:
    """What commands of one name need is measured once, and copied for each of them."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._locks = {BEFORE[name]: Lock() for name in BEFORE}

    def into(self, folder: Path, name: str) -> None:
        commands = BEFORE.get(name)
        if commands is None:
            return
        made = self._place / str(sorted(BEFORE.values()).index(commands))
        with self._locks[commands]:
            if not made.exists():
                made.mkdir()
                for before in commands:
                    done = accelbench(made, *quickened(before))
                    assert done.returncode == 0, done.stderr
        shutil.copytree(made, folder, dirs_exist_ok=True)


def looked_at(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A server is started, asked for its first page, and ended as people end it."""
    program = [sys.executable, "-m", "accelbench", *words, "--port", "0", "--no-open"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ACCELBENCH_")}
    with subprocess.Popen(
        program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        said = ""
        while (found := re.search(r"http://\S+", said)) is None:
            line = server.stdout.readline()
            assert line, f"it said no address: {said}"
            said += line
        with urlopen(found[0], timeout=60) as page:
            assert b"bert-tiny" in page.read()
        server.send_signal(signal.SIGINT)
        rest = server.communicate(timeout=60)[0]
    return subprocess.CompletedProcess(program, server.returncode, said + rest, "")


def prints_results(command: str) -> bool:
    """Whether it is asked for its results; what a line says it prints is printed for people."""
    return quickened(command)[0] == "run" and not lines_with(command, "prints")


def told(command: str) -> tuple[str, ...]:
    """The words that a command is run with."""
    return (*quickened(command), *(["--json"] if prints_results(command) else []))


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[Tried]]]:
    """The commands that are asked for, in their order, as many at a time as there are cores.

    Those that come to the same words, small and short as they are made, are run once.
    """
    asked = [
        str(item.callspec.params["command"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_the_command_works
    ]
    prepared = Prepared(tmp_path_factory.mktemp("prepared"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found: dict[tuple[str, ...], Future[Tried]] = {}
        for one in asked:
            if told(one) not in found:
                folder = tmp_path_factory.mktemp("map")
                found[told(one)] = pool.submit(tried, one, folder, prepared)
        yield {one: found[told(one)] for one in asked}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command: str, running: Mapping[str, Future[Tried]]) -> None:
    one = running[command].result()
    words, done = one.words, one.done
    ended = ENDS.get(words[0], (0,))
    assert done.returncode in ended, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    if words[0] == "check":
        assert "latency, ms" in done.stdout, done.stdout
    if prints_results(command):
        named = hardware_in(words)
        check_results(done.stdout, anywhere=not named or "cpu" in named)
    for name in lines_with(command, "writes"):
        assert list(one.folder.glob(name)), f"{' '.join(words)} wrote no {name}"
    for word in lines_with(command, "prints"):
        shown = (done.stdout + done.stderr).lower()
        assert word.lower() in shown, f"{' '.join(words)} does not show {word}"
