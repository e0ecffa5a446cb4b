"""`accelbench history` as people and machines meet it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from stored_rows import store

from accelbench.core.unusable_reasons import REASON_TEXTS, UnusableReason
from accelbench.judge.verdicts import METRICS
from accelbench.measure.launch_verdicts import geometric_mean, interval_of
from accelbench.present.terminal.history import spark
from accelbench.store.database import Database

DB = "accelbench.duckdb"
WOBBLE = (1.0, 1.004, 0.997, 1.002, 0.999, 1.003)


def nights(folder: Path, *levels: float, **changes: Any) -> None:
    """A run a night, of three launches."""
    for day, level in enumerate(levels):
        ms = 8.0 * level * WOBBLE[day % len(WOBBLE)]
        launches = [
            {
                "series_key": "s",
                "launch": n,
                "latency_p50_ms": ms * factor,
                "latency_mean_ms": ms,
                "throughput": 1e3 / ms,
                "started_at": f"2026-03-{day + 1:02d}T03:04:05.000000Z",
                **changes,
            }
            for n, factor in enumerate((1.0, 0.999, 1.5))
        ]
        about = {"git_commit": f"{day:02d}abcdef0123456789"}
        store(folder / DB, *launches, run=f"r{day:02d}{changes.get('model', '')}", about=about)


def test_a_step_is_told_with_its_commits(tmp_path, history):
    nights(tmp_path, *[1.0] * 8, *[1.1] * 6)
    code, out, _ = history()
    said = " ".join(out.split())
    assert code == 0
    assert "bert-tiny pytorch/cpu fp32 batch 1 seq 128, A processor: median latency" in said
    assert "worse: between 2026-03-08 03:04 07abcdef01 and 2026-03-09 03:04 08abcdef01" in said
    assert "+9." in said or "+10." in said
    assert "Of 1 series: 1 worse." in said


@pytest.mark.parametrize("metric", [metric.name for metric in METRICS])
@pytest.mark.parametrize("unit", ["images/s", "items/s"])
def test_a_newest_run_that_is_off_is_told_of_every_metric_in_every_unit(
    tmp_path, history, metric, unit
):
    for day, level in enumerate([*[1.0] * 8, 4.0]):
        launches = [
            {
                "series_key": "s",
                "launch": n,
                "latency_p50_ms": 8.0 * level,
                "throughput": 100.0 / level,
                "throughput_unit": unit,
                "memory_peak_mb": 500.0 * level,
                "energy_joules": 2.0 * level,
                "started_at": f"2026-03-{day + 1:02d}T03:04:05.000000Z",
            }
            for n in range(3)
        ]
        store(tmp_path / DB, *launches, run=f"r{day:02d}")
    code, out, err = history("--metric", metric, "--json")
    assert code == 0, err
    (told,) = json.loads(out)["series"]
    assert told["unconfirmed"] is not None
    assert told["unconfirmed"]["at"] == 8
    assert told["unit"] == {"throughput": unit}.get(metric, told["unit"])


CRASH = {"status": "failed", "reason": "crash", "verification": "not_done"}
WRONG = {"status": "failed", "reason": "wrong_outputs", "verification": "failed"}


@pytest.mark.parametrize(
    ("launches", "why"),
    [
        ([CRASH, {**CRASH, "launch": 1}], "crash"),
        ([{**CRASH, "series_key": None}], "crash"),  # it never got as far as an engine
        ([{}, {**CRASH, "launch": 1}, {**CRASH, "launch": 2}], "2 of 3 launches failed: crash"),
        ([{}, {}, {**WRONG, "launch": 2}], "wrong outputs"),
        ([{"quality": "unusable"}], REASON_TEXTS[UnusableReason.TOO_NOISY]),
        ([{"quality": "unusable", "cpu_wait_share": 0.7}], REASON_TEXTS[UnusableReason.WAITED]),
        (
            [{"quality": "unusable", "unexplained_share": 0.7}],
            REASON_TEXTS[UnusableReason.UNACCOUNTED],
        ),
    ],
)
def test_a_newest_run_without_a_figure_is_told(tmp_path, history, launches, why):
    nights(tmp_path, *[1.0] * 6)
    late = {"series_key": "s", "started_at": "2026-03-09T00:00:00.000000Z"}
    store(tmp_path / DB, *({**late, **one} for one in launches), run="late")
    _, out, _ = history()
    said = " ".join(out.split())
    assert "Can't tell: the newest run, of 2026-03-09 00:00, has no figure: " in said
    assert f"{why}" in said
    document = history.json()
    (one,) = document["series"]
    assert one["newest_without_figure"]["run_id"] == "late"
    assert one["newest_without_figure"]["why"].endswith(why)
    assert document["without_change"] == 0


def test_json_has_every_point_and_what_happened(tmp_path, history):
    nights(tmp_path, *[1.0] * 8, *[1.1] * 6)
    (one,) = history.json()["series"]
    assert [point["launches"] for point in one["points"]] == [3] * 14
    assert one["points"][0]["value"] == pytest.approx(8.0)  # the median over launches
    (step,) = one["steps"]
    assert (step["at"], step["worse"], step["since"]["git_commit"]) == (
        8,
        True,
        "08abcdef0123456789",
    )
    assert step["low"] < 0.1 < step["high"]
    assert (one["spikes"], one["drift"], one["unconfirmed"]) == ([], None, None)


def test_a_time_that_is_unusable_is_no_point(tmp_path, history):
    nights(tmp_path, *[1.0] * 6)
    wild = {"series_key": "s", "latency_p50_ms": 72.0, "quality": "unusable"}
    moment = "2026-03-20T03:04:05.000000Z"
    launches = [{**wild, "launch": n, "started_at": moment} for n in range(3)]
    store(tmp_path / DB, *launches, run="wild")
    assert len(history.json("--all")["series"][0]["points"]) == 6
    assert len(history.json("--all", "--metric", "memory")["series"][0]["points"]) == 7


def test_series_without_a_change_are_counted_and_shown_on_request(tmp_path, history):
    nights(tmp_path, *[1.0] * 6)
    code, out, _ = history()
    assert (code, "bert-tiny" in out) == (0, False)
    assert "Of 1 series: 1 no change shown." in out
    assert "bert-tiny" in history("--all")[1]


def test_json_has_every_series_and_on_request_every_point(tmp_path, history):
    nights(tmp_path, *[1.0] * 6)
    found = history.json()
    (quiet,) = found["series"]
    assert found["without_change"] == 1
    assert found["machine"].startswith("lab")
    assert (quiet["changed"], quiet["point_count"], quiet["points"]) == (False, 6, None)
    assert quiet["newest"]["git_commit"].startswith("05")
    (whole,) = history.json("--all")["series"]
    assert len(whole["points"]) == 6
    assert {**whole, "points": None} == quiet


def test_one_run_has_no_history(tmp_path, history):
    nights(tmp_path, 1.0)
    code, out, err = history()
    assert (code, out) == (4, "")
    assert "measured twice and more" in err


def test_a_few_runs_are_drawn_and_not_judged_and_that_is_said(tmp_path, history):
    nights(tmp_path, 1.0, 1.5)
    code, out, _ = history()
    assert (code, "▁█" in out) == (0, True)
    assert "Not judged: 2 of the 4 runs that this needs" in out
    assert "Of 1 series: 1 drawn, not judged." in out
    found = history.json()
    assert (found["answers"], found["without_change"]) == ({"drawn, not judged": 1}, 0)
    assert (found["series"][0]["answer"], found["series"][0]["steps"]) == (None, [])
    nights(tmp_path, 1.0, 1.5, model="vit-tiny", series_key="v")
    assert "Of 2 series: 2 drawn, not judged." in history()[1]


def test_six_dated_imports_are_one_line_with_their_versions_marked(tmp_path, history, command):
    for month in range(1, 7):
        file = tmp_path / f"release-{month}.parquet"
        duckdb.sql(
            f"""COPY (SELECT 'somebody' AS source, 'c1' AS source_commit, 'MIT' AS license,
            'resnet50' AS model, 'A card' AS hardware_name, 'cuda' AS hardware_kind,
            'pytorch' AS framework, 'torch 2.{month // 3 + 8} eager' AS runtime,
            'fp32' AS precision, 8 AS batch_size, 224 AS img_size, 'inference' AS mode,
            {10.0 + 0.01 * month - 2 * (month > 3)} AS latency_ms, '{{}}' AS extra,
            NULL::DOUBLE AS throughput)
            TO '{file}' (FORMAT parquet)"""
        )
        moment = f"2026-0{month}-08"
        code, _, _ = command("db")("import", "tidy", str(file), "--measured-at", moment)
        assert code == 0
    said = " ".join(history()[1].split())
    assert "6 runs" in said
    assert "better: between 2026-03-08 00:00 and 2026-04-08 00:00" in said
    (one,) = history.json("--all")["series"]
    assert (one["point_count"], one["answer"]) == (6, "better")
    marks = [(mark["at"], mark["said"]) for mark in one["software_changes"]]
    assert marks == [
        (2, "torch 2.8 eager → torch 2.9 eager"),
        (5, "torch 2.9 eager → torch 2.10 eager"),
    ]


def published(
    path: Path, releases: Sequence[tuple[float, str]], devices: Sequence[str] = ("A phone",)
) -> None:
    """A tidy table of one figure a release, each with the job that measured it."""
    lines = ", ".join(
        f"""('hub', 'c1', 'MIT', 'resnet50', '{device}', 'qnn', 'qai-hub', 'tflite', 'int8', 1, 224,
        'inference', {ms}, '{{"date": "2026-0{n}-08", "job_id": "{job}"}}', NULL::DOUBLE)"""
        for n, (ms, job) in enumerate(releases, start=1)
        for device in devices
    )
    names = (
        "source, source_commit, license, model, hardware_name, hardware_kind, framework, runtime,"
        " precision, batch_size, img_size, mode, latency_ms, extra, throughput"
    )
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {lines}) t({names})) TO '{path}' (FORMAT parquet)")


def test_a_job_that_later_releases_carry_forward_is_one_point(tmp_path, history, command):
    """Two of the three points of a step were one job, and its interval was that of three."""
    releases = [
        *((1.1, "a"), (1.08, "b"), (1.09, "c"), (1.09, "c")),
        *((4.5, "d"), (4.5, "d"), (4.5, "d"), (4.52, "e")),
    ]
    published(tmp_path / "hub.parquet", releases)
    command("db")("import", "tidy", str(tmp_path / "hub.parquet"))
    (one,) = history.json("--all")["series"]
    moments = [point["started_at"][:7] for point in one["points"]]
    assert moments == ["2026-01", "2026-02", "2026-03", "2026-05", "2026-08"]
    assert (one["point_count"], one["carried_forward"]) == (5, 3)
    assert "3 later results carried forward from an earlier job" in history()[1]
    dates = command("compare").json("--by", "date")["comparisons"]
    assert [line["latency_ms"] for line in dates] == [1.1, 1.08, 1.09, 4.5, 4.52]
    _, count, _ = command("db")("sql", "SELECT count(*) AS n FROM benchmark_results")
    assert "8" in count  # what was imported stays


def test_two_names_of_what_one_job_measured_are_said_to_be_one(tmp_path, history, command):
    """A board and its proxy, listed with the same jobs, were two regressions."""
    releases = [(1.0, "a"), (1.01, "b"), (1.0, "c"), (4.5, "d"), (4.52, "e"), (4.5, "f")]
    published(tmp_path / "hub.parquet", releases, ("A board", "A proxy"))
    command("db")("import", "tidy", str(tmp_path / "hub.parquet"))
    said = " ".join(history()[1].split())
    assert "the same jobs as of A proxy: one measurement, not several" in said
    one, other = history.json()["series"]
    assert (one["same_jobs_as"], other["same_jobs_as"]) == (
        [other["series_key"]],
        [one["series_key"]],
    )


def test_results_that_name_no_job_are_points_though_they_are_equal(tmp_path, history, command):
    published(tmp_path / "hub.parquet", [(1.0, "null")] * 4)
    command("db")("import", "tidy", str(tmp_path / "hub.parquet"))
    (one,) = history.json("--all")["series"]
    assert (one["point_count"], one["carried_forward"]) == (4, 0)


def test_what_a_run_of_ours_ran_is_its_environment(tmp_path, history):
    for day, torch in enumerate(("2.12", "2.12", "2.13", "2.13")):
        row = {"series_key": "s", "started_at": f"2026-03-{day + 1:02d}T03:04:05.000000Z"}
        store(tmp_path / DB, row, run=f"r{day}", packages={"torch": torch, "numpy": "2.4"})
    assert "torch 2.12 → 2.13 at 2026-03-03 03:04" in " ".join(history("--all")[1].split())


def test_what_has_no_moment_has_no_place_in_a_history(tmp_path, history):
    undated = [{"series_key": "s", "started_at": None, "launch": n} for n in range(6)]
    store(tmp_path / DB, *undated)
    code, out, err = history()
    assert (code, out) == (4, "")
    assert "6 results have no moment" in err
    assert "--measured-at" in err
    nights(tmp_path, *[1.0] * 4)
    (one,) = history.json("--all")["series"]
    assert one["point_count"] == 4


def test_other_machines_are_named_where_the_newest_has_no_history(tmp_path, history):
    nights(tmp_path, *[1.0] * 6)
    store(tmp_path / DB, {"started_at": "2027-01-01T00:00:00Z"}, run="later", machine="attic")
    code, _, err = history()
    assert code == 4
    assert "Nothing on attic" in err
    assert "Other machines, by --machine: lab" in err


def test_a_slip_in_a_models_name_is_no_lack_of_results(tmp_path, history):
    nights(tmp_path, *[1.0] * 4, model="theirs_v2")
    code, out, err = history("theirs_v3")
    assert (code, out) == (2, "")
    assert "No model is called 'theirs_v3'. Did you mean theirs_v2?" in err


@pytest.mark.parametrize("words", [("--metric", "colour"), ("--threshold", "0")])
def test_wrong_words_are_refused(history, words):
    assert history(*words)[0] == 2


def test_a_metric_is_the_same_in_sql(tmp_path):
    rows: list[dict[str, Any]] = [
        {"latency_p50_ms": 2.0, "latency_mean_ms": 3.0, "throughput": 5.0},
        {"latency_p50_ms": None, "latency_mean_ms": 3.0, "throughput": None, "batch_size": 8},
        {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": 40.0, "batch_size": 8},
        {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": None},
        {"batch_size": None, "latency_p50_ms": None, "throughput": None, "memory_peak_mb": None},
    ]
    store(tmp_path / DB, *rows)
    database = Database(tmp_path / DB)
    database.fill()
    for metric in METRICS:
        _, found = database.query(f"SELECT {metric.sql} FROM benchmark_results ORDER BY result_id")
        wanted = [metric.of(row) for row in database.results()]
        assert [value for (value,) in found] == wanted, metric.name


def test_a_course_in_one_line():
    assert spark([1.0, 2.0, 8.0, 4.5]) == "▁▂█▅"
    assert spark([3.0, 3.0]) == "▁▁"
    assert len(spark([float(n) for n in range(200)])) == 60


@pytest.mark.parametrize(
    ("levels", "options", "course"),
    [
        ((1.0, 1.002), (), "▁▁"),  # it was told as 8.00 – 8.05 ms, and drawn from bottom to top
        ((1.0,) * 6, (), "▁" * 6),
        ((1.0, 1.2), (), "▁█"),
        ((*[1.0] * 8, *[1.025] * 8), ("--threshold", "0.01"), "█"),  # whoever asks for less sees it
    ],
)
def test_a_course_of_nothing_but_noise_is_flat(tmp_path, history, levels, options, course):
    nights(tmp_path, *levels)
    code, out, _ = history("--all", *options)
    assert code == 0
    (drawn,) = re.findall("[▁▂▃▄▅▆▇█]+", out)
    assert drawn.endswith(course) if options else drawn == course


def test_another_machine_is_another_history(tmp_path, history):
    nights(tmp_path, *[1.0] * 8)
    for day in range(8, 14):
        launch = {
            "series_key": "s",
            "latency_p50_ms": 10.0,
            "started_at": f"2026-03-{day + 1:02d}T03:04:05.000000Z",
        }
        store(tmp_path / DB, launch, run=f"r{day:02d}", machine="elsewhere")
    there, here = history.json("--all"), history.json("--all", "--machine", "lab")
    assert [len(one["series"][0]["points"]) for one in (there, here)] == [6, 8]
    assert not any(one["series"][0]["steps"] for one in (there, here))
    assert here["other_machines"][0].startswith("elsewhere")


def test_a_line_is_of_one_statistic_and_names_it(tmp_path, history):
    """A run that has a mean alone is no point among medians: it would be a step that was none."""
    nights(tmp_path, *[1.0] * 6, latency_mean_ms=None)
    later = [
        {
            "series_key": "s",
            "latency_p50_ms": None,
            "latency_mean_ms": 12.0,
            "started_at": f"2026-04-0{day}T03:04:05.000000Z",
        }
        for day in range(1, 5)
    ]
    for day, row in enumerate(later):
        store(tmp_path / DB, row, run=f"later{day}")
    (one,) = json.loads(history("--json")[1])["series"]
    assert (one["figure"], one["point_count"], one["answer"]) == ("p50", 6, "no change shown")


def test_the_newest_level_stands_below_the_line_with_its_interval(tmp_path, history):
    nights(tmp_path, *[1.0] * 8, *[1.1] * 5, 1.6)
    (one,) = history.json()["series"]
    level = one["newest_level"]
    # The newest point stands alone, and what was before the step is another level.
    runs = [8.0 * 1.1 * WOBBLE[day % len(WOBBLE)] for day in range(8, 13)]
    assert (level["runs"], level["since"][:10]) == (5, "2026-03-09")
    assert level["value"] == pytest.approx(geometric_mean(runs))
    assert (level["low"], level["high"]) == pytest.approx(interval_of(runs))
    _, out, _ = history()
    lines = [line.strip() for line in out.splitlines()]
    course = next(at for at, line in enumerate(lines) if set(line) <= set("▁▂▃▄▅▆▇█") and line)
    assert lines[course + 1].startswith("Level: 8.8")
    assert lines[course + 1].endswith("%, of 5 runs since 2026-03-09")


@pytest.mark.parametrize("columns", ["80", "120", "48"])
def test_what_is_told_of_a_series_stays_below_it(tmp_path, history, monkeypatch, columns):
    """A sentence goes on where it began, and no course is wider than the terminal."""
    for day in range(1, 29):
        nights_of = {"series_key": "s", "started_at": f"2026-02-{day:02d}T00:00:00Z"}
        weights = {"weights_digest": f"{day // 2}"}
        about = {"git_commit": f"{day:02d}abcdef0123456789"}
        store(tmp_path / DB, {**nights_of, **weights}, run=f"r{day:02d}", about=about)
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = history("--all")
    assert max(map(len, out.splitlines())) <= int(columns)
    body = out.partition("\n\n")[2].partition("\nOf 1 series")[0].splitlines()
    course = next(at for at, line in enumerate(body) if "▁" in line)
    assert all(line.startswith("  ") for line in body[course:] if line), out


def test_the_last_run_chooses_the_series(tmp_path, history):
    nights(tmp_path, *[1.0] * 4, series_key="a", case_id="a")
    nights(tmp_path, *[1.0] * 5, series_key="b", case_id="b", model="vit-tiny")
    every = history.json("--all")["series"]
    (last,) = history.json("--all", "--run", "last")["series"]
    assert (len(every), last["series_key"]) == (2, "b")


def test_a_single_run_is_answered_with_the_command_that_measures_again(tmp_path, history):
    nights(tmp_path, 1.0)
    code, _, err = history()
    command = "accelbench run bert-tiny --hardware cpu --framework pytorch --batch-sizes 1"
    assert (code, f"`{command}`" in err) == (4, True)


def test_the_command_that_measures_again_asks_for_the_same(tmp_path, history):
    same = {"precision": "bf16", "runtime": "onnxruntime", "options": {"threads": 3}}
    nights(tmp_path, 1.0, **same, mode="training")
    code, _, err = history()
    command = (
        "accelbench run bert-tiny --hardware cpu --framework onnxruntime --precision bf16"
        " --mode training --batch-sizes 1 --threads 3"
    )
    assert (code, f"`{command}`" in err) == (4, True), err
