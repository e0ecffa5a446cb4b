"""What packages register is read once, and again where a package has come."""

import pytest

from accelbench.core import plugins


@pytest.fixture
def read(monkeypatch):
    """The groups that were read from the packages' files."""
    plugins._read_entry_points.cache_clear()
    groups = []
    real = plugins.entry_points

    def entry_points(*, group):
        groups.append(group)
        return real(group=group)

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    return groups


def test_a_package_that_comes_later_is_found(read, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    assert "late" not in plugins.find_entry_points(plugins.HARDWARE)
    about = tmp_path / "late-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[accelbench.hardware]\nlate = late:Late\n")
    assert plugins.find_entry_points(plugins.HARDWARE)["late"].value == "late:Late"
    assert len(read) == 2


def test_files_in_the_folder_that_somebody_works_in_change_nothing(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    first = plugins.find_entry_points(plugins.ENGINES)
    (tmp_path / "results.csv").write_text("x")
    again = plugins.find_entry_points(plugins.ENGINES)
    assert first == again
    assert first is not again  # whoever changes what it is given changes nothing here
    assert read == [plugins.ENGINES]
