"""The command `accelbench hardware`: what people and machines see of it."""

import io
import json
from importlib.metadata import EntryPoint

import pytest
from hardware_records import XEON_V2, RecordedFiles
from typer.testing import CliRunner

from accelbench.cli.commands import hardware as command
from accelbench.core.errors import UsageError
from accelbench.core.plugins import ENGINES, PluginError
from accelbench.core.protocols import Absent, Device, RuntimeInfo
from accelbench.core.vocabulary import HARDWARE, Provenance
from accelbench.hardware.browsers import NOT_ASKED
from accelbench.hardware.cpu import CpuDetector
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.hardware import hardware_document, size

XEON = CpuDetector(RecordedFiles(XEON_V2), system="linux", machine="x86_64").detect()
GPUS = [
    Device(
        "cuda",
        "NVIDIA H200",
        i,
        "NVIDIA",
        143771 * 2**20,
        power_limit_watts=700,
        details={"uuid": f"GPU-{i}", "processes": [1, 2]},
    )
    for i in range(2)
]
FOUND = {
    "cpu": XEON,
    "cuda": GPUS,
    "openvino": [Device("openvino", "Intel Core", details={"device": "gpu"})],
    "qnn": [Device("qnn", "QNN HTP emulation", emulated=True)],
    "webgpu": [Device("webgpu", "Chromium", details={"adapter": NOT_ASKED})],
    "tpu": [Absent("tpu", "no TPU chip is on the PCI bus", "Needs a Google Cloud TPU machine.")],
}


def page(found=FOUND, served=None, broken=None, verbose=False):
    out = io.StringIO()
    served = {"cpu": ["pytorch"]} if served is None else served
    show(hardware_document(found, served, broken or {}, verbose=verbose), out, width=80)
    return out.getvalue()


def test_the_page_and_its_table():
    text = page(verbose=True, served={"cpu": ["pytorch (needs accelbench[torch])"]})
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    # `jax (needs accelbench[jax])` was printed as `jax (needs accelbench)`.
    text = page(served={"cpu": ["jax (needs accelbench[jax])"]})
    assert "accelbench[jax])" in "".join(text.split())

    text = page()
    assert row(text, "cpu") == "cpu yes Intel Xeon Platinum 8480+ 251.6 GiB pytorch"
    assert row(text, "cuda") == "cuda yes NVIDIA H200 140.4 GiB none"
    assert row(text, "cuda:1") == "cuda:1 yes NVIDIA H200 140.4 GiB none"
    assert row(text, "openvino") == "openvino yes Intel Core (gpu) no data none"
    assert row(text, "qnn").startswith("qnn emulated")
    assert row(text, "webgpu").startswith("webgpu browser Chromium")
    assert row(text, "tpu") == "tpu no n/a n/a none"

    assert "its adapter is not known until a page asks" in " ".join(page().split())

    text = " ".join(page().split())
    for fact in (
        "4 physical cores, 8 threads, 2 sockets, 2 NUMA nodes",
        "L1d 48 KiB × 4, L1i 32 KiB × 4, L2 2 MiB × 4, L3 105 MiB × 2",
        "AMX INT8",
        "powersave (intel_pstate), 800 to 3800 MHz",
        "boost on",
        "1.5 CPUs by quota",
        "2.0 GiB of memory (cgroup v2)",
        "lacks AMX FP16 memory",
    ):
        assert fact in text

    text = page()
    assert "No TPU chip is on the PCI bus." in text
    assert "Needs a Google Cloud TPU machine." in text
    assert "GPU-1" not in page()
    assert "GPU-1" in page(verbose=True)
    assert "mine  ImportError: no engine" in page(broken={"mine": "ImportError: no engine"})


def row(text, platform):
    (line,) = [ln for ln in text.splitlines() if ln.split() and ln.split()[0] == platform][:1]
    return " ".join(line.split())


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(None, "not told"), (2**30, "1.0 GiB"), (3 * 2**20, "3.0 MiB"), (2048, "2 KiB")],
)
def test_sizes(bytes_, text):
    assert size(bytes_) == text


class Engine:
    def __init__(self, **changes):
        self.info = RuntimeInfo(**{"name": "x", "package": "json", "extra": "torch", **changes})

    def probe(self): ...

    def supports(self, case, device): ...

    def clock(self): ...

    def open(self, job): ...


def test_runtimes_by_platform(monkeypatch):
    point = EntryPoint("broken", "no_engine:Engine", ENGINES)
    error = PluginError(point, ImportError("no engine"))
    registered = [
        ("broken", error),
        ("here", Engine(hardware=("cpu", "cuda"))),
        ("missing", Engine(hardware=("cpu",), package="no_such_engine")),
        ("scripted", Engine(hardware=("cpu",), provenance=Provenance.SIMULATED)),
    ]
    monkeypatch.setattr(command, "load_all", lambda group: iter(registered))
    served, broken = command.runtimes()
    assert {k: [str(one) for one in ones] for k, ones in served.items()} == {
        "cpu": ["here", "missing (needs accelbench setup torch)"],
        "cuda": ["here"],
    }
    said = command.document(FOUND, served, broken)
    assert said["hardware"]["cuda"]["runtimes"] == [
        {"name": "here", "extra": "torch", "installed": True}
    ]
    assert said["hardware"]["cuda"]["devices"][1]["ordinal"] == 1
    assert said["hardware"]["tpu"]["reason"] == "no TPU chip is on the PCI bus"
    assert error.cause == "ImportError: no engine"
    assert said["broken_runtimes"] == broken == {"broken": str(error)}


def invoke(*args):
    return CliRunner().invoke(command.app, list(args))


def test_the_command_of_this_machine():
    done = invoke("--json")
    assert done.exit_code == 0
    said = json.loads(done.stdout)["hardware"]
    assert tuple(said)[: len(HARDWARE)] == HARDWARE
    assert said["cpu"]["present"] is True
    assert said["cpu"]["devices"][0]["fingerprint"]
    assert said["mps"]["present"] or said["mps"]["reason"]

    assert list(json.loads(invoke("cpu,tpu", "qnn", "--json").stdout)["hardware"]) == [
        "cpu",
        "tpu",
        "qnn",
    ]

    done = invoke("cudda")
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert "Did you mean cuda" in str(done.exception)
    done = invoke()
    assert done.exit_code == 0
    assert "CPU in full" in done.stdout
