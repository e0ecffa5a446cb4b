"""Memory of OpenVINO's units, by a core that has a GPU and an NPU."""

import pytest

from accelbench.core.vocabulary import MIB
from accelbench.engines.openvino.session import UnitMemory
from accelbench.run.worker.worker import WorkerMeter


class Core:
    """Tells what its plugins would."""

    def __init__(self):
        self.asked = []
        self.gpu = {"cl_mem": 1, "unknown": 0, "usm_host": 50, "usm_shared": 2, "usm_device": 4}
        self.npu = 700

    def get_property(self, unit, name):
        self.asked.append((unit, name))
        known = {"GPU_MEMORY_STATISTICS": self.gpu, "NPU_DEVICE_ALLOC_MEM_SIZE": self.npu}[name]
        if isinstance(known, Exception):
            raise known
        return known


def test_buffers_of_a_gpu_an_npu_and_a_cpu():
    core = Core()
    memory = UnitMemory(core)
    memory.begin("GPU.1")
    found = memory.now("GPU.1")
    assert (found.current_bytes, found.peak_bytes, found.reserved_bytes) == (7, None, None)
    assert found.source == "openvino GPU_MEMORY_STATISTICS"
    assert {unit for unit, _ in core.asked} == {"GPU.1"}

    core = Core()
    memory = UnitMemory(core)
    memory.begin("NPU")
    core.npu = 1000
    found = memory.now("NPU")
    assert (found.current_bytes, found.source) == (300, "openvino NPU_DEVICE_ALLOC_MEM_SIZE")
    core.npu = 600  # others gave back what they had
    assert memory.now("NPU").current_bytes == 0

    core = Core()
    memory = UnitMemory(core)
    memory.begin("CPU")
    assert memory.now("CPU") is None
    assert memory.now("AUTO") is None
    assert core.asked == []


@pytest.mark.parametrize("trouble", [RuntimeError("unsupported"), TypeError("no such type")])
def test_a_plugin_that_tells_nothing_leaves_it_unknown(trouble):
    core = Core()
    core.gpu = core.npu = trouble
    memory = UnitMemory(core)
    for unit in ("GPU", "NPU"):
        memory.begin(unit)
        assert memory.now(unit) is None


def test_a_session_tells_it_of_the_unit_that_it_runs_on():
    pytest.importorskip("openvino")
    from accelbench.engines.openvino.session import OpenvinoSession

    core = Core()
    session = object.__new__(OpenvinoSession)
    session._memory, session._compiled, session._unit = UnitMemory(core), None, "GPU.1"
    assert session.device_memory().current_bytes == 7
    session._unit = "AUTO"
    assert session.device_memory() is None  # nothing was chosen yet
    session._said = lambda name: ["(GPU.0)"]
    assert session.device_memory().current_bytes == 7
    assert [unit for unit, _ in core.asked] == ["GPU.1", "GPU.0"]
    session._memory = None  # closed
    assert session.device_memory() is None


def test_the_columns_have_what_was_sampled():
    core = Core()
    memory = UnitMemory(core)

    class Sampled:
        def device_memory(self):
            return memory.now("GPU")

        def reset_memory(self):
            return None

    session = Sampled()
    meter = WorkerMeter()
    meter.watch(session)
    core.gpu = {"usm_device": 8 * MIB, "usm_host": 9 * MIB}
    meter.sample(lambda: None)
    found = meter.columns()
    assert found["device_memory_peak_mb"] == found["memory_peak_mb"] == 8.0
    assert found["device_memory_avg_mb"] == found["memory_avg_mb"] == 8.0
    assert found["memory_source"] == "openvino GPU_MEMORY_STATISTICS"
