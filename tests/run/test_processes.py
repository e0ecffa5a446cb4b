"""Templates and workers: started when needed, replaced when dead, gone when nobody needs them."""

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from scripted_runs import Watcher, children, is_remover

from accelbench.engines.scripted import ScriptedRuntime
from accelbench.run.process import worker_pool
from accelbench.run.process.worker_pool import WorkerPool
from warm_start import start_cold

TORTURED = Path(__file__).with_name("tortured.py")


@pytest.fixture(autouse=True)
def _started_cold(scripted, monkeypatch):
    """How templates start, die and are replaced is what these tests are about."""
    monkeypatch.setattr(worker_pool, "start_process", start_cold)


def altered(**changes):
    """The scripted runtime with another card."""
    runtime = ScriptedRuntime()
    runtime.info = dataclasses.replace(runtime.info, **changes)
    return runtime


def test_one_template_serves_a_launch_and_a_fresh_one_the_next(scripted):
    watcher = Watcher()
    rows = scripted.run("bert-tiny", "vit-tiny", batches=[1, 2], launches=3, watcher=watcher)
    assert [row["launch"] for row in rows] == [1] * 4 + [2] * 4 + [3] * 4
    assert len({row["result_id"] for row in rows}) == 12
    assert len({row["case_id"] for row in rows}) == 4
    seen = [watcher.templates[i : i + 4] for i in (0, 4, 8)]
    per_launch = [set().union(*pids) for pids in seen]
    assert [len(pids) for pids in per_launch] == [1, 1, 1]
    assert len(set().union(*per_launch)) == 3
    assert len(watcher.processes) == 3 + 6  # a worker a model and launch
    assert not watcher.alive()


def test_a_spawned_worker_that_dies_or_hangs_is_ended(scripted):
    scripted.runtimes["scripted"] = altered(isolation="spawn")
    scripted.script({"how": "segv", "when": "step", "batch": 4})
    watcher = Watcher()
    rows = scripted.run(watcher=watcher)
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"]
    assert "SIGSEGV" in rows[1]["message"]
    assert len(watcher.processes) == 2  # no template
    assert not watcher.alive()

    scripted.runtimes["scripted"] = altered(isolation="spawn")
    scripted.script({"how": "hang", "when": "step", "batch": 4})
    watcher = Watcher()
    rows = scripted.run(batches=[4], timeout=1.0, watcher=watcher)
    assert rows[0]["status"] == "timeout"
    assert not watcher.alive()


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_an_engine_that_cannot_start_costs_only_its_own_cases(scripted, isolation):
    # Known to the conductor, but not registered: its process ends before it calls in.
    scripted.runtimes["second"] = altered(name="never-registered", isolation=isolation)
    planned = scripted.journey(batches=[1, 2], runtimes=["second", "scripted"])
    ended = scripted.start(planned, Watcher())
    assert [(r["runtime"], r["status"], r["reason"]) for r in ended.rows] == [
        ("second", "failed", "worker_did_not_start"),
        ("second", "failed", "worker_did_not_start"),
        ("scripted", "ok", None),
        ("scripted", "ok", None),
    ]
    assert "KeyError" in ended.rows[0]["message"]
    assert ended.rows[0]["advice"]
    assert not ended.nothing_could_start


def test_where_nothing_at_all_could_start_the_run_says_so(scripted):
    scripted.runtimes["scripted"] = altered(name="never-registered")
    ended = scripted.start(scripted.journey(batches=[1]), Watcher())
    assert ended.nothing_could_start


def killer(wanted):
    """Kills, once, the first process that fits, between two models."""

    class Killer(Watcher):
        done = False

        def case_finished(self, row):
            super().case_finished(row)
            for process in children(recursive=True):
                if not self.done and wanted(process):
                    self.done = True
                    process.kill()
                    process.wait() if process.ppid() == os.getpid() else None

    return Killer()


def test_a_template_that_dies_idle_is_started_anew(scripted):
    watcher = killer(lambda process: process.ppid() == os.getpid())
    rows = scripted.run("bert-tiny", "vit-tiny", "gpt2-tiny", batches=[1], watcher=watcher)
    assert [row["status"] for row in rows] == ["ok", "ok", "ok"]
    assert len(set().union(*watcher.templates)) == 2


def test_a_template_that_dies_while_its_worker_measures_costs_that_case_alone(scripted):
    killed = []

    def kill_once(progress):
        if progress.phase == "steady state" and not killed:
            (template,) = children()
            killed.append(template.pid)
            template.kill()

    # Real time, so that the worker is there to be killed with its template.
    scripted.script(real=True, step_ns=5_000_000)
    watcher = Watcher(kill_once)
    rows = scripted.run(
        "bert-tiny", "vit-tiny", batches=[1, 2], iterations=60, warmup=1, watcher=watcher
    )
    assert killed
    assert [row["status"] for row in rows] == ["failed", "ok", "ok", "ok"]
    assert rows[0]["reason"] in ("killed", "crash")
    assert not watcher.alive()


def test_forking_from_a_template_that_is_dead_starts_another(scripted):
    made = WorkerPool()
    try:
        runtime = scripted.runtimes["scripted"]
        first = made.worker(runtime, None)
        (template,) = children()
        os.kill(template.pid, signal.SIGKILL)  # not waited for: nobody has looked yet
        second = made.worker(runtime, None)
        assert first.pid != second.pid
        assert psutil.pid_exists(second.pid)
        second.end()
        assert first.end() is None  # nobody was left to see how it ended
    finally:
        made.close()
    assert not children()


def test_a_run_leaves_no_folder_behind(scripted, monkeypatch, tmp_path_factory):
    base = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    during = []
    scripted.run(batches=[1], watcher=Watcher(lambda _: during.append(len(list(base.iterdir())))))
    assert set(during) == {1}
    assert not list(base.iterdir())


def ended(process):
    """Gone, or a zombie that whoever adopted it has not looked at."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("killed", ["conductor", "group", "conductor and remover"])
def test_killing_the_conductor_ends_its_processes_and_leaves_no_folder(
    killed, scripted, tmp_path_factory
):
    scripted.script(real=True, step_ns=5_000_000)
    base = tmp_path_factory.mktemp("t")
    environment = {**os.environ, "TMPDIR": str(base)}
    command = [sys.executable, str(TORTURED), "begin", str(scripted.journals), "slow"]
    conductor = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert conductor.stdout.readline()  # it has announced something: all of it is running
        family = psutil.Process(conductor.pid).children(recursive=True)
        assert list(base.glob("accelbench-*"))
    finally:
        if killed == "group":
            os.killpg(conductor.pid, signal.SIGKILL)
        if killed == "conductor and remover":
            [remover] = filter(is_remover, family)
            remover.kill()
        conductor.kill()
        conductor.wait()
        conductor.stdout.close()
    assert len(family) >= 1
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not all(ended(one) for one in family):
        time.sleep(0.01)
    assert all(ended(one) for one in family)
    if killed != "conductor and remover":
        assert not list(base.iterdir())
        return
    (left,) = base.glob("accelbench-*")  # the next run removes it

    scripted.script()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(base))
        scripted.run(batches=[1])
    assert not left.exists()
    assert not list(base.iterdir())
