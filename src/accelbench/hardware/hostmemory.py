"""Host memory of a worker: the memory that the model added, without code.

    counted now  = (resident − code now)    − (resident − code at the baseline)
    counted peak = (VmHWM    − code now)    − (resident − code at the baseline)

*Code* is every resident page of a program or shared object. A forked worker starts without the
template's library pages and faults them in: if they counted, they would be charged to the first
model. Weights mapped from a file are not code, and count. Writing 5 to /proc/self/clear_refs resets
`VmHWM`, so a peak costs nothing while the work runs. Finding the code requires reading
/proc/self/smaps: 14 ms in a process with torch and transformers (781 mappings), and 10 to 20 ms
more per GiB. It is read once per case, never during timing; a sample by `reader()` takes 6 µs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import psutil

#: Time between two samples: 200 per second show every relevant phase of a step, and take about
#: 10 µs each of the worker's time, 6 of them for reading.
_SAMPLE_SECONDS = 0.005

_SHARED_OBJECT = re.compile(r"\.so(\.[^/]*)?$|\.dylib$|\.pyd$")
#: First characters of the other lines of smaps; a mapping begins with a hexadecimal address.
_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEADER = re.compile(r"[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ \S+ \d+ *(.*)")


@dataclass(frozen=True)
class Resident:
    """A process's resident bytes, and how many of them are code."""

    total: int
    code: int

    @property
    def data(self) -> int:
        return self.total - self.code


def parse_smaps(lines: Iterable[str]) -> Resident:
    """Return the resident bytes of /proc/<pid>/smaps, read line by line.

    A file is code, with its tables, if it is a shared object or any of its mappings is executable.
    """
    by_file: dict[str, int] = {}
    executable: set[str] = set()
    anonymous, path = 0, ""
    for line in lines:
        if line.startswith("Rss:"):
            size = int(line.split()[1]) * 1024
            if path.startswith("/"):
                by_file[path] = by_file.get(path, 0) + size
            else:
                anonymous += size
        elif line[0] not in _NAMES and (header := _HEADER.match(line)) is not None:
            path = header[2].removesuffix(" (deleted)")
            if "x" in header[1]:
                executable.add(path)
    code = sum(
        size for path, size in by_file.items() if path in executable or _SHARED_OBJECT.search(path)
    )
    return Resident(anonymous + sum(by_file.values()), code)


def parse_peak(status: str) -> int | None:
    """Parse VmHWM of /proc/<pid>/status into bytes."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def parse_statm(statm: str, page_bytes: int) -> int:
    """Parse resident bytes of /proc/<pid>/statm."""
    return int(statm.split()[1]) * page_bytes


def release_freed_memory() -> None:
    """Return freed memory that glibc's allocator still holds to the system.

    A worker measures several cases. Without this, a case's memory included memory freed by the case
    before: 799 instead of 482 MB for vit-base in ONNX Runtime at batch 4 after batch 1, whose
    profiling session had held the weights a second time.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # musl lacks it
        trim(0)


@dataclass(frozen=True)
class PageUse:
    """Counters of this process: memory pages newly touched, and processor time."""

    faults: int
    user_s: float
    system_s: float


def read_page_use() -> PageUse | None:
    """Read the counters of this process in 1 µs, or return None without glibc's allocator."""
    if not has_glibc():
        return None
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    return PageUse(used.ru_minflt, used.ru_utime, used.ru_stime)


def has_glibc() -> bool:
    """Return whether this process runs on glibc."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


class HostMemory(ABC):
    """Counter of the memory that this process has taken since `start()`.

    `source` describes the counter. If `known` is false, the memory could not be read and there are
    no values.
    """

    known = True

    def __init__(self, baseline: int, source: str) -> None:
        self._baseline = baseline
        self.source = source

    @classmethod
    def start(cls) -> HostMemory:
        """Return a counter whose later values exclude the current memory."""
        return _LinuxMemory() if Path("/proc/self/smaps").exists() else _PsutilMemory()

    @abstractmethod
    def reset_peak(self) -> None:
        """Forget earlier peaks, as far as the system can."""

    @abstractmethod
    def peak_bytes(self) -> int | None:
        """Return the most memory taken since the last reset; None if unknown."""

    @abstractmethod
    def current_bytes(self) -> int:
        """Return the memory taken now."""

    def reader(self) -> Callable[[], int]:
        """Return a cheap reader for sampling; `net` turns its values into bytes taken."""
        return self.current_bytes

    def net(self, reading: float) -> float:
        """Return the bytes taken at a reading of `reader`, with the code of the last peak."""
        return reading


class _LinuxMemory(HostMemory):
    """Counter of /proc."""

    def __init__(self) -> None:
        _read_smaps()  # so that the baseline includes the memory for reading (2 MB of lines)
        start = _read_smaps()
        super().__init__(start.data, "VmHWM without code pages, less the worker's start")
        self._hidden = start.code + start.data
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._resets = True

    def reset_peak(self) -> None:
        try:
            _write("/proc/self/clear_refs", b"5\n")
        except OSError:
            # Without the reset VmHWM is an upper bound, and must be described as one.
            self._resets = False
            self.source = "VmHWM since the process began (it cannot be reset here): an upper bound"

    def peak_bytes(self) -> int | None:
        peak = parse_peak(_read_text("/proc/self/status"))
        if peak is None:
            self.source = "not available: /proc/self/status has no VmHWM"
            return None
        # Some kernels keep the counters per CPU, and VmHWM may be below the current resident
        # memory.
        resident = _read_smaps()
        self._hidden = resident.code + self._baseline
        return max(0, max(peak, resident.total) - self._hidden)

    def current_bytes(self) -> int:
        return max(0, _read_smaps().data - self._baseline)

    def reader(self) -> Callable[[], int]:
        page = self._page
        return lambda: parse_statm(_read_text("/proc/self/statm"), page)

    def net(self, reading: float) -> float:
        return max(0.0, reading - self._hidden)


class _PsutilMemory(HostMemory):
    """Counter on macOS and Windows: resident memory with all its code; the system's own peak."""

    def __init__(self) -> None:
        import psutil

        self._process = psutil.Process()
        super().__init__(self._process.memory_info().rss, self._source(None))
        self._highest_before: int | None = None

    @staticmethod
    def _source(peak: int | None) -> str:
        name = "ru_maxrss" if sys.platform != "win32" else "peak working set"
        counted = "code included, less the worker's start"
        if peak is not None:
            return f"{name}, {counted}; cannot be reset: of this process, not of one case"
        return f"resident memory (psutil) and {name}, {counted}"

    def reset_peak(self) -> None:
        self._highest_before = self._highest()

    def peak_bytes(self) -> int | None:
        highest = self._highest()
        if self._highest_before is not None and highest <= self._highest_before:
            # The peak before the reset was higher, so this case only has an upper bound.
            self.source = self._source(highest)
        return max(0, highest - self._baseline)

    def _highest(self) -> int:
        if sys.platform == "win32":
            return int(self._process.memory_info().peak_wset)
        import resource

        # macOS counts in bytes; Linux and the BSDs count in KiB.
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def current_bytes(self) -> int:
        return max(0, int(self._process.memory_info().rss) - self._baseline)


