"""The cache: whole or not there, whoever makes, kills, breaks or clears."""

import json
import os
import time
from threading import Barrier, Thread

import pytest

from accelbench.core.errors import UsageError
from accelbench.engines.artifacts import cache as caches
from accelbench.engines.artifacts.cache import Cache, size_cap
from accelbench.engines.artifacts.recipe import FILE, Manifest, Tensor
from accelbench.store.files import FOLDER_VARIABLE

LONG_AGO = 2 * 3600


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path, cap=2**20)


def fill(folder, key, size=10):
    (folder / "model.onnx").write_bytes(b"x" * size)
    tensor = Tensor("a", "a", "float32", ("batch", 3))
    Manifest(key, "onnx", "m", "model.onnx", (tensor,), (tensor,), None, "d").save(folder)


def make(cache, key, size=10, idle=0):
    with cache.making(key) as folder:
        fill(folder, key, size)
    kept = cache.folder / key
    then = time.time() - idle
    os.utime(kept / FILE, (then, then))
    return kept


def names(cache):
    return {path.name for path in cache.folder.iterdir()}


def test_what_is_made_is_found_and_nothing_else_is_left(cache):
    assert cache.find("k") is None
    make(cache, "k")
    found = cache.find("k")
    assert found.manifest.key == "k"
    assert (found.folder / found.manifest.file).read_bytes() == b"x" * 10
    assert names(cache) == {"k"}


def test_what_fails_is_not_kept(cache):
    def fail(folder):
        fill(folder, "k")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError), cache.making("k") as folder:
        fail(folder)
    assert cache.find("k") is None
    assert names(cache) == set()


def test_half_of_it_is_never_found(cache):
    with cache.making("k") as folder:
        fill(folder, "k")
        assert cache.find("k") is None
    assert cache.find("k") is not None


def test_two_at_once_both_succeed_and_one_is_kept(cache):
    barrier, failed = Barrier(2), []

    def work(size):
        try:
            with cache.making("k") as folder:
                barrier.wait(timeout=30)
                fill(folder, "k", size)
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=work, args=(size,)) for size in (5, 7)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed
    found = cache.find("k")
    assert (found.folder / "model.onnx").stat().st_size in (5, 7)
    assert names(cache) == {"k"}


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", '"text"', '{"key": "k"}', '{"inputs": [1], "outputs": []}', "\x00"],
)
def test_a_manifest_that_cannot_be_read_is_made_again(cache, body):
    (make(cache, "k") / FILE).write_text(body)
    assert cache.find("k") is None
    make(cache, "k", size=77)
    found = cache.find("k")
    assert (found.folder / "model.onnx").stat().st_size == 77


def test_a_manifest_without_its_file_or_of_another_key_is_nothing(cache):
    (make(cache, "k") / "model.onnx").unlink()
    assert cache.find("k") is None
    make(cache, "other").rename(cache.folder / "renamed")
    assert cache.find("renamed") is None


def test_the_longest_unused_go_first_and_only_as_many_as_must(cache):
    cache.cap = 3 * 2**20
    for name, age in (("old", 5), ("older", 6), ("oldest", 7)):
        make(cache, name, 2**20 - 2000, idle=age * LONG_AGO)
    make(cache, "new", 2**20 - 2000)
    assert names(cache) == {"old", "older", "new"}


def test_finding_one_makes_it_young(cache):
    cache.cap = 3 * 2**20
    for name, age in (("a", 6), ("b", 7)):
        make(cache, name, 2**20, idle=age * LONG_AGO)
    assert cache.find("b") is not None
    make(cache, "c", 2**20)
    assert names(cache) == {"b", "c"}


def test_what_may_be_in_use_and_what_was_just_made_stay(cache):
    cache.cap = 0
    make(cache, "in-use", 2**20, idle=60)
    make(cache, "idle", 2**20, idle=LONG_AGO)
    make(cache, "new", 2**20)
    assert names(cache) == {"in-use", "new"}


def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(cache):
    cache.folder.mkdir(parents=True)
    then = time.time() - LONG_AGO
    for name in ("dead", "alive"):
        left = cache.folder / f"{caches._HALF_MADE}{name}"
        left.mkdir()
        (left / "model.data").write_bytes(b"x")
        os.utime(left / "model.data", (then, then) if name == "dead" else None)
        os.utime(left, (then, then))
    make(cache, "k")
    assert names(cache) == {"k", f"{caches._HALF_MADE}alive"}


def test_workarounds_are_remembered(cache):
    assert cache.remembered("cell") is None
    for names_ in ((), ("fixed_batch", "eager_attention")):
        cache.remember("cell", names_)
        assert cache.remembered("cell") == names_
    assert cache.remembered("another") is None

    make(cache, "k", 1000)
    cache.remember("cell", ["fixed_batch"])
    assert cache.clear() > 1000
    assert cache.find("k") is None
    assert cache.remembered("cell") is None
    assert cache.clear() == 0


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{}", '{"workarounds": [["a"]], "versions": {}}', '["fixed_batch"]',
     '{"workarounds": ["no_such_thing"], "versions": {}}', '{"workarounds": 3, "versions": {}}'],
)  # fmt: skip
def test_a_memory_that_says_nothing_known_is_none(cache, body):
    cache.remember("cell", [])
    (cache.folder.parent / "workarounds" / "cell.json").write_text(body)
    assert cache.remembered("cell") is None


def test_other_versions_of_the_packages_are_another_memory(cache, monkeypatch):
    cache.remember("cell", ["fixed_batch"])
    monkeypatch.setattr(caches, "all_versions", lambda: {"torch": "99"})
    assert cache.remembered("cell") is None


def test_a_cache_that_cannot_be_written_remembers_nothing_and_says_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file", cap=0)
    cache.remember("cell", ["fixed_batch"])
    assert cache.remembered("cell") is None
    assert cache.find("k") is None


def test_the_cap_is_what_the_variable_says(monkeypatch):
    monkeypatch.delenv(caches.SIZE_VARIABLE, raising=False)
    assert size_cap() == 20 * 2**30
    for text, size in (("1.5", 3 * 2**29), ("0", 0)):
        monkeypatch.setenv(caches.SIZE_VARIABLE, text)
        assert size_cap() == size
    for text in ("much", "nan", "inf", "-1"):
        monkeypatch.setenv(caches.SIZE_VARIABLE, text)
        with pytest.raises(UsageError) as raised:
            size_cap()
        assert raised.value.advice


def test_the_folder_is_the_variables(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert Cache().folder == tmp_path / "artifacts"


def test_the_manifest_is_json_that_people_can_read(cache):
    body = json.loads((make(cache, "k") / FILE).read_text())
    assert body["inputs"] == [
        {"name": "a", "file_name": "a", "dtype": "float32", "shape": ["batch", 3]}
    ]
