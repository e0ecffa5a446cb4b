"""`accelbench run --simulate` as people and machines meet it, beside what is measured."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from accelbench.store.database import Database

#: The tests' runtime serves every platform: what it is asked of and is not here is simulated.
ASKED = (
    *("bert-tiny", "--batch-sizes", "1", "--framework", "scripted"),
    *("--hardware", "cpu,tpu:v5p", "--precision", "bf16", "--simulate"),
    *("--iterations", "5", "--warmup", "1"),
)


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--simulate requires --hardware"),
        (("--hardware", "all"), "--simulate requires --hardware"),
        (("--hardware", "tpu:abacus"), "Documented for tpu: v3, v4, v5e, v5p, v6e."),
        (("--hardware", "tpu", "--verify-only"), "--verify-only contradict"),
        (("--hardware", "tpu", "--verify", "require"), "--verify require contradict"),
    ],
)
def test_what_it_cannot_mean_is_refused(shell, words, said):
    assert said in shell.refused("bert-tiny", "--simulate", "--no-database", *words, code=2)


def test_a_resumed_run_keeps_what_it_began_with(shell):
    said = shell.refused("--resume", "last", "--simulate", "--no-database", code=2)
    assert "--simulate cannot be given anew" in said


def test_a_dry_run_says_what_would_only_be_calculated(shell):
    done = shell(*ASKED, "--dry-run")
    assert done.stdout.count(": simulated, not measured") == 1
    found = json.loads(shell(*ASKED, "--dry-run", "--json").stdout)
    assert [case["status"] for case in found["cases"]] == ["planned", "simulated"]
    assert any("tpu:v5p is not here" in note for note in found["notes"])


def test_a_device_needs_no_platform_and_its_name_may_have_spaces(shell):
    words = ("bert-tiny", "--framework", "scripted", "--simulate", "--dry-run", "--json")
    found = json.loads(shell(*words, "--hardware", "RTX 4090,a100,h100-pcie").stdout)
    assert {case["status"] for case in found["cases"]} == {"simulated"}
    places = [note.partition(" ")[0] for note in found["notes"] if "is not here" in note]
    assert places == ["cuda:rtx-4090", "cuda:a100-80gb", "cuda:h100-pcie"]


def test_files_carry_its_provenance_or_leave_it_out(shell):
    done = shell(*ASKED, "--output-dir", "out", "--output-ci", "ci.json", "--db", "s.duckdb")
    assert "Run " in done.stdout
    assert ": 1 measurement," in done.stdout
    assert "Total configurations: 2 (1 ok, 1 simulated)" in done.stdout
    assert "tpu:v5p bf16 simulated" in done.stdout
    out = shell.work / "out"
    (table,) = out.glob("*.csv")
    with table.open(encoding="utf-8", newline="") as stream:
        assert [line["device_type"] for line in csv.DictReader(stream)] == ["cpu"]
    (raw,) = out.glob("raw_results/*tpu*.json")
    (row,) = document(raw)["results"]
    assert row["provenance"] == "simulated"
    assert row["conditions"]["simulation"]["device"] == "Google TPU v5p"
    assert len(document(shell.work / "ci.json")["results"]) == 2
    aggregated = document(out / "processed_results" / "aggregated_benchmarks.json")
    assert aggregated["entries"] == []  # the tests' own runtime measures nothing either
    database = Database(shell.work / "s.duckdb")
    kept = {row["hardware"]: row for row in database.results()}
    assert kept["tpu"]["latency_mean_ms"] == row["latency_mean_ms"]
    assert kept["tpu"]["conditions"] == row["conditions"]
    assert database.status()["results_by_provenance"] == {"simulated": 2}
    assert database.status()["tables"]["hardware_info"] == 1  # of the CPU alone


def test_the_exit_code_is_that_of_what_is_measured(shell):
    shell(*ASKED, "--no-database", code=0)
    shell.script(faults=[{"when": "step", "how": "raise"}])
    shell(*ASKED, "--no-database", code=1)
