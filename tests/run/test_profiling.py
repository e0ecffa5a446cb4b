"""Profiles of whole runs: after what is measured, in workers of their own, durable."""

import pytest
from scripted_runs import Watcher

from accelbench.core.facts import PROFILE, RESULT
from accelbench.run.conduct import lifecycle

OPERATORS = {"MatMul": 0.75, "Add": 0.2}

#: What two runs of the same script cannot have in common, beside the memory they really take.
CHANGES = {"result_id", "run_id", "started_at", "finished_at", "environment", "warnings"}


def profiles(scripted, run_id):
    return [fact.body for fact in scripted.facts(run_id) if fact.kind == PROFILE]


def test_every_good_case_is_profiled_once_after_all_of_them_are_measured(scripted):
    scripted.script(operators=OPERATORS)
    ended = scripted.start(scripted.journey(batches=(1, 4), launches=2, profile=True), Watcher())
    facts = [f for f in scripted.facts(ended.run_id) if f.kind in (PROFILE, RESULT)]
    assert [f.kind for f in facts] == [RESULT] * 4 + [PROFILE] * 2
    assert list(ended.profiles) == profiles(scripted, ended.run_id)
    for one, batch in zip(ended.profiles, (1, 4), strict=True):
        assert one["why_not"] is None
        assert one["batch_size"] == batch
        assert one["wall_ms"] == pytest.approx(batch)
        assert one["explained"] == pytest.approx(0.95)
        assert [kind["kind"] for kind in one["kinds"]] == ["MatMul", "Add"]
        assert one["result_id"] in {row["result_id"] for row in ended.rows if row["launch"] == 1}


def test_what_is_measured_is_the_same_with_it_and_without(scripted):
    scripted.script(operators=OPERATORS)
    without, with_it = (scripted.run(batches=(1, 4), profile=asked) for asked in (False, True))
    for one, other in zip(without, with_it, strict=True):
        assert one.keys() == other.keys()
        kept = {name for name in one if name not in CHANGES and "memory" not in name}
        assert {name: one[name] for name in kept} == {name: other[name] for name in kept}


def test_a_profiler_that_fails_says_so_and_costs_no_result(scripted):
    fault = {"how": "segv", "when": "profile", "batch": 4}
    scripted.script(fault, operators=OPERATORS)
    ended = scripted.start(scripted.journey(batches=(1, 4, 16), profile=True), Watcher())
    assert [row["status"] for row in ended.rows] == ["ok"] * 3
    assert [one["why_not"] is None for one in ended.profiles] == [True, False, True]
    assert "SIGSEGV" in ended.profiles[1]["why_not"]
    assert ended.profiles[1]["operators"] == []
    assert ended.tally.all_fine


def test_an_engine_that_cannot_say_gives_its_reason(scripted):
    ended = scripted.start(scripted.journey(batches=(1,), profile=True), Watcher())
    [one] = ended.profiles
    assert one["why_not"] == "the script names no operators"


def test_what_was_not_measured_or_asked_for_has_no_profile(scripted):
    scripted.script({"how": "raise", "when": "step", "batch": 4}, operators=OPERATORS)
    ended = scripted.start(scripted.journey(batches=(1, 4), profile=True), Watcher())
    assert [one["batch_size"] for one in ended.profiles] == [1]
    scripted.script(operators=OPERATORS)
    ended = scripted.start(scripted.journey(batches=(1,)), Watcher())
    assert not ended.profiles
    assert not profiles(scripted, ended.run_id)


def test_the_engines_own_record_is_handed_over_while_it_is_there(scripted):
    scripted.script(operators=OPERATORS)
    taken = []

    def keep(body, record):
        taken.append((body["batch_size"], record.name, record.read_text()))

    planned = scripted.journey(batches=(1, 4), profile=True)
    lifecycle.start(planned, scripted.journals, Watcher(), {}, keep)
    assert taken == [(1, "trace.json", "[]"), (4, "trace.json", "[]")]


def test_a_resumed_run_profiles_what_is_left(scripted):
    scripted.script(operators=OPERATORS)
    planned = scripted.journey(batches=(1, 4), profile=True)

    def cut_off(body, record):
        raise KeyboardInterrupt

    first = lifecycle.start(planned, scripted.journals, Watcher(), {}, cut_off)
    assert first.interrupted
    assert [one["batch_size"] for one in first.profiles] == [1]
    again = lifecycle.resume(first.run_id, scripted.journals, Watcher(), {})
    assert not again.interrupted
    assert [one["batch_size"] for one in again.profiles] == [1, 4]
    assert len(profiles(scripted, first.run_id)) == 2
    # And once more: everything is there, and is told again.
    assert (
        lifecycle.resume(first.run_id, scripted.journals, Watcher(), {}).profiles == again.profiles
    )
