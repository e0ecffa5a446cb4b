"""`accelbench check` as people and machines meet it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from shells import Command
from stored_rows import MACHINE, store

from accelbench.cli.services import noise
from accelbench.core.facts import RESULT, RUN_STARTED, Fact
from accelbench.judge.baselines import NOISE, RERUN_OF
from accelbench.judge.regressions import Outcome
from accelbench.present.check import WITHIN_LIMIT
from accelbench.store.database import Database
from accelbench.store.journal import Journal

TIMES = (8.0, 8.01, 7.99, 8.02, 7.98, 8.0)
DB = "accelbench.duckdb"
#: A change that two runs without a history show in four of five cases.
WIDE = ("--threshold", "0.1")


def launches(factor: float = 1.0, day: int = 2, **changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "case_id": f"c{changes.get('batch_size', 1)}",
            "series_key": f"s{changes.get('batch_size', 1)}",
            "launch": n,
            "latency_p50_ms": ms * factor,
            "latency_mean_ms": ms * factor,
            "throughput": 1e3 / (ms * factor),
            "started_at": f"2026-01-{day:02d}T03:04:05.000000Z",
            **changes,
        }
        for n, ms in enumerate(TIMES)
    ]


def both(folder: Path, factor: float, **changes: Any) -> None:
    store(folder / DB, *launches(), run="r1", about={"label": "main", "git_branch": "trunk"})
    store(folder / DB, *launches(factor, 3, **changes), run="r2", about={"label": "pr"})


def quiet_history(folder: Path, runs: int = 8) -> None:
    """Nights on which nothing changed: by how much runs differ is known then."""
    for number in range(runs):
        store(folder / DB, *launches(1.0 + 0.002 * (number % 2), 1), run=f"night-{number}")


def test_what_became_slower_ends_with_1(tmp_path, check):
    both(tmp_path, 1.06)
    code, out, _ = check("--baseline", "main")
    assert code == 4  # two runs without a history may differ by as much
    said = " ".join(out.split())
    assert "Times of two runs are taken to differ by 2.0% without a change, for want" in said
    assert "measure both in one run" in said
    quiet_history(tmp_path)
    code, out, _ = check("--baseline", "main")
    assert code == 1
    assert "r2 (pr) against main, on lab" in out
    assert "+6.0%" in out
    assert "worse" in out
    assert "by what is stored of this machine" in " ".join(out.split())
    assert "Worse than the baseline: 1 worse" in out


@pytest.mark.parametrize("word", ["main", "trunk", "r1", "r"])
def test_a_baseline_is_a_label_a_branch_or_a_run(tmp_path, check, word):
    both(tmp_path, 1.0)
    if word == "r":  # both ids begin so
        code, _, err = check("--baseline", word)
        assert (code, "'r' begins the ids of 2 runs" in err) == (2, True)
        return
    found = check.json("--baseline", word, *WIDE)
    assert (found["outcome"], found["runs"]) == ("no change shown", ["r2"])
    assert found["questions"][0]["baseline_run_id"] == "r1"


def test_a_model_nobody_knows_is_a_slip_of_the_fingers(tmp_path, check):
    both(tmp_path, 1.0)
    code, _, err = check("bert-tiyn", "--baseline", "main")
    assert (code, "No model is called 'bert-tiyn'" in err) == (2, True)


def test_a_baseline_may_say_no_moment(tmp_path, check):
    store(tmp_path / DB, *launches(1.0, 3), run="r2")
    undated = [{**one, "started_at": None} for one in launches()]
    store(tmp_path / "other.duckdb", *undated, run="r1")
    found = check.json("--baseline", "other.duckdb", *WIDE)
    assert (found["outcome"], len(found["questions"])) == ("no change shown", 1)


def test_the_threshold_is_the_documents(tmp_path, check):
    both(tmp_path, 1.08)
    quiet_history(tmp_path)
    assert check("--baseline", "main", "--threshold", "0.1")[0] == 0
    assert check("--compare-to", "main", "--regression-alert", "0.05")[0] == 1
    assert check("--baseline", "main", "--threshold", "0")[0] == 2


def test_a_file_is_a_baseline(tmp_path, check, command):
    both(tmp_path, 1.2)
    assert command("db")("export", "all.csv")[0] == 0
    (tmp_path / DB).unlink()
    store(tmp_path / "other.duckdb", *launches(1.2, 3), run="r9")
    found = check("--baseline", "all.csv", "--db", "other.duckdb", "--json", *WIDE)
    assert found[0] == 0  # the newest run in it was as slow
    assert json.loads(found[1])["notes"] == []  # it says which machine it is of
    store(tmp_path / "third.duckdb", *launches(1.2, 3), run="r9", machine="elsewhere")
    code, _, err = check("--baseline", "all.csv", "--db", "third.duckdb")
    assert (code, "The baseline is of lab" in err) == (2, True)


def test_another_machine_is_refused_unless_it_is_allowed(tmp_path, check):
    store(tmp_path / DB, *launches(), run="r1", about={"label": "main"}, machine="elsewhere")
    store(tmp_path / DB, *launches(1.0, 3), run="r2")
    code, _, err = check("--baseline", "main")
    assert (code, "elsewhere" in err, "--allow machine" in err) == (2, True, True)
    assert check("--baseline", "main", "--allow", "machine", *WIDE)[0] == 0
    assert check("--baseline", "main", "--machine", "lab", "--allow", "machine", *WIDE)[0] == 0
    body = {"environment": {**MACHINE, "machine": "elsewhere"}}
    results = [
        {**one, "result_id": f"x{n}", "model": "bert-tiny", "hardware": "cpu", "status": "ok",
         "runtime": "pytorch", "provenance": "measured"}
        for n, one in enumerate(launches())
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"run": body, "results": results}))
    assert check("--baseline", "a.json")[0] == 2


def test_another_database_is_a_baseline(tmp_path, check):
    store(tmp_path / "old.duckdb", *launches(), run="r1")
    store(tmp_path / DB, *launches(1.3, 3), run="r2")
    assert check("--baseline", "old.duckdb")[0] == 1


def test_the_newest_run_is_checked_or_those_that_are_named(tmp_path, check):
    both(tmp_path, 1.3)
    store(tmp_path / DB, *launches(1.0, 4), run="r3")
    # The two known runs differ by 30 %, so that only a change of 90 % would show.
    assert check("--baseline", "main", "--threshold", "1")[0] == 0
    assert check("--baseline", "main", "--run", "pr")[0] == 1
    assert check("--baseline", "main", "--run", "nobody")[0] == 2
    assert check("--baseline", "main", "--run", "pr,pr-typo")[0] == 2
    assert json.loads(check("--baseline", "pr", "--json")[1])["runs"] == ["r3"]
    # The baseline's own runs are never what is checked, however new.
    store(tmp_path / DB, *launches(1.0, 5), run="r4", about={"label": "main"})
    found = json.loads(check("--baseline", "main", "--run", "pr", "--json")[1])
    assert (found["runs"], found["labels"]) == (["r2"], {"r2": "pr"})
    assert json.loads(check("--baseline", "main", "--json")[1])["runs"] == ["r3"]


def test_a_summary_for_a_pull_request_is_added_to_a_file(tmp_path, check):
    both(tmp_path, 1.3)
    (tmp_path / "s.md").write_text("# before\n")
    assert check("--baseline", "main", "--markdown", "s.md")[0] == 1
    said = (tmp_path / "s.md").read_text()
    assert said.startswith("# before\n### ❌ Worse than the baseline: 1 worse\n")
    assert "| what | figure | before → now | change | answer |" in said
    assert (
        "| bert-tiny pytorch/cpu fp32 batch 1 seq 128 | median latency, ms | 8 → 10.4 | +30.0% ("
        in said
    )


def test_what_is_not_there_is_said(tmp_path, check):
    both(tmp_path, 1.0)
    for words, code in (
        (("--baseline", "nothing"), 2),
        (("--baseline", "missing.csv"), 2),
        (("--baseline", "missing.duckdb"), 2),
        (("--baseline", "main", "--mode", "sleeping"), 2),
        (("--baseline", "main", "--run", "r1"), 4),
        (("gpt2", "--baseline", "main"), 4),
        (("--baseline", "main", "--allow", "all"), 2),
        ((), 2),
    ):
        found, out, err = check(*words)
        assert (found, out) == (code, ""), words
        assert "Traceback" not in err


def test_a_machine_s_noise_is_stated(tmp_path, check, monkeypatch):
    alike = [{**one, "launch": n} for n, one in enumerate([*launches(), *launches()])]
    store(tmp_path / DB, *alike, run="aa")
    Database(tmp_path / DB).fill()
    asked: list[tuple[Any, int]] = []
    monkeypatch.setattr(
        noise, "_measured", lambda _, words, count: asked.append((words, count)) or "aa"
    )
    found = check.json("bert-tiny", "--noise", "6", "--batch-sizes", "8")
    assert asked == [({"model": ("bert-tiny",), "batch_size": (8,)}, 12)]
    latency, throughput, memory = found["floors"]
    assert latency["noise"] == pytest.approx(0.0016, rel=0.2)
    assert latency["against_itself"] == "no change shown"
    assert (memory["noise"], len(throughput["values"])) == (0.0, 12)
    assert "noise 0.1" in check("--noise", "6")[1]
    assert check("--noise", "4")[0] == 2


def test_a_model_that_is_not_measured_any_more_leaves_the_answer_open(tmp_path, check):
    gone = {"model": "vit-tiny", "case_id": "v", "series_key": "v"}
    store(tmp_path / DB, *launches(), *launches(**gone), run="r1", about={"label": "main"})
    store(tmp_path / DB, *launches(1.0, 3), run="r2")
    for word in ("main", "r1"):
        code, out, _ = check("--baseline", word, "--json")
        (missing,) = json.loads(out)["not_measured"]
        assert (code, "vit-tiny" in missing) == (4, True)
        assert check("bert-tiny", "--baseline", word, *WIDE)[0] == 0
        assert check("--baseline", word, "--allow", "missing", *WIDE)[0] == 0


def test_nothing_is_checked_against_itself(tmp_path, check, command):
    both(tmp_path, 1.3)
    assert command("db")("export", tmp_path / "now.csv", "--db", tmp_path / DB)[0] == 0
    code, _, err = check("--baseline", tmp_path / "now.csv")
    assert (code, "itself" in err) == (4, True)
    # A copy of the whole database is what came before.
    assert command("db")("merge", tmp_path / DB, "--db", tmp_path / "copy.duckdb")[0] == 0
    assert check("--baseline", tmp_path / "copy.duckdb")[0] == 1
    assert check("--baseline", "pr", "--run", "pr")[0] == 4


@pytest.mark.parametrize("label", [NOISE, f"{RERUN_OF}r2"])
def test_what_a_check_measured_for_itself_is_not_what_is_checked(tmp_path, check, label):
    both(tmp_path, 1.08)
    store(tmp_path / DB, *launches(3.0, 9), run="r3", about={"label": label})
    assert json.loads(check("--baseline", "main", "--json")[1])["runs"] == ["r2"]
    assert json.loads(check("--baseline", "main", "--run", "r3", "--json")[1])["runs"] == ["r3"]


@pytest.mark.parametrize(
    "engine",  # ten launches are made: the one is imported in a tenth of the other's time
    ["onnxruntime", pytest.param("pytorch", marks=pytest.mark.full)],
)
def test_what_only_seemed_worse_is_measured_again(tmp_path, check, command, engine):
    how = ("bert-tiny", "--framework", engine, "--batch-sizes", "1", "--threads", "1")
    few = ("--iterations", "5", "--warmup", "1", "--benchmark-only")
    found = command("run").json(*how, *few)
    (real,) = found["results"]
    database = Database(tmp_path / DB)
    _, ((body,),) = database.query("SELECT body::VARCHAR FROM fact WHERE kind = 'run_started'")

    def again(run: str, factor: float, **about: str) -> None:
        times = {n: real["latency_p50_ms"] * factor * ms / 8.0 for n, ms in enumerate(TIMES)}
        with Journal.create(database.journals, run) as journal:
            journal.append(Fact(RUN_STARTED, run, {**json.loads(body), "run_id": run, **about}))
            for n, ms in times.items():
                figures = {"latency_p50_ms": ms, "latency_mean_ms": ms, "throughput": 1e3 / ms}
                fact = {**real, **figures, "launch": n, "result_id": f"{run}-{n}", "run_id": run}
                fact.pop("protocol_version")  # made by hand: its ids are no hashes
                journal.append(Fact(RESULT, fact["result_id"], fact))

    again("a", 1.0, label="main")
    again("b", 100.0, label="pr")
    asked = ("--baseline", "main", "--run", "pr", "--threshold", "0.5", "--json")
    code, out, _ = check(*asked)
    assert (code, json.loads(out)["outcome"]) == (1, "worse")
    _, out, err = check(*asked, "--rerun")
    said = json.loads(out)
    (latency, *_) = said["questions"][0]["figures"]
    assert latency["worse_by"] < 30.0  # what was stored was a hundred times as slow
    assert latency["launches_now"] in {3, 4, 5}  # those that another process did not disturb
    assert said["runs"][0] == "b"
    assert said["questions"][0]["run_id"] == said["runs"][1]
    assert "bert-tiny" in err  # it is seen to measure


def test_what_others_measured_is_not_taken_for_the_newest_run(tmp_path, check):
    both(tmp_path, 1.08)
    store(tmp_path / DB, *launches(3.0, 9), run="import-1", source={"name": "timm"})
    assert json.loads(check("--baseline", "pr", "--run", "main", "--json")[1])["runs"] == ["r1"]
    assert json.loads(check("--baseline", "main", "--json")[1])["runs"] == ["r2"]


@pytest.mark.parametrize(("factor", "shows"), [(1.3, True), (1.0, False)])
def test_a_change_within_the_limit_is_not_headed_as_none(tmp_path, check, factor, shows):
    both(tmp_path, factor)
    quiet_history(tmp_path)
    code, out, _ = check("--baseline", "main", "--regression-alert", "0.6", "--markdown", "s.md")
    assert code == 0
    lines = [line for line in out.splitlines() if "bert-tiny" in line or "Nothing became" in line]
    assert [WITHIN_LIMIT in line for line in lines] == [shows, shows]
    assert [Outcome.STEADY in line for line in lines] == [not shows, not shows]
    assert (WITHIN_LIMIT in (tmp_path / "s.md").read_text(encoding="utf-8")) == shows


def test_a_mean_is_not_held_against_a_median(tmp_path, check):
    """Half of the steps are quick: the median of the one says nothing of the other's mean."""
    only_mean = {"latency_p50_ms": None, "latency_mean_ms": 12.0, "throughput": None}
    only_median = {"latency_mean_ms": None, "latency_p50_ms": 8.0, "throughput": None}
    store(tmp_path / DB, *launches(**only_mean), run="r1", about={"label": "main"})
    store(tmp_path / DB, *launches(1.0, 3, **only_median), run="r2", about={"label": "pr"})
    code, out, _ = check("--baseline", "main", "--json")
    (one,) = json.loads(out)["questions"]
    assert (code, one["outcome"]) == (4, "can't tell")
    assert one["why"] == "of one side a median latency is known, of the other a mean"
    assert "latency" not in {figure["metric"] for figure in one["figures"]}


