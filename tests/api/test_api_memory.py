"""reset_memory_stats: forgets peaks, and starts nothing."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from accelbench import reset_memory_stats

PEAK = """
import re
from pathlib import Path
from accelbench import reset_memory_stats

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024

block = bytearray(200 * 2**20)
del block
before = peak()
assert reset_memory_stats() is None
print(before - peak())
import sys
assert "torch" not in sys.modules
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset a process's peak")
def test_the_processes_own_peak_is_forgotten():
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150


def test_the_allocators_peaks_are_forgotten_on_every_device_in_use(monkeypatch):
    asked: list[int] = []
    cuda = SimpleNamespace(
        is_initialized=lambda: True, device_count=lambda: 2, reset_peak_memory_stats=asked.append
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    reset_memory_stats()
    assert asked == [0, 1]


def test_a_device_that_nobody_uses_is_not_started(monkeypatch):
    # Anything but is_initialized would be an AttributeError.
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    reset_memory_stats()
