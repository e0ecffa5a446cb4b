"""Like with like: ways that ran alike are compared with each other, faster ones are said."""

from __future__ import annotations

from typing import Any

import pytest

from accelbench.evidence.launches import launches_of
from accelbench.judge.comparison import Compared, compared
from accelbench.judge.questions import AXES
from accelbench.judge.ratios import is_faster, quickest
from accelbench.judge.run_noise import histories
from accelbench.judge.sides import matched, ways_of
from asked_rows import row

THEIRS = {"provenance": "imported", "weights_digest": None, "run_id": "import-1"}
OLD = {"torch": "2.4", "cuda": "12.4"}
NEW = {"torch": "2.9", "cuda": "12.8"}


def card(name: str, ms: float, conditions: dict[str, str], **changes: Any) -> dict[str, Any]:
    return row(
        hardware="cuda",
        device_name=name,
        latency_p50_ms=ms,
        conditions=conditions,
        **{**THEIRS, **changes},
    )


def only(rows: list[dict[str, Any]], by: str = "hardware", **more: Any) -> list[Compared]:
    (lines,) = compared(rows, AXES[by], **more, known=histories(rows))
    return lines


def test_what_is_matched_with_what():
    # Eager is held against eager of the same version.
    rows = [
        card("3090", 12.0, OLD),
        card("4090", 8.0, OLD),
        card("4090", 7.0, NEW),
        card("4090", 4.0, NEW, compiled=True),
    ]
    base, other = only(rows)
    assert (base.side.value[1], other.speedup, other.differs) == ("3090", 1.5, ())
    assert other.side.faster == ("compiled True, cuda 12.8, torch 2.9", "cuda 12.8, torch 2.9")
    # A baseline is chosen by what the others ran.
    rows = [card("3090", 12.0, OLD), card("3090", 9.0, NEW), card("4090", 6.0, OLD)]
    base, other = only(rows)
    assert (base.side.time_ms, other.speedup) == (12.0, 2.0)
    # A pair that cannot be matched says what is not alike.
    rows = [card("3090", 12.0, OLD), card("4090", 4.0, NEW, compiled=True)]
    _, other = only(rows)
    assert other.differs == ("compiled False → True", "cuda 12.4 → 12.8", "torch 2.4 → 2.9")


