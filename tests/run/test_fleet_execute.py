"""A fleet's run from its nodes to rows of a database: parts, plans, arms, what is gone on with."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fixed_machine import models
from virtual_fleets import FLEET, Heard, Kept, node, units

from accelbench.core.errors import StoreError, SurroundingsError, UsageError
from accelbench.core.facts import RESULT, RUN_EXTENDED, RUN_STARTED, Fact, new_run_id
from accelbench.core.run_options import RunSettings
from accelbench.engines.scripted import ScriptedRuntime
from accelbench.fleet.dispatch import WorkUnit
from accelbench.fleet.fleet_nodes import FleetInventory, FleetNode, find_differences, node_from_json
from accelbench.fleet.fleet_record import FleetRecord, find_unfinished, read_rows
from accelbench.fleet.fleet_run import (
    FleetOptions,
    execute_on_cluster,
    resume_on_cluster,
    wait_for_nodes,
)
from accelbench.fleet.unit_runner import describe_node
from accelbench.hardware.machine import boot_id
from accelbench.judge.run_names import runs_meant
from accelbench.present.dashboard.live_runs import Journals
from accelbench.run.conduct import lifecycle
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.execute import StoredResults
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request
from accelbench.run.process.worker_client import SilentObserver
from accelbench.store.database import Database
from accelbench.store.journal import read
from here_cluster import here_cluster
from virtual_cluster import NodeFault, VirtualCluster

MODELS = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")
RUNTIMES = {"scripted": ScriptedRuntime({})}


def planner(*hardware, launches=1, label="night"):
    """Plans all models with two batches on some platforms."""

    def plans(inventory, _):
        request = Request(
            models(*MODELS), hardware=hardware, runtimes=("scripted",), batch_sizes=(1, 2)
        )
        plan = expand.plan_for(request, inventory, RUNTIMES)
        settings = RunSettings(run_id=new_run_id(), launches=launches)
        return [PlannedRun(plan, settings, RUNTIMES, {"label": label, "names": {}})]

    return plans


class Interrupting(Heard):
    """Ctrl-C at the so-manieth result."""

    def __init__(self, after):
        super().__init__()
        self._after = after

    def result_measured(self, node, row):
        super().result_measured(node, row)
        if len(self.rows) == self._after:
            raise KeyboardInterrupt


def cluster(*names, faults=()):
    return VirtualCluster([node(name) for name in names], lambda case, name: 5.0, faults)


def started(database, here, heard, *hardware, each=False, launches=1):
    plans, places = planner(*hardware, launches=launches), StoredResults(database)
    ((_, ended),) = execute_on_cluster(
        here, plans, places, lambda *_: heard, FleetOptions(each=each)
    )
    return ended


def runs_of(database):
    _, rows = database.query("SELECT run_id, status FROM benchmark_runs")
    return {str(run): str(status) for run, status in rows}


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "store.duckdb")


def test_parts_are_runs_that_the_dashboard_follows(database):
    ended = started(database, cluster("a", "b"), Heard(), "cpu", "cuda")
    fleet = ended.run_id
    assert runs_of(database) == dict.fromkeys((fleet, f"{fleet}.a", f"{fleet}.b"), "finished")
    assert sorted(runs_meant(database, fleet)) == sorted(runs_of(database))
    assert runs_meant(database, f"{fleet}.a") == [f"{fleet}.a"]
    assert sorted(runs_meant(database, "night")) == sorted(runs_of(database))
    assert sorted(runs_meant(database, fleet[:20])) == sorted(runs_of(database))
    _, rows = database.query("SELECT run_id, status, reason FROM benchmark_results")
    assert Counter((status, reason) for _, status, reason in rows) == {
        ("ok", None): 8,
        ("unsupported", "no_node"): 8,
    }
    assert {run for run, status, _ in rows if status == "unsupported"} == {fleet}
    assert len(ended.rows) == 16
    assert ended.tally.counts == {"ok": 8, "unsupported": 8}

    ended = started(database, cluster("a"), Heard(), "cpu")
    facts = read(database.journals / f"{ended.run_id}.a.jsonl")
    (begun,) = [fact for fact in facts if fact.kind == RUN_STARTED]
    assert begun.body["environment"] == {"machine": "a"}
    assert begun.body["fleet"] == ended.run_id
    assert sum(fact.kind == RUN_EXTENDED for fact in facts) == len(MODELS) - 1

    # The node is lost between two launches: both are measured on the other one.
    faults = (NodeFault(12.0, "b", "kill"),)
    ended = started(database, cluster("a", "b", faults=faults), Heard(), "cpu", launches=2)
    by_case = {}
    for row in ended.rows:
        by_case.setdefault(row["case_id"], set()).add(row["run_id"])
    assert len(ended.rows) == 16
    assert all(len(runs) == 1 for runs in by_case.values())

    cut = started(database, cluster("a", "b"), Interrupting(5), "cpu")
    run = Journals(database.journals).of(cut.run_id)
    assert (run.planned, len(run.results)) == (8, 5)
    assert [r.run_id for r in Journals(database.journals).unfinished([])] in ([], [cut.run_id])


def test_what_was_interrupted_is_gone_on_with_on_other_nodes(database):
    cut = started(database, cluster("a", "b"), Interrupting(5), "cpu")
    assert cut.interrupted
    assert find_unfinished(database.journals) == cut.run_id
    heard = Heard()
    begun = []
    ended = resume_on_cluster(
        cluster("b", "c"),
        cut.run_id,
        StoredResults(database),
        heard,
        begin_left=lambda *said: begun.append(said),
    )
    assert not ended.interrupted
    assert begun == [(cut.run_id, 3, 2)]  # what progress counts to
    rows = Counter(row["case_id"] for row in ended.rows)
    assert len(rows) == 8
    assert set(rows.values()) == {1}
    assert len(heard.rows) == 3
    assert set(runs_of(database).values()) == {"finished"}
    assert find_unfinished(database.journals) is None
    again = resume_on_cluster(cluster("b"), cut.run_id, StoredResults(database), Heard())
    assert len(again.rows) == 8


def test_a_run_in_which_every_node_measures_all_is_gone_on_with(database):
    cut = started(database, cluster("a", "b"), Interrupting(9), "cpu", each=True)
    resume_on_cluster(cluster("a", "b"), cut.run_id, StoredResults(database), Heard())
    rows = Counter((r["run_id"], r["case_id"]) for r in read_rows(database.journals, cut.run_id))
    assert len(rows) == 16
    assert set(rows.values()) == {1}


def test_a_fleet_s_run_is_gone_on_with_on_a_fleet_alone(database):
    cut = started(database, cluster("a"), Interrupting(2), "cpu")
    for run in (cut.run_id, f"{cut.run_id}.a"):
        with pytest.raises(UsageError, match="is of a fleet") as refused:
            lifecycle.resume(run, database.journals, SilentObserver(), {})
        assert refused.value.advice.endswith(f"accelbench fleet run --resume {cut.run_id}")
    assert lifecycle.last_unfinished(database.journals) is None

    from accelbench.store.journal import Journal

    database.ensure()
    with Journal.create(database.journals, FLEET) as journal:
        journal.append(Fact(RUN_STARTED, FLEET, {"run_id": FLEET, "plan": []}))
    with pytest.raises(StoreError, match="is not a fleet's"):
        resume_on_cluster(cluster("a"), FLEET, StoredResults(database), Heard())


def test_nodes_are_described_and_refused():
    broken = FleetNode("a", "a", broken="accelbench does not run there")
    plans, places = planner("cpu"), StoredResults(None, Path())
    notes = []
    for nodes in ([], [broken]):
        here = VirtualCluster(nodes, lambda *_: 1.0)
        with pytest.raises(SurroundingsError, match="no node that can measure"):
            execute_on_cluster(here, plans, places, lambda *_: Heard(), note=notes.append)
    assert notes == ["a cannot measure: accelbench does not run there"]

    told = node_from_json("n", "n", {**describe_node(), "environment": {}, "inventory": {}})
    assert told.boot == boot_id()
    assert boot_id() is None or len(boot_id() or "") == 36

    nodes = [FleetNode("a", "a", memory=8), FleetNode("b", "b", memory=5)]
    inventory = FleetInventory([*nodes, node("c", cuda=1)])
    assert inventory.free(inventory.nodes[2].devices["cuda"][0]) is None
    cpu = node("d").devices["cpu"][0]
    assert FleetInventory(nodes).free(cpu) == 5


def test_arms_of_a_unit_count_together_or_not_at_all():
    (whole,) = units(1, 1)
    other = units(1, 1)[0].cases[0]
    unit = WorkUnit(**{**vars(whole), "others": (other,)})
    kept = Kept()
    record = FleetRecord(FLEET, kept.open, [unit], "threads=1", kept)
    run_id, case = f"{FLEET}.a", unit.cases[0].case.case_id
    begun = Fact(RUN_STARTED, run_id, {"run_id": run_id, "plan": [], "environment": {}})

    def result(arm):
        body = {"case_id": case, "arm": arm, "status": "ok", "launch": 0}
        return Fact(RESULT, arm, body)

    assert not record.take(0, 1, [begun, result("this")])
    record.forget(0, 1)
    assert record.remaining_unit(0) == unit
    assert len(record.take(0, 2, [begun, result("this"), result("threads=1")])) == 2
    assert record.is_complete(0)
    assert record.dropped == 1
    assert not record.take(0, 1, [result("this")])


def test_what_differs_among_nodes_is_named():
    def like(name, **packages):
        return FleetNode(name, name, {"python": "3.11.7", "packages": packages})

    (found,) = find_differences(
        [like("a", torch="2.13"), like("b", torch="2.13"), like("c", torch="2.12")]
    )
    assert str(found) == "torch: 2.13 (a, b); 2.12 (c)"
    assert str(find_differences([like("a", torch="2.13"), like("b")])[0]) == (
        "torch: 2.13 (a); not installed (b)"
    )
    assert not find_differences([like("a", torch="2.13")])


def test_nodes_of_one_machine_are_named_once_before_anything_is_measured():
    """Whole-node reservations of Ray do not keep two nodes of one machine apart."""

    def on(name, boot):
        return replace(node(name), boot=boot)

    nodes = [on("a", "x"), on("b", "y"), on("c", "x"), on("d", None), on("e", None)]
    fleet = VirtualCluster(nodes, lambda case, name: 5.0, ())
    notes = []
    wait_for_nodes(fleet, notes.append)
    assert len(notes) == 1
    assert notes[0].startswith("a, c are nodes of one machine")


def test_profiles_of_nodes_are_returned_stored_and_handed_on(database, tmp_path, monkeypatch):
    """Measured and profiled for real, by a runner of this machine."""
    (tmp_path / "script.json").write_text('{"operators": {"matmul": 0.75, "norm": 0.25}}')
    monkeypatch.setenv("ACCELBENCH_SCRIPT", str(tmp_path / "script.json"))
    taken = []

    class Keeping(StoredResults):
        def keep_profiles(self):
            return lambda profile, record: taken.append(profile)

    def plans(inventory, runtimes):
        (spec,) = planner("cpu")(inventory, runtimes)
        cases = tuple(case for case in spec.plan.cases if case.case.model.id == "bert-tiny")
        settings = spec.settings.with_values(profile=True, verify="off", iterations=5)
        return [replace(spec, plan=replace(spec.plan, cases=cases), settings=settings)]

    with here_cluster(tmp_path / "state", monkeypatch) as connected:
        places = Keeping(database)
        ((_, ended),) = execute_on_cluster(connected(), plans, places, lambda *_: Heard())
    assert [row["status"] for row in ended.rows] == ["ok", "ok"]
    assert [profile["why_not"] for profile in ended.profiles] == [None, None]
    assert {kind["kind"] for profile in ended.profiles for kind in profile["kinds"]} == {
        "matmul",
        "norm",
    }
    assert taken == ended.profiles
    _, rows = database.query("SELECT count(*) FROM fact WHERE kind = 'profile'")
    assert rows == [(2,)]
