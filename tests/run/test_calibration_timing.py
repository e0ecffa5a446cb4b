"""Probes of a calibration: which, how long, and what comes of those that cannot be timed."""

import pytest

from accelbench.core.calibration import ProbeKind, ProbeSpec
from accelbench.core.protocols import Device
from accelbench.run.calibrating import FEWEST_BLOCKS, ProbeBlocks, figure_of, time_probe
from accelbench.run.calibration_worker import DeviceSizes, probes_for, sizes_of, time_all

MIB = 2**20
PRODUCT = ProbeSpec(ProbeKind.MATRIX, "probe/matmul-1024", "fp32", 1024, 2.0 * 1024**3)


class SteppedClock:
    """Time passes as steps are made; those of a device pass while it is waited for."""

    def __init__(self, step_ns, queued=False):
        self.now, self.waits, self.steps = 0, 0, 0
        self._step_ns, self._queued, self._waiting = step_ns, queued, 0

    def now_ns(self):
        return self.now

    def tick_ns(self):
        return 1.0

    def step(self):
        self.steps += 1
        if self._queued:
            self._waiting += self._step_ns
        else:
            self.now += self._step_ns

    def synchronize(self):
        self.waits += 1
        self.now += self._waiting
        self._waiting = 0


def timed(clock, seconds=1.0, wait=False):
    return time_probe(clock.step, clock.synchronize if wait else None, seconds, clock)


@pytest.mark.parametrize("step_ns", [1_000, 300_000, 20_000_000])
def test_blocks_are_long_enough_for_the_clock_and_fill_the_time(step_ns):
    clock = SteppedClock(step_ns)
    blocks = timed(clock)
    assert set(blocks.samples_ns) == {blocks.steps * step_ns}
    assert 15e6 <= blocks.samples_ns[0] <= 25e6
    assert 0.95e9 < clock.now < 1.05e9
    assert blocks.step_seconds == pytest.approx(step_ns / 1e9)


def test_slow_steps_have_as_many_blocks_as_there_is_time_for():
    clock = SteppedClock(400_000_000)
    assert len(timed(clock).samples_ns) == FEWEST_BLOCKS
    assert clock.now <= 3e9
    clock = SteppedClock(2_000_000_000)
    assert timed(clock).samples_ns == (2_000_000_000,)


def test_a_device_is_waited_for_at_the_end_of_each_block_and_only_there():
    """Launches alone took no time at all: without waiting the rate would be infinite."""
    clock = SteppedClock(300_000, queued=True)
    blocks = timed(clock, wait=True)
    assert blocks.step_seconds == pytest.approx(300e-6)
    assert clock.waits < clock.steps / 20


def sent(specs, timed, seconds=1.0):
    answers = []
    time_all(specs, seconds, timed, answers.append)
    return answers


def sides(*several, precision="fp32"):
    return [
        ProbeSpec(ProbeKind.MATRIX, f"probe/matmul-{n}", precision, n, 2.0 * n**3) for n in several
    ]


def test_a_size_that_would_be_too_slow_is_left_out_by_what_a_smaller_one_took():
    specs = [*sides(512, 1024, 2048), *sides(512, precision="fp16")]
    slow = lambda spec: ProbeBlocks(1, (int(spec.work / 2e10 * 1e9),))  # noqa: E731
    answers = sent(specs, slow)
    assert ["probe" in answer for answer in answers] == [True, True, False, True]
    refused = answers[2]["refused"]
    assert (refused["name"], refused["precision"]) == ("probe/matmul-2048", "fp32")
    assert refused["reason"] == "a step would take about 0.86 s"


def test_what_an_engine_has_no_operator_for_is_said_and_the_others_go_on():
    def fails(spec):
        if spec.precision == "int8":
            raise NotImplementedError("no int8 here\nand much more")
        return ProbeBlocks(1, (1_000_000,))

    specs = [*sides(64, precision="int8"), *sides(64)]
    refused, answer = sent(specs, fails)
    assert refused == {
        "refused": {"name": "probe/matmul-64", "precision": "int8", "reason": "no int8 here"}
    }
    assert answer["samples_ns"] == (1_000_000,)


def test_a_figure_is_a_median_with_an_interval_of_enough_blocks():
    samples = [20_000_000 + 1_000 * n for n in range(40)] + [90_000_000]
    figure = figure_of(PRODUCT, 10, samples)
    assert figure.value == pytest.approx(PRODUCT.work * 10 / 0.02002, rel=1e-6)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low <= figure.value <= figure.high
    assert figure.samples_ns == tuple(samples)

    figure = figure_of(
        ProbeSpec(ProbeKind.LAUNCH, "probe/launch", "fp32", 1, 1.0), 1000, [3_000_000]
    )
    assert (figure.value, figure.low, figure.high) == (3e-6, None, None)


def cpu(memory=32 * 2**30, instances=2):
    caches = [
        {"name": "L1d", "bytes": 2**15, "instances": instances},
        {"name": "L2", "bytes": MIB // 2, "instances": instances},
        {"name": "L3", "bytes": 32 * MIB, "instances": 1},
    ]
    return Device("cpu", "A processor", details={"caches": caches, "memory_available": memory})


def by_name(device, threads=2, told=None):
    specs = probes_for(sizes_of(device, told or {}, threads, (1, 12, 64)))
    return {(spec.name.removeprefix("probe/"), spec.precision): spec for spec in specs}


def test_probes_of_a_cpu_follow_its_caches_and_memory():
    probes = by_name(cpu())
    copy, triad = probes["memory-copy", "fp32"], probes["memory-triad", "fp32"]
    assert 2 * copy.size >= 4 * 32 * MIB
    assert (copy.work, triad.work) == (2 * copy.size, 3 * triad.size)
    probes = by_name(cpu(instances=64), threads=2)
    assert 2 * probes["cache-L2", "fp32"].size == MIB // 2  # half of two caches
    assert 2 * probes["cache-L3", "fp32"].size == 16 * MIB

    probes = by_name(cpu(memory=256 * MIB))
    held = [3 * spec.size for (name, _), spec in probes.items() if name.startswith("memory")]
    assert max(held) <= 32 * MIB
    assert ("matmul-1024", "fp32") in probes
    assert ("matmul-2048", "fp32") not in probes

    probes = probes_for(DeviceSizes("mps", {}, None, (8, 16, 64)))
    assert not [spec for spec in probes if spec.kind is ProbeKind.CACHE]
    assert [spec.size for spec in probes if spec.kind is ProbeKind.MEMORY] == [256 * MIB] * 2


def test_probes_of_an_accelerator_and_their_order():
    card = Device("cuda", "NVIDIA H100 80GB HBM3", memory_bytes=80 * 2**30)
    probes = by_name(card, told={"L2": 50 * MIB})
    assert ("matmul-16384", "bf16") in probes
    assert ("matmul-256", "fp32") not in probes
    assert {"fp32", "bf16", "fp16"} == {p for name, p in probes if name.startswith("attention")}
    assert 2 * probes["cache-L2", "fp32"].size == 25 * MIB
    assert probes["memory-copy", "fp32"].size >= 256 * MIB

    kinds = [
        (spec.kind, spec.precision) for spec in probes_for(sizes_of(cpu(), {}, 2, (1, 12, 64)))
    ]
    assert kinds.index((ProbeKind.MEMORY, "fp32")) < kinds.index((ProbeKind.MATRIX, "bf16"))
    assert kinds[0] == (ProbeKind.MATRIX, "fp32")
