"""cuda, rocm and mps from records: an H200, two different cards, MIG, an MI300X, an Apple M3."""

import json

import pytest
from gpu_records import A100_MIG, H200, MI300X, MI300X_SYSFS, RTX, RecordedAmdSmi, RecordedNvml
from hardware_records import RecordedCommands, RecordedFiles

from accelbench.core.protocols import Absent, Device
from accelbench.hardware import cuda as nvml
from accelbench.hardware import rocm as amdgpu
from accelbench.hardware.common import ProbeTimeoutError
from accelbench.hardware.cuda import CudaDetector
from accelbench.hardware.mps import MpsDetector
from accelbench.hardware.rocm import RocmDetector

LOADED = RecordedFiles({"/proc/driver/nvidia/version": "NVRM version: 580.159.04"})


def cuda(*cards, environment=None, answer=None, commands=None):
    said = answer or json.loads(json.dumps(nvml.read_cards(RecordedNvml(*cards))))
    return CudaDetector(
        LOADED, lambda *_: said, commands or RecordedCommands({}), environment or {}, "linux"
    ).detect()


def test_an_h200_s_fingerprint():
    (card,) = cuda(H200)
    assert (card.name, card.vendor, card.driver) == ("NVIDIA H200", "NVIDIA", "580.159.04")
    assert card.memory_bytes == 143771 * 2**20
    assert card.power_limit_watts == 700
    assert card.details["uuid"] == H200["uuid"]
    assert card.details["compute_capability"] == "9.0"
    assert card.details["cuda"] == "13.0"
    assert card.details["mig"] is False
    assert card.details["processes"] == [4711, 4712]
    assert "ordinal_note" not in card.details

    (quiet,) = cuda({**H200, "processes": [], "used": 0, "clocks": {1: 345, 2: 1}})
    (busy,) = cuda(H200)
    (capped,) = cuda({**H200, "power_limit_mw": 500_000})
    assert quiet.fingerprint == busy.fingerprint != capped.fingerprint


