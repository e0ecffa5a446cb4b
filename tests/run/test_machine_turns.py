"""Two runs on one machine take turns; what does not wait is marked."""

import json
import os
import threading
import time
from types import SimpleNamespace

import pytest

from accelbench.run.process import machine_turns
from accelbench.run.process.machine_turns import BESIDE, condition_of, machine_turn, other_run_of
from accelbench.store.files import try_lock

PATIENCE = 20.0


@pytest.fixture(autouse=True)
def lock(tmp_path, monkeypatch):
    path = tmp_path / "measuring.lock"
    monkeypatch.setenv(machine_turns.LOCK_VARIABLE, str(path))
    return path


class Run(threading.Thread):
    """A run that measures once, for as long as it is not let go."""

    def __init__(self, name, *, shared=False):
        super().__init__(daemon=True)
        self.run_id, self._shared = name, shared
        self.waits_for = []
        self.holders = []
        self.waited = []
        self.waiting, self.measuring, self.over = (threading.Event() for _ in range(3))

    def run(self):
        with machine_turn(
            self.run_id,
            shared=self._shared,
            on_wait=self._wait,
            on_turn=lambda holder, seconds: self.waited.append((holder.run_id, seconds)),
        ):
            self.measuring.set()
            self.over.wait(PATIENCE)

    def _wait(self, holder):
        self.waits_for.append(holder.run_id)
        self.holders.append(holder)
        self.waiting.set()

    def end(self):
        self.over.set()
        self.join(PATIENCE)


@pytest.fixture
def first():
    run = Run("first")
    run.start()
    assert run.measuring.wait(PATIENCE)
    yield run
    run.end()


def unheard(holder):
    raise AssertionError(holder)


def test_the_second_run_waits_for_the_first(first):
    second = Run("second")
    second.start()
    assert second.waiting.wait(PATIENCE)
    assert second.waits_for == ["first"]
    assert not second.measuring.is_set()
    first.end()
    assert second.measuring.wait(PATIENCE)
    second.end()


def test_a_run_that_had_its_turn_gets_in_line(first):
    second, again = Run("second"), Run("first")
    second.start()
    assert second.waiting.wait(PATIENCE)
    first.end()
    again.start()
    assert second.measuring.wait(PATIENCE)
    assert again.waiting.wait(PATIENCE)
    assert not again.measuring.is_set()
    second.end()
    assert again.measuring.wait(PATIENCE)
    again.end()


def test_accelerators_share_a_turn_and_processors_do_not():
    one, two, host = Run("one", shared=True), Run("two", shared=True), Run("host")
    for run in (one, two):
        run.start()
        assert run.measuring.wait(PATIENCE)
    host.start()
    assert host.waiting.wait(PATIENCE)
    one.end()
    assert not host.measuring.is_set()
    two.end()
    assert host.measuring.wait(PATIENCE)
    host.end()


def test_a_run_that_does_not_wait_is_marked(first, monkeypatch):
    monkeypatch.setenv(machine_turns.WAIT_VARIABLE, "0")
    with machine_turn("second", shared=False, on_wait=unheard) as beside:
        assert (beside.run_id, beside.pid) == ("first", os.getpid())
        condition = json.loads(json.dumps(condition_of(beside)))
        assert condition[BESIDE]["run_id"] == "first"
        assert other_run_of(condition).startswith("Run first (process ")
    first.end()
    with machine_turn("third", shared=False, on_wait=unheard) as beside:
        assert beside is None
    assert condition_of(None) == {}
    assert other_run_of({}) == ""


def test_a_holder_names_since_when_it_measures_and_a_run_how_long_it_waited(first, monkeypatch):
    now = ["2026-01-01T00:00:01Z"]
    monkeypatch.setattr(machine_turns, "utc_now", lambda: now[0])
    second, third = Run("second"), Run("third")
    second.start()
    assert second.waiting.wait(PATIENCE)
    now[0] = "2026-01-01T00:00:02Z"
    first.end()
    assert second.measuring.wait(PATIENCE)
    third.start()
    assert third.waiting.wait(PATIENCE)
    assert third.holders[0].since == "2026-01-01T00:00:02Z"
    assert str(third.holders[0]).endswith("measuring since 2026-01-01 00:00:02 UTC)")
    second.end()
    assert third.measuring.wait(PATIENCE)
    third.end()
    ((waited_for, seconds),) = second.waited
    assert waited_for == "first"
    assert 0 < seconds < PATIENCE


def test_a_turn_ends_with_an_error():
    with pytest.raises(KeyError), machine_turn("one", shared=False, on_wait=unheard):
        raise KeyError
    with machine_turn("two", shared=False, on_wait=unheard) as beside:
        assert beside is None


def test_a_machine_without_a_place_for_the_file_has_no_turns(tmp_path, monkeypatch):
    monkeypatch.setenv(machine_turns.LOCK_VARIABLE, str(tmp_path / "absent" / "lock"))
    with machine_turn("one", shared=False, on_wait=unheard) as beside:
        assert beside is None


def test_a_run_that_names_itself_a_moment_later_is_named(lock, monkeypatch):
    """A run locks the file before it writes its name."""
    lock.write_text("", encoding="utf-8")
    named = json.dumps({"pid": 7, "run_id": "first", "since": "2026-01-01T00:00:01Z"})
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            lock.write_text(named, encoding="utf-8")

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=pause)
    monkeypatch.setattr(machine_turns, "time", clock)
    run = Run("second")
    with lock.open("r+b") as handle:
        assert try_lock(handle.fileno())
        run.start()
        assert run.waiting.wait(PATIENCE)
    assert run.waits_for == ["first"]
    assert len(pauses) == 3
    assert run.measuring.wait(PATIENCE)
    run.end()


def test_a_file_without_a_name_is_of_another_run(lock, monkeypatch):
    lock.write_text("{", encoding="utf-8")
    run = Run("second")
    with lock.open("r+b") as handle:
        assert try_lock(handle.fileno())
        run.start()
        assert run.waiting.wait(PATIENCE)
        monkeypatch.setenv(machine_turns.WAIT_VARIABLE, "0")
        with machine_turn("third", shared=False, on_wait=unheard) as beside:
            assert other_run_of(json.loads(json.dumps(condition_of(beside)))) == "Another run"
    (holder,) = run.holders
    assert (holder.name, str(holder)) == ("another run", "another run")
    assert run.measuring.wait(PATIENCE)
    run.end()


def test_a_run_that_is_over_is_not_named(first, lock):
    assert "first" in lock.read_text(encoding="utf-8")
    first.end()
    assert lock.read_text(encoding="utf-8") == ""
