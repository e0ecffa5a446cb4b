"""openvino, qnn, tpu, directml and the browser's three from records."""

import sys
from importlib.metadata import PackageNotFoundError

import pytest
from hardware_records import RecordedFiles

from accelbench.core.protocols import Absent, Device
from accelbench.hardware.browsers import (
    FETCHED,
    NOT_ASKED,
    Browser,
    InstalledPrograms,
    WasmDetector,
    WebgpuDetector,
    WebnnDetector,
)
from accelbench.hardware.common import ProbeFailedError
from accelbench.hardware.directml import DirectmlDetector
from accelbench.hardware.openvino import OpenvinoDetector
from accelbench.hardware.qnn import QnnDetector
from accelbench.hardware.tpu import TpuDetector

CORE_ULTRA = {
    "version": "2026.4.1-22982-e213a147257",
    "devices": [
        {
            "device": "CPU", "name": "Intel(R) Core(TM) Ultra 7 155H",
            "capabilities": ["FP32", "INT8"], "memory_bytes": None, "units": None,
            "architecture": "intel64",
        },
        {
            "device": "GPU", "name": "Intel(R) Arc(TM) Graphics (iGPU)", "capabilities": ["FP16"],
            "memory_bytes": 15 * 2**30, "units": 128, "architecture": "GPU: vendor=0x8086",
        },
        {
            "device": "NPU", "name": "Intel(R) AI Boost", "capabilities": ["FP16"],
            "memory_bytes": None, "units": None, "architecture": "3720",
        },
    ],
}  # fmt: skip
HOST = Device("cpu", "Intel Core Ultra 7 155H", count=16, memory_bytes=32 * 2**30)


def test_openvino_names_its_devices():
    found = OpenvinoDetector(lambda *_: CORE_ULTRA, lambda: True, lambda: HOST).detect()
    assert [d.details["device"] for d in found] == ["cpu", "gpu", "npu", "auto"]
    assert [d.ordinal for d in found] == [0, 1, 2, 3]
    cpu, gpu, npu, auto = found
    assert (cpu.count, cpu.memory_bytes) == (16, 32 * 2**30)
    assert (gpu.count, gpu.memory_bytes) == (128, 15 * 2**30)
    assert npu.memory_bytes is None
    assert cpu.driver == "OpenVINO 2026.4.1"
    # What it may choose from is part of what it is.
    assert auto.unit == "auto"
    assert all(one.name in auto.name for one in (cpu, gpu, npu))
    assert auto.details["capabilities"] == ["FP16", "FP32", "INT8"]
    assert len({d.fingerprint for d in found}) == 4

    (none,) = OpenvinoDetector(None, lambda: False).detect()
    assert none.reason == "the package openvino is not installed"
    assert "accelbench setup openvino" in none.remedy

    def crash(module, timeout):
        raise ProbeFailedError("python ended with -11: no message")

    (none,) = OpenvinoDetector(crash, lambda: True).detect()
    assert "ended with -11" in none.reason
    (none,) = OpenvinoDetector(lambda *_: {"version": "1", "devices": []}, lambda: True).detect()
    assert "finds no device" in none.reason


def qnn(files, package, machine, system="linux", processor=None):
    return QnnDetector(RecordedFiles(files), lambda: package, system, machine, processor).detect()[
        0
    ]


def test_qnn_is_emulated_on_x86():
    library = {"/site/onnxruntime_qnn/libQnnHtp.so": ""}
    emulated = qnn(library, "/site/onnxruntime_qnn", "x86_64")
    assert emulated.emulated
    assert isinstance(qnn({}, "/site/onnxruntime_qnn", "x86_64"), Absent)
    none = qnn({}, None, "x86_64")
    assert "no Snapdragon machine" in none.reason
    assert "accelbench setup qnn" in none.remedy

    board = {"/dev/fastrpc-cdsp": "", "/sys/devices/soc0/machine": "QCS8550"}
    npu = qnn(board, None, "aarch64")
    assert not npu.emulated
    assert npu.name == "Qualcomm Hexagon NPU of QCS8550"
    assert "accelbench setup qnn" in npu.details["package"]
    laptop = qnn({}, "/site", "ARM64", "win32", "Snapdragon X Elite - Qualcomm Oryon")
    assert isinstance(laptop, Device)
    assert isinstance(qnn({}, None, "aarch64"), Absent)


