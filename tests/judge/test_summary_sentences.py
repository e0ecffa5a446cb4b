"""What results come to in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.evidence.launches import launches_of
from accelbench.judge.points import points
from accelbench.judge.run_noise import Histories
from accelbench.judge.summary import _failed_since, summary
from asked_rows import row


def told(*rows: dict[str, Any]) -> list[str]:
    return summary(rows, points(rows), Histories())


def cell(number: int, **changes: Any) -> dict[str, Any]:
    return row(**{"case_id": f"c{number}", "latency_p50_ms": 8.0, "sample_count": 30, **changes})


def test_the_smallest_batch_is_told_not_the_one_that_gains_most():
    said = told(
        cell(1, batch_size=1, latency_p50_ms=2.0),
        cell(2, batch_size=1, latency_p50_ms=1.0, hardware="cuda", device_name="A card"),
        cell(3, batch_size=8, latency_p50_ms=90.0),
        cell(4, batch_size=8, latency_p50_ms=1.0, hardware="cuda", device_name="A card"),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert line == (
        "bert-tiny, inference, batch 1: pytorch on cuda in fp32, 1.00 ms a step; pytorch on cpu in"
        " fp32 takes 2.00× as long (single figures: no interval)."
    )


def test_the_batch_that_most_devices_ran_is_ranked_not_the_smallest():
    """A CPU at batch 1 was the fastest of a model that cards ran at batch 256."""
    cards = {"hardware": "cuda", "batch_size": 256}
    said = told(
        cell(1, batch_size=1, latency_p50_ms=2.0, device_name="A CPU"),
        cell(2, latency_p50_ms=30.0, device_name="RTX 4090", **cards),
        cell(3, latency_p50_ms=60.0, device_name="RTX 3090", **cards),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert "batch 256" in line
    assert "A CPU" not in line
    assert line.index("RTX 4090") < line.index("RTX 3090")


def test_what_is_slower_for_sure_is_said_to_be_however_wide_the_interval():
    """It read “whether pytorch is slower cannot be told (95 % interval 3.33 to 23.79)”."""
    quick = [cell(1, launch=n, latency_p50_ms=1.0 + 0.4 * n, runtime="jax") for n in range(3)]
    slow = [cell(2, launch=n, latency_p50_ms=9.0 + 4.0 * n) for n in range(3)]
    (line,) = [one for one in told(*quick, *slow) if one.startswith("bert-tiny")]
    assert "pytorch on cpu in fp32 is slower, by how much cannot be told (95 % interval of" in line


def test_a_batch_that_nobody_says_is_none_and_what_is_unusual_is_said():
    """It read “batch 1: … in None” of MLPerf's offline rates of eight processes."""
    rate = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput_unit": "tokens/s"}
    theirs = {"batch_size": None, "precision": None, "scenario": "offline", "world_size": 8, **rate}
    (line,) = [one for one in told(cell(1, throughput=900.0, **theirs)) if "tokens/s" in one]
    assert line.startswith(
        "bert-tiny, inference, unknown batch, offline, 8 processes: pytorch on cpu, 900"
    )


