"""`accelbench run`: how it ends, and what its exit code tells."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from shells import QUICK, ended

from accelbench.core.protocols import Support
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.plan import expand


@pytest.mark.parametrize(
    ("faults", "code", "statuses"),
    [
        ([], 0, ["ok", "ok"]),
        ([{"how": "unsupported", "when": "step", "batch": 2}], 0, ["ok", "unsupported"]),
        ([{"how": "raise", "when": "step", "batch": 2}], 1, ["ok", "failed"]),
        ([{"how": "oom", "when": "step", "batch": 1}], 1, ["out_of_memory", "skipped"]),
    ],
)
def test_the_exit_code_tells_how_it_went(shell, faults, code, statuses):
    shell.script(faults=faults)
    done = shell("bert-tiny", "--batch-sizes", "1,2", "--json", *QUICK, code=code)
    assert [row["status"] for row in json.loads(done.stdout)["results"]] == statuses


def test_a_batch_that_no_machine_holds_is_out_of_memory_at_once(shell):
    done = shell("bert-tiny", "--batch-sizes", str(10**9), "--json", *QUICK, code=1)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["reason"]) == ("out_of_memory", "out_of_memory_estimated")
    assert re.search(r"batch \d+ fits", row["advice"])


def test_hardware_that_is_not_here_is_unsupported_not_replaced(shell):
    done = shell(
        *("bert-tiny", "--framework", "scripted", "--hardware", "tpu", "--batch-sizes", "1"),
        "--json",
        code=3,
    )
    (row,) = json.loads(done.stdout)["results"]
    assert (row["status"], row["hardware"], row["reason"]) == (
        *("unsupported", "tpu"),
        "hardware_absent",
    )
    assert row["advice"]


def test_where_no_engine_can_start_it_is_the_surroundings_that_are_at_fault(
    shell, monkeypatch, capfd
):
    runtime = ScriptedRuntime({})
    runtime.info = dataclasses.replace(runtime.info, name="never-registered")
    monkeypatch.chdir(shell.work)
    monkeypatch.setattr(expand, "installed_runtimes", lambda: {"scripted": runtime})
    code = ended(monkeypatch, "run", "bert-tiny", "--no-database", *QUICK)
    assert code == 3
    out = capfd.readouterr().out
    assert "A worker process could not start" in out
    assert "4 failed" in out


def absent(document: Any) -> list[tuple[str, str]]:
    return [(one["kind"], one["name"]) for one in document.get("unmeasured", [])]


def test_a_platform_that_was_named_and_gave_nothing_is_said_and_ends_with_3(shell):
    words = ("bert-tiny", "--framework", "scripted", "--batch-sizes", "1", "--iterations", "5")
    done = shell(*words, "--warmup", "1", "--hardware", "cpu,tpu", "--json", code=3)
    document = json.loads(done.stdout)
    assert [row["status"] for row in document["results"]] == ["ok", "unsupported"]
    assert absent(document) == [("hardware", "tpu")]
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("accelbench: ")]
    assert said.startswith("accelbench: Nothing was measured on tpu: tpu is not present")
    quiet = shell(*words, "--warmup", "1", "--hardware", "cpu,tpu", "--quiet", code=3)
    assert quiet.stdout == ""
    assert quiet.stderr == f"{said}\n"


class Refusing(ScriptedRuntime):
    """Has something against every case of some precisions."""

    refused: tuple[str, ...] = ()

    def supports(self, case: Any, device: Any) -> Support:
        if case.precision not in self.refused:
            return super().supports(case, device)
        return Support(False, "package_missing", "no engine is here", "Install one.")


def test_a_precision_that_was_named_and_gave_nothing_ends_with_3(shell, monkeypatch):
    runtime = Refusing({})
    runtime.refused = ("bf16",)
    monkeypatch.setattr(expand, "installed_runtimes", lambda: {"scripted": runtime})
    words = ("bert-tiny", "--batch-sizes", "1", "--precision", "fp32,bf16", "--json", *QUICK)
    done = shell(*words, code=3)
    assert absent(json.loads(done.stdout)) == [("precision", "bf16")]
    assert "Nothing was measured in bf16: no engine is here. Install one." in done.stderr


def test_a_case_that_failed_is_an_answer_whatever_else_there_is_none_of(shell):
    shell.script(faults=[{"how": "raise", "when": "step", "batch": 2}])
    words = ("bert-tiny", "--framework", "scripted", "--batch-sizes", "1,2", "--iterations", "5")
    done = shell(*words, "--warmup", "1", "--hardware", "cpu,tpu", code=1)
    assert "Nothing was measured on tpu" in done.stderr


def test_a_run_that_measured_nothing_at_all_ends_with_3(shell, monkeypatch, capfd):
    """As in an environment without an engine: nothing is named, and all is unsupported."""

    runtime = Refusing({})
    runtime.refused = ("fp32",)
    runtime.info = dataclasses.replace(runtime.info, default_for=("cpu",))
    monkeypatch.chdir(shell.work)
    monkeypatch.setattr(expand, "installed_runtimes", lambda: {"scripted": runtime})
    words = ("run", "bert-tiny", "--batch-sizes", "1,2", "--no-database")
    assert ended(monkeypatch, *words) == 3
    out, err = capfd.readouterr()
    assert "2 unsupported" in out
    assert err == "accelbench: Nothing was measured: no engine is here. Install one.\n"
    assert ended(monkeypatch, *words, "--hardware", "all") == 3
    monkeypatch.setattr(expand, "installed_runtimes", dict)
    assert ended(monkeypatch, *words) == 3
    assert "Nothing was measured: the plan has no such case." in capfd.readouterr().err


def test_a_resumed_run_is_held_to_what_was_named_when_it_began(shell):
    words = ("bert-tiny", "--framework", "scripted", "--batch-sizes", "1", "--iterations", "5")
    shell(*words, "--warmup", "1", "--hardware", "cpu,tpu", "--no-database", code=3)
    (journal,) = shell.journals()
    whole = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(whole[:-1]))  # as one that was killed before its last line
    done = shell("--resume", "last", "--no-database", code=3)
    assert "Nothing was measured on tpu" in done.stderr
