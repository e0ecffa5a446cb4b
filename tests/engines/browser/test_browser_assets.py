"""Fetching the engine and the browser: what is kept, what is refused, what is said."""

import errno
import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import replace

import brotli
import pytest
from made_packages import Registry, tar

from accelbench.core.errors import EXIT_ENVIRONMENT, MissingExtraError, SurroundingsError
from accelbench.engines.browser import assets
from accelbench.engines.browser.assets import CHROMIUM, ENGINE, fetch, folder_of, npm_pack

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="programs here are shell scripts")


@pytest.fixture
def registry():
    members = {"engine.mjs": b"export default 1", "engine.wasm": b"\0asm", "readme.md": b"long"}
    return Registry(members, taken=("engine.mjs", "engine.wasm"))


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def refused(call):
    """What is said by what is refused: one sentence what, one what to do."""
    with pytest.raises(SurroundingsError) as found:
        call()
    assert found.value.exit_code == EXIT_ENVIRONMENT
    assert found.value.message.endswith(".")
    assert found.value.advice
    assert "\n" not in str(found.value)
    return str(found.value)


# -- what is kept


def test_only_what_is_named_is_kept(tmp_path, registry):
    folder = fetch(registry.package, tmp_path, registry.pack)
    assert folder == tmp_path / "browser" / "engine-1.2.3"
    assert contents(tmp_path / "browser") == {
        "engine-1.2.3/engine.mjs": b"export default 1",
        "engine-1.2.3/engine.wasm": b"\0asm",
    }


def test_what_is_there_is_not_fetched_again(tmp_path, registry):
    folder = fetch(registry.package, tmp_path, registry.pack)
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    assert fetch(registry.package, tmp_path, registry.pack) == folder
    assert registry.asked == 1
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before


def test_another_version_has_a_folder_of_its_own(tmp_path, registry):
    fetch(registry.package, tmp_path, registry.pack)
    fetch(replace(registry.package, version="1.2.4"), tmp_path, registry.pack)
    names = sorted(path.name for path in (tmp_path / "browser").iterdir())
    assert names == ["engine-1.2.3", "engine-1.2.4"]


def test_what_is_another_is_refused_whole(tmp_path, registry):
    said = refused(lambda: fetch(registry.forged, tmp_path, registry.pack))
    assert "@some/engine@1.2.3 is not what was asked for" in said
    assert "sha512" in said
    assert "npm config get registry" in said
    assert list((tmp_path / "browser").iterdir()) == []
    # The right one comes afterwards as if nothing had been.
    fetch(registry.package, tmp_path, registry.pack)


def test_one_byte_more_is_another(tmp_path, registry):
    registry.archive += b"\0"
    refused(lambda: fetch(registry.package, tmp_path, registry.pack))
    assert list((tmp_path / "browser").iterdir()) == []


def test_what_breaks_off_leaves_nothing(tmp_path, registry):
    def broken():
        raise KeyboardInterrupt

    registry.meanwhile = broken
    with pytest.raises(KeyboardInterrupt):
        fetch(registry.package, tmp_path, registry.pack)
    assert list((tmp_path / "browser").iterdir()) == []


KILLED = """
import json, os, sys
from pathlib import Path
from accelbench.engines.browser.assets import fetch
from accelbench.engines.browser.assets import Package
def pack(package, into):
    (into / "archive.tgz").write_bytes(b"half")
    os._exit(9)
fetch(Package("@some/engine", "1.2.3", "", {}, ""), Path(sys.argv[1]), pack)
"""


def test_a_killed_download_leaves_nothing_behind(tmp_path, registry):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, check=False)
    assert done.returncode == 9
    end = time.monotonic() + 20  # a small process that outlives it removes the folder
    while list((tmp_path / "browser").rglob("archive.tgz")) and time.monotonic() < end:
        time.sleep(0.02)
    assert not list((tmp_path / "browser").rglob("archive.tgz"))
    folder = fetch(registry.package, tmp_path, registry.pack)
    assert list((tmp_path / "browser").iterdir()) == [folder]


def test_a_place_that_cannot_be_written_is_said(tmp_path, registry):
    (tmp_path / "browser").write_text("a file where a folder should be")
    said = refused(lambda: fetch(registry.package, tmp_path, registry.pack))
    assert "could not be written into" in said
    assert "ACCELBENCH_CACHE" in said


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, registry):
    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    registry.meanwhile = full
    said = refused(lambda: fetch(registry.package, tmp_path, registry.pack))
    assert "No space left on device" in said
    assert list((tmp_path / "browser").iterdir()) == []


# -- what is inside


def compressed(members, mode=0o644):
    return brotli.compress(tar(members, mode=mode), quality=1)