def test_which_pairs_come_first():
    # Pairs of one run come before pairs of different runs.
    gpu = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0}
    first = {"run_id": "r1", "started_at": "2026-01-01 00:00:00"}
    second = {"run_id": "r2", "started_at": "2026-01-02 00:00:00"}
    third = {"run_id": "r3", "started_at": "2026-01-03 00:00:00", "latency_p50_ms": 7.0}
    rows = [row(**first), row(**first, **gpu), row(**second), row(**second, **gpu), row(**third)]
    base, other = only(rows)
    assert (base.side.row["run_id"], other.side.row["run_id"]) == ("r2", "r2")
    assert (base.side.older, base.side.newer) == (2, 1)
    # A run that says less is no pair.
    gpu = {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": 2.0}
    five = [row(run_id="r1", launch=n, started_at=f"2026-01-01 00:00:0{n}") for n in range(5)]
    later = {"run_id": "r2", "started_at": "2026-01-02 00:00:00"}
    base, other = only([*five, row(**later), row(**later, **gpu)])
    assert (len(base.side.rows), other.side.row["run_id"]) == (5, "r2")
    # Ours of older software stands only to be matched.
    old = {"conditions": {"packages": {"torch": "2.12"}}, "latency_p50_ms": 4.0}
    later = {"run_id": "r2", "started_at": "2026-02-01 00:00:00"}
    new = {"conditions": {"packages": {"torch": "2.13"}}, **later}
    gpu = {"hardware": "cuda", "device_name": "A card"}
    base, _ = only([row(**old), row(**new), row(**{**old, **gpu}), row(**new, **gpu)])
    assert base.side.row["run_id"] == "r2"
    assert base.side.faster == ()
    base, _ = only([row(**old), row(**new), row(**{**old, **gpu})])
    assert base.side.row["run_id"] == "r1"

    # What a submission says of itself is no reason to doubt that two ran alike.
    def submitted(name: str, ms: float, by: str) -> dict[str, Any]:
        return card(name, ms, {**OLD, "Submitter": by, "Notes": f"of {by}", "System": f"S{by}"})

    rows = [submitted("A", 8.0, "x"), submitted("B", 4.0, "y"), submitted("B", 3.0, "z")]
    base, other = only(rows)
    assert (base.side.times, other.side.times) == ((8.0,), (3.0,))
    assert other.side.faster == ()
    rows.append(submitted("A", 6.0, "z"))
    base, _ = only(rows)
    assert base.side.times == (6.0,)
    # A pair of one run comes before better settled samples of another.
    gpu = {"hardware": "cuda", "device_name": "A card"}
    together = [row(run_id="r1", **w, quality="fixed") for w in ({}, gpu)]
    later = row(run_id="r2", started_at="2026-02-02 00:00:00", quality="converged")
    found = {one.side.value[0]: one.side.row["run_id"] for one in only([*together, later])}
    assert found == {"cpu": "r1", "cuda": "r1"}


def test_the_fastest_engine_of_a_device():
    # A rate and a median say other things of one engine: only what both say is held together.
    slow_by_rate = row(latency_p50_ms=4.0, latency_mean_ms=None, throughput=None, **new_of("2.9"))
    by_both = row(latency_p50_ms=3.0, latency_mean_ms=5.0, **new_of("2.4"))
    (ways,) = ways_of([launches_of([slow_by_rate, by_both])], AXES["hardware"])
    here, there = ("cpu",), ("cuda",)
    (other,) = ways_of([launches_of([row(**new_of("2.0"))])], AXES["hardware"])
    first = matched({here: ways, there: other}, there, AXES["hardware"])[here]
    assert first.rows[0]["latency_p50_ms"] == 3.0
    sides = [[slow_by_rate], [by_both]]
    assert quickest(sides) == 1 == 1 - quickest(sides[::-1])
    assert (is_faster(*sides[::-1]), is_faster(*sides)) == (True, False)
    # By ONNX a phone with an NPU was half as fast as a CPU, and by its own engine 66 times.
    rows = [
        device("cpu", "A board", "onnx", 24.0),
        device("qnn", "A phone", "onnx", 42.0),
        device("qnn", "A phone", "qnn_dlc", 0.36),
    ]
    _, phone = only(rows)
    assert (phone.side.row["runtime"], phone.speedup) == ("qnn_dlc", pytest.approx(24.0 / 0.36))
    assert phone.differs == ("engine onnx → qnn_dlc",)
    assert (phone.side.others, phone.side.faster) == (("onnx",), ())
    # What does not count is no fastest engine.
    slow = device("qnn", "A phone", "onnx", 42.0)
    useless = device("qnn", "A phone", "qnn_dlc", 0.36, quality="unusable")
    _, phone = only([device("cpu", "A board", "onnx", 24.0), slow, useless])
    assert phone.side.row["runtime"] == "onnx"


def new_of(version: str) -> dict[str, Any]:
    return {**THEIRS, "conditions": {"torch": version}}


def device(hardware: str, name: str, engine: str, ms: float, **changes: Any) -> dict[str, Any]:
    ran = {"hardware": hardware, "runtime": engine, **changes}
    return {**card(name, ms, {"engine": engine}), **ran}


def test_numbers_of_threads():
    # Threads are matched where all places have a number in common.
    rows = [
        *(device("cpu", "A", "ncnn", ms, threads=n) for n, ms in ((1, 129.0), (8, 30.0))),
        *(device("cpu", "B", "ncnn", ms, threads=n) for n, ms in ((1, 99.0), (8, 20.0), (16, 9.0))),
    ]
    base, other = only(rows)
    assert (base.side.row["threads"], other.side.row["threads"]) == (8, 8)
    assert (other.differs, other.side.faster) == ((), ("threads 16",))
    # A baseline of one thread stood against sixteen, of which it had been measured too.
    rows = [
        *(device("cpu", "A", "ncnn", ms, threads=n) for n, ms in ((1, 129.0), (16, 22.8))),
        *(device("cpu", "B", "ncnn", ms, threads=n) for n, ms in ((1, 21.1), (16, 6.1))),
        device("cpu", "C", "ncnn", 10.2, threads=16),
        device("cpu", "D", "ncnn", 700.0, threads=4),
    ]
    base, *others = only(rows)
    assert [one.side.row["threads"] for one in (base, *others)] == [16, 16, 16, 4]
    assert [one.differs for one in others] == [(), (), ("threads 16 → 4",)]
