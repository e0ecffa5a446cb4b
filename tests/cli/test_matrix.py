"""`accelbench matrix` as people and machines meet it, from a store to each of its forms."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from shells import Command

from accelbench.cli.commands import matrix
from accelbench.core.columns import BY_NAME
from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.core.protocols import Absent
from accelbench.core.vocabulary import HARDWARE
from accelbench.judge.attempts import QUESTION
from accelbench.judge.machines import Machine
from accelbench.judge.matrix import Matrix, MatrixCell
from accelbench.judge.matrix import matrix as rated
from accelbench.present.markdown import as_markdown
from accelbench.present.matrix import MatrixHeader, document, presented
from accelbench.present.pages.document_page import as_html
from accelbench.present.terminal.documents import show
from accelbench.store.database import Database
from accelbench.store.journal import Journal

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "matrix-schema.json").read_text(encoding="utf-8"))
LAB = {"machine": "lab", "cpu": "EPYC", "cpus_logical": 8, "memory_total": 64 * 2**30}
ATTIC = {**LAB, "machine": "attic", "cpu": "Xeon"}
ABOUT = MatrixHeader(
    "2026-01-02T03:04:05.000000Z", Machine("lab", "EPYC", 8, 64), "fp32", "inference"
)


def result(model: str = "bert-tiny", hardware: str = "cpu", **more: Any) -> dict[str, Any]:
    return {
        "model": model, "family": "vision" if "res" in model else "embedding", "hardware": hardware,
        "runtime": "pytorch", "device": f"{hardware}:0", "precision": "fp32", "mode": "inference",
        "scenario": "single_stream", "batch_size": 1, "options": {}, "status": "ok",
        "provenance": "measured", "emulated": False,
        "verification": "reference" if hardware == "cpu" else "ok", "throughput": 100.0,
        "started_at": "2026-01-02T03:04:05.000000Z", **more,
    }  # fmt: skip


def lost(model: str, hardware: str, reason: str, **more: Any) -> dict[str, Any]:
    gone = {"throughput": None, "verification": "not_done", "message": f"it said {reason}"}
    return result(model, hardware, **{"status": "failed", "reason": reason, **gone, **more})


GRID = [
    result(),
    result("resnet-tiny"),
    result(hardware="openvino", runtime="openvino", throughput=250.0, verification_error=2e-7),
    lost("resnet-tiny", "openvino", "wrong_outputs", runtime="openvino"),
    result(hardware="qnn", runtime="qnn", emulated=True),
    lost("bert-tiny", "cuda", "hardware_absent", status="unsupported", device=None),
]


def measured(
    path: Path, rows: list[dict[str, Any]], run: str = "r1", environment: dict[str, Any] = LAB
) -> Path:
    database = Database(path)
    with Journal.create(database.journals, run) as journal:
        moment = rows[0]["started_at"]
        journal.append(
            Fact(
                RUN_STARTED, run, {"run_id": run, "started_at": moment, "environment": environment}
            )
        )
        for number, one in enumerate(rows):
            journal.append(Fact(RESULT, f"{run}-{number}", {**one, "run_id": run}))
    return path


@pytest.fixture
def shell(command: Callable[..., Command]) -> Command:
    return command("matrix", schema=SCHEMA)


def cells(found: Any, model: str = "bert-tiny") -> Any:
    return found["models"][model]["hardware_compatibility"]


def test_the_document_has_the_shape_of_the_selection_guide(tmp_path, shell):
    found = shell.json("--db", measured(tmp_path / "s.duckdb", GRID))
    assert found["hardware_types"] == [
        "cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webnn", "webgpu",
    ]  # fmt: skip
    family = found["model_families"]["embedding"]["hardware_compatibility"]["openvino"]
    assert (family["compatible"], family["performance_rating"]) == (True, "high")
    assert set(found["model_families"]) == {"embedding", "vision"}
    openvino = cells(found)["openvino"]
    assert openvino["speed_vs_cpu"] == pytest.approx(2.5)
    assert (openvino["run_id"], openvino["verification_error"]) == ("r1", 2e-7)
    said = {name: (c["availability"], c["reason_token"]) for name, c in cells(found).items()}
    assert said["cuda"] == ("not available", "hardware_absent")
    assert said["qnn"] == ("compatible", "emulated")
    broken = cells(found, "resnet-tiny")["openvino"]
    assert (broken["availability"], broken["compatible"]) == ("incompatible", False)


def test_the_schema_refuses_a_rated_emulation_and_a_rating_of_nothing(tmp_path, shell):
    found = shell.json("--db", measured(tmp_path / "s.duckdb", GRID))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name in ("qnn", "cuda"):
        untrue = json.loads(json.dumps(found))
        cells(untrue)[name]["performance_rating"] = "high"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(untrue, SCHEMA)


def test_the_table_names_the_cpus_runtime_and_fits_80_columns(tmp_path, shell):
    code, out, _ = shell("--db", measured(tmp_path / "s.duckdb", GRID))
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    said = "inference on lab (EPYC, 8 CPUs, 64 GiB), each in the best precision that ran"
    assert said in " ".join(out.split())
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("bert-tiny"))
    assert lines[at].split() == [
        *("bert-tiny", "Medium", "N/A", "untried", "untried"),
        *("High", "emulated", "untried", "untried"),
    ]  # fmt: skip
    assert lines[at + 1].split() == ["pytorch", "2.50×"]
    assert "openvino: openvino: wrong_outputs: it said wrong_outputs (resnet-tiny)" in out


def test_explain_gives_the_rule_and_every_cell(tmp_path, shell):
    _, out, _ = shell("--db", measured(tmp_path / "s.duckdb", GRID), "--explain")
    text = " ".join(out.split())
    assert "at least 2× the CPU" in text
    assert "2.50× the CPU's throughput over batch 1" in text
    assert "nothing was measured on it" in text


def test_filters_narrow_it_and_the_cpu_stays_the_yardstick(tmp_path, shell):
    path = measured(tmp_path / "s.duckdb", [*GRID, result(precision="int8")])
    assert list(shell.json("--db", path, "--models", "bert-tiny")["models"]) == ["bert-tiny"]
    assert list(shell.json("--db", path, "--family", "vision")["models"]) == ["resnet-tiny"]
    narrow = shell.json("--db", path, "--hardware", "openvino,qnn")
    assert narrow["hardware_types"] == ["openvino", "qnn"]
    assert cells(narrow)["openvino"]["performance_rating"] == "high"
    assert set(shell.json("--db", path, "--precision", "int8")["models"]) == {"bert-tiny"}


def test_models_are_named_as_in_other_commands(tmp_path, shell):
    path = measured(tmp_path / "s.duckdb", GRID)
    assert list(shell.json("bert-tiny", "--db", path)["models"]) == ["bert-tiny"]
    assert list(shell.json("--model", "resnet-tiny", "--db", path)["models"]) == ["resnet-tiny"]


def test_many_models_come_in_pages(tmp_path, shell):
    unproven = {"verification": "not_done", "provenance": "imported"}
    rows = [result(f"theirs-{n:03}", **unproven) for n in range(90)]
    path = measured(tmp_path / "s.duckdb", rows)
    code, first, _ = shell("--db", path)
    assert code == 0
    assert "Models 1 to 40 of 90, page 1 of 3: --page 2 has the next" in " ".join(first.split())
    assert "not verified" in first
    assert "Low" not in first
    assert ("theirs-039" in first, "theirs-040" in first) == (True, False)
    _, last, _ = shell("--db", path, "--page", "3")
    assert ("theirs-089" in last, "theirs-079" in last) == (True, False)
    assert len(shell.json("--db", path)["models"]) == 90
    for words in (("--page", "4"), ("--page", "2", "--json")):
        assert shell("--db", path, *words)[0] == 2


def test_machines_are_never_mixed(tmp_path, shell):
    path = measured(tmp_path / "s.duckdb", GRID)
    later = {"started_at": "2026-05-01T00:00:00.000000Z"}
    measured(path, [result(hardware="cuda", throughput=900.0, **later)], "r2", ATTIC)
    newest = shell.json("--db", path)
    assert newest["machine"]["name"] == "attic"
    assert [one["name"] for one in newest["other_machines"]] == ["lab"]
    assert cells(newest)["cuda"]["reason_token"] == "no_cpu_result"
    assert cells(newest)["cpu"]["availability"] == "not measured"
    asked = shell.json("--db", path, "--machine", "lab")
    assert cells(asked)["cuda"]["availability"] == "not available"
    assert "another machine: lab" in shell("--db", path)[1]
    assert shell("--db", path, "--machine", "cellar")[0] == 2


def test_of_this_machine_it_is_asked_why_a_platform_has_no_results(tmp_path, shell, monkeypatch):
    from accelbench.judge import machine_matrix

    absent = {name: [Absent(name, f"no {name} driver", "x")] for name in HARDWARE}
    monkeypatch.setattr(machine_matrix, "describe_environment", lambda: LAB)
    monkeypatch.setattr(machine_matrix, "LazyInventory", lambda: absent)
    found = shell.json("--db", measured(tmp_path / "s.duckdb", GRID))
    assert cells(found)["rocm"]["reason"] == "not here: no rocm driver"
    assert "it said hardware_absent" in cells(found)["cuda"]["reason"]
    assert cells(found, "resnet-tiny")["cuda"]["reason"] == "not here: no cuda driver"
    monkeypatch.setattr(machine_matrix, "describe_environment", lambda: ATTIC)
    assert cells(shell.json("--db", tmp_path / "s.duckdb"))["rocm"]["reason_token"] == (
        "never_measured"
    )


def test_where_nothing_was_measured_it_says_what_to_run(tmp_path, shell):
    path = tmp_path / "s.duckdb"
    Database(path).init()
    for database, expected in ((tmp_path / "none.duckdb", 3), (path, 4)):
        code, out, err = shell("--db", database)
        assert (code, out) == (expected, "")
        assert len(err.splitlines()) == 1
        assert "accelbench run" in err
    measured(path, [result(provenance="simulated")])
    assert shell("--db", path)[0] == 4


@pytest.mark.parametrize(
    "words",
    [
        ["--hardware", "abacus"],
        ["--precision", "fp7"],
        ["--mode", "both"],
        ["--mode", "dreaming"],
        ["--format", "stone"],
        ["--json", "--format", "html"],
    ],
)
def test_words_that_mean_nothing_are_usage_errors(tmp_path, shell, words):
    code, _, err = shell("--db", measured(tmp_path / "s.duckdb", GRID), *words)
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_files_suffix_says_its_form_and_no_file_is_overwritten(tmp_path, shell):
    path = measured(tmp_path / "s.duckdb", GRID)
    for name, start in (
        ("m.html", "<!doctype"),
        ("m.md", "# Comp"),
        ("m.json", "{"),
        ("m", "Comp"),
    ):
        code, out, err = shell("--db", path, "--output", tmp_path / name)
        assert (code, out) == (0, "")
        assert name in err
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
        assert shell("--db", path, "--output", tmp_path / name)[0] == 2
    assert "\x1b" not in (tmp_path / "m").read_text(encoding="utf-8")


# -- the forms, with names that mean harm


def markdown(made: Matrix, about: MatrixHeader) -> str:
    return as_markdown(presented(made, about, explain=True))


HOSTILE = "</td><script>alert('x')</script>|`*_[a](javascript:b)\x1b[2J\n# heading"


def hostile() -> Matrix:
    bad = lost(HOSTILE, HOSTILE, "out_of_memory", runtime=HOSTILE, message=HOSTILE)
    return rated([result(HOSTILE, family=HOSTILE, runtime=HOSTILE), bad])


class Tags(HTMLParser):
    """Every tag and address of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [str(v) for k, v in attrs if k in ("src", "href", "action")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_forms_of_a_matrix():
    # The page is whole needs no network and escapes names.
    text = as_html(presented(hostile(), ABOUT, opens=True))
    page = Tags()
    page.feed(text)
    assert page.open == []
    assert "script" not in page.tags
    assert all(address.startswith("#") for address in page.addresses)
    assert not re.search(r"url\(|@import|https?:", text)
    assert "&lt;script&gt;" in text
    assert "prefers-color-scheme: dark" in text
    # The page needs no emoji font .
    text = as_html(presented(rated(GRID), ABOUT, opens=True))
    assert [c for c in text if ord(c) > 0xFFFF or c in "✅❌\ufe0f"] == []
    assert {"✓ <bdi>High", "✗ <bdi>N/A"} <= set(re.findall(r"<summary>(.+?)</bdi>", text))
    # Pages say the newest result to the minute.
    for page in (as_html(presented(rated(GRID), ABOUT, opens=True)), markdown(rated(GRID), ABOUT)):
        assert "Newest result: 2026-01-02 03:04 UTC." in page
    assert "Newest result: none." in markdown(rated([]), ABOUT)
    # Markdown keeps each row on a line and its columns.
    text = markdown(hostile(), ABOUT)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {
        11
    }  # name, 8 platforms, its own
    assert "<script" not in text.replace("\\<", "")
    assert [line for line in text.splitlines() if line.startswith("# ")] == [
        "# Compatibility matrix"
    ]
    assert "\x1b" not in text
    # A terminal is shown what it would obey and many platforms are broken into tables.
    out = io.StringIO()
    many = rated([result(hardware=f"platform-{i}") for i in range(12)])
    for made in (hostile(), many):
        show(presented(made, ABOUT, explain=True), out, width=80)
    assert "\x1b" not in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert all(f"platform-{i}" in out.getvalue() for i in range(12))


def test_keys_of_a_cell():
    # Every key of a cell is in the schema and says what the cell says.
    made = rated([result(workarounds=["eager"])])
    found = document(made, ABOUT)
    jsonschema.validate(found, SCHEMA)
    cell = cells(found)["cpu"]
    assert cell["workarounds"] == ["eager"]
    assert len(cell) == len(MatrixCell.__dataclass_fields__) + 2  # `compatible`, `runtime`
    assert set(QUESTION) <= set(BY_NAME)
    assert set(matrix._SUFFIXES.values()) <= set(matrix._FORMATS)
