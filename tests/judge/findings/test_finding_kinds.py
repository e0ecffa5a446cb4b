"""Findings: each kind from a store where it is true, and none from one where it is not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from accelbench.exchange.prices import Prices
from accelbench.judge.costs import with_costs
from accelbench.judge.findings.collected import Findings, findings_of
from accelbench.judge.findings.finding import FindingKind, StoreFinding, foremost
from accelbench.judge.points import points
from accelbench.judge.regressions import checked
from accelbench.judge.run_noise import Histories, histories
from asked_rows import row

QUICK, SLOW = "onnxruntime", "pytorch"
#: Launches of a quiet machine, and of one on which nothing can be told.
QUIET, LOUD = (0.99, 1.0, 1.01), (0.4, 1.0, 3.1)


def launches(times: tuple[float, ...], ms: float, **changes: Any) -> list[dict[str, Any]]:
    """Launches of one configuration, each this many times as long as its time."""
    asked = [
        changes.get(n, "") for n in ("model", "runtime", "precision", "batch_size", "hardware")
    ]
    case = "/".join(map(str, asked))
    return [
        row(
            **{
                "case_id": case,
                "series_key": case,
                "result_id": f"{case}#{changes.get('run_id', '')}{n}",
                "launch": n,
                "latency_p50_ms": ms * factor,
                "latency_ci_low_ms": ms * factor * 0.99,
                "latency_ci_high_ms": ms * factor * 1.01,
                "sample_count": 100,
                "effective_sample_count": 100,
                "quality": "converged",
                "verification": "ok",
                "verification_error": 0.001,
                "task": "sentence embedding",
                **changes,
            }
        )
        for n, factor in enumerate(times)
    ]


def engines(
    ratios: dict[str, float], times: tuple[float, ...] = QUIET, **changes: Any
) -> list[dict[str, Any]]:
    """Models that two engines ran, the one so many times as fast as the other."""
    return [
        launch
        for name, ratio in ratios.items()
        for runtime, ms in ((SLOW, 8.0), (QUICK, 8.0 / ratio))
        for launch in launches(times, ms, model=name, runtime=runtime, **changes)
    ]


def found(
    rows: list[dict[str, Any]], known: Histories | None = None, check: Any = None
) -> Findings:
    return findings_of(rows, points(rows), known or Histories(), check)


def of_kind(findings: Findings, kind: FindingKind) -> list[StoreFinding]:
    return [finding for finding in findings.every if finding.kind is kind]


FOUR = {"bert-tiny": 2.0, "gpt2-tiny": 1.5, "resnet-tiny": 1.8, "vit-tiny": 2.2}


def test_engines_over_common_models():
    # An engine over common models is their geometric mean with its interval.
    (finding,) = of_kind(found(engines(FOUR)), FindingKind.ENGINES)
    mean = math.exp(math.fsum(map(math.log, FOUR.values())) / 4)
    assert finding.value == pytest.approx(mean, rel=0.005)
    assert finding.interval is not None
    assert finding.interval[0] < mean < finding.interval[1]
    assert finding.sentence.startswith(f"On cpu, {QUICK} is 1.86× as fast as {SLOW} (geometric")
    assert "mean of 4 models, 95 % interval" in finding.sentence
    assert f"in no configuration is {QUICK} slower for certain" in finding.sentence
    assert len(finding.evidence) == 8
    # The losers are named.
    many = {f"model-{n}": 1.8 + 0.02 * n for n in range(9)} | {"gpt2-tiny": 0.7}
    (finding,) = of_kind(found(engines(many)), FindingKind.ENGINES)
    assert finding.sentence.endswith("it is slower for certain on gpt2-tiny.")
    # The winner stands first whichever engine others are held against.
    (finding,) = of_kind(
        found(engines({name: 1 / ratio for name, ratio in FOUR.items()})), FindingKind.ENGINES
    )
    assert finding.sentence.startswith(f"On cpu, {SLOW} is 1.86× as fast as {QUICK}")
    assert finding.value is not None
    assert finding.value > 1.0


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(engines({"bert-tiny": 2.0, "gpt2-tiny": 2.0}), id="of-two-models"),
        pytest.param(engines(FOUR, emulated=True), id="emulated"),
        pytest.param(engines(FOUR, provenance="simulated"), id="simulated"),
        pytest.param(engines(FOUR, verification="failed"), id="wrong"),
        pytest.param(engines(FOUR, quality="unusable"), id="unusable"),
        pytest.param(engines(FOUR, LOUD), id="too-rough"),
        pytest.param(
            [{**r, "weights_digest": r["runtime"]} for r in engines(FOUR)], id="other-weights"
        ),
        pytest.param(
            [
                {**r, "provenance": "imported", "run_id": "import-1"}
                if r["runtime"] == QUICK
                else r
                for r in engines(FOUR)
            ],
            id="measured-against-imported",
        ),
        pytest.param(
            [{**r, "conditions": {"governor": r["runtime"]}} for r in engines(FOUR)],
            id="other-conditions",
        ),
        pytest.param(
            [r for r in engines(FOUR) if (r["model"] < "h") is (r["runtime"] == QUICK)],
            id="no-model-in-common",
        ),
    ],
)
def test_no_engine_is_told_to_be_faster_where_it_is_not_known(rows):
    assert not of_kind(found(rows), FindingKind.ENGINES)


def test_what_engines_of_few_or_imported_figures_say():
    # Which engine cannot be told is never sold as a difference.
    (finding,) = of_kind(
        found(engines({"a": 1.4, "b": 0.7, "c": 1.3, "d": 0.75})), FindingKind.ENGINES
    )
    assert f"whether {QUICK} or {SLOW} is faster in general can't be told" in finding.sentence
    assert f"{QUICK} is faster for certain in 2 and slower in 2 of 4" in finding.sentence
    assert finding.importance < 50.0
    # Imported engines are said to be imported.
    rows = engines(FOUR, provenance="imported", run_id="import-1")
    (finding,) = of_kind(found(rows), FindingKind.ENGINES)
    assert finding.sentence.endswith("(imported).")
    # Single figures make nothing certain and say so.
    rows = engines(FOUR | {"e": 0.9, "f": 2.0, "g": 2.1}, (1.0,), latency_ci_low_ms=None)
    for line in rows:
        line["latency_ci_high_ms"] = None
    (finding,) = of_kind(found(rows), FindingKind.ENGINES)
    assert finding.sentence.endswith("by single figures, slower on 1 model: e.")
    # Fifty models that agree say nothing of how another run of all of them would differ.
    alike = {f"model-{n:02}": 1.03 + 0.0001 * n for n in range(50)}
    apart = [{**r, "run_id": f"of-{r['runtime']}"} for r in engines(alike)]
    (finding,) = of_kind(found(apart, histories(apart)), FindingKind.ENGINES)
    assert finding.interval is not None
    assert finding.interval[0] < 1.0 < finding.interval[1]
    (of_one_run,) = of_kind(found(engines(alike)), FindingKind.ENGINES)
    assert of_one_run.interval is not None
    assert of_one_run.interval[0] > 1.0


# -- best of a task


def test_the_fastest_of_a_task():
    # The fastest of a task with both intervals and what is next.
    (finding,) = of_kind(found(engines({"bert-tiny": 2.0})), FindingKind.FASTEST)
    assert finding.sentence.startswith(
        "For sentence embedding (batch 1, seq 128), bert-tiny by onnxruntime on cpu in fp32 is the"
        " fastest of 2 configurations: 4.00 ms a step (range of 3 launches 3."
    )
    assert "2.00× as fast as pytorch on cpu in fp32 (95 % interval 1.9" in finding.sentence
    assert finding.value == pytest.approx(2.0)
    assert {each.name.split()[1] for each in finding.evidence} == {f"{QUICK}/cpu", f"{SLOW}/cpu"}
    # What cannot be told from the next is not called the fastest.
    (finding,) = of_kind(found(engines({"bert-tiny": 1.1}, LOUD)), FindingKind.FASTEST)
    assert "has the lowest time of 2 configurations" in finding.sentence
    assert "whether it is faster than pytorch on cpu in fp32 can't be told" in finding.sentence
    assert "is the fastest" not in finding.sentence
    # Of one configuration nothing is the fastest.
    alone = found(launches(QUIET, 8.0, model="bert-tiny", runtime=SLOW))
    assert not alone.every
    assert alone.tasks[0].fastest is not None  # it is shown, and nothing is made of it


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"emulated": True}, id="emulated"),
        pytest.param({"provenance": "simulated"}, id="simulated"),
        pytest.param({"provenance": "predicted"}, id="predicted"),
        pytest.param({"verification": "failed"}, id="wrong"),
        pytest.param({"quality": "unusable"}, id="unusable"),
        pytest.param({"precision": "int8", "verification": "not_done", "verification_error": None},
                     id="not-known-to-be-exact"),
        pytest.param({"provenance": "imported", "run_id": "import-1"}, id="imported"),
        pytest.param({"world_size": 8}, id="eight-processes"),
        pytest.param({"batch_size": 8}, id="another-batch"),
        pytest.param({"sequence_length": 8}, id="another-size"),
    ],
)  # fmt: skip
def test_nothing_unlike_is_the_fastest(changes):
    here = [
        *launches(QUIET, 8.0, model="bert-tiny", runtime=SLOW),
        *launches(QUIET, 9.0, model="bert-tiny", runtime="jax"),
        *launches(QUIET, 10.0, model="bert-tiny", runtime="openvino"),
    ]
    other = launches(QUIET, 0.1, **{"model": "bert-tiny", "runtime": QUICK, **changes})
    (best,) = [t.fastest for t in found([*here, *other]).tasks if t.mode == "inference"]
    assert best is not None
    assert best.point.row["runtime"] == SLOW


def test_the_cheapest_is_by_cost_and_only_where_intervals_are_apart():
    card = {"hardware": "cuda", "device_name": "A card", "runtime": SLOW, "model": "bert-tiny"}
    here = {"runtime": SLOW, "model": "bert-tiny"}
    prices = Prices({"cpu": 1.0, "cuda": 4.0}, "USD", "prices.yaml")
    rows = [*launches(QUIET, 8.0, **here), *launches(QUIET, 4.0, **card)]
    priced = with_costs(rows, prices, {})
    (finding,) = of_kind(findings_of(priced, points(priced), Histories()), FindingKind.CHEAPEST)
    assert "bert-tiny by pytorch on cpu in fp32 is the cheapest of 2" in finding.sentence
    assert "a million inferences" in finding.sentence
    assert "less than pytorch on cuda" in finding.sentence
    near = with_costs([*launches(QUIET, 8.0, **here), *launches(QUIET, 2.01, **card)], prices, {})
    (unsure,) = of_kind(findings_of(near, points(near), Histories()), FindingKind.CHEAPEST)
    assert "has the lowest cost" in unsure.sentence
    assert "can't be told" in unsure.sentence
    assert not of_kind(found(rows), FindingKind.CHEAPEST)  # without prices nothing costs


# -- precision


def precisions(speed: float, error: float | None = 0.02, **changes: Any) -> list[dict[str, Any]]:
    narrow = {"verification_error": error, "verification": "not_done" if error is None else "ok"}
    return [
        launch
        for name, part in (("bert-tiny", 0.98), ("gpt2-tiny", 1.0), ("resnet-tiny", 1 / 0.98))
        for word, ms, more in (("fp32", 8.0, {}), ("bf16", 8.0 / speed / part, narrow))
        for launch in launches(
            QUIET, ms, model=name, runtime=SLOW, precision=word, **more, **changes
        )
    ]


def test_what_a_lower_precision_brings():
    # A lower precision brings and costs.
    (finding,) = of_kind(found(precisions(1.5)), FindingKind.PRECISION)
    assert finding.value == pytest.approx(1.5)
    assert finding.sentence.startswith("bf16 with pytorch on cpu is 1.50× as fast as fp32")
    assert finding.sentence.endswith("its outputs are off by 0.0200 at most.")
    (finding,) = of_kind(found(precisions(1.5, None)), FindingKind.PRECISION)
    assert finding.sentence.endswith("; its outputs were not verified.")
    # A slower precision is told to be slower and one of one model is of it alone.
    (slower,) = of_kind(found(precisions(0.5)), FindingKind.PRECISION)
    assert "is 0.500× as fast as fp32" in slower.sentence
    alone = [r for r in precisions(1.5) if r["model"] == "bert-tiny"]
    (finding,) = of_kind(found(alone), FindingKind.PRECISION)
    assert finding.sentence.startswith("bert-tiny (batch 1, seq 128) by pytorch on cpu is 1.47× as")
    # A precision without its full one beside it brings nothing.
    assert not of_kind(
        found([r for r in precisions(1.5) if r["precision"] == "bf16"]), FindingKind.PRECISION
    )


# -- steadiness, failures, what is unmeasured


def test_what_is_unsteady_is_counted_and_named():
    # What is unsteady is counted by why and named.
    rows = [
        *launches(QUIET, 8.0, model="bert-tiny", runtime=SLOW, quality="throttled"),
        *launches(QUIET, 8.0, model="gpt2-tiny", runtime=SLOW),
    ]
    (finding,) = of_kind(found(rows), FindingKind.UNSTEADY)
    assert finding.sentence == (
        "1 of 2 measured configurations is not steady: 1 throttled (the device slowed down); first"
        " of them bert-tiny pytorch/cpu fp32 batch 1 seq 128."
    )
    assert finding.command == (
        "accelbench run bert-tiny --hardware cpu --framework pytorch --precision fp32"
        " --batch-sizes 1 --launches 5"
    )
    # A title leaves out threads: three configurations have one, and 5 was “A, B and 1 more”.
    alike = [(str(threads), {"model": "bert-tiny", "threads": threads}) for threads in (1, 2, 4)]
    others = [(name, {"model": name}) for name in ("gpt2-tiny", "resnet-tiny", "vit-tiny")]
    rows = [
        launch
        for case, changes in (*alike, *others)
        for launch in launches(
            QUIET, 8.0, **{"runtime": SLOW, "quality": "unsteady", "case_id": case, **changes}
        )
    ]
    (finding,) = of_kind(found(rows), FindingKind.UNSTEADY)
    assert finding.sentence.startswith("6 of 6 measured configurations are not steady")
    assert finding.sentence.endswith(
        "; first of them bert-tiny pytorch/cpu fp32 batch 1 seq 128 (3 of them), gpt2-tiny"
        " pytorch/cpu fp32 batch 1 seq 128, resnet-tiny pytorch/cpu fp32 batch 1 seq 128 and 1"
        " more."
    )


@pytest.mark.parametrize(
    "changes", [{}, {"quality": "fixed"}, {"quality": "unsteady", "provenance": "imported"}]
)
def test_what_settled_or_is_of_others_is_not_unsteady(changes):
    rows = launches(QUIET, 8.0, model="bert-tiny", runtime=SLOW, **changes)
    assert not of_kind(found(rows), FindingKind.UNSTEADY)


def test_single_launches_are_counted_and_several_are_not():
    (finding,) = of_kind(
        found(launches((1.0,), 8.0, model="bert-tiny", runtime=SLOW)), FindingKind.LAUNCHES
    )
    assert finding.sentence.startswith("1 of 1 measured configuration rests on a single launch")
    assert not of_kind(found(launches(QUIET, 8.0, model="bert-tiny")), FindingKind.LAUNCHES)


FAILED = {"status": "failed", "latency_mean_ms": None, "latency_p50_ms": None}


def test_what_failed_or_was_wrong_is_grouped_by_why():
    # What failed is grouped by why and what answered later is not told.
    lost = {"reason": "unsupported_operator", "status": "failed", "model": "bert-tiny"}
    rows = [r | FAILED for r in launches(QUIET, 8.0, runtime=QUICK, **lost)]
    (finding,) = of_kind(found(rows), FindingKind.FAILURES)
    assert finding.sentence == (
        "1 configuration came to no figure: 1 with onnxruntime on cpu (unsupported operator)."
    )
    mended = launches(
        QUIET, 8.0, runtime=QUICK, model="bert-tiny", run_id="r2", started_at="2026-01-02 00:00:00"
    )
    assert not of_kind(found([*rows, *mended]), FindingKind.FAILURES)
    unsupported = [r | {"status": "unsupported"} for r in rows]
    assert not of_kind(found(unsupported), FindingKind.FAILURES)
    # Wrong outputs are a finding of their own.
    rows = [
        r | {"status": "failed", "reason": "wrong_outputs", "verification": "failed"}
        for r in launches(QUIET, 1.0, model="bert-tiny", runtime=QUICK)
    ]
    findings = found(rows)
    (finding,) = of_kind(findings, FindingKind.OUTPUTS)
    assert finding.sentence.endswith("bert-tiny onnxruntime/cpu fp32 batch 1 seq 128.")
    assert not of_kind(findings, FindingKind.FAILURES)


def test_what_is_worth_measuring():
    # What won elsewhere and was never run is worth measuring with the command.
    alone = launches(QUIET, 8.0, model="t5-tiny", runtime=SLOW)
    (finding,) = of_kind(found([*engines(FOUR), *alone]), FindingKind.UNMEASURED)
    assert "1 model was never run with onnxruntime on cpu (t5-tiny)" in finding.sentence
    assert finding.command == ("accelbench run t5-tiny --hardware cpu --framework onnxruntime")
    tried = [r | FAILED for r in launches(QUIET, 8.0, model="t5-tiny", runtime=QUICK)]
    assert not of_kind(found([*engines(FOUR), *alone, *tried]), FindingKind.UNMEASURED)
    assert not of_kind(found([*engines(FOUR)]), FindingKind.UNMEASURED)
    # Nothing is worth measuring where nothing won.
    rows = engines({"a": 1.4, "b": 0.7, "c": 1.3, "d": 0.75})
    alone = launches(QUIET, 8.0, model="t5-tiny", runtime=SLOW)
    assert not of_kind(found([*rows, *alone]), FindingKind.UNMEASURED)


# -- changes


def then_and_now(change: float, times: tuple[float, ...] = (0.99, 1.0, 1.0, 1.0, 1.01)) -> Any:
    before = launches(times, 8.0, model="bert-tiny", runtime=SLOW, run_id="r1")
    later = {"run_id": "r2", "started_at": "2026-01-02 00:00:00"}
    now = launches(times, 8.0 * change, model="bert-tiny", runtime=SLOW, **later)
    return now, checked(now, before)


def test_what_became_worse():
    # What became worse is first with the verdicts interval.
    now, check = then_and_now(3.0)
    findings = found(now, check=check)
    first = findings.every[0]
    assert first.kind is FindingKind.CHANGE
    assert "1 of 1 configuration that was measured before became worse" in first.sentence
    assert "98 % interval" in first.sentence
    assert "+200.0%" in first.sentence
    assert first.command == "accelbench check --rerun"
    # What may be noise is no change.
    now, check = then_and_now(1.02)
    (finding,) = of_kind(found(now, check=check), FindingKind.CHANGE)
    assert "became" not in finding.sentence
    assert finding.importance < 20.0
    now, _ = then_and_now(3.0)
    assert not of_kind(found(now), FindingKind.CHANGE)


# -- all together


def test_the_list_of_findings():
    # At the top no kind hides the others.
    several = [StoreFinding(FindingKind.FASTEST, f"fast {n}", 75.0) for n in range(9)]
    other = StoreFinding(FindingKind.UNSTEADY, "unsteady", 45.0)
    kept = foremost([*several, other])
    assert [finding.sentence for finding in kept] == ["fast 0", "fast 1", "unsteady"]
    assert found([]).every == []
    assert found([]).foremost == []
    # Names with bad intent stand escaped in sentences.
    evil = "bert\u202etiny"
    findings = found(engines({evil: 2.0}))
    assert all("\u202e" not in finding.sentence for finding in findings.every)
