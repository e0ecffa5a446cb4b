"""Trouble with where artefacts are kept is told as such, and not as the model's."""

import errno
import os
import tempfile
from types import SimpleNamespace

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import CaseError
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts import cache as trouble
from accelbench.engines.artifacts import make as making
from accelbench.engines.artifacts.cache import Cache, place_trouble
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.engines.artifacts.workarounds import next_for
from accelbench.models.find import find

CASE = Case(find("resnet-tiny"), Target("onnxruntime", "cpu"), "fp32", Shapes(1, image=64))


def raised(cache, kind="onnx"):
    with pytest.raises(CaseError) as error:
        make(Recipe(CASE, ArtifactFormat(kind)), cache)
    return error.value


def test_a_cache_that_is_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    error = raised(Cache(tmp_path / "file", cap=2**20))
    assert error.reason == "cache_unwritable"
    assert str(tmp_path / "file") in error.message
    assert "ACCELBENCH_CACHE" in error.advice


def test_a_folder_that_may_not_be_written_is_said_to_be_so(tmp_path, monkeypatch):
    """Root may write everywhere, so the refusal is made up."""

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    assert raised(Cache(tmp_path, cap=2**20)).reason == "cache_unwritable"


def test_a_full_disk_is_no_failed_export(tmp_path, monkeypatch):
    import torch

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path))

    monkeypatch.setattr(torch.onnx, "export", full)
    error = raised(Cache(tmp_path, cap=2**20))
    assert (error.reason, str(tmp_path) in error.message) == ("disk_full", True)
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_a_full_disk_is_no_failed_conversion(tmp_path, monkeypatch):
    def full(*_):
        raise RuntimeError("serialize: No space left on device")

    monkeypatch.setattr(making, "_converted", full)
    assert raised(Cache(tmp_path, cap=2**40), "ir").reason == "disk_full"


def test_an_engine_that_only_says_that_writing_failed_is_understood(tmp_path, monkeypatch):
    error = RuntimeError("basic_ios::clear: iostream error")
    monkeypatch.setattr(trouble.shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    assert place_trouble(error, tmp_path, need=4096) is None
    found = place_trouble(error, tmp_path, need=5000)
    assert found.reason == "disk_full"


def test_what_else_goes_wrong_stays_what_it_is(tmp_path):
    for other in (
        ValueError("no operator for it"),
        FileNotFoundError(errno.ENOENT, "gone", str(tmp_path / "a")),
        PermissionError(errno.EACCES, "no", "/somewhere/else"),
    ):
        assert place_trouble(other, tmp_path) is None
    inner = OSError(errno.EDQUOT, "quota")
    outer = RuntimeError("the exporter failed")
    outer.__cause__ = inner
    found = place_trouble(outer, tmp_path)
    assert found.reason == "disk_full"


def test_no_workaround_is_tried_against_a_full_disk(tmp_path):
    found = place_trouble(OSError(errno.ENOSPC, "full"), tmp_path)
    assert next_for(CASE.model, f"{found.reason}: {found.message}", ()) is None