def pci(device):
    return {
        "/sys/bus/pci/devices/0000:00:04.0/vendor": "0x1ae0",
        "/sys/bus/pci/devices/0000:00:04.0/device": device,
        "/sys/bus/pci/devices/0000:00:05.0/vendor": "0x1ae0",
        "/sys/bus/pci/devices/0000:00:05.0/device": "0x0042",
        "/dev/vfio/0": "",
        "/dev/vfio/vfio": "",
    }


def test_a_tpu_is_found_by_its_pci_id_or_absent_with_a_reason():
    (chip,) = TpuDetector(RecordedFiles(pci("0x0063")), lambda: "libtpu 0.0.30", "linux").detect()
    assert (chip.name, chip.driver) == ("Google TPU v5e", "libtpu 0.0.30")
    assert chip.details["doors"] == ["/dev/vfio/0"]
    (chip,) = TpuDetector(RecordedFiles(pci("0x0063")), lambda: "", "linux").detect()
    assert "jax[tpu]" in chip.details["libtpu"]

    (none,) = TpuDetector(RecordedFiles(pci("0x0001")), lambda: "libtpu 1", "linux").detect()
    assert none.reason == "libtpu 1 is installed, but no TPU chip is on the PCI bus"
    (none,) = TpuDetector(RecordedFiles({}), lambda: "", "win32").detect()
    assert "Linux" in none.reason


class RecordedPrograms:
    def __init__(self, *browsers):
        self.browsers = browsers

    def explain_missing(self):
        return ""

    def find(self):
        return list(self.browsers)

    def version(self, browser):
        return f"{browser.name} 150"


#: No browser that was fetched for this user.
NO_CACHE = {"ACCELBENCH_CACHE": "/nowhere"}
FIREFOX = Browser("Firefox", "/usr/bin/firefox", "firefox")
CHROME = Browser("Google Chrome", "/usr/bin/google-chrome", "chromium")


@pytest.mark.parametrize(
    ("detector", "hardware"),
    [(WebnnDetector, "webnn"), (WebgpuDetector, "webgpu"), (WasmDetector, "wasm")],
)
def test_no_browser_is_a_reason(detector, hardware):
    (none,) = detector(RecordedPrograms()).detect()
    assert (none.hardware, none.reason) == (hardware, "no browser found")
    assert "install Google Chrome" in none.remedy
    assert "accelbench setup browser" in none.remedy


def test_a_browser_is_no_adapter_and_webnn_wants_chromium():
    (found,) = WebgpuDetector(RecordedPrograms(CHROME)).detect()
    assert found.details["adapter"] == NOT_ASKED
    assert found.driver == "Google Chrome 150"
    (found,) = WasmDetector(RecordedPrograms(CHROME)).detect()
    assert "adapter" not in found.details

    (none,) = WebnnDetector(RecordedPrograms(FIREFOX)).detect()
    assert none.reason == "no suitable browser found, only Firefox"
    (found,) = WebnnDetector(RecordedPrograms(FIREFOX, CHROME)).detect()
    assert (found.name, found.ordinal) == ("Google Chrome", 0)


