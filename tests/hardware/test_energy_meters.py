"""Which meter counts a device's energy: recorded files, and libraries in the form of the real."""

from types import SimpleNamespace

import pytest
from gpu_records import H200, RTX, RecordedNvml
from hardware_records import AMD_GUEST, RecordedFiles

from accelbench.core.energy import EnergyMethod, MeterError
from accelbench.core.protocols import Device
from accelbench.hardware.common import NotAvailable
from accelbench.hardware.telemetry import energy as energy_module
from accelbench.hardware.telemetry.apple import apple_meter
from accelbench.hardware.telemetry.energy import (
    combined_meter,
    describe_meters,
    energy_meter,
    telemetry_meter,
    zeusd_meter,
)
from accelbench.hardware.telemetry.nvidia import nvidia_telemetry
from accelbench.hardware.telemetry.rapl import NO_POWERCAP, NOT_READABLE, POWERCAP_VARIABLE

CPU = Device("cpu", "A processor")
POWERCAP = "/sys/class/powercap"


def zone(name, kind, microjoules, root=POWERCAP):
    """Files of one zone as the kernel lays them out."""
    folder = f"{root}/{name}"
    files = {f"{folder}/name": kind, f"{folder}/max_energy_range_uj": "262143328850"}
    return files if microjoules is None else {**files, f"{folder}/energy_uj": str(microjoules)}


def two_sockets(root=POWERCAP):
    return RecordedFiles(
        {
            **zone("intel-rapl:0", "package-0", 5_000_000, root),
            **zone("intel-rapl:0:0", "core", 3_000_000, root),
            **zone("intel-rapl:0:1", "dram", 1_000_000, root),
            **zone("intel-rapl:1", "package-1", 7_000_000, root),
            **zone("intel-rapl:1:0", "dram", 2_000_000, root),
            **zone("intel-rapl:2", "psys", 99_000_000, root),
            **zone("intel-rapl-mmio:0", "package-0", 5_000_000, root),
        }
    )


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in (POWERCAP_VARIABLE, "ZEUSD_SOCK_PATH", "ZEUSD_HOST_PORT"):
        monkeypatch.delenv(name, raising=False)


def meter_of(device, files, system="linux"):
    meter = energy_meter(device, files, system)
    assert not isinstance(meter, NotAvailable), meter.reason
    return meter


def test_packages_are_read_and_their_parts_are_not():
    meter = meter_of(CPU, two_sockets())
    assert meter.read() == (5.0, 7.0, 1.0, 2.0)
    assert meter.ranges == (262143.32885,) * 4
    assert meter.scope == "2 CPU packages and their DRAM; other processes included"
    assert meter.method is EnergyMethod.COUNTER

    meter = meter_of(CPU, RecordedFiles(zone("intel-rapl:0", "package-0", 1)))
    assert meter.scope == "1 CPU package; DRAM is not included; other processes included"


@pytest.mark.parametrize(
    "device", [Device("wasm", "A browser"), Device("openvino", "x", unit="cpu")]
)
def test_whatever_runs_on_the_cpu_has_its_meter(device):
    assert meter_of(device, two_sockets()).source == "RAPL"


def test_a_container_names_where_the_folder_is(monkeypatch):
    monkeypatch.setenv(POWERCAP_VARIABLE, "/host/powercap")
    assert meter_of(CPU, two_sockets("/host/powercap")).read() == (5.0, 7.0, 1.0, 2.0)
    assert energy_meter(CPU, two_sockets(), "linux") is NO_POWERCAP


def test_what_has_no_meter_says_why():
    closed = RecordedFiles(zone("intel-rapl:0", "package-0", None))
    assert energy_meter(CPU, closed, "linux") is NOT_READABLE
    assert "sudo chmod a+r" in NOT_READABLE.reason
    assert energy_meter(CPU, RecordedFiles(AMD_GUEST), "linux") is NO_POWERCAP
    said = describe_meters([CPU, Device("webgpu", "An adapter")], RecordedFiles(AMD_GUEST))
    assert said == {"cpu:0": f"not available ({NO_POWERCAP.reason})"}

    files = two_sockets()
    meter = meter_of(CPU, files)
    del files.files[f"{POWERCAP}/intel-rapl:1/energy_uj"]
    with pytest.raises(MeterError, match="cannot be read any more"):
        meter.read()

    emulated = energy_meter(Device("qnn", "emulation", emulated=True))
    assert "stands in" in str(emulated)
    assert "no meter of openvino:npu" in str(energy_meter(Device("openvino", "x", unit="npu")))


# -- GPUs


