"""`accelbench run --profile` and `--option`, as people type them."""

import json

import jsonschema
from shells import QUICK

from accelbench.exchange.profile_schema import profile_schema
from accelbench.store.database import Database

OPERATORS = {"MatMul[x]": 0.75, **{f"op{i:02d}": 0.01 for i in range(12)}}


def test_people_get_a_table_a_case_and_the_files(shell):
    shell.script(operators=OPERATORS)
    done = shell("bert-tiny", "--batch-sizes", "1,4", "--profile", "--output-dir", "out", *QUICK)
    assert "Where the time goes: bert-tiny scripted/cpu fp32 batch 4 seq 128" in done.stdout
    assert "the script, mean of 5 steps: 1.00 ms, of which operators explain 87%" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["MatMul[x]", "1", "0.750", "75.0%", "cpu:0"] in lines
    assert ["3", "others", "0.0300", "3.0%"] in lines
    assert "carry the profiler's cost" in done.stdout
    files = sorted((shell.work / "out" / "profiles").iterdir())
    documents = [path for path in files if not path.name.endswith(".trace.json")]
    assert len(documents) == 2
    assert {p.with_suffix(".trace.json") for p in documents} == set(files) - set(documents)
    assert all(path.name in done.stdout for path in files)
    for path in documents:
        jsonschema.validate(json.loads(path.read_text()), profile_schema())


def test_machines_get_every_operator(shell):
    shell.script(operators=OPERATORS)
    done = shell("bert-tiny", "--batch-sizes", "1", "--profile", "--json", *QUICK)
    document = json.loads(done.stdout)
    [one] = document["profiles"]
    assert [row["result_id"] for row in document["results"]] == [one["result_id"]]
    assert len(one["operators"]) == len(OPERATORS)
    # Kept with the run as well: a database that is made anew has it.
    _, [[kept]] = Database(shell.work / "accelbench.duckdb").query(
        "SELECT body FROM fact WHERE kind = 'profile'"
    )
    assert json.loads(kept)["operators"] == one["operators"]


def test_the_plan_allows_for_the_time_that_profiling_takes(shell):
    words = ("bert-tiny", "--batch-sizes", "1,4", "--dry-run", "--json", *QUICK)
    plain, profiled = (json.loads(shell(*words, *more).stdout) for more in ((), ("--profile",)))
    assert profiled["cases"] == plain["cases"]
    assert profiled["seconds_low"] > plain["seconds_low"]


def test_why_there_is_no_profile_is_said(shell):
    done = shell("bert-tiny", "--batch-sizes", "1", "--profile", *QUICK)
    assert "No profile of bert-tiny scripted/cpu fp32 batch 1 seq 128: the script" in done.stdout
    assert "profiler's cost" not in done.stdout


def test_what_is_not_timed_has_no_profile(shell):
    said = shell.refused("bert-tiny", "--profile", "--verify-only", *QUICK, code=2)
    assert "contradict" in said


def test_an_option_of_a_runtimes_own_is_shown_where_it_is_set(shell):
    words = ("bert-tiny", "--batch-sizes", "1", *QUICK)
    plain = json.loads(shell(*words, "--json").stdout)["results"]
    done = shell(*words, "--option", "scripted.pace=fast", "scripted.patient=yes", "--json")
    [row] = json.loads(done.stdout)["results"]
    assert row["options"] == {"pace": "fast", "patient": True}
    assert row["case_id"] != plain[0]["case_id"]
    assert "pace=fast" in done.stderr


def test_an_option_that_is_not_there_is_refused_with_those_that_are(shell):
    said = shell.refused("bert-tiny", "--option", "openvino.hnt=x", *QUICK, code=2)
    assert "hint (latency or throughput)" in said
    assert "model_cache (yes or no)" in said