def test_a_check_says_which_latency_it_judged(tmp_path, check):
    both(tmp_path, 1.0, latency_p50_ms=None)
    _, out, _ = check("--baseline", "main", "--json")
    (one,) = json.loads(out)["questions"]
    figures = {figure["metric"]: figure["figure"] for figure in one["figures"]}
    assert figures == {"latency": "mean", "throughput": None, "memory": None}


@pytest.mark.parametrize("older", [False, True])
def test_what_a_comparison_refused_turns_no_build_red(tmp_path, check, command, older):
    """A file of `compare` with an emulated side, which is five times as fast as the device."""
    one = {"series_key": "s", "case_id": "c"}
    cuda = {**one, "hardware": "cuda", "device_name": "A card"}
    store(tmp_path / "then.duckdb", one, {**cuda, "emulated": True, "latency_p50_ms": 1.0})
    assert command("compare")("--output", "base.csv", "--db", "then.duckdb")[0] == 4
    if older:
        with (tmp_path / "base.csv").open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
        with (tmp_path / "base.csv").open("w", encoding="utf-8", newline="") as stream:
            left_out = ("weights_digest", "workarounds", "emulated")
            writer = csv.DictWriter(stream, [name for name in lines[0] if name not in left_out])
            writer.writeheader()
            writer.writerows({n: line[n] for n in writer.fieldnames} for line in lines)
    store(tmp_path / "now.duckdb", {**cuda, "latency_p50_ms": 5.0}, run="now")
    asked = ("--baseline", "base.csv", "--db", "now.duckdb", "--hardware", "cuda")
    code, out, _ = check(*asked)
    said = " ".join(out.split())
    assert (code, "not alike: emulated." in said) == (4, True)
    assert ("the baseline's file says of it" in said) == older
    assert check(*asked, "--allow", "emulated")[0] == 1


def test_older_runs_of_other_things_are_no_noise(tmp_path, check):
    """Nights with a workaround that were twice as slow, one here and one there."""
    quiet_history(tmp_path)
    both(tmp_path, 1.0)
    alone = noise_of_runs(check)
    for number in range(3):
        odd = launches(2.0 + number, 1, workarounds=["static shapes"])
        store(tmp_path / DB, *odd, run=f"odd-{number}")
    store(tmp_path / DB, *launches(0.1, 1, emulated=True), run="emulated")
    assert noise_of_runs(check) == pytest.approx(alone)


def noise_of_runs(check: Command) -> float:
    """By how much runs are taken to differ."""
    (one,) = check.json("--baseline", "main", "--run", "r2", *WIDE)["questions"]
    return float(one["figures"][0]["noise_of_runs"])


def test_the_last_run_is_checked_by_its_word(tmp_path, check):
    both(tmp_path, 1.0)
    _, out, _ = check("--run", "last", "--baseline", "main", "--json")
    assert json.loads(out)["runs"] == ["r2"]
