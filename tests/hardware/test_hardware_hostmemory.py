"""Host memory: what counts and what does not, from records and in a real child process."""

import json
import platform
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from accelbench.hardware import hostmemory
from accelbench.hardware.hostmemory import (
    HostMemory,
    MemorySampler,
    ProcessesMemory,
    Resident,
    average,
    parse_peak,
    parse_smaps,
    parse_statm,
    private_bytes,
)


def mapping(head, rss):
    return f"{head}\nSize:  9999 kB\nRss:  {rss} kB\nPss:  1 kB\nAnonymous: 3 kB\nVmFlags: rd mr\n"


SMAPS = "".join(
    (
        mapping("55d1-55d2 r--p 00000000 fe:00 260131   /usr/bin/python3.11", 100),
        mapping("55d2-55d3 r-xp 00002000 fe:00 260131   /usr/bin/python3.11", 200),
        mapping("55d3-55d4 rw-p 00000000 00:00 0        [heap]", 1000),
        mapping("7f00-7f01 r--p 00000000 fe:00 12       /lib/libtorch_cpu.so", 400),
        mapping("7f01-7f02 rw-p 00000000 fe:00 12       /lib/libtorch_cpu.so", 50),
        mapping("7f02-7f03 r--p 00000000 fe:00 13       /lib/libc.so.6", 70),
        mapping("7f03-7f04 r--p 00000000 fe:00 14       /models/a model/weights.safetensors", 5000),
        mapping("7f04-7f05 r-xp 00000000 fe:00 15       /tmp/compiled (deleted)", 8),
        mapping("7f05-7f06 rw-p 00000000 00:00 0 ", 2000),
        mapping("7ffd-7ffe r-xp 00000000 00:00 0        [vdso]", 4),
        mapping("7f06-7f07 rw-s 00000000 00:01 9        /dev/shm/torch_1", 16),
    )
)
CODE = 100 + 200 + 400 + 50 + 70 + 8


def test_files_of_proc_are_read():
    seen = parse_smaps(SMAPS.splitlines(keepends=True))
    assert seen.code == CODE * 1024
    assert seen.data == (1000 + 5000 + 2000 + 4 + 16) * 1024
    assert seen.total == seen.code + seen.data
    assert parse_peak("Name:\tpython\nVmPeak:\t 99 kB\nVmHWM:\t  2048 kB\n") == 2 * 2**20
    assert parse_peak("Name:\tpython\n") is None
    assert parse_statm("1000 25 7 1 0 9 0", 4096) == 25 * 4096
    assert Resident(10, 4).data == 6


def test_the_rule(monkeypatch):
    """VmHWM − code now − (resident − code at the baseline)."""
    texts = {"smaps": SMAPS, "status": "VmHWM: 0 kB", "statm": "0 0 0 0 0 0 0"}
    monkeypatch.setattr(hostmemory, "_read_text", lambda path: texts[path.rpartition("/")[2]])
    monkeypatch.setattr(
        hostmemory, "_read_smaps", lambda: parse_smaps(texts["smaps"].splitlines(keepends=True))
    )
    meter = hostmemory._LinuxMemory()
    # The model takes 700 kB; meanwhile 300 kB of a library are faulted in, which do not count.
    assert meter.current_bytes() == 0
    texts["smaps"] = SMAPS + mapping("8000-8001 r--p 0 fe:00 99 /lib/libother.so", 300)
    texts["smaps"] += mapping("8001-8002 rw-p 00000000 00:00 0 ", 700)
    base = parse_smaps(SMAPS.splitlines(keepends=True)).total // 1024
    texts["status"] = f"VmHWM: {base + 300 + 950} kB"
    assert meter.current_bytes() == 700 * 1024
    assert meter.peak_bytes() == 950 * 1024
    pages = (base + 300 + 700) // 4
    texts["statm"] = f"0 {pages} 0 0 0 0 0"
    monkeypatch.setattr(meter, "_page", 4096)
    assert meter.net(meter.reader()()) == pytest.approx(700 * 1024, abs=4096)
    # Less than at the baseline is nothing, not a negative amount.
    texts["smaps"], texts["status"] = "", "VmHWM: 0 kB"
    assert (meter.current_bytes(), meter.peak_bytes()) == (0, 0)


