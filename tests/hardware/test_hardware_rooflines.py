"""The table of documented devices: whole, plausible, and found by the names people use."""

import dataclasses
import itertools

import pytest

from accelbench.core.device_facts import facts_of
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware.rooflines import (
    _TABLE,
    _TYPICAL,
    called,
    documented_devices,
    is_called,
    roofline,
    rooflines_of,
)

EVERY = pytest.mark.parametrize("one", _TABLE, ids=[one.name for one in _TABLE])


@EVERY
def test_a_wider_type_is_never_faster_and_every_figure_has_a_source(one):
    rates = [one.operations_per_second(p) for p in ("fp32", "bf16", "fp16", "int8")]
    known = [rate for rate in rates if rate is not None]
    assert known
    assert known == sorted(known)
    assert len(one.source) > 10


@EVERY
def test_a_figure_is_of_the_order_of_its_unit(one):
    # A slip of a thousand — GB for TB, TOPS for GOPS — would be outside.
    for precision in one.teraops:
        assert 1e12 < (one.operations_per_second(precision) or 0) < 5e15
    assert 5e10 < one.bytes_per_second < 1e13
    assert 8 * 2**30 <= one.memory_bytes <= 256 * 2**30
    # What a device does with each byte it can read: 10 to 2000 operations a byte.
    intensity = max(one.teraops.values()) * 1e12 / one.bytes_per_second
    assert 10 < intensity < 2000


def test_names_are_unique_and_each_platform_has_a_device():
    names = [one.name for one in _TABLE]
    assert len(set(names)) == len(names)
    assert len({one.device.lower() for one in _TABLE}) == len(names)
    for name in names:
        assert name == name.lower()
        assert not set(name) & set(" ,:")
        assert not name.isdecimal()  # a number is an ordinal

    for hardware in {*HARDWARE, "directml"} - {"cpu", "wasm"}:
        found = roofline(hardware, "")
        assert found is not None, hardware
        assert hardware in found.platforms
    assert roofline("cpu", "") is roofline("wasm", "") is None
    assert {hardware for hardware, _ in _TYPICAL} >= {p for one in _TABLE for p in one.platforms}

    assert roofline("cuda", "a100-80gb") is not None
    assert roofline("rocm", "a100-80gb") is None
    assert roofline("webgpu", "rtx-4060") == roofline("cuda", "rtx-4060")
    assert roofline("webgpu", "a100-80gb") is None  # no browser is opened on it
    assert roofline("openvino", "npu") == roofline("openvino", "core-ultra-7-258v-npu")

    for one, other in itertools.combinations(_TABLE, 2):
        figures = (one.teraops, one.bytes_per_second, one.memory_bytes)
        assert figures != (other.teraops, other.bytes_per_second, other.memory_bytes)


@pytest.mark.parametrize("place", _TYPICAL)
def test_what_stands_for_a_platform_is_in_the_table(place):
    assert roofline(*place) in rooflines_of(place[0])


def test_rates_are_those_of_their_documents():
    a100, h100 = roofline("cuda", "a100-80gb"), roofline("cuda", "h100")
    assert a100.operations_per_second("fp32") == pytest.approx(19.5e12)
    assert a100.operations_per_second("bf16") == pytest.approx(312e12)  # dense: half of 624
    assert a100.bytes_per_second == pytest.approx(2.039e12)
    assert a100.memory_bytes == 80 * 2**30
    assert h100.operations_per_second("int8") == pytest.approx(3958e12 / 2)
    # 3072 units that multiply and add at 2.46 GHz; 128 bit at 17 Gbps.
    rtx = roofline("webgpu", "rtx-4060")
    assert rtx.operations_per_second("fp32") == pytest.approx(3072 * 2 * 2.46e9, rel=0.01)
    assert rtx.bytes_per_second == pytest.approx(128 / 8 * 17e9)

    npu = roofline("qnn", "")
    assert npu.operations_per_second("int8") == pytest.approx(45e12)
    assert npu.operations_per_second("fp16") is None
    assert npu.operations_per_second("amp-fp16") is None

    for one in documented_devices():
        facts = facts_of(one.device)
        if facts is not None:
            narrow = {one.teraops[name] for name in ("fp16", "bf16") if name in one.teraops}
            assert narrow == {facts.half}, one.name
            assert one.teraops["fp32"] == facts.fp32, one.name
            assert one.gigabytes_per_second == facts.bandwidth, one.name

    card, facts = called("cuda", "NVIDIA GeForce RTX 4090"), facts_of("NVIDIA GeForce RTX 4090")
    assert (facts.half, facts.half_fp16_sums, facts.highest) == (165.2, 330.4, 330.4)
    assert card.operations_per_second("fp16") == pytest.approx(165.2e12)
    assert card.highest_per_second("fp16") == pytest.approx(330.4e12)
    assert card.highest_per_second("bf16") == pytest.approx(165.2e12)  # it has no other way
    server = facts_of("NVIDIA H100 80GB HBM3")
    assert server.half_fp16_sums is None
    assert server.highest == server.half


@pytest.mark.parametrize(
    ("name", "device", "same"),
    [
        ("h200", "NVIDIA H200", True),
        ("h200", "nvidia  h200", True),
        ("max-1550", "Intel(R) Data Center GPU Max 1550 (dGPU)", True),
        ("rtx-4060", "NVIDIA GeForce RTX 4060", True),
        ("rtx-4060", "NVIDIA GeForce RTX 4060 Ti", False),
        ("rtx-4060", "NVIDIA GeForce RTX 4060 Laptop GPU", False),
        ("a100-80gb", "NVIDIA A100-SXM4-40GB", False),
    ],
)
def test_a_device_is_known_by_the_name_of_its_driver(name, device, same):
    (one,) = (one for one in _TABLE if one.name == name)
    assert is_called(one, device) is same


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ""},
        {"teraops": {}},
        {"teraops": {"fp32": 0}},
        {"teraops": {"tf32": 1}},
        {"gigabytes_per_second": -1},
        {"memory_gib": 0},
        {"platforms": ()},
    ],
)
def test_a_line_that_is_not_whole_is_refused(wrong):
    with pytest.raises(ValueError, match="not whole"):
        dataclasses.replace(_TABLE[0], **wrong)
