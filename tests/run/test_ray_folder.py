"""The folder around Ray's own: nobody else may enter it, or put another in its place."""

import os
import tempfile

import pytest

from accelbench.core.errors import SurroundingsError
from accelbench.fleet.session import keep_private, ray_folder


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"accelbench-ray-{os.getuid()}"


def permissions(folder):
    return folder.stat().st_mode & 0o777


def test_it_is_made_private_and_what_was_open_is_closed(own):
    assert ray_folder() == own / "ray"
    assert permissions(own) == 0o700
    own.chmod(0o777)  # as Ray leaves its own
    ray_folder()
    assert permissions(own) == 0o700


def test_a_link_that_somebody_has_put_there_is_refused(own, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    own.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SurroundingsError, match="is not a folder of this user"):
        ray_folder()
    assert permissions(tmp_path / "elsewhere") == 0o755


def test_another_user_s_folder_is_refused(own, monkeypatch):
    own.mkdir()
    owner = own.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    own.rename(own.with_name(f"accelbench-ray-{owner + 1}"))
    with pytest.raises(SurroundingsError, match="set TMPDIR"):
        ray_folder()


def test_the_folder_that_a_head_of_another_user_names_is_private_too(tmp_path):
    session = tmp_path / "accelbench-ray-4711" / "ray" / "session_2026"
    session.mkdir(parents=True)
    keep_private(str(session))
    assert permissions(tmp_path / "accelbench-ray-4711") == 0o700
    other = tmp_path / "ray" / "ray" / "session_2026"
    other.mkdir(parents=True)
    before = permissions(other.parent.parent)
    keep_private(str(other))
    keep_private("")
    assert permissions(other.parent.parent) == before
