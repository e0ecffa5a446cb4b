"""Every case of a fleet's run ends once, whatever befalls its nodes."""

import random
from dataclasses import replace

import pytest
from virtual_fleets import node, random_faults, run_on, units

from accelbench.core.run_options import RunSettings
from accelbench.engines.pytorch.distributed.group import MachinePart
from accelbench.fleet.dispatch import (
    PART_IN_STEPS,
    Cancel,
    Dispatcher,
    DispatchRules,
    GiveUp,
    Need,
    NodeOffer,
    PassOver,
    Submit,
    set_rendezvous,
    split_units,
)
from accelbench.fleet.fleet_nodes import UnitEnded, UnitFailed
from accelbench.fleet.fleet_run import FleetJob
from accelbench.run.plan.request import Plan
from virtual_cluster import NodeFault, VirtualCluster

CPU = NodeOffer("a", {"cpu": 1})


@pytest.mark.parametrize("seed", range(60))
def test_every_case_ends_once_under_random_faults(seed):
    source = random.Random(seed)
    launches = source.choice([1, 1, 3])
    work = units(source.randint(1, 25), source.randint(1, 4), launches=launches)
    nodes = [node(f"n{number}") for number in range(source.randint(1, 6))]
    times = random.Random(seed + 1000)
    ended = run_on(
        nodes,
        work,
        random_faults(seed, nodes, 200.0),
        lambda case, name: times.lognormvariate(2.0, 1.0),
        DispatchRules(silence=200.0, patience=50.0, attempts=source.choice([1, 2, 5])),
    )
    asked = {planned.case.case_id for unit in work for planned in unit.cases}
    assert set(ended.by_case) == asked, "a case was lost"
    for case, rows in ended.by_case.items():
        assert len(rows) == launches, f"{case} has {len(rows)} results"
        assert len({row["run_id"] for row in rows}) == 1, "launches of a case on two machines"
        assert len({row.get("attempt") for row in rows}) == 1, "launches of two attempts"
    assert len(ended.heard.rows) == len(ended.kept.results)


@pytest.mark.parametrize("seed", range(20))
def test_devices_of_one_node_are_shared_out(seed):
    nodes = [node("host", cpu=1, cuda=4), node("small", cpu=1)]
    work = units(16, 2, hardware=("cuda", "cpu"))
    ended = run_on(nodes, work, random_faults(seed, nodes, 60.0))
    assert len(ended.by_case) == 32
    assert all(len(rows) == 1 for rows in ended.by_case.values())


def test_what_a_lost_node_left_is_measured_elsewhere_and_counts_once():
    ended = run_on([node("a"), node("b")], units(8), [NodeFault(25.0, "b", "kill")])
    assert ended.statuses == {"ok": 16}
    assert ended.heard.lost == ["b"]
    assert {row["run_id"].rpartition(".")[2] for row in ended.kept.results} == {"a", "b"}

    # Of a unit with four cases, two were there: the other two alone are measured again.
    ended = run_on([node("a"), node("b")], units(2, 4), [NodeFault(25.0, "b", "kill")])
    attempts = sorted(rows[0]["attempt"] for rows in ended.by_case.values())
    assert attempts == [1, 1, 1, 1, 1, 1, 2, 2]
    assert ended.cluster.busy_seconds == pytest.approx(80.0)

    rules = DispatchRules(silence=60.0, failure_limit=1)
    ended = run_on([node("a"), node("b")], units(8), [NodeFault(25.0, "b", "hang")], rules=rules)
    assert ended.statuses == {"ok": 16}
    assert any("b gets no more units" in note for note in ended.heard.notes)
    ended = run_on([node("a"), node("b")], units(6), [NodeFault(15.0, "b", "cut", seconds=70.0)])
    assert ended.statuses == {"ok": 12}
    assert all(len(rows) == 1 for rows in ended.by_case.values())

    # The only node is cut off and comes back: what it measured meanwhile counts.
    faults = [NodeFault(15.0, "a", "cut", seconds=40.0)]
    ended = run_on([node("a")], units(1, 2), faults, rules=DispatchRules(patience=1000.0))
    assert ended.statuses == {"ok": 2}
    assert {row["attempt"] for row in ended.kept.results} == {1}

    ended = run_on([node("a"), node("b")], units(10, 3))
    assert ended.statuses == {"ok": 30}
    assert {row["attempt"] for row in ended.kept.results} == {1}
    assert ended.cluster.now() == pytest.approx(5 * 3 * 10.0)


