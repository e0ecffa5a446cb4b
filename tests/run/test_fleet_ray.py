"""A fleet of two nodes on this machine, by Ray itself: started, asked, measured on, killed, ended.

One fleet serves all tests, in their order, and one plan: begun by a driver that is killed, gone on
with while a node is killed.

Everything is a process of its own: whoever connects with Ray keeps its threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psutil
import pytest

from accelbench.fleet.session import StartedNode

pytest.importorskip("ray")

PLAN = """
models: [bert-tiny, vit-tiny, resnet-tiny, gpt2-tiny]
matrix:
  hardware: [cpu, cuda]
  framework: scripted
  batch_sizes: [1, 2, 3]
run:
  iterations: 100  # half a second a case, three of them in a unit
  benchmark_only: true
"""


@dataclass
class Fleet:
    """A fleet with its state in a folder of its own."""

    folder: Path
    port: int

    @property
    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        return kept | {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "ACCELBENCH_SCRIPT": str(self.folder / "script.json"),
            "ACCELBENCH_DB": str(self.folder / "store.duckdb"),
            # A node that refuses to answer is gone after one second in place of fifteen.
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "2",
        }

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def command(self, *words):
        return [sys.executable, "-m", "accelbench", "fleet", *words]

    def ask(self, *words):
        return subprocess.run(
            self.command(*words), env=self.environment, cwd=self.folder,
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip

    def running(self, *words):
        return subprocess.Popen(
            self.command("run", *words), env=self.environment, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def runners(self, node):
        """Return the processes of a node that measure units."""
        found = []
        for process in node.alive_processes:
            for child in process.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                    words = child.cmdline()
                    if any("unit_runner" in word for word in words) and "serve" in words:
                        found.append(child)
        return found

    @property
    def nodes(self):
        text = (self.folder / "state/accelbench/fleet/started.json").read_text()
        return [StartedNode(**entry) for entry in json.loads(text)]

    def rows(self, query):
        with duckdb.connect(str(self.folder / "store.duckdb"), read_only=True) as con:
            return con.execute(query).fetchall()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    made = Fleet(folder, port)
    (folder / "script.json").write_text('{"step_ns": 5000000, "real": true}')
    try:
        started = made.ask("start", "--port", str(port))
        assert started.returncode == 0, started.stderr
        assert f"accelbench fleet join {made.address} --token-file" in started.stdout
        joined = made.ask("join", made.address)
        assert joined.returncode == 0, joined.stderr
        yield made
    finally:
        made.ask("stop")


def _runs(process):
    """Whether a process goes on; one that nobody has waited for yet is over."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_token_is_for_this_user_alone(fleet):
    token = Path(fleet.nodes[0].token_file)
    assert token.is_relative_to(fleet.folder)
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text()) == 64


def test_sockets_and_logs_of_ray_are_for_this_user_alone(fleet):
    """Ray makes its own folder writable for everybody, and its sockets ask for no token."""
    for node in fleet.nodes:
        (outer,) = [f for f in Path(node.session).parents if f.name.startswith("accelbench-ray-")]
        assert outer.stat().st_mode & 0o777 == 0o700


def test_it_listens_on_the_loopback_address_alone(fleet):
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for node in fleet.nodes
        for process in node.alive_processes
        for each in (process, *process.children(recursive=True))
        for connection in each.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_another_token_is_refused(fleet):
    wrong = fleet.folder / "wrong"
    wrong.write_text("ab" * 32)
    refused = fleet.ask("join", fleet.address, "--token-file", str(wrong))
    assert refused.returncode == 3
    assert f"The fleet at {fleet.address} refused the token." in refused.stderr
    assert len(fleet.nodes) == 2


