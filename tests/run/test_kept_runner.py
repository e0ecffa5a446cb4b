"""A process on a node that is kept between units: what stays, what is new, and how it ends."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest
from scripted_runs import is_remover
from virtual_fleets import FLEET, units

from accelbench.core import processes
from accelbench.core.facts import RESULT, RUN_STARTED
from accelbench.core.run_options import RunSettings
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.fleet import ray_worker
from accelbench.fleet.fleet_record import parse_facts
from accelbench.fleet.fleet_run import FleetJob
from accelbench.fleet.ray_worker import KeptRunner, RunnerSlot
from accelbench.run.process import worker_pool
from accelbench.run.process.worker_pool import KeptWorkerPool

NODE = "0123456789abcdef"


class Node:
    """A worker of Ray with its runner, without Ray."""

    def __init__(self, folder):
        self.folder = folder
        self.slot = RunnerSlot()
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder),
            "ACCELBENCH_SCRIPT": str(folder / "script.json"),
        }

    def script(self, **script):
        (self.folder / "script.json").write_text(json.dumps(script))

    def task(self, number=0, **settings):
        """A unit of two cases."""
        how = RunSettings(run_id=FLEET, verify="off", **settings)
        unit = replace(units(1, launches=how.launches)[0], number=number)
        return FleetJob(FLEET, [unit], how).build_task(unit, 1)

    def begin(self, number=0, **settings):
        """What is heard of a unit."""
        return ray_worker.measure(self.task(number, **settings), NODE, 10.0)

    def measured(self, number=0, **settings):
        """The facts of a unit that is measured to its end."""
        return self.facts(self.begin(number, **settings))

    @staticmethod
    def facts(heard):
        return [fact for message in heard for fact in parse_facts(message.get("lines", ()))]

    @property
    def runner(self):
        kept = self.slot._kept
        return psutil.Process(kept.pid)

    def children(self):
        """Every runner of this process."""
        own = psutil.Process().children()
        return [child for child in own if "unit_runner" in str(child.cmdline())]

    def printed(self, number):
        (path,) = self.folder.glob(f"accelbench/fleet/units/*/unit-{number}-1/errors.txt")
        return path.read_text()


@pytest.fixture
def node(tmp_path, monkeypatch):
    made = Node(tmp_path)
    made.script(step_ns=1_000_000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(ray_worker, "_slot", made.slot)
    monkeypatch.setattr(ray_worker, "node_environment", lambda _: dict(made.environment))
    yield made
    made.slot.close()


def results(facts):
    return [fact.body for fact in facts if fact.kind == RESULT]


def test_units_share_a_process_and_nothing_of_their_own(node):
    first = node.measured(0, iterations=11)
    runner = node.runner
    (template,) = [one for one in runner.children() if not is_remover(one)]
    second = node.measured(1, iterations=12, launches=2)
    assert node.runner == runner
    assert template in runner.children()
    assert [row["conditions"]["rules"]["iterations"] for row in results(first)] == [11, 11]
    assert [row["conditions"]["rules"]["iterations"] for row in results(second)] == [12] * 4
    for facts, launches in ((first, 1), (second, 2)):
        assert [fact.kind for fact in facts].count(RUN_STARTED) == 1
        assert sorted(row["launch"] for row in results(facts)) == sorted(
            [*range(1, launches + 1)] * 2
        )
        # Each group of cases meets a worker that has measured nothing yet.
        befores = [row["conditions"]["cases_before_in_worker"] for row in results(facts)]
        assert befores == [0, 1] * launches
    begun = [fact.body for fact in (*first, *second) if fact.kind == RUN_STARTED]
    assert begun[0]["environment"] == begun[1]["environment"]
    assert begun[0]["started_at"] < begun[1]["started_at"]
    # A share of a budget that is used up is of its unit alone.
    task = node.task(2, iterations=11, budget=60.0)
    spent = node.facts(
        ray_worker.measure({**task, "share": {"seconds": 0.0, "results": 2}}, NODE, 9)
    )
    assert [(row["status"], row["reason"]) for row in results(spent)] == [("skipped", "budget")] * 2
    assert [row["status"] for row in results(node.measured(3))] == ["ok", "ok"]
    assert node.runner == runner
    surroundings = [row["environment"]["memory_available"] for row in results(first + second)]
    assert all(surroundings)
    assert not [child for child in runner.children() if child.children()]  # no worker is left


def test_a_runner_that_dies_in_a_unit_fails_it_and_is_not_used_again(node):
    node.script(faults=[{"how": "hang", "when": "open"}])
    unit = node.begin()
    next(unit)
    next(unit)
    (first,) = node.children()
    first.send_signal(signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the process that measures ended with -9"):
        list(unit)
    node.script(step_ns=1_000_000)
    assert len(results(node.measured(1))) == 2
    second = node.runner
    assert second != first
    # On another device, and so in another environment, it is not used either.
    node.environment["CUDA_VISIBLE_DEVICES"] = "1"
    unit = node.begin(2)
    next(unit)
    next(unit)
    assert not second.is_running()
    unit.close()


def test_what_a_runner_says_at_its_end_is_why_the_attempt_failed(node):
    node.measured()
    task = {
        **FleetJob(FLEET, units(1), RunSettings(run_id=FLEET)).build_task(units(1)[0], 1),
        "unit": 5,
    }
    del task["settings"]
    with pytest.raises(RuntimeError, match=r"ended with 1: .*StoreError: Run"):
        list(ray_worker.measure(task, NODE, 10.0))
    assert "Traceback" in node.printed(5)
    assert "Traceback" not in node.printed(0)


def test_a_unit_that_nobody_listens_to_any_more_ends_its_runner(node):
    node.script(faults=[{"how": "hang", "when": "open"}])
    unit = node.begin()
    next(unit)
    next(unit)
    (runner,) = node.children()
    family = runner.children(recursive=True)
    unit.close()
    _, alive = psutil.wait_procs([runner, *family], timeout=30)
    assert not alive


def test_a_runner_ends_with_its_input_also_within_a_unit(node, monkeypatch):
    """As where no kernel ends it with its parent."""
    monkeypatch.setattr(processes, "BY_KERNEL", False)
    node.script(faults=[{"how": "hang", "when": "open"}])
    for busy in (False, True):
        runner = KeptRunner(node.environment, node.folder / "errors.txt")
        if busy:
            how = RunSettings(run_id=FLEET, verify="off")
            task = FleetJob(FLEET, units(1), how).build_task(units(1)[0], 1)
            told = node.folder / "task.json"
            told.write_text(json.dumps({**task, "run_id": f"{FLEET}.a"}))
            runner.begin(told, node.folder, node.folder / "errors.txt")
            assert b'"at"' in runner.read_lines(60.0)[0]
        with suppress(OSError):
            runner._process.stdin.close()
        assert runner._process.wait(30.0) == (-signal.SIGKILL if busy else 0)
        runner.end()


def test_templates_of_a_pool_serve_the_same_launch_of_the_next_run(monkeypatch):
    monkeypatch.setattr(worker_pool, "_MOST", 2)
    pool, runtime = KeptWorkerPool(), ScriptedRuntime({})
    try:
        seen = []
        for launch in (0, 1, 0):
            pool.begin_launch(launch)
            worker = pool.worker(runtime, None)
            seen.append(pool._template(runtime, None))
            folder = pool.new_folder("profile")
            worker.end()
            pool.close()  # as a run does at its end
            assert not folder.exists()
            assert not list(pool._scratch.folder.glob("worker-*"))
        assert seen[0] is seen[2]
        assert seen[0] is not seen[1]
        assert all(template.alive for template in seen)
        pool.begin_launch(2)
        pool.warm(runtime, None)
        assert [template.alive for template in seen[:2]] == [True, False]  # the last used stay
    finally:
        pool.end()
    assert not any(template.alive for template in seen)
    assert not pool._scratch.folder.exists()
