"""The table of devices: names and what they mean, whole and plausible rates, one answer for all."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from typing import Any

import pytest

from accelbench.core.case import Shapes
from accelbench.core.device_facts import (
    DeviceFacts,
    devices_on,
    documented_peak,
    facts_of,
    find_devices,
    kind_of,
    known_devices,
    match_device,
    typical_device,
)
from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import HARDWARE
from accelbench.predict.cases import CaseConfiguration, MeasuredCase, PredictedCase
from accelbench.predict.questions import PredictionQuestion, configurations
from accelbench.predict.terms import facts_for
from accelbench.run.plan.targets import stand_in

EVERY = pytest.mark.parametrize("one", known_devices(), ids=[d.short for d in known_devices()])


@pytest.mark.parametrize(
    ("name", "short", "is_assumed"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx-4090", False),
        ("rtx-4090", "rtx-4090", False),
        ("RTX4090", "rtx-4090", False),
        ("rtx_4090", "rtx-4090", False),
        ("nVIDIA RTX2080 of Desktop", "rtx-2080", False),
        ("2080ti", "rtx-2080-ti", False),
        ("NVIDIA GeForce RTX 3060 Ti of Desktop[2023-10-12]", "rtx-3060-ti", False),
        ("GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super", False),
        ("a100", "a100-80gb", True),
        ("A100-40GB", "a100-40gb", True),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb", False),
        ("A100 80GB PCIe", "a100-pcie-80gb", False),
        ("NVIDIA Tesla V100-PCIE-32GB  (GV100 SM x 80)", "v100-pcie-32gb", False),
        ("h100", "h100", True),
        ("NVIDIA H100 80GB HBM3", "h100", False),
        ("1x NVIDIA H100-SXM-80GB", "h100", False),
        ("NVIDIA H100 NVL", "h100-nvl", False),
        ("H20", "h20", False),
        ("H200-NVL-141GB", "h200-nvl", False),
        ("NVIDIA GH200 Grace Hopper Superchip 144GB", "gh200-144gb", False),
        ("NVIDIA B200-SXM-180GB", "b200", False),
        ("RTX A6000", "rtx-a6000", False),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", False),
        ("NVIDIA RTX 4000 Ada-PCIe-20GB", "rtx-4000-ada", False),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server", False),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q", False),
        ("AMD Instinct MI300X 192GB HBM3", "mi300x", False),
        ("Intel(R) Data Center GPU Max 1550 (dGPU)", "max-1550", False),
        ("TPU v5 lite", "v5e", False),
        ("Apple M2 Max", "m2-max", False),
        ("MacBook Pro (13-inch, M1, 2020)", "m1", False),
        ("Intel(R) Core(TM) i9-10940X CPU @ 3.30GHz", "core-i9-10940x", False),
        ("12th Gen Intel(R) Core(TM) i7-12700H", "core-i7-12700h", False),
        ("Intel® Core™ i7-13700K of Desktop[2023-10-12]", "core-i7-13700k", False),
        ("AMD EPYC 7763 64-Core Processor", "epyc-7763", False),
        ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen-7950x", False),
        ("AMD Ryzen Threadripper 7980X 64-Cores", "threadripper-7980x", False),
        ("gold_6240", "xeon-gold-6240", False),
        ("Raspberry Pi 4 Model B Broadcom BCM2711B0 (1.8GHz x 4)", "raspberry-pi-4", False),
    ],
)
def test_a_name_means_the_device_whose_words_it_has(name, short, is_assumed):
    match = match_device(name)
    assert match is not None
    assert (match.facts.short, match.is_assumed) == (short, is_assumed)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "nVIDIA RTX2060 of Notebook",
        "RTX 2080 with Max-Q Design",
        "RTX 4090 D",
        "NVIDIA RTX 4000 SFF Ada Generation",
        "NVIDIA Jetson Orin Nano Super",
        "RTX 3080 12GB",  # another card than that of 10 GB
        "NVIDIA A100X",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
        "NVIDIA A10-24Q",
        "A100-SXM4-64GB",
        "Quadro RTX 6000",
        "RTX 6000",
        "NVIDIA RTX-2000E-Ada-16GB",
        "Apple M2 Pro Max",
        "Apple A10",  # no NVIDIA A10
        "Raspberry Pi 3 Model B (1.4GHz x 4)",
        "AMD Ryzen 5 5560U with Radeon Graphics",
        "AMD Instinct MI300X 192GB HBM3 (x32), AMD Instinct MI325X 256GB HBM3e (x16)",
        "8x NVIDIA H100",  # facts are of one device
        "a card of the year 2100",
        "NVIDIA",
        "",
    ],
)
def test_another_device_is_unknown_not_guessed(name):
    assert facts_of(name) is None


@pytest.mark.parametrize(
    ("word", "platform", "shorts"),
    [
        ("4090", "", ["rtx-4090"]),
        ("3080", "", ["rtx-3080", "rtx-3080-ti"]),
        ("rtx 3080 12gb", "", []),
        ("m2", "mps", ["m2"]),
        ("v5e", "tpu", ["v5e"]),
        ("a100-80gb", "webgpu", []),  # no browser is opened on it
        ("a100-80gb", "rocm", []),
        ("4090", "webgpu", ["rtx-4090"]),
        ("7", "openvino", []),  # an ordinal
    ],
)
def test_a_person_may_shorten_a_name_and_gets_every_candidate(word, platform, shorts):
    assert [facts.short for facts in find_devices(word, platform)] == shorts


def test_a_platform_tells_units_of_one_name_from_each_other():
    assert facts_of("OrangePi5, Rockchip RK3588s", "cpu") != facts_of("Rockchip RK3588", "vulkan")
    assert facts_of("Rockchip RK3588") is None
    assert facts_of("Apple M1 Pro", "cpu") is None
    assert facts_of("NVIDIA Jetson AGX Orin (Cortex-A78AE 2.2 GHz x 12)", "cpu") is None


@EVERY
def test_every_device_is_whole_and_found_by_its_names(one):
    assert one.short == one.short.lower()
    assert not re.search(r"[ ,:]|^\d+$", one.short)
    assert len(one.source) > 10
    for platform in one.platforms:
        assert facts_of(one.name, platform) is one
        assert find_devices(one.name, platform) == find_devices(one.short, platform) == [one]
    assert not match_device(one.name, one.platforms[0]).is_assumed
    assert kind_of(one.platforms[0], one.name) == one.kind


@EVERY
def test_every_rate_is_of_the_order_of_its_unit(one):
    # A slip of a thousand (GB for TB, TOPS for GOPS) would be outside.
    rates = [one.teraops[p] for p in ("fp32", "bf16", "fp16", "int8") if p in one.teraops]
    assert rates == sorted(rates) or one.kind == "server GPU"
    assert 0.05 < min(rates) <= max(rates) < 5100
    assert one.bandwidth == 0 or 10 < one.bandwidth < 1e4
    assert one.memory_gib is None or 4 <= one.memory_gib <= 288
    if one.bandwidth and one.kind not in ("board", "desktop CPU", "server CPU"):
        assert 10 < max(rates) * 1e3 / one.bandwidth < 2000  # operations a byte
    assert one.highest_rate >= one.peak("fp16")
    if one.sustained:
        assert one.sustained < one.half_rate == one.highest_rate


def test_names_and_rates_are_of_one_device_each():
    known = known_devices()
    assert len({one.short for one in known}) == len(known)
    rates = [(d.kind, str(d.teraops), d.bandwidth, d.memory_gib, d.watts) for d in known]
    assert len(set(rates)) == len(known) - 1  # A800 is A100 with a slower NVLink


@pytest.mark.parametrize(
    "line",
    [
        ("p100", "v100-pcie-16gb", "a100-pcie-40gb", "h100-pcie", "h200-nvl", "b200", "gb200"),
        ("t4", "a10", "l40s"),
        ("rtx-3060", "rtx-4060"),
        ("rtx-2080-ti", "rtx-3080-ti", "rtx-4090", "rtx-5090"),
        ("rtx-4070", "rtx-4070-super", "rtx-4070-ti-super", "rtx-4080", "rtx-5080"),
        ("mi210", "mi300a", "mi300x", "mi325x"),
        ("m1", "m2", "m2-pro", "m2-max", "m2-ultra"),
        ("v3", "v5p"),
        ("raspberry-pi-4", "raspberry-pi-5"),
        ("epyc-7543", "epyc-7763", "epyc-9654", "epyc-9755"),
    ],
)
def test_a_newer_device_of_a_line_is_nowhere_slower(line):
    devices = [next(d for d in known_devices() if d.short == short) for short in line]
    for older, newer in pairwise(devices):
        assert (older.half_rate or 0) <= (newer.half_rate or 0)
        assert older.teraops.get("int8", 0) <= newer.teraops.get("int8", 1e9)
        if older.kind != "server GPU":  # NVIDIA gave A100 more fp32 than A10's successors have
            assert older.teraops.get("fp32", 0) <= newer.teraops.get("fp32", 0)
        assert older.bandwidth <= newer.bandwidth or older.short in (
            "rtx-3060",
            "rtx-4070-ti-super",
        )


def test_rates_are_those_of_their_documents():
    a100, h100, l4 = (find_devices(name)[0] for name in ("a100", "h100", "l4"))
    assert (a100.teraops["fp32"], a100.teraops["bf16"]) == (19.5, 312)  # dense: half of 624
    assert (a100.bandwidth, a100.memory_bytes) == (2039, 80 * 2**30)
    assert h100.teraops["int8"] == pytest.approx(3958 / 2, rel=1e-3)
    # 72 W: products take what the limit leaves, and are impossible above the peak alone.
    assert (l4.peak("fp16"), l4.documented_rate("bf16"), l4.highest_rate) == (57, 57, 121)
    assert documented_peak("NVIDIA L4", "cuda", "fp16") == 121e12
    card = facts_of("NVIDIA GeForce RTX 4090")
    assert (card.half_rate, card.fp16_sums, card.highest_rate) == (165.2, 330.4, 330.4)
    # 3072 units that multiply and add at 2.46 GHz; 128 bit at 17 Gbps.
    small = typical_device("webgpu")
    assert small.teraops["fp32"] == pytest.approx(3072 * 2 * 2.46e-3, rel=0.01)
    assert small.bandwidth == 128 / 8 * 17
    hybrid = facts_of("Core i7-12700H")
    assert hybrid.peak("fp32") == pytest.approx(0.8 * (6 * 4.7 * 32 + 8 * 3.5 * 16) / 1e3)
    npu = typical_device("qnn")
    assert [npu.documented_rate(p) for p in ("int8", "fp16", "amp-fp16")] == [45, None, None]


def test_each_platform_stands_for_a_documented_device():
    for hardware in {*HARDWARE, "directml"} - {"cpu", "wasm"}:
        assert hardware in typical_device(hardware).platforms
    assert typical_device("cpu") is typical_device("wasm") is None
    assert typical_device("openvino", "npu").short == "core-ultra-7-258v-npu"


@pytest.mark.parametrize(
    ("platform", "name", "kind"),
    [
        ("cpu", "Intel(R) Xeon(R) Platinum 9999", "server CPU"),
        ("cpu", "AMD Ryzen 5 5560U with Radeon Graphics", "desktop CPU"),
        ("cpu", "Amlogic S805 (Cortex-A5, 4 × 1.536GHz)", "board"),
        ("cpu", "Qualcomm Snapdragon 888 (Cortex-X1 2.84GHz x1)", "phone"),
        ("mobile-cpu", "essential_ph", "phone"),
        ("qualcomm-npu", "Samsung Galaxy S24", "NPU"),
        ("qualcomm-gpu", "QCS8275 (Proxy)", "phone"),
        ("cuda", "NVIDIA Jetson AGX Thor 128G", "board"),
        ("cuda", "NVIDIA GB300", "server GPU"),
        ("cuda", "NVIDIA GeForce RTX 6090", "desktop GPU"),
        ("mps", "Apple M9", "Apple GPU"),
        ("tpu", "a new one", "TPU"),
        ("vulkan", "a new one", "desktop GPU"),
    ],
)
def test_the_kind_of_an_unknown_device_follows_from_its_name(platform, name, kind):
    assert kind_of(platform, name) == kind


@EVERY
def test_simulations_and_predictions_take_the_same_limits(one):
    for platform in one.platforms:
        if not one.bandwidth or platform not in HARDWARE:
            continue
        place = f"{platform}:{one.short}"
        question = PredictionQuestion((), hardware=(place,), runtimes=("pytorch",))
        (predicted,) = configurations(question, [], lambda _: None, [])
        simulated: Any = stand_in(platform, one.short, {})
        assert facts_for(predicted) is simulated is one


def test_an_ambiguous_name_names_the_candidates_in_both():
    with pytest.raises(UsageError) as simulated:
        stand_in("cuda", "3080", {})
    question = PredictionQuestion((), hardware=("cuda:3080",))
    with pytest.raises(UsageError) as predicted:
        configurations(question, [], lambda _: None, [])
    for caught in (simulated, predicted):
        assert all(name in caught.value.advice for name in ("rtx-3080", "rtx-3080-ti"))


@pytest.mark.parametrize("word", ["h100", "H100", "cuda:h100", "NVIDIA H100 80GB HBM3"])
def test_no_import_changes_which_device_a_name_means(word):
    def stored(*names: str) -> list[MeasuredCase]:
        places = [CaseConfiguration("cuda", n, "pytorch", "fp32", "inference") for n in names]
        return [MeasuredCase(PredictedCase("m", "f", Shapes(1), p), 1.0, None) for p in places]

    question = PredictionQuestion((), hardware=(word,))
    others = ("3x NVIDIA H100-NVL-94GB", "NVIDIA H100 NVL", "8x NVIDIA H100-SXM-80GB")
    for names in ((), others, ("NVIDIA H100 PCIe", *others)):
        (place,) = configurations(question, stored(*names), lambda _: None, [])
        assert place.device == "NVIDIA H100 80GB HBM3"
    notes: list[str] = []
    same = stored("1x NVIDIA H100-SXM-80GB", *others)
    if word != "NVIDIA H100 80GB HBM3":
        (place,) = configurations(question, same, lambda _: None, notes)
        assert place.device == "1x NVIDIA H100-SXM-80GB"
        assert sum("NVIDIA H100 80GB HBM3" in note for note in notes) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ""},
        {"teraops": {}},
        {"teraops": {"fp32": 0}},
        {"teraops": {"tf32": 1}},
        {"bandwidth": -1},
        {"memory_gib": 0},
        {"name": ""},
    ],
)
def test_facts_that_are_not_whole_are_refused(wrong):
    facts: DeviceFacts = devices_on("cuda")[0]
    with pytest.raises(ValueError, match="not whole"):
        dataclasses.replace(facts, **wrong)
