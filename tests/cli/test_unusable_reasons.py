"""Each command names the reason for which launches are unusable."""

import json

import pytest
from stored_rows import store

from accelbench.cli.commands import compare, matrix
from accelbench.core.errors import EXIT_INCONCLUSIVE
from accelbench.core.unusable_reasons import (
    REASON_COLUMNS,
    REASON_TEXTS,
    UnusableReason,
    reasons_unusable,
)
from accelbench.evidence.launches import launches_of
from accelbench.judge import baselines

DB = "accelbench.duckdb"
CAUSES = [
    ({}, REASON_TEXTS[UnusableReason.TOO_NOISY]),
    ({"cpu_wait_share": 0.7}, REASON_TEXTS[UnusableReason.WAITED]),
    ({"unexplained_share": 0.7}, REASON_TEXTS[UnusableReason.UNACCOUNTED]),
]
each_cause = pytest.mark.parametrize(("cause", "reason"), CAUSES)


@each_cause
def test_check_names_the_reason(tmp_path, command, cause, reason):
    before = [{"launch": n, "series_key": "s"} for n in range(3)]
    store(tmp_path / DB, *before, run="r1", about={"label": "main"})
    store(tmp_path / DB, *({**row, "quality": "unusable", **cause} for row in before), run="r2")
    code, out, _ = command("check")("--baseline", "main", "--json")
    assert code == 4
    assert json.loads(out)["questions"][0]["why"].endswith(reason)


@each_cause
def test_compare_names_the_reason(tmp_path, command, cause, reason):
    gpu = {"hardware": "cuda", "device_name": "A GPU", "latency_mean_ms": 2.0}
    store(tmp_path / DB, {}, {**gpu, "quality": "unusable", **cause})
    code, out, _ = command("compare")("--json")
    assert code == EXIT_INCONCLUSIVE
    found = json.loads(out)
    assert [line["refused"] for line in found["comparisons"] if line["refused"]] == [
        f"unusable: {reason}"
    ]


@each_cause
def test_launches_that_are_left_out_have_their_reason(tmp_path, command, cause, reason):
    gpus = [{"hardware": "cuda", "device_name": "A GPU", "launch": n} for n in range(3)]
    gpus[0] |= {"quality": "unusable", **cause}
    store(tmp_path / DB, {}, *gpus)
    _, out, _ = command("compare")()
    assert reason in " ".join(out.split())


@pytest.mark.parametrize("columns", [compare._COLUMNS, matrix._COLUMNS, baselines.COLUMNS])
def test_every_reader_reads_what_names_the_reason_and_nothing_twice(columns):
    assert set(REASON_COLUMNS) <= set(columns)
    assert len(set(columns)) == len(columns)


def test_several_launches_have_each_reason_once():
    rows = launches_of({"status": "ok", "quality": "unusable", **cause} for cause, _ in 2 * CAUSES)
    assert reasons_unusable(rows).split(", or ") == [reason for _, reason in CAUSES]
    steady = {"status": "ok", "quality": "fixed", "cpu_wait_share": 0.7}
    assert reasons_unusable(launches_of([steady])) == ""


@each_cause
def test_check_states_once_and_first_that_times_are_unusable(tmp_path, command, cause, reason):
    bad = {"quality": "unusable", "memory_peak_mb": 100.0, **cause}
    rows = [
        {"launch": n, "batch_size": batch, "series_key": f"of batch {batch}"}
        for batch in (1, 8)
        for n in range(5)
    ]
    store(tmp_path / DB, *({**row, "memory_peak_mb": 50.0} for row in rows), run="before")
    store(tmp_path / DB, *({**row, **bad} for row in rows), run="now")
    _, out, _ = command("check")("--run", "now", "--baseline", "before")
    text = " ".join(out.split())
    assert text.count(reason) == 1
    assert text.index(reason) < text.index("memory, MB")