def test_gpus_by_counter_power_or_reason():
    meter = telemetry_meter(nvidia_telemetry(H200["uuid"], RecordedNvml(H200)))
    assert not isinstance(meter, NotAvailable)
    assert (meter.method, meter.source, meter.read()) == (
        EnergyMethod.COUNTER, "NVML", (123_456.789,),
    )  # fmt: skip
    assert "the host is not included" in meter.scope

    meter = telemetry_meter(nvidia_telemetry(RTX["uuid"], RecordedNvml(RTX)))
    assert not isinstance(meter, NotAvailable)
    assert meter.method is EnergyMethod.INTEGRATED
    assert meter.read() == (RTX["power_mw"] / 1000,)
    nothing = telemetry_meter(nvidia_telemetry("GPU-unknown", RecordedNvml(H200)))
    assert "Not Found" in str(nothing)


def test_several_devices_are_summed_and_the_host_counted_once(monkeypatch):
    nvml = RecordedNvml(H200)
    monkeypatch.setattr(
        energy_module, "telemetry_for", lambda device: nvidia_telemetry(H200["uuid"], nvml)
    )
    gpus = [Device("cuda", "A GPU", ordinal, details={"uuid": "x"}) for ordinal in (0, 1)]
    both = combined_meter(gpus)
    assert not isinstance(both, NotAvailable)
    assert both.read() == (123_456.789, 123_456.789)
    assert both.scope.endswith("(sum over 2 devices)")
    both.close()
    assert nvml.users == 0
    host = combined_meter([CPU, CPU], two_sockets())
    assert not isinstance(host, NotAvailable)
    assert host.read() == (5.0, 7.0, 1.0, 2.0)
    lacking = combined_meter([gpus[0], CPU], RecordedFiles(AMD_GUEST))
    assert str(lacking).startswith("not available (cpu:0: there is no /sys/class/powercap")
    assert nvml.users == 0


# -- through zeus


class AppleEnergyMonitor:
    """As zeus_apple_silicon 1.1 has it: cumulative millijoules, None where a chip counts none."""

    def __init__(self, **counted):
        self.counted = counted

    def get_cumulative_energy(self):
        fields = ("cpu_total_mj", "gpu_mj", "gpu_sram_mj", "dram_mj", "ane_mj")
        return SimpleNamespace(**{name: self.counted.get(name) for name in fields})


def apple(**counted):
    return SimpleNamespace(AppleEnergyMonitor=lambda: AppleEnergyMonitor(**counted))


def test_apple_s_meters():
    meter = apple_meter("gpu", apple(gpu_mj=4500, dram_mj=500, cpu_total_mj=9))
    assert not isinstance(meter, NotAvailable)
    assert meter.read() == (4.5, 0.5)
    assert meter.scope == "the GPU and the chip's DRAM; other processes included"
    cpu = apple_meter("cpu", apple(cpu_total_mj=2000))
    assert not isinstance(cpu, NotAvailable)
    assert cpu.read() == (2.0,)
    assert "DRAM is not included" in cpu.scope

    assert "does not count the energy of the GPU" in str(apple_meter("gpu", apple(dram_mj=1)))

    def refuses():
        raise RuntimeError("IOReport gives no channels")

    refusing = SimpleNamespace(AppleEnergyMonitor=refuses)
    assert "IOReport gives no channels" in str(apple_meter("gpu", refusing))
    assert "accelbench setup energy" in str(energy_meter(Device("mps", "M3"), system="darwin"))


class ZeusdClient:
    """As zeus.utils.zeusd 0.16 has it, with a daemon of two packages."""

    cpu_ids = (0, 1)
    dram_available = (True, False)
    left_out = False

    def get_cpu_energy(self, cpu_ids=None, cpu=True, dram=True):
        assert (cpu_ids, cpu, dram) == ([0, 1], True, True)
        first = SimpleNamespace(cpu_energy_uj=5_000_000, dram_energy_uj=1_000_000)
        second = None if self.left_out else 7_000_000
        return {0: first, 1: SimpleNamespace(cpu_energy_uj=second, dram_energy_uj=None)}


def test_rapl_through_zeusd_where_root_alone_may_read_it(monkeypatch):
    module = SimpleNamespace(ZeusdClient=ZeusdClient)
    assert zeusd_meter(module) is None  # nobody named a daemon
    monkeypatch.setenv("ZEUSD_SOCK_PATH", "/run/zeusd.sock")
    monkeypatch.setattr(energy_module, "zeusd_meter", lambda: zeusd_meter(module))
    meter = meter_of(CPU, RecordedFiles(zone("intel-rapl:0", "package-0", None)))
    assert meter.source == "RAPL, through zeusd"
    assert meter.read() == (5.0, 7.0, 1.0)
    assert meter_of(CPU, two_sockets()).source == "RAPL"  # what can be read is read
    monkeypatch.setattr(ZeusdClient, "left_out", True)
    with pytest.raises(MeterError, match="left out a counter"):
        meter.read()


def test_a_daemon_that_does_not_answer_leaves_the_reason(monkeypatch):
    monkeypatch.setenv("ZEUSD_HOST_PORT", "localhost:1")

    def unreachable():
        raise ConnectionError("nobody there")

    assert zeusd_meter(SimpleNamespace(ZeusdClient=unreachable)) is None