def test_compressed_files_and_archives_are_unpacked_into_one_folder(tmp_path):
    members = {
        "chromium.br": brotli.compress(b"\x7fELF program", quality=1),
        "swift.tar.br": compressed({"libvk.so": b"vk", "vk_icd.json": b"{}"}, 0o755),
        "libs.tar.br": compressed({"lib/deep/libnss3.so": b"nss"}),
        "plain.tar": tar({"a/b/c.txt": b"c"}),
        "plain.mjs": b"1",
    }
    registry = Registry(members)
    folder = fetch(registry.package, tmp_path, registry.pack)
    assert contents(folder) == {
        "chromium": b"\x7fELF program",
        "libvk.so": b"vk",
        "vk_icd.json": b"{}",
        "libnss3.so": b"nss",
        "c.txt": b"c",
        "plain.mjs": b"1",
    }
    if sys.platform != "win32":
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes["chromium"] == 0o755
        assert (modes["libvk.so"], modes["libnss3.so"]) == (0o755, 0o644)
        assert (modes["plain.mjs"], modes["c.txt"]) == (0o644, 0o644)


def test_no_mode_of_an_archive_is_dangerous(tmp_path):
    registry = Registry({"odd.tar": tar({"program": b"x"}, mode=0o6777)})
    folder = fetch(registry.package, tmp_path, registry.pack)
    if sys.platform != "win32":
        assert (folder / "program").stat().st_mode & 0o7777 == 0o755


def link(name, to, kind=tarfile.SYMTYPE):
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, to
    return about


