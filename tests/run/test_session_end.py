"""The end of what was started for a fleet here: its processes, and Ray's logs of it."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict

import psutil
import pytest

from accelbench.cli.commands import fleet
from accelbench.fleet.session import StartedNode, record_path, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process is renamed")

Start = Callable[..., psutil.Process]
SESSION = "session_2026-01-02_03-04-05_678901_23"


@pytest.fixture
def ray(tmp_path):
    """Ray's own folder."""
    folder = tmp_path / "ray"
    (folder / SESSION / "logs").mkdir(parents=True)
    (folder / SESSION / "logs" / "raylet.out").write_text("it began")
    (folder / "session_latest").symlink_to(folder / SESSION)
    (folder / "ray_current_cluster").write_text("127.0.0.1:6379")
    return folder


@pytest.fixture
def start(tmp_path, ray, monkeypatch):
    """Starts a process that stands for a node, which is written down as one of these."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    record_path().parent.mkdir(parents=True)
    began = []
    nodes = []

    def started(*, recorded=True):
        # Named as Ray's is, and with its session among its words.
        code = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'raylet'); print(flush=True)"
        process = subprocess.Popen(
            [sys.executable, "-c", f"{code}; time.sleep(600)", f"--x={ray / SESSION}/sockets"],
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        began.append(process)
        there = psutil.Process(process.pid)
        if recorded:
            members = ((process.pid, there.create_time()),)
            nodes.append(StartedNode("a:1", "token", True, "now", members, str(ray / SESSION)))
            record_path().write_text(json.dumps([asdict(node) for node in nodes]))
        return there

    yield started
    for process in began:
        process.kill()
        process.wait()
        process.stdout.close()


def test_logs_go_with_the_fleet(start, ray):
    node = start()
    stopped = stop()
    assert (stopped.processes, stopped.logs, stopped.failed) == (1, (), False)
    assert node.wait(30) is not None or not node.is_running()
    assert not ray.exists()
    assert not record_path().exists()


def test_logs_are_left_where_they_are_asked_for_or_needed(start, ray, capsys):
    start()
    fleet.stop(keep_logs=True)
    logs = ray / SESSION / "logs"
    assert capsys.readouterr().out == f"Ended 1 process.\nRay's logs are in {logs}.\n"
    assert (logs / "raylet.out").is_file()

    start()
    failed = start()
    failed.kill()
    failed.wait(30)
    fleet.stop(keep_logs=False)
    said = capsys.readouterr().out
    assert f"A process of Ray had ended before: its logs are in {ray / SESSION / 'logs'}." in said
    assert (ray / SESSION / "logs" / "raylet.out").is_file()


def test_logs_that_another_node_of_the_machine_writes_are_left(start, ray):
    start()
    other = start(recorded=False)
    stopped = stop()
    assert stopped.logs == (ray / SESSION / "logs",)
    assert other.is_running()


def test_a_record_of_before_has_no_session(start, ray):
    start()
    entries = json.loads(record_path().read_text())
    del entries[0]["session"]
    record_path().write_text(json.dumps(entries))
    assert stop().logs == ()
    assert (ray / SESSION).is_dir()