TOGETHER = Need("cpu", together=True, nodes=2)


def together(number):
    (unit,) = units(1)
    return replace(unit, number=number, need=TOGETHER)


def test_two_nodes_that_make_steps_together_are_one_place():
    # Of five nodes two pairs: two units at once, and so many wait in the cluster.
    dispatcher = Dispatcher([together(n) for n in range(6)], DispatchRules(ahead=0.5))
    for name in "abcde":
        dispatcher.node_joined(NodeOffer(name, {"cpu": 1}))
    dispatcher.confirm_nodes()
    assert dispatcher.count_slots(TOGETHER) == 2
    submitted = [
        action.unit for action in dispatcher.next_actions(0.0) if isinstance(action, Submit)
    ]
    assert submitted == [0, 1, 2]

    dispatcher = Dispatcher([together(0)])
    dispatcher.node_joined(NodeOffer("a", {"cpu": 1}))
    dispatcher.confirm_nodes()
    why = "2 nodes with cpu make each step together, and 1 has it"
    assert dispatcher.next_actions(0.0) == [GiveUp(0, "no_node", why)]

    task = {"settings": {"rendezvous": None}, "against": {"settings": {"rendezvous": None}}}
    told = set_rendezvous(task, "h:1")
    assert told["settings"]["rendezvous"] == told["against"]["settings"]["rendezvous"] == "h:1"
    assert task["settings"]["rendezvous"] is None


def test_of_two_nodes_one_may_be_lost_and_come_back():
    dispatcher = Dispatcher([together(0)], DispatchRules(patience=50.0))
    for name in "ab":
        dispatcher.node_joined(NodeOffer(name, {"cpu": 1}))
    dispatcher.confirm_nodes()
    assert dispatcher.next_actions(0.0) == [Submit(0, 1)]
    dispatcher.unit_began(0, 1, "a", 1.0)
    # The cluster hears of the further node that it is gone, and ends the unit.
    dispatcher.node_lost("b", "b is gone", 5.0)
    dispatcher.unit_failed(0, 1, "of a further node: it died", 5.0, lost=True)
    assert dispatcher.next_actions(6.0) == []
    dispatcher.node_joined(NodeOffer("c", {"cpu": 1}))
    assert dispatcher.next_actions(7.0) == [Submit(0, 2)]
    dispatcher.node_lost("c", "c is gone", 8.0)
    dispatcher.unit_failed(0, 2, "of a further node: it died", 8.0, lost=True)
    dispatcher.next_actions(9.0)
    why = "a node of those that have cpu was lost, or failed too often"
    assert dispatcher.next_actions(70.0) == [GiveUp(0, "no_node", why)]


def test_each_further_node_is_told_its_part():
    settings = RunSettings(nodes=3, threads=4, timeout=30.0)
    unit = together(7)
    (planned, *_) = unit.cases
    shared = replace(planned, case=replace(planned.case, world_size=6))
    unit = replace(unit, cases=(planned, shared), need=replace(TOGETHER, nodes=3), limit=99.0)
    parts = FleetJob("f", [unit], settings).build_parts(unit, 2)
    assert [part[PART_IN_STEPS]["node"] for part in parts] == [1, 2]
    told = set_rendezvous(parts[1], "10.0.0.1:4000")
    assert MachinePart(**told[PART_IN_STEPS]) == MachinePart(
        "cpu", processes=2, nodes=3, node=2, rendezvous="10.0.0.1:4000", threads=4
    )
    assert (told["patience"], told["timeout"]) == (99.0, 30.0)