def test_no_member_leaves_the_folder(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    members = {
        "../../../outside/climbed": b"1",
        str(outside / "rooted"): b"2",
        "..\\..\\..\\outside\\backwards": b"3",
        "C:\\outside\\drive": b"4",
        "..": b"5",
        "a/..": b"6",
        ".": b"7",
        "link": link("link", str(outside)),
        "link/through": b"8",
        "hard": link("hard", "/etc/hostname", tarfile.LNKTYPE),
        "folder": link("folder", "", tarfile.DIRTYPE),
        "pipe": link("pipe", "", tarfile.FIFOTYPE),
    }
    registry = Registry({"hostile.tar": tar(members), "deep.tar.br": compressed(members)})
    folder = fetch(registry.package, tmp_path / "cache", registry.pack)
    assert contents(folder) == {
        "climbed": b"1",
        "rooted": b"2",
        "backwards": b"3",
        "drive": b"4",
        "through": b"8",
    }
    assert list(outside.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "outside"]


def test_a_missing_brotli_is_found_before_anything_is_fetched(tmp_path, monkeypatch, registry):
    monkeypatch.setitem(sys.modules, "brotli", None)
    large = Registry({"chromium.br": b"70 MB of it"}, name="@some/chromium")
    with pytest.raises(MissingExtraError) as found:
        fetch(large.package, tmp_path, large.pack)
    assert "brotli" in found.value.message
    assert "accelbench setup browser" in found.value.advice
    assert large.asked == 0
    assert list(tmp_path.iterdir()) == []
    # What is not compressed needs none.
    fetch(registry.package, tmp_path, registry.pack)


# -- several at once


def test_a_faster_one_is_as_good(tmp_path, registry):
    def faster():
        folder = folder_of(registry.package, tmp_path)
        folder.mkdir()
        (folder / "engine.mjs").write_bytes(b"theirs")

    registry.meanwhile = faster
    folder = fetch(registry.package, tmp_path, registry.pack)
    assert contents(tmp_path / "browser") == {"engine-1.2.3/engine.mjs": b"theirs"}
    assert list((tmp_path / "browser").iterdir()) == [folder]


AT_ONCE = """
import sys, time
from pathlib import Path
from accelbench.engines.browser.assets import fetch
from accelbench.engines.browser.assets import Package
cache, archive, integrity, me, other = sys.argv[1:]
def pack(package, into):
    (into / "archive.tgz").write_bytes(Path(archive).read_bytes())
    Path(me).touch()
    until = time.monotonic() + 60
    while not Path(other).exists() and time.monotonic() < until:
        time.sleep(0.01)
    return into / "archive.tgz"
files = {"package/bin/engine.mjs": "engine.mjs"}
print(fetch(Package("@some/engine", "1.2.3", integrity, files, "MIT"), Path(cache), pack))
"""


def test_two_processes_fetch_at_once(tmp_path, registry):
    (tmp_path / "archive").write_bytes(registry.archive)
    cache, marks = tmp_path / "cache", [str(tmp_path / "one"), str(tmp_path / "two")]
    words = [str(cache), str(tmp_path / "archive"), registry.package.integrity]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, *words, *order],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for order in (marks, marks[::-1])
    ]
    said = [one.communicate(timeout=120) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    folder = folder_of(registry.package, cache)
    assert [out.strip() for out, _ in said] == [str(folder)] * 2
    assert list((cache / "browser").iterdir()) == [folder]
    assert contents(folder) == {"engine.mjs": b"export default 1"}


# -- npm


def npm(folder, script, monkeypatch):
    """Another npm, the only one in PATH."""
    program = folder / "programs" / "npm"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


def test_without_npm_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused(lambda: fetch(ENGINE, tmp_path / "cache"))
    assert said.startswith(f"npm is not installed, and {ENGINE} is fetched with it. Install Node")
    assert "accelbench setup browser" in said
    assert list((tmp_path / "cache" / "browser").iterdir()) == []


NO_NETWORK = """npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to https://r/x failed, reason: getaddrinfo ENOTFOUND r
npm error A complete log of this run can be found in: /home/x/log
"""
REFUSED = """npm error code ECONNREFUSED
npm error syscall connect
npm error errno ECONNREFUSED
npm error FetchError: request to http://r failed, reason: connect ECONNREFUSED
npm error     at ClientRequest.<anonymous> (index.js:130:14)
"""
OLDER = "npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://r/x - Not found\n"

#: What npm prints, and what of it is told.
ERRORS = {
    NO_NETWORK: "network request to https://r/x failed, reason: getaddrinfo ENOTFOUND r",
    REFUSED: "FetchError: request to http://r failed, reason: connect ECONNREFUSED",
    OLDER: "404 Not Found - GET https://r/x - Not found",
    "/usr/bin/env: 'node': No such file or directory\n": "'node': No such file or directory",
    "": "npm ended with 3",
    "npm error code EWHATEVER\n": "npm ended with 3",
}


@UNIX
@pytest.mark.parametrize("stderr", ERRORS)
def test_an_npm_that_fails_is_told_in_one_sentence(tmp_path, monkeypatch, stderr):
    npm(tmp_path, f"import sys; sys.stderr.write({stderr!r}); sys.exit(3)", monkeypatch)
    said = refused(lambda: fetch(ENGINE, tmp_path / "cache"))
    assert said.startswith(f"{ENGINE} could not be fetched: ")
    assert ERRORS[stderr] in said
    assert "Check the network" in said
    assert "accelbench setup browser" in said
    assert "npm error" not in said
    assert "npm ERR!" not in said
    assert list((tmp_path / "cache" / "browser").iterdir()) == []


@UNIX
def test_an_npm_that_brings_nothing_has_failed(tmp_path, monkeypatch):
    npm(tmp_path, "", monkeypatch)
    assert "npm ended with 0" in refused(lambda: npm_pack(ENGINE, tmp_path))


@UNIX
def test_an_npm_that_hangs_is_ended(tmp_path, monkeypatch):
    npm(tmp_path, "import time; time.sleep(600)", monkeypatch)
    monkeypatch.setattr(assets, "_NPM_SECONDS", 0.2)
    assert "npm took more than 0.2 s" in refused(lambda: npm_pack(ENGINE, tmp_path))


@UNIX
def test_an_npm_that_cannot_be_started_is_said(tmp_path, monkeypatch):
    npm(tmp_path, "", monkeypatch)
    (tmp_path / "programs" / "npm").write_text("#!/nowhere/node\n")
    said = refused(lambda: fetch(ENGINE, tmp_path / "cache"))
    assert "npm cannot be started: No such file or directory" in said


TALKATIVE = """
import json, os, sys
into = sys.argv[sys.argv.index("--pack-destination") + 1]
with open(into + "/some-engine-1.2.3.tgz", "wb") as file:
    file.write(b"archive")
with open(os.environ["SEEN"], "w") as file:
    json.dump({"words": sys.argv[1:], "here": os.getcwd(), "in": sys.stdin.read()}, file)
"""


@UNIX
def test_npm_is_asked_for_one_version_and_nothing_around_it(tmp_path, monkeypatch):
    npm(tmp_path, TALKATIVE, monkeypatch)
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    into = tmp_path / "into"
    into.mkdir()
    (tmp_path / "typed").write_text("yes")
    own = os.dup(0)
    try:
        with (tmp_path / "typed").open() as typed:
            os.dup2(typed.fileno(), 0)
        assert npm_pack(ENGINE, into).read_bytes() == b"archive"
    finally:
        os.dup2(own, 0)
        os.close(own)
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["words"][0] == "pack"
    assert seen["words"][-1] == f"{ENGINE.name}@{ENGINE.version}"
    # In no project of the user's, whose settings are others, and without a question.
    assert (seen["here"], seen["in"]) == (str(into), "")
    assert "--silent" not in seen["words"]


# -- where things are


def test_what_was_fetched_is_found(tmp_path):
    assert assets.engine_folder(tmp_path) is None
    folder_of(ENGINE, tmp_path).mkdir(parents=True)
    assert assets.engine_folder(tmp_path) == folder_of(ENGINE, tmp_path)


def test_the_cache_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    assert folder_of(CHROMIUM) == tmp_path / "browser" / f"chromium-{CHROMIUM.version}"


@pytest.mark.parametrize("here", [True, False])
def test_a_browser_is_wanted_only_where_it_runs(monkeypatch, here):
    monkeypatch.setattr(assets, "chromium_runs_here", lambda: here)
    assert assets.wanted(False) == [ENGINE]
    assert assets.wanted(True) == ([ENGINE, CHROMIUM] if here else [ENGINE])