def test_a_fleet_measures_as_a_run_does(fleet):
    """Ray preloads an allocator of its own, under which OpenVINO crashes and memory differs."""
    words = (
        *("run", "resnet-tiny", "--hardware", "cpu,openvino", "--framework"),
        *("onnxruntime,openvino", "--batch-sizes", "8", "--iterations", "5", "--threads", "1"),
        "--benchmark-only",
    )
    stores = [fleet.folder / "alone.duckdb", fleet.folder / "by-fleet.duckdb"]
    commands = [[sys.executable, "-m", "accelbench", *words], fleet.command(*words)]
    found = []
    for store, command in zip(stores, commands, strict=True):
        ended = subprocess.run(
            [*command, "--db", str(store)], env=fleet.environment, cwd=fleet.folder,
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        with duckdb.connect(str(store), read_only=True) as con:
            query = (
                "SELECT runtime, conditions->>'allocator', memory_peak_mb FROM benchmark_results"
            )
            found.append({row[0]: row[1:] for row in con.execute(query).fetchall()})
    alone, by_fleet = found
    assert {engine: allocator for engine, (allocator, _) in by_fleet.items()} == {
        "onnxruntime": "libc",
        "openvino": "libc",
    }
    for engine, (allocator, memory) in alone.items():
        assert by_fleet[engine] == (allocator, pytest.approx(memory, rel=0.2, abs=1.0))


def test_runners_end_with_a_driver_that_is_killed(fleet):
    (fleet.folder / "plan.yaml").write_text(PLAN)
    with fleet.running("plan.yaml") as driver:
        assert driver.stdout is not None
        next(line for line in driver.stdout if " ms " in line)
        runners = [runner for node in fleet.nodes for runner in fleet.runners(node)]
        families = [runner.children(recursive=True) for runner in runners]
        niceness = {runner.nice() for runner in runners}
        driver.kill()
    assert niceness == {psutil.Process().nice()}  # Ray's own workers would be 15 more
    _, alive = psutil.wait_procs([*runners, *(each for one in families for each in one)], 30)
    assert not [process for process in alive if _runs(process)]


def test_two_nodes_make_a_step_together(fleet):
    """A process of each node, by a placement group; they meet where the first of them says."""
    said = fleet.ask(
        "run", "bert-tiny", "--mode", "training", "--distributed", "--processes", "1",
        "--nnodes", "2", "--hardware", "cpu", "--framework", "pytorch", "--batch-sizes", "4",
        "--iterations", "3", "--warmup", "1", "--no-baseline", "--benchmark-only",
        "--db", str(fleet.folder / "together.duckdb"),
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    with duckdb.connect(str(fleet.folder / "together.duckdb"), read_only=True) as con:
        query = "SELECT status, world_size, batch_size, evidence FROM benchmark_results"
        ((status, world_size, batch, evidence),) = con.execute(query).fetchall()
    assert (status, world_size, batch) == ("ok", 2, 4)
    assert len(json.loads(evidence)["details"]["distributed"]["ranks"]) == 2


def test_a_killed_node_s_cases_end_elsewhere_and_each_once(fleet):
    said, runners = [], set()
    with fleet.running("--resume", "last") as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            said.append(line)
            if " ms " not in line:
                continue
            runners |= {runner.pid for runner in fleet.runners(fleet.nodes[0])}
            # A result is there, and the joined node is in its first unit or in a later one.
            if fleet.runners(fleet.nodes[1]):
                for process in fleet.nodes[1].alive_processes:
                    process.send_signal(signal.SIGKILL)
    assert any("is lost" in line for line in said), said
    assert not [line for line in said if "raylet" in line or "state-dump" in line]
    assert driver.returncode == 3, said  # nothing was measured on cuda
    assert len(runners) == 1, "each unit of a node had a process of its own"
    rows = fleet.rows("SELECT model, hardware, batch_size, status, reason FROM benchmark_results")
    ended = Counter((model, hardware, batch) for model, hardware, batch, _, _ in rows)
    assert len(ended) == 24
    assert set(ended.values()) == {1}
    by_platform = Counter((hardware, status, reason) for _, hardware, _, status, reason in rows)
    assert by_platform == {("cpu", "ok", None): 12, ("cuda", "unsupported", "no_node"): 12}
    runs = fleet.rows("SELECT run_id, status, environment->>'machine' FROM benchmark_runs")
    assert {status for _, status, _ in runs} == {"finished"}
    assert sum("." in str(run) for run, _, _ in runs) >= 1
    status = json.loads(fleet.ask("status", "--json").stdout)
    assert len(status["nodes"]) == 1


def test_what_was_started_is_ended_and_nothing_else(fleet):
    left = [process for node in fleet.nodes for process in node.alive_processes]
    assert len(left) > 3
    session = Path(fleet.nodes[0].session)
    stopped = fleet.ask("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert not [process for process in left if _runs(process)]
    # A node was killed: what Ray wrote of it is left, and named.
    assert f"A process of Ray had ended before: its logs are in {session / 'logs'}." in (
        stopped.stdout
    )
    assert list((session / "logs").iterdir())
    shutil.rmtree(session)
    again = fleet.ask("stop")
    assert again.stdout == "No fleet was started on this machine.\n"