def test_a_platform_without_a_node_is_reported_once_it_was_waited_for():
    ended = run_on([node("a")], units(4, 1, hardware=("cpu", "cuda")))
    (first, *_), reasons = ended.heard.rows, {r.get("reason") for r in ended.kept.results}
    assert first[1]["reason"] == "no_node"
    assert first[1]["message"] == "no node of the fleet has cuda"
    assert reasons == {None, "no_node"}
    assert ended.statuses == {"ok": 2, "unsupported": 2}

    rules = DispatchRules(patience=100.0)
    gone = [NodeFault(15.0, "b", "kill")]
    nodes = [node("a", cpu=1), node("b", cuda=1)]
    work = units(4, 2, hardware=("cpu", "cuda"))
    ended = run_on(nodes, work, gone, rules=rules)
    assert ended.statuses == {"ok": 5, "unsupported": 3}
    late = run_on([*nodes, node("c", cuda=1)], work, [*gone, NodeFault(90.0, "c", "join")])
    assert late.statuses == {"ok": 8}


def test_a_unit_that_fails_everywhere_ends_after_its_attempts():
    dispatcher = Dispatcher(units(1, 1), DispatchRules(attempts=2, failure_limit=9))
    dispatcher.node_joined(CPU)
    dispatcher.confirm_nodes()
    for attempt in (1, 2):
        assert dispatcher.next_actions(0.0) == [Submit(0, attempt)]
        assert dispatcher.unit_began(0, attempt, "a", 0.0)
        dispatcher.unit_failed(0, attempt, "it crashed", 1.0)
    assert dispatcher.next_actions(2.0) == [
        GiveUp(0, "node_failed", "tried 2 times; the last time it crashed")
    ]
    assert dispatcher.is_over


def test_a_straggler_is_ended_by_the_timeouts_of_its_cases():
    (unit,) = units(1, 1, timeout=10.0)
    dispatcher = Dispatcher([unit], DispatchRules(silence=50.0, attempts=1))
    dispatcher.node_joined(CPU)
    dispatcher.next_actions(0.0)
    dispatcher.unit_began(0, 1, "a", 0.0)
    moment = 0.0
    while moment < unit.limit:
        dispatcher.unit_heard(0, 1, moment)
        assert not dispatcher.next_actions(moment)
        moment += 20.0
    dispatcher.unit_heard(0, 1, unit.limit + 10)
    cancel, give_up = dispatcher.next_actions(unit.limit + 10)
    assert cancel == Cancel(0, 1)
    assert isinstance(give_up, GiveUp)
    assert give_up.reason == "node_hung"


def test_events_of_an_attempt_that_no_longer_counts_change_nothing():
    dispatcher = Dispatcher(units(1, 1))
    dispatcher.node_joined(CPU)
    dispatcher.next_actions(0.0)
    dispatcher.unit_began(0, 1, "a", 0.0)
    dispatcher.node_lost("a", "gone", 1.0)
    dispatcher.node_joined(NodeOffer("b", {"cpu": 1}))
    assert dispatcher.next_actions(1.0) == [Submit(0, 2)]
    assert not dispatcher.unit_began(0, 1, "a", 2.0)
    dispatcher.unit_failed(0, 1, "late", 2.0)
    dispatcher.unit_ended(0, 1)
    assert not dispatcher.is_over
    assert dispatcher.current_attempt(0) == 2


def test_a_node_where_two_units_in_a_row_fail_gets_no_more():
    dispatcher = Dispatcher(units(6, 1), DispatchRules(failure_limit=2))
    for name in ("a", "b"):
        dispatcher.node_joined(NodeOffer(name, {"cpu": 1}))
    submitted = [a.unit for a in dispatcher.next_actions(0.0) if isinstance(a, Submit)]
    for unit in submitted[:2]:
        dispatcher.unit_began(unit, 1, "b", 0.0)
        dispatcher.unit_failed(unit, 1, "it crashed", 1.0)
    passed, *rest = dispatcher.next_actions(1.0)
    assert passed == PassOver("b", "2 units failed there in a row: it crashed")
    assert all(isinstance(a, Submit) and a.avoided == {"b"} for a in rest)
    # What was handed over before goes back without counting as a failure.
    assert not dispatcher.unit_began(submitted[2], 1, "b", 2.0)
    assert Cancel(submitted[2], 1) in dispatcher.next_actions(2.0)


def test_the_longest_goes_first_and_only_so_many_at_once():
    work = units(200, 1)
    work = [type(unit)(**{**vars(unit), "seconds": float(unit.number)}) for unit in work]
    dispatcher = Dispatcher(work, DispatchRules(ahead=1.0))
    for name in "abc":
        dispatcher.node_joined(NodeOffer(name, {"cpu": 1}))
    assert [action.unit for action in dispatcher.next_actions(0.0)] == [
        199,
        198,
        197,
        196,
        195,
        194,
    ]


