"""Ranks that die, hang, or whose worker dies: all of them are gone, and it is said which it was."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from accelbench.core.errors import CaseError
from accelbench.engines.pytorch.distributed import group as group_module
from accelbench.engines.pytorch.distributed.group import RankGroup, RankLaunch, take_part

pytestmark = pytest.mark.skipif(os.name == "nt", reason="ranks are ended by signals")


def gone(pids):
    """Whether none of these is there any more, a moment later."""
    there = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return not psutil.wait_procs(there, timeout=20)[1]


def numbers(group):
    """The processes of a group's ranks."""
    return [int(rank["pid"]) for rank in group.ask("where")]


def test_a_rank_that_is_killed_is_named_with_its_last_words_and_ends_the_others():
    group = RankGroup(RankLaunch(2, collective_seconds=60))
    pids = numbers(group)
    (log,) = group._folder.glob("logs/*/attempt_0/1/stderr.log")
    log.write_text("first\nwhat went wrong\n")
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(CaseError, match=r"rank 1 .*; its last line: what went wrong") as caught:
        group.ask("meet")
    assert (caught.value.reason, caught.value.status) == ("rank_lost", "failed")
    assert gone(pids)


def test_a_rank_that_hangs_is_named_and_ended(monkeypatch):
    # The agent never ends by itself while a rank is stopped: that was waited for for ten seconds.
    monkeypatch.setattr(group_module, "_NOTE_SECONDS", 1.0)
    group = RankGroup(RankLaunch(2, collective_seconds=2))
    pids = numbers(group)
    os.kill(pids[1], signal.SIGSTOP)
    with pytest.raises(CaseError, match="rank 1 was waited for in vain") as caught:
        group.ask("meet")
    assert (caught.value.reason, caught.value.status) == ("rank_lost", "timeout")
    assert gone(pids)


_WORKER = """
from accelbench.engines.pytorch.distributed import group as group_module
from accelbench.engines.pytorch.distributed.group import RankGroup, RankLaunch
print(*[rank["pid"] for rank in RankGroup(RankLaunch(2)).ask("where")], flush=True)
input()
"""


def test_no_rank_outlives_its_worker_nor_does_its_folder():
    with tempfile.TemporaryDirectory() as base:  # a path that is short enough for sockets
        with subprocess.Popen(
            [sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": base},
        ) as worker:  # fmt: skip
            pids = [int(word) for word in worker.stdout.readline().split()]
            assert len(pids) == 2
            worker.kill()
        assert gone(pids)
        deadline = time.monotonic() + 30
        while (left := list(Path(base).iterdir())) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not left


@pytest.mark.parametrize("ended", ["by a word", "without one"])
def test_machines_meet_by_rendezvous_and_part(ended):
    """Two agents on one host, each with a rank: what two machines would be.

    A worker is ended with its agent when nothing more is asked of it: that is no rank's failure.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    launch = RankLaunch(
        here=1, seconds=120, collective_seconds=60, nodes=2, node=1, rendezvous=place
    )
    with ThreadPoolExecutor(1) as other:
        taking_part = other.submit(take_part, launch)
        group = RankGroup(replace(launch, node=0))
        ranks = group.ask("where")
        if ended == "without one":
            group._agent.kill()
        else:
            group.close()
        assert taking_part.result(timeout=60) is None
        group.close()
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert gone([rank["pid"] for rank in ranks])