class ProcessesMemory(HostMemory):
    """Private memory that other processes, such as a browser's, have taken since now.

    No counter has a peak of several processes, so it is the highest sample.
    """

    def __init__(self, processes: Callable[[], Iterable[psutil.Process]], whose: str) -> None:
        self._processes = processes
        self._highest = 0
        super().__init__(
            self._private(),
            f"private memory of {whose}, sampled, less what they had before the model",
        )

    def _private(self) -> int:
        total = 0
        for process in self._processes():
            own = private_bytes(process)
            if own is None:
                self.known = False
            total += own or 0
        return total

    def reset_peak(self) -> None:
        self._highest = 0

    def peak_bytes(self) -> int | None:
        highest = max(self._highest, self.current_bytes())
        if not self.known:
            self.source = "not known: this system does not show other processes' memory"
            return None
        return highest

    def current_bytes(self) -> int:
        now = max(0, self._private() - self._baseline)
        self._highest = max(self._highest, now)
        return now


def private_bytes(process: psutil.Process) -> int | None:
    """Return the private memory of a process: 0 if it ended, None if it cannot be read.

    If a process hides its pages, such as a sandboxed renderer, or on macOS, it is the resident
    memory without the memory that is known to be shared.
    """
    import psutil

    try:
        with Path(f"/proc/{process.pid}/smaps_rollup").open() as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_"))
    except ProcessLookupError:
        return 0  # it ended during the read
    except OSError:
        pass  # another system or user, or the process has ended: psutil decides
    try:
        with contextlib.suppress(psutil.AccessDenied):
            return int(process.memory_full_info().uss)
        memory = process.memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))
    except psutil.AccessDenied:
        return None
    except psutil.Error:
        return 0


class MemorySampler:
    """Sampler that averages memory over a `with` block from a thread, in a separate pass.

    Never use it during timing: each sample takes the interpreter's lock. `read_device` returns the
    device allocator's bytes.
    """

    def __init__(
        self,
        host: HostMemory,
        read_device: Callable[[], int | None] | None = None,
        seconds: float = _SAMPLE_SECONDS,
    ) -> None:
        self._host = host
        self._read_device = read_device
        self._seconds = seconds
        self._done = threading.Event()
        self._host_samples: list[int] = []
        self._device_samples: list[int] = []
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self._read_host = self._host.reader()
        self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        if error is None and self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._sample()
            while not self._done.wait(self._seconds):
                self._sample()
            self._sample()
        except Exception as failure:
            self._failure = failure

    def _sample(self) -> None:
        self._host_samples.append(self._read_host())
        if self._read_device is not None:
            value = self._read_device()
            if value is not None:
                self._device_samples.append(value)

    @property
    def samples(self) -> int:
        return len(self._host_samples)

    @property
    def host_average(self) -> float | None:
        mean = average(self._host_samples)
        return None if mean is None else self._host.net(mean)

    @property
    def device_average(self) -> float | None:
        return average(self._device_samples)

    @property
    def device_peak(self) -> int | None:
        """Highest device sample, for allocators that keep no peak."""
        return max(self._device_samples, default=None)


def average(samples: Iterable[int]) -> float | None:
    """Return the mean of the samples, or None without any."""
    values = list(samples)
    return sum(values) / len(values) if values else None


def _read_smaps() -> Resident:
    # Line by line: the whole text and its lines would add 1 MiB to the counted memory.
    with Path("/proc/self/smaps").open(errors="replace") as file:
        return parse_smaps(file)


def _read_text(path: str) -> str:
    handle = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(handle, 1 << 20):
            parts.append(part)
    finally:
        os.close(handle)
    return b"".join(parts).decode(errors="replace")


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)
