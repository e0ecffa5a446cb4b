"""Cut off half-way: nothing announced is lost, and a resume completes the plan."""

import os
import signal
from collections import Counter
from dataclasses import replace

import pytest
from fixed_machine import FOUND
from scripted_runs import Watcher

from accelbench.core.errors import StoreError, SurroundingsError
from accelbench.core.facts import RESULT, RUN_FINISHED, RUN_RESUMED, RUN_STARTED, Fact
from accelbench.core.protocols import Device
from accelbench.run.conduct import lifecycle
from accelbench.run.process import process_control
from accelbench.store.journal import Journal


class Interrupter(Watcher):
    """Presses Ctrl-C while the nth case is in a phase, or while its result is announced."""

    def __init__(self, nth, phase):
        super().__init__()
        self._nth, self._phase = nth, phase
        self.announced_whole = False

    def progress(self, progress):
        super().progress(progress)
        if len(self.rows) == self._nth - 1 and progress.phase == self._phase:
            os.kill(os.getpid(), signal.SIGINT)

    def case_finished(self, row):
        super().case_finished(row)
        if len(self.rows) == self._nth and self._phase == "announcing":
            os.kill(os.getpid(), signal.SIGINT)
            self.announced_whole = True  # held back: this line is reached


def kinds(facts):
    return [fact.kind for fact in facts]


def result_ids(facts):
    return [fact.id for fact in facts if fact.kind == RESULT]


@pytest.mark.parametrize("phase", ["starting", "loading", "steady state", "announcing"])
@pytest.mark.parametrize("nth", [1, 2])
def test_ctrl_c_ends_cleanly_and_resume_completes(scripted, phase, nth):
    planned = scripted.journey("bert-tiny", "vit-tiny", batches=[1])
    watcher = Interrupter(nth, phase)
    ended = scripted.start(planned, watcher)
    assert ended.interrupted
    assert watcher.announced_whole == (phase == "announcing")
    assert not watcher.alive()
    run_id = ended.run_id
    facts = scripted.facts(run_id)
    announced = [row["result_id"] for row in watcher.rows]
    assert announced == result_ids(facts)
    assert len(announced) == (nth if phase == "announcing" else nth - 1)
    assert facts[-1].kind == RUN_FINISHED
    assert facts[-1].body["status"] == "interrupted"
    assert facts[-1].body["counts"] == ({"ok": len(announced)} if announced else {})
    assert lifecycle.last_unfinished(scripted.journals) == run_id

    after = Watcher()
    resumed = lifecycle.resume(run_id, scripted.journals, after, {}, FOUND)
    assert not resumed.interrupted
    assert [row["status"] for row in resumed.rows] == ["ok", "ok"]
    assert len(after.rows) == 2 - len(announced)
    ids = result_ids(scripted.facts(run_id))
    assert len(ids) == len(set(ids)) == 2
    assert ids[: len(announced)] == announced
    assert lifecycle.last_unfinished(scripted.journals) is None
    assert kinds(scripted.facts(run_id))[-1] == RUN_FINISHED
    assert scripted.facts(run_id)[-1].body["counts"] == {"ok": 2}


def test_a_resumed_run_asks_for_the_same(scripted):
    planned = scripted.journey(
        *("bert-tiny", "vit-tiny"), batches=[1, 2], launches=2, seed=5, iterations=7, warmup=2
    )
    ended = scripted.start(planned, Interrupter(3, "steady state"))
    resumed = lifecycle.resume(ended.run_id, scripted.journals, Watcher(), {}, FOUND)
    assert len(resumed.rows) == 8
    assert {row["sample_count"] for row in resumed.rows} == {7}
    assert {row["seed"] for row in resumed.rows} == {5}
    assert Counter(row["launch"] for row in resumed.rows) == {1: 4, 2: 4}
    whole = scripted.run(
        *("bert-tiny", "vit-tiny"), batches=[1, 2], launches=2, seed=5, iterations=7, warmup=2
    )
    assert [r["case_id"] for r in resumed.rows] == [r["case_id"] for r in whole]


def test_a_finished_run_is_not_measured_again(scripted):
    ended = scripted.start(scripted.journey(batches=[1]), Watcher())
    before = (scripted.journals / f"{ended.run_id}.jsonl").read_bytes()
    watcher = Watcher()
    again = lifecycle.resume(ended.run_id, scripted.journals, watcher, {}, FOUND)
    assert not watcher.rows
    assert not watcher.processes
    assert any("complete" in note for note in watcher.notes)
    assert [row["result_id"] for row in again.rows] == [row["result_id"] for row in ended.rows]
    assert again.tally.counts == {"ok": 1}
    assert (scripted.journals / f"{ended.run_id}.jsonl").read_bytes() == before

    ended = scripted.start(scripted.journey(batches=[1]), Watcher())
    path = scripted.journals / f"{ended.run_id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # as if killed before run_finished
    assert lifecycle.last_unfinished(scripted.journals) == ended.run_id
    watcher = Watcher()
    lifecycle.resume(ended.run_id, scripted.journals, watcher, {}, FOUND)
    assert not watcher.rows
    said = [RUN_STARTED, RESULT, RUN_RESUMED, RUN_FINISHED]
    assert [k for k in kinds(scripted.facts(ended.run_id)) if k in said] == said
    assert lifecycle.last_unfinished(scripted.journals) is None


