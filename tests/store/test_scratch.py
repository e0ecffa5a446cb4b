"""The conductor's folder: gone after a clean end, swept after a kill, never while it is used."""

from pathlib import Path

from accelbench.store import files
from accelbench.store.files import ALIVE, Scratch, sweep


def test_closing_removes_it_with_everything_in_it(tmp_path):
    made = Scratch(tmp_path)
    (made.folder / "worker-1.log").write_text("x")
    made.close()
    assert not list(tmp_path.iterdir())


def test_one_in_use_is_left_alone(tmp_path):
    first = Scratch(tmp_path)
    second = Scratch(tmp_path)
    assert not sweep(tmp_path)
    assert first.folder.is_dir()
    assert second.folder.is_dir()
    first.close()
    second.close()


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    left = tmp_path / "accelbench-killed"
    left.mkdir()
    (left / ALIVE).touch()  # nobody holds a lock in it
    (left / "template-1.log").write_text("x")
    made = Scratch(tmp_path)
    assert not left.exists()
    assert made.folder.is_dir()
    made.close()


def test_folders_that_are_not_of_this_kind_are_left_alone(tmp_path):
    mine = tmp_path / "accelbench-results"
    mine.mkdir()
    (mine / "precious").write_text("x")
    starting = tmp_path / "accelbench-starting"  # made, and not yet locked
    starting.mkdir()
    Scratch(tmp_path).close()
    assert (mine / "precious").exists()
    assert starting.exists()


def test_a_place_too_long_for_a_socket_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    assert files._short_base() == Path("/tmp")
    monkeypatch.setattr(files.tempfile, "tempdir", "/var/tmp")
    assert files._short_base() == Path("/var/tmp")