def test_the_spread_between_machines_has_every_case_on_every_node():
    from accelbench.fleet.dispatch import repeat_on_nodes

    pinned = repeat_on_nodes(units(2, 2), {"a": frozenset({"cpu"}), "b": frozenset({"cpu"})})
    assert [unit.need for unit in pinned] == [Need("cpu", node=n) for n in ("a", "b", "a", "b")]
    ended = run_on([node("a"), node("b")], pinned)
    for rows in ended.by_case.values():
        assert {row["run_id"].rpartition(".")[2] for row in rows} == {"a", "b"}


def test_a_thousand_cases_on_forty_nodes_end_within_a_tenth_of_the_bound():
    source = random.Random(7)
    took = {}
    nodes = [node(f"n{number}") for number in range(40)]

    def seconds(case, name):
        return took.setdefault(case.case_id, source.lognormvariate(2.0, 0.6))

    ended = run_on(nodes, units(400, 3), seconds=seconds, rules=DispatchRules(silence=1e9))
    bound = sum(took.values()) / len(nodes)
    assert ended.statuses == {"ok": 1200}
    assert ended.cluster.now() <= 1.1 * bound


def test_what_the_budget_leaves_is_skipped_or_ended():
    rules = DispatchRules(budget=45.0, overtime=20.0)
    ended = run_on([node("a"), node("b")], units(8, 2), rules=rules)
    # Units of 20 s: two on each node have ended, and two more do within the overtime.
    assert ended.statuses == {"ok": 12, "skipped": 4}
    assert all(len(rows) == 1 for rows in ended.by_case.values())
    (reason,) = {(r["reason"], r["message"]) for r in ended.kept.results if r["status"] != "ok"}
    assert reason == ("budget", "the budget of 45 s was used up")

    rules = DispatchRules(budget=45.0, overtime=5.0)
    ended = run_on([node("a")], units(1, 2), rules=rules, seconds=lambda *_: 40.0)
    assert ended.statuses == {"ok": 1, "skipped": 1}
    assert ended.cluster.now() < 60.0


def test_a_unit_is_told_what_is_left_of_the_budget_and_among_how_many():
    told = []

    class Heeding(VirtualCluster):
        def submit(self, submission):
            share = submission.task["share"]
            told.append((share["seconds"], share["results"]))
            super().submit(submission)

    rules = DispatchRules(budget=1000.0, ahead=0.0)
    run_on([node("a"), node("b")], units(6, 2), rules=rules, cluster=Heeding)
    # Twelve results on two nodes; as they come, fewer are left to share with.
    assert told[0] == (1000.0, 6)
    assert [among for _, among in told] == sorted((among for _, among in told), reverse=True)
    assert told[-1][0] < 1000.0
    assert told[-1][1] <= 3


def test_a_unit_whose_results_are_all_there_is_not_measured_again():
    """Its node is lost between its last result and its end."""

    class Forgetful(VirtualCluster):
        def events(self, timeout):
            return [
                UnitFailed(e.unit, e.attempt, "it is gone", lost=True)
                if isinstance(e, UnitEnded)
                else e
                for e in super().events(timeout)
            ]

    ended = run_on([node("a")], units(2, 2), cluster=Forgetful)
    assert ended.statuses == {"ok": 4}
    assert {row["attempt"] for row in ended.kept.results} == {1}
    assert ended.cluster.busy_seconds == pytest.approx(40.0)


def test_several_processes_stay_with_the_one_that_they_are_held_against():
    (one,) = units(1, 1, hardware=("cuda",))[0].cases
    several = replace(one, case=replace(one.case, world_size=2))
    other = replace(one, case=replace(one.case, precision="bf16"))
    found = list(split_units(Plan((one, several, other)), RunSettings()))
    assert [unit.cases for unit in found] == [
        tuple(replace(planned, device=None) for planned in cases)
        for cases in ((one, several), (other,))
    ]
    # Each process has a device of its own: one that is handed out alone would not do.
    assert [unit.need.whole_node for unit in found] == [True, False]