def test_an_unknown_run_is_refused(scripted):
    with pytest.raises(SurroundingsError, match="no journal of run"):
        lifecycle.resume("20200101-000000-0123456789", scripted.journals, Watcher(), {}, FOUND)
    assert not scripted.journals.exists() or not list(scripted.journals.iterdir())


def test_a_run_of_another_machine_or_identity_is_refused(scripted, monkeypatch):
    ended = scripted.start(
        scripted.journey("bert-tiny", "vit-tiny", batches=[1]), Interrupter(2, "steady state")
    )
    facts = scripted.facts(ended.run_id)
    other = {"cpu": [Device("cpu", "another processor")]}
    with pytest.raises(SurroundingsError, match="test processor"):
        lifecycle.resume(ended.run_id, scripted.journals, Watcher(), {}, other)
    assert scripted.facts(ended.run_id) == facts

    ended = scripted.start(
        scripted.journey("bert-tiny", "vit-tiny", batches=[1]), Interrupter(2, "steady state")
    )
    facts = scripted.facts(ended.run_id)
    monkeypatch.setattr("accelbench.core.case.IDENTITY_VERSION", 999)  # as an upgrade would
    with pytest.raises(StoreError, match="tells cases apart"):
        lifecycle.resume(ended.run_id, scripted.journals, Watcher(), {}, FOUND)
    assert scripted.facts(ended.run_id) == facts


def test_a_plan_that_this_version_cannot_read_is_refused(scripted):
    with Journal.create(scripted.journals, "r") as journal:
        body = {"run_id": "r", "accelbench": "9.9", "plan": [{"new": 1}], "settings": {}}
        journal.append(Fact(RUN_STARTED, "r", body))
    with pytest.raises(StoreError, match=r"accelbench 9\.9"):
        lifecycle.resume("r", scripted.journals, Watcher(), {}, FOUND)


def test_a_journal_without_a_beginning_is_refused(scripted):
    Journal.create(scripted.journals, "r").close()
    assert lifecycle.last_unfinished(scripted.journals) is None
    with pytest.raises(StoreError, match="what was planned"):
        lifecycle.resume("r", scripted.journals, Watcher(), {}, FOUND)


def test_the_last_run_to_resume_is_not_one_that_goes_on(scripted):
    cut_off = scripted.start(
        scripted.journey(batches=[1, 2]), Interrupter(2, "steady state")
    ).run_id
    found = []
    scripted.run(
        batches=[1],
        watcher=Watcher(lambda _: found.append(lifecycle.last_unfinished(scripted.journals))),
    )
    assert set(found) == {cut_off}


def test_an_error_of_the_journal_ends_the_run_and_leaves_it_resumable(scripted, monkeypatch):
    real, count = Journal.append, 0

    def failing(journal, fact):
        nonlocal count
        count += fact.kind == RESULT
        if count == 2:
            raise StoreError("no room left")
        real(journal, fact)

    monkeypatch.setattr(Journal, "append", failing)
    planned = scripted.journey(batches=[1, 2, 4])
    watcher = Watcher()
    with pytest.raises(StoreError, match="no room left"):
        scripted.start(planned, watcher)
    assert len(watcher.rows) == 1
    assert not watcher.alive()
    monkeypatch.undo()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCELBENCH_SCRIPT", str(scripted.path))
        resumed = lifecycle.resume(planned.settings.run_id, scripted.journals, Watcher(), {}, FOUND)
    assert [row["status"] for row in resumed.rows] == ["ok"] * 3


def test_two_processes_cannot_resume_one_run(scripted):
    ended = scripted.start(scripted.journey(batches=[1, 2]), Interrupter(2, "steady state"))
    with (
        Journal.resume(scripted.journals, ended.run_id),
        pytest.raises(SurroundingsError, match="Another process"),
    ):
        lifecycle.resume(ended.run_id, scripted.journals, Watcher(), {}, FOUND)


def test_signals_and_errors_are_held_back_and_then_heard():
    reached = []

    def interrupted():
        with process_control.undisturbed():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    with pytest.raises(ValueError, match="inside"), process_control.undisturbed():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_without_cases_ends_at_once(scripted, tmp_path):
    planned = scripted.journey(batches=[1])
    empty = replace(planned, plan=replace(planned.plan, cases=()))
    ended = scripted.start(empty, Watcher())
    assert not ended.rows
    assert not ended.nothing_could_start
