"""Answers of every command over fixed stores stay what they were; their sentences may change.

`ACCELBENCH_RECORD=1 pytest tests/golden` records them anew. A commit that changes a recording
states why.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from golden_stores import STORES

from accelbench.cli import main
from recordings import held, steady, without_prose

FOLDER = Path(__file__).parent / "recorded"


def takes_machine(store: str, words: tuple[str, ...]) -> bool:
    """Whether the machine must be named for a command over a store."""
    return store == "every kind" and words[0] not in ("predict", "db")


#: Name of an answer → the words of its command.
LINES = {
    "compare": ("compare",),
    "compare by engine": ("compare", "--by", "engine"),
    "compare by hardware": ("compare", "--by", "hardware"),
    "compare by batch": ("compare", "--by", "batch"),
    "compare by precision": ("compare", "--by", "precision"),
    "compare by run": ("compare", "--by", "run"),
    "compare pivot": ("compare", "--pivot"),
    "history": ("history",),
    "history of memory": ("history", "--metric", "memory"),
    "matrix": ("matrix",),
    "matrix int8": ("matrix", "--precision", "int8"),
    "recommend": ("recommend", "--hardware", "cpu,cuda"),
    "recommend bert-tiny": ("recommend", "bert-tiny", "--hardware", "cpu,cuda"),
    "recommend in a limit": (
        "recommend",
        "vit-tiny",
        "--hardware",
        "cpu,cuda",
        "--max-latency-ms",
        "15",
    ),
    "predict": ("predict", "bert-tiny", "--hardware", "cpu,cuda", "--batch-sizes", "1,4"),
    "db status": ("db", "status"),
}
#: Commands of single stores: name of the answer → the store, and the words.
LINES_OF_ONE = {
    "check again": ("every kind", ("check", "--run", "again", "--baseline", "kinds")),
    "check lab-8": ("many machines", ("check", "--run", "lab-8", "--baseline", "lab-1")),
    "check r3": ("small", ("check", "--run", "r3", "--baseline", "r1")),
    "check r2": ("small", ("check", "--run", "r2", "--baseline", "r1")),
    "check office-8": ("many machines", ("check", "--run", "office-8", "--baseline", "office-1")),
    "history office": ("many machines", ("history", "--machine", "office")),
    "compare office": ("many machines", ("compare", "--machine", "office", "--by", "run")),
    "compare a table": ("every kind", ("compare", "--run", "import", "--by", "batch")),
}
#: The newest results of the store of every kind are imported: its own machine is named.
OF_THE_LAB = ("--machine", "lab")
ALL_LINES = [
    (store, name, words + (OF_THE_LAB if takes_machine(store, words) else ()))
    for store in STORES
    for name, words in LINES.items()
] + [(store, name, words) for name, (store, words) in LINES_OF_ONE.items()]


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every store, built once."""
    folder = tmp_path_factory.mktemp("golden")
    paths = {name: folder / f"{name.replace(' ', '-')}.duckdb" for name in STORES}
    for name, build in STORES.items():
        build(paths[name])
    return paths


@pytest.fixture
def accelbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Run a command in this process, in an empty folder: exit code and standard output."""
    monkeypatch.chdir(tmp_path)
    for name in ("ACCELBENCH_DB", "ACCELBENCH_PRICES"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["accelbench", *map(str, words)])
        code = 0
        try:
            main.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(("store", "name", "words"), ALL_LINES, ids=lambda one: str(one))
def test_answers(
    store: str, name: str, words: tuple[str, ...], stores: dict[str, Path], accelbench: Any
) -> None:
    code, out = accelbench(*words, "--json", "--db", stores[store])
    text = out.replace(str(stores[store].parent), "FOLDER")
    document = json.loads(text) if text else None
    answer = {"exit": code, "document": without_prose(steady(document))}
    held(f"{store}/{name}", answer, FOLDER)


@pytest.mark.parametrize("store", STORES)
def test_exports(store: str, stores: dict[str, Path], accelbench: Any, tmp_path: Path) -> None:
    for suffix in ("csv", "json"):
        assert accelbench("db", "export", f"all.{suffix}", "--db", stores[store])[0] == 0
    rows = [*csv.reader((tmp_path / "all.csv").open(encoding="utf-8"))]
    held(f"{store}/export csv", without_prose([rows[0], *rows[1::7]]), FOLDER)
    document = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    results = sorted(document.pop("results"), key=lambda one: str(one["result_id"]))[::7]
    held(f"{store}/export json", without_prose(steady({**document, "results": results})), FOLDER)
