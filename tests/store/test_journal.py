from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bodies import NASTY, result, started
from power import Failing, every_cut

from accelbench.core.errors import StoreError, SurroundingsError
from accelbench.core.facts import FACT_VERSION, RESULT, Fact
from accelbench.store.files import Files
from accelbench.store.journal import Journal, encode, journal_path, read, scan


def facts_of(path: Path) -> list[str]:
    return [fact.id for fact in read(path)]


def test_what_is_appended_is_read_back_exactly(tmp_path):
    facts = [started(), *(result(i, message=text) for i, text in enumerate(NASTY))]
    facts.append(Fact("plugin_kind", "é\ud800", {"deep": [{"x": [1, None, True, 0.1, 1e-300]}]}))
    with Journal.create(tmp_path / "deep" / "down", "r") as journal:
        for fact in facts:
            journal.append(fact)
        assert journal.facts() == facts
    assert read(journal.path) == facts


def test_a_line_is_its_crc_and_canonical_json(tmp_path):
    assert encode(Fact("k", "i", {"b": 1, "a": "é"})) == (
        b'be24e024 {"body":{"a":"\\u00e9","b":1},"id":"i","kind":"k","version":1}\n'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), object()])
def test_what_json_cannot_hold_is_refused_and_leaves_no_trace(tmp_path, value):
    with Journal.create(tmp_path, "r") as journal:
        with pytest.raises(StoreError, match="cannot be stored"):
            journal.append(result(0, latency_mean_ms=value))
        journal.append(result(1))
    assert facts_of(journal.path) == ["r-1"]


def test_a_run_has_one_journal_and_resuming_needs_one(tmp_path):
    Journal.create(tmp_path, "r").close()
    with pytest.raises(SurroundingsError, match="has a journal already"):
        Journal.create(tmp_path, "r")
    with pytest.raises(SurroundingsError, match="no journal of run other"):
        Journal.resume(tmp_path, "other")


@pytest.mark.parametrize("run_id", ["", "../r", "a/b", ".r", "a\\b", "c:d", "a\0"])
def test_a_run_id_never_leaves_the_folder(tmp_path, run_id):
    with pytest.raises(SurroundingsError, match="not a run's id"):
        journal_path(tmp_path, run_id)


def test_one_process_writes_at_a_time(tmp_path):
    with Journal.create(tmp_path, "r") as journal:
        journal.append(result(0))
        with pytest.raises(SurroundingsError, match="Another process is writing run r"):
            Journal.resume(tmp_path, "r")
        assert facts_of(journal.path) == ["r-0"]  # a reader is not kept out
    with Journal.resume(tmp_path, "r") as journal:
        journal.append(result(1))
    assert facts_of(journal.path) == ["r-0", "r-1"]


def test_every_possible_torn_tail_is_cut_and_kept(tmp_path):
    first, second = encode(result(0)), encode(result(1))
    path = tmp_path / "r.jsonl"
    for length in range(1, len(second)):
        path.write_bytes(first + second[:length])
        assert facts_of(path) == ["r-0"]  # for a reader it is just not there yet
        with Journal.resume(tmp_path, "r") as journal:
            journal.append(result(2))
        assert facts_of(path) == ["r-0", "r-2"]
        assert (tmp_path / f"r.torn-{length}").read_bytes() == second[:length]


def test_a_torn_tail_of_zeros_or_garbage_with_breaks_is_cut(tmp_path):
    path = tmp_path / "r.jsonl"
    for number, garbage in enumerate([b"\0" * 100, b"x\ny\n", b"\n", b"deadbeef {}\n"], 1):
        path.write_bytes(encode(result(0)) + garbage)
        Journal.resume(tmp_path, "r").close()
        assert path.read_bytes() == encode(result(0))
        assert (tmp_path / f"r.torn-{number}").read_bytes() == garbage


def test_a_damaged_line_is_reported_and_the_others_stay(tmp_path):
    lines = [encode(result(i)) for i in range(4)]
    lines[1] = lines[1].replace(b"bert", b"tref")
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(lines))
    found = scan(path)
    assert found.corrupt == (2,)
    assert [fact.id for fact in found.facts] == ["r-0", "r-2", "r-3"]
    with Journal.resume(tmp_path, "r") as journal:  # what is damaged is not cut away
        journal.append(result(4))
    assert path.read_bytes() == b"".join(lines) + encode(result(4))
    assert scan(path).corrupt == (2,)


def test_every_flipped_bit_is_noticed(tmp_path):
    line = encode(Fact(RESULT, "i", {"a": 1}))
    path = tmp_path / "r.jsonl"
    for position in range(len(line) - 1):
        for bit in range(8):
            damaged = bytearray(line)
            damaged[position] ^= 1 << bit
            path.write_bytes(bytes(damaged) + line)
            assert len(scan(path).lines) == 1, (position, bit)


def test_a_scan_goes_on_where_another_ended(tmp_path):
    path = tmp_path / "r.jsonl"
    bad = b"00000000 {}\n"
    path.write_bytes(encode(result(0)) + bad)
    before = scan(path)
    assert (before.end, before.last_number, before.corrupt) == (len(encode(result(0))), 1, ())
    path.write_bytes(path.read_bytes() + encode(result(1)))
    after = scan(path, before.end, before.last_number)
    assert (after.corrupt, [line.number for line in after.lines]) == ((2,), [3])
    assert after.end == path.stat().st_size


