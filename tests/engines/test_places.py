"""cuda, rocm and mps without such a device: waiting, memory counters, event timers, refusals."""

import pytest
from fake_torch import fake_torch

from accelbench.core.clock import MonotonicClock
from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.vocabulary import Timing
from accelbench.engines.pytorch.places import place_for
from accelbench.engines.shared.local import LocalSampler

BUILDS = {
    "cuda": lambda: fake_torch(gpus=2),
    "rocm": lambda: fake_torch(gpus=2, hip="6.4"),
    "mps": lambda: fake_torch(gpus=0, mps=True),
}


def placed(hardware, ordinal=0):
    torch = BUILDS[hardware]()
    return torch, place_for(torch, hardware, ordinal)


def sampler(place, torch):
    return LocalSampler(
        clock=MonotonicClock(),
        step=lambda inputs: torch.calls.append("step"),
        synchronize=place.synchronize,
        timer=place.timer,
    )


@pytest.mark.parametrize("hardware", BUILDS)
def test_every_step_is_waited_for(hardware):
    torch, place = placed(hardware)
    torch.calls.clear()
    sampler(place, torch).sample(None, 3, Timing.EACH)
    wait = ("synchronize", "mps" if hardware == "mps" else 0)
    assert torch.calls == [wait] + ["step", wait] * 3


@pytest.mark.parametrize("hardware", BUILDS)
def test_event_timers_time_every_step_and_wait_once(hardware):
    torch, place = placed(hardware)
    torch.calls.clear()
    block = sampler(place, torch).sample(None, 4, Timing.DEVICE)
    assert block.phase_ns == {"step": [1_500_000] * 4}
    assert torch.calls[:-1] == ["step"] * 4


@pytest.mark.parametrize("hardware", ["cuda", "rocm"])
def test_the_second_card_is_the_second_card_throughout(hardware):
    torch, place = placed(hardware, 1)
    assert str(place.device) == "cuda:1"
    assert place.synchronize is not None
    place.synchronize()
    place.reset_memory()
    assert torch.calls == [("set_device", 1), ("synchronize", 1), ("reset", 1)]
    memory = place.memory()
    assert (memory.peak_bytes, memory.current_bytes, memory.reserved_bytes) == (3001, 2001, 4001)
    assert memory.source == "torch.cuda allocator"


def test_metal_has_counters_but_no_peak():
    _, place = placed("mps")
    memory = place.memory()
    assert (memory.peak_bytes, memory.current_bytes, memory.reserved_bytes) == (None, 500, 900)
    assert "sampled" in memory.source


def test_the_facts_that_change_a_cards_speed_are_told():
    torch, place = placed("cuda")
    facts = place.facts()
    assert facts["name"] == "NVIDIA H200"
    assert facts["compute_capability"] == "9.0"
    assert facts["matmul_precision"] == "highest"
    # fp32 is refused to run as TF32 behind the user's back, which is PyTorch's own default.
    assert facts["cudnn_tf32"] is False
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert facts["threads"] == 4
    assert (facts["cuda"], facts["hip"]) == ("13.0", None)
    _, amd = placed("rocm")
    assert (amd.facts()["cuda"], amd.facts()["hip"]) == (None, "6.4")


@pytest.mark.parametrize(("build", "asked"), [("cuda", "rocm"), ("rocm", "cuda")])
def test_a_build_for_the_other_vendor_is_refused(build, asked):
    with pytest.raises(UnsupportedError) as caught:
        place_for(BUILDS[build](), asked, 0)
    assert caught.value.reason == "wrong_build"
    assert f"built for {build}, not {asked}" in caught.value.message
    assert f"--hardware {build}" in caught.value.advice


@pytest.mark.parametrize(("hardware", "ordinal"), [("cuda", 2), ("rocm", 5)])
def test_a_card_that_torch_does_not_see_is_an_error(hardware, ordinal):
    with pytest.raises(CaseError) as caught:
        placed(hardware, ordinal)
    assert caught.value.reason == "engine_sees_no_device"
    assert str(ordinal) in caught.value.message


def test_what_torch_does_not_see_is_refused():
    for hardware in BUILDS:
        with pytest.raises(CaseError) as caught:
            place_for(fake_torch(gpus=0), hardware, 0)
        assert caught.value.reason == "engine_sees_no_device"
        assert caught.value.advice

    with pytest.raises(UnsupportedError, match="does not serve tpu"):
        place_for(fake_torch(), "tpu", 0)
    place = place_for(fake_torch(), "cpu", 0)
    assert place.synchronize is None
    assert place.timer is None
    assert place.memory() is None
