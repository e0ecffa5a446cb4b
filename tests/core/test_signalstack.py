"""The stack for signals: what a library put in its place and freed must not be left there."""

import subprocess
import sys

import pytest

#: Two engines that end in the order in which they began; then a signal with a handler.
ENGINES = """
import os, signal
import openvino
from accelbench.core.processes import keep_signal_stack

@keep_signal_stack()
def engine():
    core = openvino.Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin
    return core

first, second = engine(), engine()
del first
del second
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append("heard"))
os.kill(os.getpid(), signal.SIGTERM)
print(*heard)
"""

#: A library that leaves the thread with a stack that is gone.
FREED = """
import ctypes, mmap, os, signal
from accelbench.core.processes import SignalStack, get_signal_stack
from accelbench.core.processes import keep_signal_stack, restore_signal_stack

with keep_signal_stack():
    own = mmap.mmap(-1, 2**16)
    place = ctypes.addressof(ctypes.c_char.from_buffer(own))
    restore_signal_stack(SignalStack(place, 0, 2**16))
    assert get_signal_stack().place == place
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(get_signal_stack().place != place))
os.kill(os.getpid(), signal.SIGTERM)
print(*heard)
"""


def said(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


def test_a_process_in_which_openvino_was_loaded_hears_signals():
    """Without it, it died of SIGSEGV."""
    pytest.importorskip("openvino")
    assert said(ENGINES) == "heard"


@pytest.mark.skipif(sys.platform != "linux", reason="nobody can be asked elsewhere")
def test_the_stack_is_put_back():
    assert said(FREED) == "True"