def test_facts_of_a_newer_version_are_recognised(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(encode(result(0)))
    assert not scan(path).is_newer
    path.write_bytes(encode(Fact(RESULT, "i", {"version": 1}, FACT_VERSION + 1)))
    assert scan(path).is_newer


FAILURES = [
    (op, code) for op in ("write", "sync") for code in (errno.ENOSPC, errno.EIO, errno.EROFS)
]


@pytest.mark.parametrize(("operation", "code"), FAILURES)
def test_a_failed_append_leaves_the_journal_usable(tmp_path, operation, code):
    with Journal.create(tmp_path, "r", Failing(operation, 1, code)) as journal:
        journal.append(result(0))
        with pytest.raises(SurroundingsError) as caught:
            journal.append(result(1))
        assert "can be resumed" in str(caught.value)
        assert journal.path.read_bytes() == encode(result(0))
        journal.append(result(1))
        journal.append(result(2))
    assert facts_of(journal.path) == ["r-0", "r-1", "r-2"]


def test_a_failed_append_that_cannot_be_cut_is_cut_by_the_next(tmp_path):
    class Both(Failing):
        """The write fails, and so does the cut after it."""

        def truncate(self, fd: int, size: int) -> None:
            if self.count == 2:
                self.count += 1
                raise OSError(errno.EIO, "gone")
            super().truncate(fd, size)

    with Journal.create(tmp_path, "r", Both("write", 1, errno.EIO)) as journal:
        journal.append(result(0))
        with pytest.raises(SurroundingsError):
            journal.append(result(1))
        assert journal.path.stat().st_size > len(encode(result(0)))
        journal.append(result(1))
    assert facts_of(journal.path) == ["r-0", "r-1"]


def test_no_room_says_so(tmp_path):
    with (
        Journal.create(tmp_path, "r", Failing("write", 0, errno.ENOSPC)) as journal,
        pytest.raises(SurroundingsError, match=r"no room left .* Free some space"),
    ):
        journal.append(result(0))


def test_a_creation_that_fails_may_be_tried_again(tmp_path):
    class NoFolderSync(Files):
        def sync_folder(self, path: Path) -> None:
            raise OSError(errno.EIO, "gone")

    with pytest.raises(SurroundingsError, match="Starting the journal failed"):
        Journal.create(tmp_path, "r", NoFolderSync())
    with Journal.create(tmp_path, "r") as journal:
        journal.append(result(0))
    assert facts_of(journal.path) == ["r-0"]


def test_a_journal_folder_that_cannot_be_made_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SurroundingsError, match="something else exists"):
        Journal.create(tmp_path / "file", "r")
    with pytest.raises(SurroundingsError, match="Starting the journal failed"):
        Journal.create(Path("/proc/journal"), "r")


def test_power_cuts_lose_and_double_nothing_announced(tmp_path):
    """Creation and appends, cut at every operation; then the run goes on."""
    announced: list[str] = []
    wanted = [started(), result(0), result(1)]
    fresh = iter(range(10**6))

    def make() -> Path:
        announced.clear()
        root = tmp_path / str(next(fresh))
        root.mkdir()
        return root

    def act(root: Path, files: object) -> None:
        with Journal.create(root / "j", "r", files) as journal:  # type: ignore[arg-type]
            for fact in wanted:
                journal.append(fact)
                announced.append(fact.id)

    cuts = 0
    for root, where in every_cut(make, act):
        cuts += 1
        path = root / "j" / "r.jsonl"
        there = facts_of(path) if path.exists() else []
        ids = [fact.id for fact in wanted]
        assert there in (announced, ids[: len(announced) + 1]), where
        journal = (
            Journal.resume(root / "j", "r") if path.exists() else Journal.create(root / "j", "r")
        )
        with journal:
            for fact in wanted[len(journal.facts()) :]:
                journal.append(fact)
        assert read(path) == wanted, where
    assert cuts >= 40


def test_power_cuts_while_a_torn_tail_is_cut(tmp_path):
    torn = encode(result(1))[:-9]
    fresh = iter(range(10**6))

    def make() -> Path:
        root = tmp_path / str(next(fresh))
        root.mkdir()
        (root / "r.jsonl").write_bytes(encode(result(0)) + torn)
        return root

    def act(root: Path, files: object) -> None:
        Journal.resume(root, "r", files).close()  # type: ignore[arg-type]

    for root, where in every_cut(make, act):
        assert facts_of(root / "r.jsonl") == ["r-0"], where
        Journal.resume(root, "r").close()
        assert (root / "r.jsonl").read_bytes() == encode(result(0)), where
        kept = b"|".join(p.read_bytes() for p in sorted(root.glob("r.torn-*")))
        assert torn in kept, where


WRITER = """
import sys
from pathlib import Path
from accelbench.core.facts import Fact, RESULT
from accelbench.store.files import Files
from accelbench.store.journal import Journal
with Journal.create(Path(sys.argv[1]), "r") as journal:
    for number in range(10**6):
        journal.append(Fact(RESULT, str(number), {"samples": {"step": list(range(500))}}))
        print(number, flush=True)
"""


def test_a_killed_writer_leaves_everything_announced(tmp_path):
    for wait_for in ("0", "7", "20"):
        folder = tmp_path / wait_for
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            announced = []
            for line in writer.stdout:
                announced.append(line.strip())
                if announced[-1] == wait_for:
                    os.kill(writer.pid, signal.SIGKILL)
        with Journal.resume(folder, "r") as journal:
            there = [fact.id for fact in journal.facts()]
        assert there[: len(announced)] == announced
        assert len(there) - len(announced) in {0, 1}
        assert there == [str(i) for i in range(len(there))]
