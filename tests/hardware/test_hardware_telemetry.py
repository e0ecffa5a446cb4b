"""Every vendor's meters from records; what is absent comes back with its reason, never as 0."""

import os

from gpu_records import H200, MI300X, RTX, RecordedAmdSmi, RecordedNvml
from hardware_records import AMD_GUEST, XEON_V2, RecordedCommands, RecordedFiles

from accelbench.core.protocols import Device
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import telemetry_for
from accelbench.hardware.telemetry.amd import amd_telemetry
from accelbench.hardware.telemetry.apple import AppleTelemetry
from accelbench.hardware.telemetry.common import Clocks, ForeignProcess, NullTelemetry
from accelbench.hardware.telemetry.nvidia import nvidia_telemetry
from accelbench.hardware.telemetry.rapl import NO_POWERCAP, NOT_READABLE, CpuTelemetry

QUESTIONS = (
    "clocks",
    "energy_millijoules",
    "power_watts",
    "temperature_celsius",
    "throttled",
    "device_memory_used",
    "foreign_processes",
)


def test_nvidia_cards_answer_or_say_why_not():
    nvml = RecordedNvml(H200)
    meters = nvidia_telemetry(H200["uuid"], nvml)
    assert meters.clocks() == Clocks(1980, 3201, 1980)
    assert meters.energy_millijoules() == 123_456_789
    assert meters.power_watts() == 75.12
    assert meters.temperature_celsius() == 31
    assert meters.throttled() == ()  # idle is no throttling
    assert meters.device_memory_used() == 2**30
    assert meters.foreign_processes(own=[4711]) == (ForeignProcess(4712, None),)
    meters.close()
    assert nvml.users == 0

    meters = nvidia_telemetry(RTX["uuid"], RecordedNvml(RTX, newer_reasons=False))
    energy = meters.energy_millijoules()
    assert isinstance(energy, NotAvailable)
    assert "Not Supported" in str(energy)
    assert meters.throttled() == ("power cap", "temperature (hardware)")

    meters = nvidia_telemetry("GPU-unknown", RecordedNvml(H200))
    assert "Not Found" in str(meters.clocks())


def test_other_devices_and_the_null_object():
    shown = '"PerformanceStatistics" = {"In use system memory"=123456,"Device Utilization %"=3}'
    meters = AppleTelemetry(RecordedCommands({"ioreg": shown}))
    assert meters.device_memory_used() == 123456
    assert "powermetrics" in str(meters.energy_millijoules())
    assert isinstance(AppleTelemetry(RecordedCommands({})).device_memory_used(), NotAvailable)

    meters = CpuTelemetry(RecordedFiles(AMD_GUEST))
    for question in ("clocks", "power_watts", "temperature_celsius", "throttled"):
        assert isinstance(getattr(meters, question)(), NotAvailable)
    assert meters.device_memory_used() == (24684092 - 24252808) * 1024
    meters = NullTelemetry("no such vendor")
    for question in QUESTIONS:
        assert str(getattr(meters, question)()) == "not available (no such vendor)"
    meters.close()

    for hardware in ("cpu", "cuda", "rocm", "mps", "openvino", "qnn", "webgpu", "plugin"):
        meters = telemetry_for(Device(hardware, "x", details={"uuid": "GPU-none"}))
        assert meters.source
        for question in QUESTIONS:
            assert getattr(meters, question)() is not None
        meters.close()

    card = {**H200, "processes": [(os.getpid(), 1), (7, 2)]}
    meters = nvidia_telemetry(H200["uuid"], RecordedNvml(card))
    assert [p.pid for p in meters.foreign_processes()] == [7]


def test_amd_cards_answer_or_say_why_not():
    smi = RecordedAmdSmi(MI300X)
    meters = amd_telemetry(0, MI300X["uuid"], smi)
    assert meters.clocks() == Clocks(132, 900, 2100)
    assert meters.energy_millijoules() == 15.259
    assert meters.power_watts() == 141
    assert meters.temperature_celsius() == 38
    assert isinstance(meters.throttled(), NotAvailable)
    assert meters.device_memory_used() == 297_000_000
    assert meters.foreign_processes() == (ForeignProcess(99, 4096),)
    meters.close()
    assert smi.users == 0

    assert "no GPU 3" in str(amd_telemetry(3, None, RecordedAmdSmi(MI300X)).clocks())
    meters = amd_telemetry(0, None, RecordedAmdSmi({"power": {"current_socket_power": "N/A"}}))
    assert isinstance(meters.power_watts(), NotAvailable)
    assert isinstance(meters.energy_millijoules(), NotAvailable)
    assert isinstance(meters.foreign_processes(), NotAvailable)


def powercap(*readings, readable=True):
    tree = {"/sys/class/powercap/intel-rapl:0:0/name": "core"}
    for package, value in enumerate(readings):
        folder = f"/sys/class/powercap/intel-rapl:{package}"
        tree[f"{folder}/name"] = f"package-{package}"
        tree[f"{folder}/max_energy_range_uj"] = "1000000"
        if readable:
            tree[f"{folder}/energy_uj"] = str(value)
    return tree


def test_rapl_adds_packages_and_unknown_energy_is_never_zero():
    files = RecordedFiles({**XEON_V2, **powercap(400_000, 900_000)})
    meters = CpuTelemetry(files)
    assert meters.energy_millijoules() == 1300
    files.files.update(powercap(500_000, 100_000))  # the second has turned at 1 000 000
    assert meters.energy_millijoules() == 1600

    assert CpuTelemetry(RecordedFiles(AMD_GUEST)).energy_millijoules() == NO_POWERCAP
    closed = RecordedFiles(powercap(1, readable=False))
    assert CpuTelemetry(closed).energy_millijoules() == NOT_READABLE


def test_a_cpu_with_cpufreq_and_heat():
    counter = "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    files = RecordedFiles(
        {
            **XEON_V2,
            counter: "5",
            "/sys/class/thermal/thermal_zone3/type": "x86_pkg_temp",
            "/sys/class/thermal/thermal_zone3/temp": "61000",
        }
    )
    meters = CpuTelemetry(files)
    assert meters.clocks() == Clocks(2000, None, 3800)
    assert meters.temperature_celsius() == 61
    assert meters.throttled() == ()
    files.files[counter] = "6"
    assert meters.throttled() == ("temperature",)
