"""`accelbench run`: how it ends, and what its exit code tells."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from shells import QUICK, Shell, ended

from accelbench.run import journey
from accelbench.runtimes.scripted import ScriptedRuntime


@pytest.mark.parametrize(
    ("faults", "code", "statuses"),
    [
        ([], 0, ["ok", "ok"]),
        ([{"how": "unsupported", "when": "step", "batch": 2}], 0, ["ok", "unsupported"]),
        ([{"how": "raise", "when": "step", "batch": 2}], 1, ["ok", "failed"]),
        ([{"how": "oom", "when": "step", "batch": 1}], 1, ["out_of_memory", "skipped"]),
    ],
)
def test_the_exit_code_tells_how_it_went(
    shell: Shell, faults: list[dict[str, Any]], code: int, statuses: list[str]
) -> None:
    shell.script(faults=faults)
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--json", *QUICK, code=code)
    assert [row["status"] for row in json.loads(done.stdout)["results"]] == statuses


def test_a_batch_that_no_machine_holds_is_out_of_memory_at_once(shell: Shell) -> None:
    done = shell("bert-tiny", "--batch-sizes", str(10**9), "--json", *QUICK, code=1)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["reason"]) == ("out_of_memory", "out_of_memory_estimated")
    assert "largest batch that fits" in row["advice"]


def test_hardware_that_is_not_here_is_unsupported_not_replaced(shell: Shell) -> None:
    done = shell(
        *("bert-tiny", "--framework", "scripted", "--hardware", "tpu", "--batch-sizes", "1"),
        "--json",
    )
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["hardware"], row["reason"]) == (
        *("unsupported", "tpu"),
        "hardware_absent",
    )
    assert row["advice"]


def test_where_no_engine_can_start_it_is_the_surroundings_that_are_at_fault(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    runtime = ScriptedRuntime({})
    runtime.info = dataclasses.replace(runtime.info, name="never-registered")
    monkeypatch.chdir(shell.work)
    monkeypatch.setattr(journey, "installed_runtimes", lambda: {"scripted": runtime})
    code = ended(monkeypatch, "run", "bert-tiny", "--no-database", *QUICK)
    assert code == 3
    out = capfd.readouterr().out
    assert "A worker process could not start" in out
    assert "4 failed" in out