def test_a_peak_that_cannot_be_reset_is_called_an_upper_bound(monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc, which this system does not have")

    def refuse(path, data):
        raise PermissionError(path)

    monkeypatch.setattr(hostmemory, "_write", refuse)
    meter = HostMemory.start()
    meter.reset_peak()
    assert "upper bound" in meter.source


def test_systems_without_proc_name_their_source():
    meter = hostmemory._PsutilMemory()
    assert "psutil" in meter.source
    meter.reset_peak()
    assert meter.peak_bytes() >= 0
    assert meter.current_bytes() >= 0
    assert "cannot be reset" in meter.source  # nothing was taken since the reset


class Scripted(HostMemory):
    """A meter that counts its readings."""

    def __init__(self):
        super().__init__(0, "scripted")
        self.value = 10

    def reset_peak(self):
        pass

    def peak_bytes(self):
        return None

    def current_bytes(self):
        return self.value


def test_samples_are_averaged():
    with MemorySampler(Scripted(), lambda: 30, seconds=3600) as sampler:
        pass
    assert sampler.samples == 2
    assert (sampler.host_average, sampler.device_average, sampler.device_peak) == (10, 30, 30)

    with MemorySampler(Scripted(), lambda: None) as sampler:
        pass
    assert sampler.device_average is None
    assert sampler.device_peak is None
    assert average([]) is None

    def fail():
        raise OSError("no device")

    with pytest.raises(OSError, match="no device"), MemorySampler(Scripted(), fail):
        pass
    with pytest.raises(ValueError, match="the work"), MemorySampler(Scripted(), fail):
        raise ValueError("the work")


CHILD = """
import json, mmap, os, sys, tempfile
from accelbench.hardware.hostmemory import HostMemory, MemorySampler
MIB = 2**20
before = bytearray(os.urandom(1)) * (48 * MIB)      # before the baseline: never counted
reader, writer = os.pipe()
if os.fork():
    os.close(writer)
    print(os.fdopen(reader).read())
    os.wait()
    sys.exit()
meter = HostMemory.start()
said = {"start": meter.current_bytes()}
import xml.etree.ElementTree, sqlite3, decimal      # code faulted in meanwhile
meter.reset_peak()
held = bytearray(b"x") * (64 * MIB)
said["held"] = meter.current_bytes()
extra = bytearray(b"x") * (32 * MIB)
del extra
said["peak"] = meter.peak_bytes()
with MemorySampler(meter) as sampler:
    sum(range(200000))
said["average"] = sampler.host_average
del held
meter.reset_peak()
said["after"] = meter.peak_bytes()
with tempfile.TemporaryFile() as file:              # weights mapped from a file do count
    file.write(b"w" * (16 * MIB))
    file.flush()
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    sum(mapped[i] for i in range(0, 16 * MIB, 4096))
    said["mapped"] = meter.current_bytes()
said["source"] = meter.source
os.write(writer, json.dumps(said).encode())
os._exit(0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc of a forked child")
def test_a_forked_child_sees_what_it_takes_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=120
    )
    said = json.loads(done.stdout)
    mib = {k: v / 2**20 for k, v in said.items() if k != "source"}
    assert mib["start"] < 1
    assert mib["held"] == pytest.approx(64, abs=4)
    assert mib["average"] == pytest.approx(64, abs=4)
    assert mib["peak"] == pytest.approx(96, abs=4)
    assert mib["after"] < 4
    assert mib["mapped"] == pytest.approx(16, abs=4)
    assert "VmHWM" in said["source"]


class Hidden:
    """A process of another system: it shows what it is asked, or raises."""

    def __init__(self, pid=2**22 + 1, **shown):
        self.pid, self._shown = pid, shown

    def _show(self, name):
        found = self._shown.get(name, psutil.AccessDenied())
        if isinstance(found, Exception):
            raise found
        return found

    def memory_full_info(self):
        return self._show("full")

    def memory_info(self):
        return self._show("plain")


@pytest.mark.parametrize(
    ("process", "found"),
    [
        (Hidden(full=SimpleNamespace(uss=7)), 7),
        (Hidden(plain=SimpleNamespace(rss=9, shared=4)), 5),
        (Hidden(plain=SimpleNamespace(rss=9)), 9),
        (Hidden(full=psutil.NoSuchProcess(1)), 0),
        (Hidden(plain=psutil.NoSuchProcess(1)), 0),
        (Hidden(), None),
    ],
)
def test_what_a_process_has_for_itself(process, found):
    assert private_bytes(process) == found


def test_other_processes_memory():
    shown = Hidden(full=SimpleNamespace(uss=2**20))
    processes = [shown]
    memory = ProcessesMemory(lambda: processes, "theirs")
    processes.append(Hidden(full=SimpleNamespace(uss=5 * 2**20)))
    assert (memory.peak_bytes(), memory.known) == (5 * 2**20, True)
    processes.append(Hidden())
    assert (memory.peak_bytes(), memory.known) == (None, False)
    assert memory.source.startswith("not known")

    ended = subprocess.Popen([sys.executable, "-c", ""])
    seen = psutil.Process(ended.pid)
    ended.wait()
    assert private_bytes(seen) == 0


FREED = """
import ctypes, json
from accelbench.hardware.hostmemory import HostMemory, release_freed_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
memory = HostMemory.start()
blocks = [libc.malloc(64 * 1024) for _ in range(1600)]  # 100 MiB, none of them mapped by itself
for block in blocks:
    ctypes.memset(block, 1, 64 * 1024)
pin = libc.malloc(64 * 1024)  # what is above stays: freeing alone gives nothing back
for block in blocks:
    libc.free(block)
kept = memory.current_bytes()
release_freed_memory()
memory.reset_peak()
print(json.dumps([kept, memory.current_bytes(), memory.peak_bytes()]))
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc's allocator is told to give back"
)
def test_what_a_case_has_freed_is_not_of_the_next():
    done = subprocess.run(
        [sys.executable, "-c", FREED], capture_output=True, text=True, timeout=60, check=True
    )
    kept, after, peak = json.loads(done.stdout)
    assert kept > 90 * 2**20  # the allocator holds it
    assert after < 10 * 2**20
    assert peak < 10 * 2**20