@pytest.mark.skipif(sys.platform == "win32", reason="programs here are shell scripts")
def test_programs_on_path_are_found_once_and_tell_their_version(tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'Chromium 150.0.7'\n")
    program.chmod(0o755)
    (tmp_path / "chromium-browser").symlink_to(program)
    (tmp_path / "firefox").write_text("not a program")
    programs = InstalledPrograms({"PATH": str(tmp_path), **NO_CACHE}, "linux")
    (browser,) = programs.find()
    assert browser == Browser("Chromium", str(program), "chromium")
    assert programs.version(browser) == "Chromium 150.0.7"


def test_windows_browsers_are_found_by_folder_and_not_started(tmp_path):
    edge = tmp_path / "Microsoft" / "Edge" / "Application" / "msedge.exe"
    edge.parent.mkdir(parents=True)
    edge.touch(0o755)
    programs = InstalledPrograms({"PROGRAMFILES": str(tmp_path), **NO_CACHE}, "win32")
    (browser,) = programs.find()
    assert browser.name == "Microsoft Edge"
    assert programs.version(browser) == ""


def directml(said, system="win32", version="1.24"):
    def version_of(package):
        if not version:
            raise PackageNotFoundError(package)
        return version

    return DirectmlDetector(lambda args, timeout: said, system, version_of).detect()


def test_directml_is_what_windows_has_first_or_absent_with_a_reason():
    (found,) = directml("AMD Radeon RX 7600\r\n\r\nMicrosoft Remote Display Adapter\r\n")
    assert (str(found), found.name) == ("directml:0", "AMD Radeon RX 7600")
    (found,) = directml("NVIDIA RTX 4070\nIntel Arc A380\n")
    assert found.name == "the first of Intel Arc A380, NVIDIA RTX 4070"
    assert found.driver == "onnxruntime-directml 1.24"

    (none,) = directml("", system="linux")
    assert none.reason == "DirectML is a part of Windows"
    (none,) = directml("AMD", version="")
    assert "pip install onnxruntime-directml" in none.remedy
    (none,) = directml("Microsoft Basic Display Adapter")
    assert "no driver of a graphics card" in none.reason


def test_the_browser_that_was_fetched_is_one_and_webnn_asks_it_first(tmp_path):
    fetched = tmp_path / "browser" / "chromium-153.0.0" / "chromium"
    fetched.parent.mkdir(parents=True)
    fetched.touch(0o755)
    own = tmp_path / "google-chrome"
    own.touch(0o755)
    environment = {"PATH": str(tmp_path), "ACCELBENCH_CACHE": str(tmp_path)}
    programs = InstalledPrograms(environment, "win32" if sys.platform == "win32" else "linux")
    programs.version = lambda browser: ""
    assert [one.name for one in programs.find()] == ["Google Chrome", FETCHED]
    assert WebgpuDetector(programs).detect()[0].name == "Google Chrome"
    assert WebnnDetector(programs).detect()[0].name == FETCHED


def test_a_browser_that_is_named_is_the_only_one(tmp_path):
    (tmp_path / "chromium").touch(0o755)
    mine = tmp_path / "my-browser"
    mine.touch(0o755)
    environment = {"PATH": str(tmp_path), **NO_CACHE, "ACCELBENCH_BROWSER": str(mine)}
    assert InstalledPrograms(environment, "linux").find() == [
        Browser("my-browser", str(mine), "chromium")
    ]
    assert InstalledPrograms(environment, "linux").explain_missing() == ""


@pytest.mark.parametrize("detector", [WebnnDetector, WebgpuDetector, WasmDetector])
def test_a_browser_that_is_named_and_not_there_is_not_replaced(tmp_path, detector):
    (tmp_path / "chromium").touch(0o755)
    gone = tmp_path / "gone"
    environment = {"PATH": str(tmp_path), **NO_CACHE, "ACCELBENCH_BROWSER": str(gone)}
    programs = InstalledPrograms(environment, "linux")
    assert programs.find() == []
    (none,) = detector(programs).detect()
    assert none.reason == (
        f"there is no program at {gone}, which ACCELBENCH_BROWSER or --browser names"
    )
    assert none.remedy == "Name a browser's program, or none: unset ACCELBENCH_BROWSER"
    gone.mkdir()  # a folder is no program either
    assert programs.explain_missing()


@pytest.mark.skipif(sys.platform == "win32", reason="there every file may be started")
def test_a_file_that_cannot_be_started_is_no_browser(tmp_path):
    mine = tmp_path / "mine"
    mine.touch(0o644)
    programs = InstalledPrograms({**NO_CACHE, "ACCELBENCH_BROWSER": str(mine)}, "linux")
    assert (programs.find(), bool(programs.explain_missing())) == ([], True)


def test_a_firefox_does_not_hide_the_browser_that_was_fetched(tmp_path):
    (tmp_path / "firefox").touch(0o755)
    for version in ("99.0.0", "153.0.0", "100.0.0"):
        program = tmp_path / "browser" / f"chromium-{version}" / "chromium"
        program.parent.mkdir(parents=True)
        program.touch(0o755)
    environment = {"PATH": str(tmp_path), "ACCELBENCH_CACHE": str(tmp_path)}
    programs = InstalledPrograms(environment, "linux")
    programs.version = lambda browser: ""
    first, *_, last = WasmDetector(programs).detect()
    assert (first.name, first.ordinal, last.name) == (FETCHED, 0, "Firefox")
    assert "chromium-153.0.0" in first.details["path"]  # of several, the newest