def test_several_cards_and_their_numbers():
    first, second = cuda(RTX, H200)
    assert [first.ordinal, second.ordinal] == [0, 1]
    assert first.fingerprint != second.fingerprint
    assert "CUDA_DEVICE_ORDER" in first.details["ordinal_note"]
    first, _ = cuda(RTX, H200, environment={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert "ordinal_note" not in first.details

    (only,) = cuda(RTX, H200, environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert (only.name, only.ordinal) == ("NVIDIA H200", 0)
    (gone,) = cuda(RTX, H200, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert isinstance(gone, Absent)
    assert "CUDA_VISIBLE_DEVICES= hides" in gone.reason

    large, small = cuda(A100_MIG)
    assert large.name.endswith("MIG 3g.40gb")
    assert (large.memory_bytes, small.memory_bytes) == (40192 * 2**20, 9728 * 2**20)
    assert large.details["mig_instance_of"] == A100_MIG["uuid"]
    assert large.details["uuid"] == "MIG-1"
    (none,) = cuda({**A100_MIG, "instances": []})
    assert isinstance(none, Absent)
    assert "nvidia-smi mig -cgi" in none.remedy


def test_cards_that_know_little():
    (card,) = cuda({"name": "GRID", "uuid": "GPU-1", "memory": 5})
    assert card.name == "NVIDIA GRID"
    assert card.power_limit_watts is None
    assert "compute_capability" not in card.details

    row = "580.159.04, NVIDIA H200, GPU-1, 143771, 700.00, 9.0, 00000000:18:00.0\n"
    (card,) = cuda(answer={"missing": "package"}, commands=RecordedCommands({"nvidia-smi": row}))
    (same,) = cuda(H200)
    assert card.fingerprint == same.fingerprint
    (none,) = cuda(answer={"missing": "package"})
    assert "nvidia-ml-py is not installed" in none.reason
    assert "accelbench setup cuda" in none.remedy

    (none,) = CudaDetector(RecordedFiles({}), None, None, {}, "linux").detect()
    assert none.reason == "no NVIDIA driver is loaded"
    assert "accelbench setup cuda" in none.remedy
    (none,) = cuda(answer={"missing": "driver", "reason": "Driver/library version mismatch"})
    assert "version mismatch" in none.reason
    (none,) = cuda(answer={"driver": "1", "cuda": None, "cards": []})
    assert "no GPU" in none.reason
    (none,) = CudaDetector(RecordedFiles({}), None, None, {}, "darwin").detect()
    assert "macOS" in none.reason


@pytest.mark.parametrize("sign", ["/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so"])
def test_containers_and_wsl_show_the_driver_elsewhere(sign):
    said = nvml.read_cards(RecordedNvml(H200))
    (card,) = CudaDetector(RecordedFiles({sign: ""}), lambda *_: said, None, {}, "linux").detect()
    assert card.name == "NVIDIA H200"


def test_a_driver_that_hangs_is_a_reason():
    def hang(module, timeout):
        raise ProbeTimeoutError(f"{module} did not answer", "Restart the machine.")

    (none,) = CudaDetector(LOADED, hang, None, {}, "linux").detect()
    assert none.reason == "accelbench.hardware.cuda did not answer"
    assert none.remedy == "Restart the machine."


def rocm(files, answer, environment=None):
    return RocmDetector(
        RecordedFiles(files), lambda *_: answer, environment or {}, "linux"
    ).detect()


def test_an_mi300x():
    said = json.loads(json.dumps(amdgpu.read_cards(RecordedAmdSmi(MI300X))))
    (card,) = rocm(MI300X_SYSFS, said)
    assert (card.name, card.vendor, card.driver) == ("AMD Instinct MI300X", "AMD", "6.10.5")
    assert card.memory_bytes == 206141652992
    assert card.power_limit_watts == 750
    assert card.details["architecture"] == "gfx942"
    assert card.details["compute_units"] == 304
    assert card.details["processes"] == [99]

    (by_files,) = rocm(MI300X_SYSFS, {"missing": "package"})
    said = amdgpu.read_cards(RecordedAmdSmi(MI300X))
    (by_library,) = rocm(MI300X_SYSFS, said)
    assert by_files.fingerprint == by_library.fingerprint
    assert by_files.details["architecture"] == "gfx942"
    assert by_files.details["compute_units"] == 304

    def fail(module, timeout):
        raise ProbeTimeoutError("hangs")

    (card,) = RocmDetector(RecordedFiles(MI300X_SYSFS), fail, {}, "linux").detect()
    assert isinstance(card, Device)

    (none,) = rocm({}, {})
    assert "KFD" in none.reason
    cpu_only = {k: v for k, v in MI300X_SYSFS.items() if "nodes/0" in k}
    (none,) = rocm(cpu_only, {"missing": "package"})
    assert "no GPU" in none.reason
    (none,) = rocm(MI300X_SYSFS, {"missing": "driver"}, {"HIP_VISIBLE_DEVICES": "-1"})
    assert "HIP_VISIBLE_DEVICES" in none.reason


@pytest.mark.parametrize(
    ("cap", "watts"), [(750_000_000, 750), (750, 750), (0, None), ("N/A", None)]
)
def test_power_caps_of_either_unit(cap, watts):
    assert amdgpu.watts(cap) == watts


@pytest.mark.parametrize(
    ("version", "name"), [(90402, "gfx942"), (90010, "gfx90a"), (110000, "gfx1100"), (0, None)]
)
def test_gfx_names(version, name):
    assert amdgpu.gfx_name(version) == name


M3_PROFILE = json.dumps(
    {
        "SPDisplaysDataType": [
            {
                "sppci_model": "Apple M3 Pro",
                "sppci_cores": "14",
                "spdisplays_vendor": "sppci_vendor_Apple",
                "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            }
        ]
    }
)
M3_SYSCTL = "machdep.cpu.brand_string: Apple M3 Pro\nhw.memsize: 19327352832"


def test_apple_gpus():
    commands = RecordedCommands({"sysctl": M3_SYSCTL, "system_profiler": M3_PROFILE})
    (gpu,) = MpsDetector(commands, "darwin", "arm64", "14.4").detect()
    assert (gpu.name, gpu.count, gpu.memory_bytes) == ("Apple M3 Pro", 14, 18 * 2**30)
    assert gpu.driver == "macOS 14.4"
    assert gpu.details["metal"] == "spdisplays_metal3"

    (gpu,) = MpsDetector(RecordedCommands({"sysctl": M3_SYSCTL}), "darwin", "arm64", "14").detect()
    assert gpu.details["gpu_cores"] == "not told"
    (none,) = MpsDetector(RecordedCommands({}), "linux", "x86_64", "").detect()
    assert "macOS only" in none.reason
    (none,) = MpsDetector(RecordedCommands({}), "darwin", "x86_64", "13").detect()
    assert "no Apple chip" in none.reason
