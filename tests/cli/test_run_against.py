"""`accelbench run --against`, and `check` of what it measured."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from shells import QUICK
from stored_rows import store

DB = "accelbench.duckdb"
CASE = ("bert-tiny", "--batch-sizes", "1", *QUICK, "--benchmark-only")


def test_arms_are_measured_shown_stored_and_judged(shell):
    done = shell(*CASE, "--against", "scripted.pace=fast", "--threshold", "0.1")
    assert done.returncode == 0, done.stderr
    assert "10 measurements" in done.stdout  # five launches of each, where nobody says
    assert "against scripted.pace=fast" in done.stdout
    assert "Judged by pairs of launches" in " ".join(done.stdout.split())
    assert "Nothing became worse: 1 no change shown" in done.stdout
    again = shell(*CASE, "--against", "scripted.pace=fast", "--launches", "2", "--json", "--quiet")
    found = json.loads(again.stdout)
    assert again.returncode == 0  # without a threshold a run ends as runs do
    arms = [one["arm"] for one in found["results"]]
    assert arms == ["this", "scripted.pace=fast", "scripted.pace=fast", "this"]
    assert found["against"]["outcome"] == "can't tell"
    few = ("--against", "threads=1", "--launches", "2", "--threshold", "0.1")
    shell(*CASE, *few, code=4)


def test_own_code_of_a_commit_is_measured_as_it_is_there(shell):
    """A wait of 20 ms against one of 1 ms, in a module beside the benchmark."""
    bench = "from waits import work\n\ndef step():\n    work()\n\nstep.example_inputs = ()\n"
    (shell.work / "bench.py").write_text(bench)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], cwd=shell.work, check=True)
    for seconds in (0.001, 0.02):
        waits = f"import time\n\ndef work():\n    time.sleep({seconds})\n"
        (shell.work / "waits.py").write_text(waits)
        subprocess.run([*git, "add", "-A"], cwd=shell.work, check=True)
        subprocess.run([*git, "commit", "-qm", "wait"], cwd=shell.work, check=True)
    asked = ("bench.py:step", "--hardware", "cpu", "--iterations", "5", "--warmup", "1")
    done = shell(*asked, "--against", "commit:HEAD~1", "--launches", "1", "--json", "--quiet")
    median = {one["arm"]: one["latency_p50_ms"] for one in json.loads(done.stdout)["results"]}
    assert median["this"] > 5 * median["commit:HEAD~1"]


def test_a_commit_whose_code_is_not_measured_is_refused_before_a_run_begins(shell):
    bench = shell.work / "bench.py"
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], cwd=shell.work, check=True)
    for text in ("def other():\n    pass\n", "def step():\n    pass\n\nstep.example_inputs = ()\n"):
        bench.write_text(text)
        subprocess.run([*git, "add", "-A"], cwd=shell.work, check=True)
        subprocess.run([*git, "commit", "-qm", "bench"], cwd=shell.work, check=True)
    asked = ("bench.py:step", "--hardware", "cpu", "--iterations", "5", "--warmup", "1")
    done = shell(*asked, "--against", "commit:HEAD~1", code=3)
    assert "bench.py:step is not measured in commit:HEAD~1" in done.stderr
    assert not list(shell.work.rglob("*.jsonl"))


def test_a_dry_run_says_both(shell):
    done = shell(*CASE, "--against", "threads=1", "--dry-run")
    assert "1 case × 5 launches, in turns with threads=1;" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "sooner"), "names nothing that a run can be compared with"),
        (("--against", "threads=many"), "no number of threads"),
        (("--against", "compile=perhaps"), "yes or no"),
        (("--against", "scripted.pace=slow"), "changes nothing"),
        (("--against", "scripted.speed=1"), "speed"),
        (("--against", "threads=1", "--threshold", "0"), "0 is no threshold"),
        (("--against", "threads=1", "--profile"), "--against and --profile contradict"),
        (("--against", "threads=1", "--verify-only"), "--against and --verify-only contradict"),
        (("--threshold", "0.1"), "--threshold requires --against"),
    ],
)
def test_wrong_words_are_refused(tmp_path, monkeypatch, command, words, said):
    (tmp_path / "script.json").write_text("{}")
    monkeypatch.setenv("ACCELBENCH_SCRIPT", str(tmp_path / "script.json"))
    case = [one for one in CASE if one != "--benchmark-only"]
    code, out, err = command("run")(*case, *words)
    assert (code, out, said in err) == (2, "", True), err
    assert "Traceback" not in err


def launches(factor: float, arm: str, **changes: Any) -> list[dict[str, Any]]:
    times = (8.0, 10.1, 7.9, 9.2, 11.8, 8.0)
    return [
        {
            "case_id": "c", "series_key": "s", "launch": n, "arm": arm,
            "latency_p50_ms": ms * factor, "throughput": 1e3 / (ms * factor), **changes,
        }
        for n, ms in enumerate(times)
    ]  # fmt: skip


def test_check_holds_the_arms_of_a_run_against_each_other(tmp_path, command):
    shell = command("check")
    store(tmp_path / DB, *launches(1.0, ""), run="plain")
    assert shell()[0] == 2
    about = {"label": "pr"}
    store(tmp_path / DB, *launches(1.05, "this"), *launches(1.0, "main"), run="r1", about=about)
    code, out, _ = shell("--markdown", "s.md")
    assert code == 1
    assert "r1 (pr) against main, on lab" in out
    assert "❌ Worse than the baseline: 1 worse" in (tmp_path / "s.md").read_text()
    assert shell("--threshold", "0.1")[0] == 0
    assert shell("--run", "pr")[0] == 1
    assert shell("--run", "plain")[0] == 2
    assert shell("vit-tiny")[0] == 2
    code, _, err = shell("--rerun")
    assert (code, "--rerun is of a --baseline" in err) == (2, True)


def test_the_other_arm_speaks_nowhere_else(tmp_path, command):
    """It may be of another commit: history, comparisons and checks know this arm alone."""
    for number in range(4):
        moment = {"started_at": f"2026-01-{number + 2:02d}T03:04:05.000000Z"}
        both = [*launches(1.0, "this", **moment), *launches(3.0, "main", **moment)]
        store(tmp_path / DB, *both, run=f"r{number}")
    (series,) = command("history").json("--all")["series"]
    assert max(point["value"] for point in series["points"]) < 12.0
    found = json.loads(command("check")("--baseline", "r0", "--run", "r3", "--json")[1])
    (question,) = found["questions"]
    assert question["figures"][0]["launches_now"] == 6
    assert question["figures"][0]["now"] < 12.0
