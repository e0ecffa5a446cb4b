"""Times as fast: of what was asked alike, from launches, and refused where it is not alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accelbench.core.result_statistics import Statistic
from accelbench.core.rows import Row
from accelbench.judge.comparison import REFUSED, Compared, answers_to, axes_with_answers, compared
from accelbench.judge.conditions import differences
from accelbench.judge.questions import AXES
from accelbench.judge.run_noise import Histories, histories
from accelbench.measure.run_to_run_noise import unpaired_interval
from asked_rows import row

GPU = {"hardware": "cuda", "device_name": "A card", "compiled": True}


def only(rows: list[dict[str, Any]], by: str = "hardware", **more: Any) -> list[Compared]:
    (lines,) = compared(rows, AXES[by], **more, known=histories(rows))
    return lines


def test_what_others_are_held_against():
    # The cpu is what others are held against.
    cpu, gpu = only([row(**GPU, latency_p50_ms=2.0, memory_peak_mb=50.0), row()])
    assert (cpu.side.row["hardware"], cpu.speedup) == ("cpu", 1.0)
    assert (gpu.speedup, gpu.memory_ratio) == (4.0, 0.5)
    assert gpu.baseline is cpu.side
    # Where there is no cpu the first is.
    lines = only([row(**GPU), row(**{**GPU, "device_name": "B card"}, latency_p50_ms=4.0)])
    assert [line.side.value[1] for line in lines] == ["A card", "B card"]
    assert lines[1].speedup == 2.0
    for line in only([row(), row(**GPU)], baseline=("tpu",)):
        assert (line.speedup, line.refused) == (None, "its baseline was not measured")
    # Of several words for a baseline the first that means one counts.
    runs = [row(run_id=run, started_at=f"2026-01-0{n}") for n, run in enumerate("abc", 1)]
    lines = only(runs, by="run", baseline=("z", "c", "a"))
    assert {line.baseline.value for line in lines if line.baseline} == {("c",)}


@pytest.mark.parametrize("word", ["cuda", "CARD", "a card"])
def test_a_baseline_is_named_by_platform_or_device(word):
    cpu, gpu = only([row(), row(**GPU, latency_p50_ms=2.0)], baseline=(word,))
    assert (cpu.speedup, gpu.speedup) == (0.25, 1.0)
    assert not answers_to(("cpu", "A processor"), word)


def test_axes_and_who_stands_on_them():
    # Every axis with an answer is known.
    rows = [row(), row(batch_size=8), row(run_id="r2", started_at="2026-01-02 00:00:00")]
    assert axes_with_answers(rows) == ["batch", "run", "date"]
    assert axes_with_answers([row(), row(model="vit-tiny", threads=4)]) == []
    assert axes_with_answers([row(), row(model="vit-tiny")]) == ["model"]
    assert axes_with_answers([row(), row(batch_size=8, latency_p50_ms=None, status="failed")]) == []
    # What nobody knows the place of is not on the axis.
    assert compared([row(), row(precision=None)], AXES["precision"], known=Histories()) == []
    assert compared([row(), row(started_at=None)], AXES["date"], known=Histories()) == []
    assert axes_with_answers([row(), row(threads=None)]) == []
    # The fastest runtime stands for a platform and the others are named.
    rows = [row(), row(runtime="jax", latency_p50_ms=4.0), row(**GPU, latency_p50_ms=2.0)]
    cpu, gpu = only(rows)
    assert (cpu.side.row["runtime"], cpu.side.others) == ("jax", ("pytorch",))
    assert gpu.speedup == 2.0


def test_which_launches_are_compared():
    # Only what was asked alike is compared.
    assert compared([row(), row(**GPU, batch_size=2)], AXES["hardware"], known=Histories()) == []
    assert (
        compared(
            [row(), row(**GPU, options={"layout": "nhwc"})], AXES["hardware"], known=Histories()
        )
        == []
    )
    assert compared([row(), row(**GPU, status="failed")], AXES["hardware"], known=Histories()) == []
    two = compared(
        [row(batch_size=b, **w) for b in (1, 2) for w in ({}, GPU)],
        AXES["hardware"],
        known=Histories(),
    )
    assert len(two) == 2
    # The newest run speaks and its launches give the interval.
    old = row(run_id="r0", started_at="2025-01-01", latency_p50_ms=80.0)
    cpu = [row(launch=n, latency_p50_ms=ms) for n, ms in enumerate((8.0, 8.1, 7.9))]
    gpu = [row(**GPU, launch=n, latency_p50_ms=ms) for n, ms in enumerate((2.0, 2.02, 1.98))]
    _, line = only([old, *cpu, *gpu])
    assert line.speedup == pytest.approx(4.0, rel=1e-4)
    assert line.ratio is not None
    assert 3.8 < (line.ratio.low or 0.0) < 4.0 < (line.ratio.high or 0.0) < 4.2
    # Two versions of an engine in one import are not launches of one thing.
    common = {"provenance": "imported", "weights_digest": None}
    slow = row(**GPU, **common, conditions={"torch": "1.13"}, latency_p50_ms=8.0)
    fast = row(**GPU, **common, conditions={"torch": "2.9"}, latency_p50_ms=2.0)
    base = row(**common, conditions={"torch": "2.9"})
    _, line = only([base, slow, fast])
    assert line.side.times == (2.0,)
    assert line.differs == ("compiled False → True",)
    # What differs is listed.
    newer = {"versions": {"torch": "2.14"}, "job_id": "j"}
    _, line = only([row(), row(**GPU, conditions=newer)])
    assert line.differs == ("compiled False → True", "versions.torch 2.13 → 2.14")
    # Every line of OpenVINO had ≠, so that it said nothing where something else differed.
    always = {"runtime": "openvino", "compiled": True}
    _, line = only([row(), row(**always)], "engine")
    assert line.differs == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"weights_digest": "other"}, "weights"),
        ({"workarounds": ["static_batch"]}, "workarounds"),
        ({"emulated": True}, "emulated"),
        ({"provenance": "imported"}, "source"),
    ],
)
def test_figures_of_different_things_are_refused_unless_allowed(changes, why):
    rows = [row(), row(**GPU, latency_p50_ms=4.0) | changes]
    _, line = only(rows)
    assert (line.speedup, line.refused) == (None, f"not alike: {why}")
    _, line = only(rows, allow=[why])
    assert (line.speedup, line.refused) == (2.0, "")
    assert why in REFUSED


def test_figures_that_stand_in():
    # A mean or a throughput stands in.
    rate = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": 500.0}
    _, line = only([row(latency_p50_ms=None), row(**GPU) | rate])
    assert line.speedup == pytest.approx(9.0 / 2.0)
    assert line.differs[0] == "figure mean → throughput"
    # Another figure and another unit are said.
    rate = {"latency_p50_ms": None, "latency_mean_ms": None, "throughput": 500.0}
    images = row(throughput=100.0, throughput_unit="images/s")
    _, line = only([images, row(**GPU) | rate | {"throughput_unit": "tokens/s"}])
    assert line.differs[:2] == ("figure p50 → throughput", "unit images/s → tokens/s")
    assert (line.speedup, line.refused) == (None, "they have no figure in common")
    for there in ("images/s", None):
        _, line = only([images, row(**GPU, throughput=100.0, throughput_unit=there)])
        assert not any(word.startswith("unit") for word in line.differs)
    # A tail is held against the same tail alone.
    tail = {"latency_p50_ms": None, "latency_mean_ms": None, "latency_p90_ms": 9.0}
    assert compared([row(), row(**GPU) | tail], AXES["hardware"], known=Histories()) == []
    _, line = only([row() | tail, row(**GPU) | tail | {"latency_p90_ms": 3.0}])
    assert (line.speedup, line.side.statistic, line.side.throughput) == (3.0, Statistic.P90, None)


def test_axes_of_batches_modes_and_the_rest():
    # Batches are held against the smallest by items.
    ms = {1: 1.0, 2: 1.0, 4: 1.25, 8: 2.4}
    lines = only([row(batch_size=b, latency_p50_ms=t) for b, t in ms.items()], by="batch")
    assert [line.side.value[0] for line in lines] == [1, 2, 4, 8]
    assert [line.speedup for line in lines] == pytest.approx([1.0, 2.0, 3.2, 8 / 2.4])
    assert [line.efficiency for line in lines] == pytest.approx([1.0, 1.0, 0.8, 1 / 2.4])
    assert [line.knee for line in lines] == [False, False, True, False]
    # Training is held against inference whatever it reads.
    training = {"mode": "training", "optimizer": "adamw", "sequence_length": 64}
    inference, line = only([row(), row(**training, latency_p50_ms=24.0)], by="mode")
    assert inference.speedup == 1.0
    assert line.speedup == pytest.approx(1 / 3)
    # Precisions runtimes and models are axes.
    assert only([row(), row(precision="int8", latency_p50_ms=4.0)], by="precision")[1].speedup == 2
    assert only([row(), row(runtime="jax", latency_p50_ms=4.0)], by="runtime")[1].speedup == 2
    other = {"model": "vit-tiny", "sequence_length": None, "image_size": 32, "weights_digest": "v"}
    assert only([row(), row(**other, latency_p50_ms=4.0)], by="model")[1].speedup == 2


@pytest.mark.parametrize("by", ["run", "date"])
def test_runs_and_days_are_held_against_the_first(by):
    later = {"run_id": "r2", "started_at": "2026-02-01 00:00:00"}
    first, second = only([row(**later, latency_p50_ms=4.0), row()], by=by)
    assert (first.speedup, second.speedup) == (1.0, 2.0)


#: Of ten and more it counts how alike neighbours are.
times = st.lists(st.floats(0.1, 100.0), min_size=2, max_size=9)


@given(a=times, b=times)
def test_an_interval_of_launches_is_welchs(a, b):
    found = unpaired_interval(a, b)
    assert found is not None
    logs = np.log(a), np.log(b)
    if max(np.ptp(logs[0]), np.ptp(logs[1])) < 1e-9:
        assert found.low == pytest.approx(found.high)
        return
    expected = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert math.log(found.low) == pytest.approx(interval.low, abs=1e-6)
    assert math.log(found.high) == pytest.approx(interval.high, abs=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-6)


def test_which_figures_are_held_against_nothing():
    assert unpaired_interval([1.0], [1.0, 2.0]) is None
    # An unusable figure is held against nothing.
    wild = {**GPU, "latency_p50_ms": 2.0, "quality": "unusable"}
    _, gpu = only([row(), row(**wild)])
    assert (gpu.speedup, gpu.refused) == (None, "unusable: interval wider than ±25 %")
    _, gpu = only([row(quality="unusable"), row(**GPU)])
    assert gpu.refused == "its baseline is unusable: interval wider than ±25 %"
    _, gpu = only([row(quality="unusable"), row(**wild)])
    assert gpu.refused == "unusable, like its baseline: interval wider than ±25 %"
    launches = [row(**{**wild, "quality": word}) for word in ("fixed", "unusable", "converged")]
    assert only([row(), *launches])[1].speedup == 4.0
    wrong = row(precision="int8", latency_p50_ms=1.6, verification="failed")
    assert compared([row(), wrong], AXES["precision"], known=Histories()) == []
    # The few launches that did not fail are held against nothing.
    _, card = only([row(), *launched("ok", "ok", "failed", "failed", "failed", reason="crash")])
    assert card.refused == "unusable: 3 of 5 launches failed"
    assert card.speedup is None
    assert card.failed_since == ()
    # Outputs that were wrong in one launch are wrong in all of its run.
    wrong = {"reason": "wrong_outputs", "verification": "failed"}
    rows = [*launched("ok", "ok"), *launched("failed", **wrong)]
    assert not compared([row(), *rows], AXES["hardware"], known=Histories())
    # An older run is shown where most launches of the newer failed.
    older = launched("ok", "ok", "ok", run_id="r0", started_at="2026-01-01 00:00:00")
    newer = launched("ok", "failed", "failed", reason="crash", run_id="r2")
    _, card = only([row(), *older, *newer])
    assert card.side.row["run_id"] == "r0"
    assert card.failed_since == ("2 of 3 launches failed: crash",)


def test_the_knee_of_batches():
    # A median step may be as fast while the mean, which throughput is of, is not.
    one = row(latency_p50_ms=2.0, latency_mean_ms=1e3 / 415, throughput=415.0)
    four = row(batch_size=4, latency_p50_ms=8.2, latency_mean_ms=4e3 / 472, throughput=472.0)
    first, second = only([one, four], by="batch")
    assert (first.knee, second.knee) == (False, True)
    # No knee is marked where batches cannot be told apart.
    noisy = [
        row(batch_size=batch, launch=n, latency_p50_ms=ms * factor)
        for batch, ms in ((1, 4.0), (2, 2.1), (4, 4.0))
        for n, factor in enumerate((0.2, 1.0, 5.0))
    ]
    lines = only(noisy, by="batch")
    assert all(line.ratio is None or not line.ratio.told for line in lines)
    assert not any(line.knee for line in lines)
    # Batch 8 was the knee at 1.22× (0.888 – 1.68).
    noisy = [
        row(batch_size=batch, launch=n, latency_p50_ms=ms * factor)
        for batch, ms in ((1, 4.0), (2, 6.6))
        for n, factor in enumerate((0.88, 1.0, 1.13))
    ]
    _, two = only(noisy, by="batch")
    assert two.ratio is not None
    assert two.ratio.told
    assert two.ratio.low is not None
    assert two.ratio.low < 1.0 < two.ratio.value
    assert not two.knee


def test_questions_by_size():
    # A model at 160 px, which is quickest, was compared with one at 224 without a word.
    other = row(model="vit", image_size=224, latency_p50_ms=16.0)
    small = row(image_size=160, latency_p50_ms=4.0)
    alike = row(image_size=224, latency_p50_ms=8.0)
    lines = only([small, alike, other], "model")
    assert [line.side.row["image_size"] for line in lines] == [224, 224]
    (_, line) = only([small, other], "model")
    assert "image_size 160 → 224" in line.differs
    # Questions come by size within a model.
    sizes = ((512, 1), (128, 8), (128, 1))
    rows = [row(sequence_length=s, batch_size=b, **w) for s, b in sizes for w in ({}, GPU)]
    found = compared(rows, AXES["hardware"], known=Histories())
    asked = [
        (lines[0].side.row["sequence_length"], lines[0].side.row["batch_size"]) for lines in found
    ]
    assert asked == [(128, 1), (128, 8), (512, 1)]


def launched(*statuses: str, **changes: Any) -> list[dict[str, Any]]:
    """Launches of a card in one run: those that are ok are twice as fast as the processor."""
    lost: dict[str, Any] = {"latency_p50_ms": None, "latency_mean_ms": None}
    usual = {"hardware": "cuda", "device_name": "A card", "case_id": "a case"}
    moment = {"started_at": "2026-01-03 00:00:00"}
    return [
        row(
            status=one,
            launch=n,
            **usual,
            **({"latency_p50_ms": 4.0} if one == "ok" else lost),
            **{**moment, **changes},
        )
        for n, one in enumerate(statuses)
    ]


def test_which_settings_are_alike():
    # Imported from our own files the winner was the other one.
    old, new = ({"packages": {"torch": torch}} for torch in ("2.4", "2.9"))
    for provenance in ("measured", "imported"):
        rows = [
            row(provenance=provenance, run_id=run, started_at=day, conditions=software, **where)
            for run, day, software, step in (
                ("old", "2026-01-01", old, 4.0),
                ("new", "2026-01-02", new, 16.0),
            )
            for where in (
                {"latency_p50_ms": 8.0},
                {"hardware": "cuda", "device_name": "A card", "latency_p50_ms": step},
            )
        ]
        _, card = only(rows)
        assert card.speedup == pytest.approx(0.5)
    # Each case of a run with a budget has another share of its seconds.

    def of(seconds: object) -> Row:
        return row(conditions={"rules": {"seconds": seconds}})

    assert differences(of(1.57), of(1.53)) == []
    assert differences(of(1.57), of(10.0)) == ["rules.seconds 1.57 → 10.0"]
    assert differences(of("short"), of("long")) == ["rules.seconds short → long"]

    # A variable that one side alone has set is a difference.
    def under(**variables: str) -> Row:
        beside = {"pid": len(variables)}
        return row(conditions={"variables": variables, "measured_beside": beside})

    one_sided = differences(under(), under(LD_PRELOAD="/a.so"))
    assert one_sided == ["variables.LD_PRELOAD unset → /a.so"]
    assert differences(row(conditions={}), under(LD_PRELOAD="/a.so")) == []