def test_two_cards_of_a_platform_are_told_by_their_names():
    """It read “pytorch on cuda; pytorch on cuda takes 1.09× as long”."""
    card = {"hardware": "cuda", "latency_p50_ms": 8.0}
    said = told(
        cell(1, **card, device_name="RTX 4090"),
        cell(2, **{**card, "latency_p50_ms": 8.72}, device_name="RTX 3090"),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert "pytorch on RTX 4090 in fp32, 8.00 ms a step" in line
    assert "pytorch on RTX 3090 in fp32 takes 1.09× as long" in line


NARROW = {"precision": "int8", "runtime": "onnxruntime"}


def test_what_nobody_verified_heads_no_line_and_is_told_behind_what_is_exact():
    """It read “onnxruntime on cpu in int8, 1.00 ms a step; pytorch … takes 4.00× as long”."""
    said = told(
        cell(1, latency_p50_ms=4.0),
        cell(2, latency_p50_ms=2.0, **NARROW, verification="ok", verification_error=0.6),
        cell(3, latency_p50_ms=1.0, precision="int8"),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert line == (
        "bert-tiny, inference, batch 1: pytorch on cpu in fp32, 4.00 ms a step; faster, and not"
        " known to be exact: pytorch on cpu in int8, 1.00 ms a step (outputs not verified)."
    )


def test_where_nothing_is_exact_the_line_says_so():
    said = told(
        cell(1, latency_p50_ms=2.0, precision="int8"),
        cell(2, latency_p50_ms=1.0, **NARROW, verification="ok", verification_error=0.6),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert line == (
        "bert-tiny, inference, batch 1: onnxruntime on cpu in int8, 1.00 ms a step (error 0.6);"
        " pytorch on cpu in int8 (outputs not verified) takes 2.00× as long (single figures: no"
        " interval)."
    )


def test_a_narrow_precision_may_be_the_fastest_and_every_model_is_named():
    said = told(
        cell(1, latency_p50_ms=2.0),
        cell(2, latency_p50_ms=1.0, **NARROW, verification="ok", verification_error=0.01),
        cell(3, model="gpt2-tiny", family="text_generation", latency_p50_ms=5.0),
    )
    assert [one for one in said if one.startswith(("bert", "gpt2"))] == [
        (
            "bert-tiny, inference, batch 1: onnxruntime on cpu in int8, 1.00 ms a step; pytorch on"
            " cpu in fp32 takes 2.00× as long (single figures: no interval)."
        ),
        (
            "gpt2-tiny, inference, batch 1: pytorch on cpu in fp32, 5.00 ms a step; nothing"
            " usable beside it to compare with."
        ),
    ]


def test_what_nobody_measured_is_never_the_fastest():
    said = told(
        cell(1, latency_p50_ms=2.0),
        cell(2, latency_p50_ms=0.1, provenance="simulated", hardware="cuda"),
        cell(3, latency_p50_ms=0.1, emulated=True, hardware="webgpu"),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert line.endswith("2.00 ms a step; nothing usable beside it to compare with.")


def test_how_far_launches_differ_is_of_these_launches():
    alone = cell(1)
    assert any("of a single launch: how far another" in one for one in told(alone))
    several = [cell(2, latency_p50_ms=ms, launch=n, batch_size=4) for n, ms in enumerate((1, 2, 4))]
    (line,) = [one for one in told(alone, *several) if "of a single launch" in one]
    assert "launches of the others differ by 69.3% in the middle" in line  # the logarithm of 2


def test_what_is_unusable_is_never_the_fastest_and_is_counted():
    wild = cell(2, latency_p50_ms=1.0, runtime="jax", quality="unusable")
    said = told(cell(1, quality="converged"), wild)
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert (
        "pytorch on cpu in fp32, 8.00 ms a step; nothing usable beside it to compare with" in line
    )
    assert (
        "1 of 2 launches unusable: interval wider than ±25 %."
        " Nothing is judged or chosen by them." in said
    )


def test_what_is_left_of_a_run_that_mostly_failed_is_told_as_that():
    lost = {"status": "failed", "reason": "crash", "latency_p50_ms": None}
    rows = [row(case_id="c", launch=n, **(lost if n else {})) for n in range(3)]
    said = " ".join(told(*launches_of(rows)))
    assert "1 launch unusable: of their configurations more than half" in said
    assert "did not become as steady" not in said


@pytest.mark.parametrize(("moment", "since"), [("00:00:01", 0), ("00:00:02", 1)])
def test_only_a_run_that_failed_later_is_told_beside_the_figures(moment, since):
    good = cell(1, started_at="2026-01-01 00:00:01")
    lost = cell(1, started_at=f"2026-01-01 {moment}", run_id="r9", latency_p50_ms=None)
    lost |= {"status": "failed", "reason": "crash"}
    assert len(_failed_since(launches_of([good, lost]), points([good]))) == since


def test_as_many_samples_as_were_asked_for_are_no_unsteady_launches():
    rows = [row(case_id="c", launch=n, quality=q) for n, q in enumerate(("fixed", "unsteady"))]
    said = " ".join(told(*rows))
    assert "1 of 2 launches did not become as steady as asked" in said
    assert "1 of 2 launches of as many samples as were asked for" in said


def test_a_model_that_was_trained_too_is_counted_once():
    cells = [
        cell(2 * n + i, model=f"m{n:02}", mode=mode)
        for n in range(20)
        for i, mode in enumerate(("inference", "training"))
    ]
    assert "14 more models in the tables." in told(*cells)


def test_a_thing_is_not_beside_itself_where_only_a_version_differs():
    """It read “pytorch on cpu in fp32, 12.9 ms a step; pytorch on cpu in fp32 takes 1.06×”."""
    said = told(
        cell(1, latency_p50_ms=2.0, compiled=True, image_size=160),
        cell(2, latency_p50_ms=3.0, compiled=False, image_size=160),
    )
    (line,) = [one for one in said if one.startswith("bert-tiny")]
    assert line.startswith("bert-tiny, inference, batch 1, 160 px: pytorch on cpu in fp32, 2.00 ms")
    assert line.endswith("; nothing usable beside it to compare with.")


def test_each_scenario_has_a_line_and_is_of_one_number_of_devices():
    """It read “offline: 8x B200, 102,909 Tokens/s” above a table with 169,197 of 48x."""
    rate = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput_unit": "tokens/s"}
    submitted = [
        cell(
            n,
            scenario=scenario,
            device_name=f"{devices}x {card}",
            # By one source the column says it, by another only the name.
            world_size=devices if devices > 8 else 1,
            hardware="cuda",
            throughput=rank * devices * 100.0,
            batch_size=None,
            **rate,
        )
        for n, (scenario, devices, card, rank) in enumerate(
            (scenario, *one)
            for scenario in ("offline", "server")
            for one in ((8, "B200", 3.0), (8, "H200", 1.0), (48, "B200", 2.0))
        )
    ]
    said = told(*submitted)
    assert [one for one in said if one.startswith("bert-tiny")] == [
        f"bert-tiny, inference, unknown batch, {scenario}, 8 devices: pytorch on 8x B200 in fp32,"
        " 2,400 tokens/s; pytorch on 8x H200 in fp32 takes 3.00× as long (single figures: no"
        " interval)."
        for scenario in ("offline", "server")
    ]
    (heading,) = [one for one in said if one.startswith("Fastest")]
    assert "of as many devices as most results there (others: in the tables)" in heading
    assert "of as many devices" not in " ".join(told(*submitted[:2])[1:2])


def test_a_ratio_has_no_interval_because_of_the_side_that_is_a_single_figure():
    """It read “single figures” of a side of four launches with an interval."""
    several = [cell(1, launch=n, latency_p50_ms=8.0 + n / 10) for n in range(4)]
    quick = cell(2, latency_p50_ms=1.0, hardware="cuda", device_name="A card")
    (line,) = [one for one in told(*several, quick) if one.startswith("bert-tiny")]
    assert line.endswith("as long (no interval: one of the two is a single figure).")


def test_outputs_are_said_to_be_held_against_what_they_were():
    """A file was said to be compared with PyTorch, which had no part in it."""
    verified = {"verification": "ok"}
    file = cell(1, model="mlp.onnx", weights="file", runtime="onnxruntime", **verified)
    call = cell(2, model="ops.py:add", weights="code", runtime="python", **verified)
    module = cell(3, model="model.py:make", weights="code", runtime="jax", **verified)

    def outputs(*rows: dict[str, Any]) -> str:
        return next(line for line in told(*rows) if line.startswith("Outputs: "))

    assert outputs(file) == (
        "Outputs: 1 compared with each file as it is on the CPU, nothing of it rewritten, and"
        " within their tolerance."
    )
    assert "PyTorch" not in outputs(file, call)
    assert "each callable's own reference" in outputs(call)
    assert "PyTorch in fp32 on the CPU" in outputs(module)
