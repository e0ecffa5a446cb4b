"""Which node falls out of its kind by its probes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accelbench.core.calibration import ProbeKind
from accelbench.core.protocols import Device
from accelbench.fleet.node_probes import NodeProbes
from accelbench.judge.process_spread import limits_of, probes_validated
from made_up_calibration import PROCESSOR, made_calibration


def node(name: str, fp32: float = 100e9, bandwidth: float = 20e9) -> NodeProbes:
    calibration = made_calibration(fp32=fp32, bandwidth=bandwidth, bf16=fp32 * 2)
    return NodeProbes(name, PROCESSOR, calibration)


def test_limits_are_the_best_of_each_kind_and_precision():
    names = [name for name, _ in limits_of(made_calibration(bf16=200e9))]
    assert names == [
        *("matrix product fp32", "matrix product bf16", "attention fp32"),
        *("memory bandwidth", "cache L2", "launch overhead"),
    ]
    best = dict(limits_of(made_calibration(fp32=100e9)))
    assert best["matrix product fp32"].value == 100e9


def test_a_node_with_half_the_bandwidth_falls_out_by_that_alone():
    found = probes_validated([node("a"), node("b"), node("c"), node("d", bandwidth=10e9)], 0.1)
    assert list(found.bad) == ["d"]
    assert [reason.partition(" on ")[0] for reason in found.bad["d"]] == [
        "memory bandwidth",
        "cache L2",
    ]
    assert "memory bandwidth on cpu: 100% slower than the median" in found.bad["d"][0]
    assert not found.open
    memory = next(spread for spread in found.spreads if "memory" in spread.case)
    assert memory.rates == {"a": 20e9, "b": 20e9, "c": 20e9, "d": 10e9}
    assert memory.unit == "B/s"


def test_a_node_whose_launches_take_longer_falls_out():
    probes = [node("a"), node("b"), node("c")]
    calibration = probes[2].calibration
    assert calibration is not None
    slow = [
        replace(figure, value=figure.value * 1.5)
        if figure.spec.kind is ProbeKind.LAUNCH
        else figure
        for figure in calibration.figures
    ]
    probes[2] = replace(probes[2], calibration=replace(calibration, figures=tuple(slow)))
    found = probes_validated(probes, 0.1)
    assert found.bad == {"c": ["launch overhead on cpu: 50% slower than the median of its kind"]}
    launch = next(spread for spread in found.spreads if "launch" in spread.case)
    assert launch.times["a"] == pytest.approx(2e-3)
    assert not launch.rates


def test_kinds_are_not_mixed_and_two_that_differ_cannot_be_told():
    other = Device("cpu", "Another processor")
    slow = NodeProbes("c", other, made_calibration(other, fp32=10e9))
    found = probes_validated([node("a"), node("b", fp32=50e9), slow], 0.1)
    assert not found.bad
    assert {spread.device for spread in found.open} == {"A processor", "Another processor"}


def test_a_node_that_cannot_be_calibrated_where_others_can_falls_out():
    broken = NodeProbes("c", PROCESSOR, why="torch is broken")
    found = probes_validated([node("a"), node("b"), broken], 0.1)
    assert list(found.bad) == ["c"]
    assert "failed there alone: torch is broken" in found.bad["c"][0]
    none = probes_validated([broken], 0.1)
    assert (none.bad, len(none.open)) == ({}, 1)
