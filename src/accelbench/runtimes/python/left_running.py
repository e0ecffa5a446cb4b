"""Whether something of a callable's goes on once it has returned: in threads or processes of its.

It takes time from the next call, and is in no call's own. Threads that wait, as those of a pool
do, take none. A pool of OpenMP spins for 200 ms after its work: where Python's own threads are at
rest, who is busy is looked at twice.
"""

from __future__ import annotations

import threading
import time

import psutil

#: How long is looked, first and after what may spin has come to rest.
_GLANCE_S, _REST_S, _LOOK_S = 0.02, 0.3, 0.15
#: Of that time what somebody has who works. On a machine of two cores with eight others at work a
#: thread had a fifth of a core; a worker at rest has less than a hundredth.
_SHARE = 0.08
#: The same of Python's own threads, which do not spin; those of a worker use nothing at rest. A
#: thread that computes ahead may need 0.3 ms for the one call that has ended.
_OF_THREADS = 0.005


def left_running() -> str:
    """What goes on in this process, or below it, where nothing was asked of it; "" of nothing."""
    if any(isinstance(thread, threading.Timer) for thread in threading.enumerate()):
        return "a timer is set"
    before = _thread_seconds()
    share = _busy(_GLANCE_S)
    after = _thread_seconds()
    used = sum(value - before.get(thread, value) for thread, value in after.items())
    if used >= _OF_THREADS * _GLANCE_S:
        return f"{share:.0%} of a core"
    if share < _SHARE:
        return ""
    time.sleep(_REST_S)
    share = _busy(_LOOK_S)
    return "" if share < _SHARE else f"{share:.0%} of a core"


def _busy(seconds: float) -> float:
    """Of a core what is used meanwhile, by this process and those below it."""
    before, start = _cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    after, took = _cpu_seconds(), time.monotonic() - start
    used = sum(value - before[key] for key, value in after.items() if key in before)
    return used / took


def _thread_seconds() -> dict[int, float]:
    """Of each other thread of Python's, where its clock can be read."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    found: dict[int, float] = {}
    for thread in threading.enumerate():
        if clock_of is None or thread.ident is None or thread is threading.current_thread():
            continue
        try:
            found[thread.ident] = time.clock_gettime(clock_of(thread.ident))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _cpu_seconds() -> dict[int, float]:
    """By process; another one that began or ended meanwhile is not told of."""
    found = {0: time.process_time()}
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        found[process.pid] = times.user + times.system
    return found
