"""Commands: options, exit codes, and the figures and names of the documents that they print."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from stored_rows import store

from accelbench.cli.main import COMMANDS
from recordings import held, steady, without_prose

DB = "accelbench.duckdb"


def _options(command: Any) -> dict[str, Any]:
    """Of a command, or of each of a group, its options and arguments."""
    if hasattr(command, "commands"):
        return {name: _options(one) for name, one in command.commands.items()}
    return {
        parameter.name: {
            "names": sorted([*parameter.opts, *parameter.secondary_opts]),
            "default": parameter.default if not callable(parameter.default) else "…",
            "several": parameter.nargs == -1 or getattr(parameter, "multiple", False),
            "hidden": getattr(parameter, "hidden", False),
        }
        for parameter in command.params
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_options(name):
    found = _options(typer.main.get_command(import_module(COMMANDS[name][0]).app))
    held(f"options/{name}", json.loads(json.dumps(found, default=str)))


def launches(number: int, milliseconds: float, **row: Any) -> list[dict[str, Any]]:
    """So many launches that differ a little."""
    return [
        {
            "latency_p50_ms": milliseconds * (1 + 0.01 * (n % 3)),
            "launch": n + 1,
            "sample_count": 40,
            "case_id": " ".join(map(str, row.values())),
            "series_key": " ".join(map(str, row.values())),
            **row,
        }
        for n in range(number)
    ]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Engines, platforms, batches, precisions and failures of two models, over three runs."""
    path = tmp_path / DB
    for number, slower in enumerate((1.0, 1.02, 1.6)):
        rows = [
            row
            for model, base in (("bert-tiny", 8.0), ("vit-tiny", 20.0))
            for batch in (1, 8)
            for hardware, runtime, faster in (
                ("cpu", "pytorch", 1.0),
                ("cpu", "onnxruntime", 1.7),
                ("cuda", "pytorch", 9.0),
            )
            for row in launches(
                5,
                base * batch * slower / faster,
                model=model,
                batch_size=batch,
                hardware=hardware,
                runtime=runtime,
            )
        ]
        rows += launches(5, 3.0, precision="int8", verification="ok", verification_error=0.02)
        rows += [
            {"status": "failed", "reason": "fallback", "latency_p50_ms": None, "hardware": "qnn"}
        ]
        day = f"2026-01-0{number + 1}T00:00:00.000000Z"
        about = {"label": f"run {number}", "started_at": day, "command": "accelbench run"}
        store(path, *({**row, "started_at": day} for row in rows), run=f"r{number}", about=about)
    return path


#: Lines that are answered alike on any machine, and what they are recorded as.
LINES = {
    "compare": ["compare"], "compare by engine": ["compare", "--by", "engine"],
    "compare by batch": ["compare", "bert-tiny", "--by", "batch"],
    "compare by precision": ["compare", "--by", "precision"],
    "compare by run": ["compare", "vit-tiny", "--by", "run"],
    "compare pivot": ["compare", "--pivot"], "check": ["check", "--run", "r2", "--baseline", "r1"],
    "check two alike": ["check", "--run", "r1", "--baseline", "r0"], "history": ["history"],
    "db status": ["db", "status"],
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_documents(name, stored, command, tmp_path):
    verb, *words = LINES[name]
    code, out, _ = command(verb)(*words, "--json", "--db", stored)
    document = json.loads(out.replace(str(tmp_path), "FOLDER"))
    held(f"documents/{name}", {"exit": code, "document": without_prose(steady(document))})


@pytest.mark.parametrize(
    ("name", "words"),
    [("compare", ("compare", "--csv", "-")), ("matrix", ("matrix", "--format", "markdown"))],
)
def test_tables(name, words, stored, command):
    code, out, _ = command(words[0])(*words[1:], "--db", stored)
    rows = [*csv.reader(io.StringIO(out))] if name == "compare" else out.splitlines()
    held(f"tables/{name}", {"exit": code, "rows": without_prose(rows)})


def test_exports(stored, command, tmp_path):
    assert command("db")("export", "all.csv", "--db", stored)[0] == 0
    rows = [*csv.reader((tmp_path / "all.csv").open(encoding="utf-8"))]
    held("tables/export", {"columns": rows[0], "rows": without_prose(rows[1:8])})
    assert command("db")("export", "all.json", "--db", stored)[0] == 0
    document = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    results = sorted(document.pop("results"), key=lambda one: str(one["result_id"]))[:3]
    held("documents/export", without_prose(steady({**document, "results": results})))


WRONG = {
    "no model": ["run", "bart-tiny"], "no command": ["mesure"],
    "no option": ["run", "bert-tiny", "--batchsize", "3"],
    "no platform": ["run", "bert-tiny", "--hardware", "abacus"],
    "no database": ["compare", "--db", "nowhere.duckdb"],
    "nothing measured": ["compare", "t5-small"],
    "no run": ["check", "--run", "r9", "--baseline", "r0"], "no chart": ["plot", "--chart", "pie"],
    "no format": ["plot", "--format", "gif"], "no axis": ["compare", "--by", "moon"],
    "bad number": ["run", "bert-tiny", "--batch-sizes", "0"],
}  # fmt: skip


def test_exit_codes_of_what_is_wrong(stored, command):
    codes = {}
    for name, (verb, *words) in WRONG.items():
        code, out, err = command(verb)(*words)
        assert not out, name
        assert err, name
        codes[name] = code
    held("exit_codes", codes)


#: Columns of a result that are of the moment or of the machine.
_OF_THE_MOMENT = (
    *("run_id", "result_id", "started_at", "finished_at", "conditions", "environment", "warnings"),
    *("evidence", "nulls", "quality", "threads", "series_key", "device_fingerprint", "device_name"),
)


def test_a_run_of_a_script(shell):
    """What a whole run leaves: its columns, which of them are filled, and what was asked."""
    done = shell(
        *("bert-tiny", "--framework", "scripted", "--hardware", "cpu", "--batch-sizes", "1,8"),
        *("--precision", "fp32", "--iterations", "5", "--warmup", "1", "--json"),
    )
    results = json.loads(done.stdout)["results"]
    rows = [
        {
            name: (value if isinstance(value, str | bool) and name not in _OF_THE_MOMENT else "…")
            if value is not None
            else None
            for name, value in row.items()
        }
        for row in results
    ]
    reasons = [sorted(row["nulls"]) for row in results]
    held("documents/run", {"rows": without_prose(rows), "empty": reasons})
