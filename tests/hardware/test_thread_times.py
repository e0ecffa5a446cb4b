"""Threads' times from the kernel's counters, and what two readings say of the time between."""

import os

import pytest

from accelbench.hardware.common import NotAvailable
from accelbench.hardware.thread_times import ThreadTimes, compare, read_thread_times

S = 1_000_000_000


class Kernel:
    """Files as the kernel shows them."""

    def __init__(self, files):
        self._files = files

    def text(self, path):
        return self._files.get(path)

    def names(self, path):
        inside = {p.removeprefix(f"{path}/") for p in self._files if p.startswith(f"{path}/")}
        return sorted({name.partition("/")[0] for name in inside})


def kernel(**more):
    cpus = sorted(os.sched_getaffinity(0))
    stat = "\n".join(["cpu  0 0 0 0 0 0 0 0", *(f"cpu{n} 10 5 20 900 7 3 2 50 0 0" for n in cpus)])
    return Kernel(
        {
            "/proc/self/task/7/schedstat": "3000 100 5",
            "/proc/self/task/8/schedstat": "2000 400 9",
            "/proc/9/task/9/schedstat": "500 60 2",
            "/proc/stat": stat,
            **more,
        }
    )


def test_a_process_and_its_cpus_are_read():
    own = read_thread_times(files=kernel(), system="linux")
    assert own.ran_ns == {7: 3000, 8: 2000}
    assert own.waited_ns == {7: 100, 8: 400}
    both = read_thread_times([9, 10], files=kernel(), system="linux")
    assert both.ran_ns == {7: 3000, 8: 2000, 9: 500}

    found = read_thread_times(files=kernel(), system="linux")
    assert found.cpus == len(os.sched_getaffinity(0))
    tick = S // os.sysconf("SC_CLK_TCK")
    assert found.machine_ran_ns == found.cpus * (10 + 5 + 20 + 3 + 2) * tick

    before = read_thread_times()
    if isinstance(before, NotAvailable):
        pytest.skip(before.reason)
    sum(n * n for n in range(200_000))
    after = read_thread_times()
    use = compare(before, after)
    assert use.ran_ns > 0
    assert 0 <= use.wait_share <= 1


@pytest.mark.parametrize(
    ("files", "system"),
    [
        (Kernel({}), "linux"),
        (kernel(), "darwin"),
        (kernel(), "win32"),
        (Kernel({"/proc/self/task/7/schedstat": "0 0 0"}), "linux"),
    ],
)
def test_systems_that_do_not_count_have_no_times(files, system):
    assert isinstance(read_thread_times(files=files, system=system), NotAvailable)


def at(wall, threads, machine, cpus=2):
    """A reading after some seconds, of threads that ran and waited for so many."""
    ran = {number: round(seconds * S) for number, (seconds, _) in threads.items()}
    waited = {number: round(seconds * S) for number, (_, seconds) in threads.items()}
    busy = None if machine is None else round(machine * S)
    return ThreadTimes(round(wall * S), sum(ran.values()), ran, waited, busy, cpus)


START = at(0, {}, 0)


def test_who_waits_for_whom():
    use = compare(START, at(1, {1: (0.25, 0.75)}, 2.0))
    assert use.wait_share == pytest.approx(0.75)
    assert use.busy_threads == pytest.approx(0.25)
    # Four threads on two CPUs that nobody else uses: each runs half of the time.
    use = compare(START, at(1, dict.fromkeys(range(4), (0.5, 0.5)), 2.0))
    assert use.wait_share < 0.05
    assert use.busy_threads == pytest.approx(2)
    use = compare(START, at(1, dict.fromkeys(range(4), (0.25, 0.75)), 2.0))
    assert use.waited_ns == pytest.approx(1.5 * S, rel=0.01)  # of 3 s: others had half of the CPUs
    use = compare(START, at(1, {1: (0.5, 0.5), 2: (0.5, 0.5)}, 1.0))
    assert use.waited_ns <= 2 * 2 * S / os.sysconf("SC_CLK_TCK")  # what ticks may hide
    use = compare(START, at(10, {1: (9.9, 0.1), 2: (0.01, 5)}, 20.0))
    assert use.wait_share < 0.02
    assert use.busy_threads == pytest.approx(1, abs=0.02)
    # However long they wait for each other's work, or for a CPU.
    use = compare(START, at(1, {1: (0.2, 0.5), 2: (0.3, 0.6)}, 2.0))
    assert use.busy_threads == pytest.approx(0.5)
    after = ThreadTimes(S, 2 * S, {1: S // 100}, {1: S // 2}, 2 * S, 2)
    assert compare(START, after).busy_threads == pytest.approx(2)
    use = compare(START, at(1, dict.fromkeys(range(4), (0.25, 0.75)), None))
    assert use.waited_ns == 0
    assert compare(START, at(1, {1: (0.25, 0.75)}, None)).wait_share == pytest.approx(0.75)
