"""Engines, precisions and batches in one table."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.judge.pivot import Pivot, pivots
from accelbench.judge.run_noise import Histories
from accelbench.present.document import Notes
from accelbench.present.terminal.pivot import document, pivoted
from asked_rows import row

OPENVINO = {"runtime": "openvino", "hardware": "openvino", "compiled": True}

#: A document's facts, if nothing has to be added.
NO_MORE: dict[str, Any] = {"machine": "here", "other_machines": (), "not_shown": ()}


def launches(ms: float, **changes: Any) -> list[dict[str, Any]]:
    return [
        row(launch=n, latency_p50_ms=ms * (1 + 0.001 * n), throughput=None, **changes)
        for n in range(3)
    ]


def table(rows: list[dict[str, Any]], sort: str = "speed") -> Pivot:
    (found,) = pivots(rows, Histories(), sort)
    return found


def test_a_platform_of_its_own_that_runs_on_the_processor_is_one_of_its_engines():
    found = table([*launches(8.0), *launches(4.0, **OPENVINO), *launches(12.0, batch_size=2)])
    assert found.batches == [1, 2]
    assert [line.row["runtime"] for line in found.lines] == ["openvino", "pytorch"]
    first, second = found.lines
    assert (first.best, second.best, sorted(first.cells)) == ({1}, set(), [1])
    other = row(hardware="cuda", device_name="A card", latency_p50_ms=1.0)
    assert len(pivots([*launches(8.0), *launches(4.0, **OPENVINO), other], Histories())) == 1


def test_what_cannot_be_told_from_the_best_is_marked():
    noisy = [
        row(launch=n, latency_p50_ms=ms, runtime="jax") for n, ms in enumerate((4.2, 3.9, 4.4))
    ]
    found = table([*launches(4.0), *noisy, *launches(8.0, runtime="onnxruntime")])
    marks = {line.row["runtime"]: (line.best, line.near) for line in found.lines}
    assert marks == {"pytorch": ({1}, set()), "jax": (set(), {1}), "onnxruntime": (set(), set())}


def test_what_is_unusable_is_best_of_nothing():
    found = table(
        [
            *launches(8.0),
            *launches(7.0, runtime="jax"),
            *launches(1.0, quality="unusable", runtime="x"),
        ]
    )
    assert [line.row["runtime"] for line in found.lines if line.best] == ["jax"]


@pytest.mark.parametrize(
    ("sort", "first"), [("speed", "int8"), ("engine", "fp32"), ("error", "fp32")]
)
def test_lines_are_put_in_order(sort, first):
    narrow = launches(
        4.0, precision="int8", runtime="xint8", verification="ok", verification_error=0.02
    )
    whole = launches(8.0, verification="reference", verification_error=0.0)
    found = table([*narrow, *whole], sort)
    assert found.lines[0].row["precision"] == first
    assert {line.row["precision"]: line.error for line in found.lines}["int8"] == 0.02


def test_a_table_as_json_says_what_is_marked():
    (told,) = document([table([*launches(8.0), *launches(4.0, **OPENVINO)])])
    assert (told["model"], told["batches"]) == ("bert-tiny", [1])
    (cell,) = told["lines"][0]["cells"]
    assert (cell["best"], cell["figure"], cell["launches"]) == (True, "p50", 3)
    assert "run_id" not in told


def test_one_cell_is_no_table():
    assert pivots(launches(8.0), Histories()) == []


def test_the_best_is_so_by_the_figure_that_is_shown():
    """Three launches with a mean of 10 ms and two with a median of 4 were best beside 8 ms."""
    means = [row(launch=n, latency_p50_ms=10.0, latency_mean_ms=10.0) for n in range(3)]
    medians = [row(launch=n, latency_p50_ms=4.0, latency_mean_ms=None) for n in (3, 4)]
    other = [
        row(launch=n, runtime="onnxruntime", latency_p50_ms=8.0, latency_mean_ms=8.0)
        for n in range(5)
    ]
    found = table([*means, *medians, *other])
    mixed = next(line for line in found.lines if line.row["runtime"] == "pytorch")
    assert mixed.cells[1].throughput is None


def test_a_rate_and_the_time_of_a_batch_that_nobody_knows_have_no_best():
    rate = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": 800.0}
    mean = {"latency_p50_ms": None, "latency_mean_ms": 10.0, "runtime": "onnxruntime"}
    found = pivots([row(**rate, batch_size=None), row(**mean, batch_size=None)], Histories())
    assert [line.best for one in found for line in one.lines] == [set(), set()]


def test_a_line_is_of_one_software_where_that_can_be_and_says_where_not():
    """A line read torch 2.4 at batch 1 and 2.9 at batch 2, unmarked."""
    theirs = {"provenance": "imported", "weights_digest": None}
    old = {**theirs, "conditions": {"torch": "2.4"}}
    new = {**theirs, "conditions": {"torch": "2.9"}}
    both = [*launches(8.0, **old), *launches(9.0, batch_size=2, **old)]
    faster = launches(7.0, batch_size=2, **new)
    (line,) = table([*both, *faster]).lines
    assert (line.cells[2].row["conditions"], line.differs) == ({"torch": "2.4"}, {})
    found = table([*both[:3], *faster])
    assert found.lines[0].differs == {2: ["torch 2.4 → 2.9"]}
    (told,) = document([found])[0]["lines"]
    assert [one["differs"] for one in told["cells"]] == [[], ["torch 2.4 → 2.9"]]
    notes = pivoted([found], NO_MORE).blocks[-1]
    assert isinstance(notes, Notes)
    assert "≠ ran otherwise than its line's smallest batch: torch 2.4 → 2.9." in notes.sentences


def test_wrong_outputs_are_best_of_nothing():
    wrong = launches(1.0, precision="int8", verification="failed")
    found = table([*launches(8.0), *launches(7.0, runtime="jax"), *wrong])
    assert {line.row["precision"] for line in found.lines} == {"fp32"}


def test_what_is_slower_for_sure_may_not_be_as_fast_however_wide_its_interval():
    """902 items a second were “cannot be told from” 6,466."""
    slow = [row(launch=n, latency_p50_ms=9.0 + 4.0 * n, runtime="jax") for n in range(3)]
    quick = [row(launch=n, latency_p50_ms=1.0 + 0.3 * n) for n in range(3)]
    marks = {line.row["runtime"]: (line.best, line.near) for line in table([*quick, *slow]).lines}
    assert marks == {"pytorch": ({1}, set()), "jax": (set(), set())}


def test_a_token_of_one_engine_is_not_held_against_an_image_of_another():
    tokens = row(
        runtime="onnxruntime",
        latency_mean_ms=9.0,
        latency_p50_ms=9.0,
        throughput=5000.0,
        throughput_unit="tokens/s",
    )
    images = row(latency_p50_ms=10.1, throughput=99.0, throughput_unit="images/s")
    found = table([images, tokens])
    times = {line.row["runtime"]: line.item_ms[1] for line in found.lines}
    assert times == {"pytorch": pytest.approx(10.1), "onnxruntime": pytest.approx(9.0)}
