"""A real browser with our page in it: asked, crashed, hung, killed; nothing of it stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from browsers_here import needs_browser, program

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.engines.browser import process
from accelbench.engines.browser.assets import engine_folder
from accelbench.engines.browser.page_link import Page, understood
from accelbench.engines.browser.process import merged
from refusals import refusal

pytestmark = needs_browser


def made(provider="wasm"):
    engine = engine_folder()
    assert engine is not None
    return Page(program(), engine, provider)


@pytest.fixture
def page():
    one = made()
    try:
        yield one
    finally:
        one.close()


def surroundings(page):
    said, _ = page.ask("surroundings", seconds=60, device_type="cpu")
    return said


def until(what, seconds=20.0):
    """Whether it becomes so; processes take their time to end."""
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def over(process):
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def test_a_page_is_isolated_and_comes_anew(page):
    said = surroundings(page)
    assert said["isolated"] is True
    assert 0 < float(str(said["tick_ms"])) <= 0.1

    before = surroundings(page)
    (renderer,) = page.browser.renderers()
    page.come_again()
    assert surroundings(page)["agent"] == before["agent"]
    assert page.browser.renderers() != [renderer]  # with what the page before had

    surroundings(page)
    address, browser = page.server.address, page.browser.processes()[0]
    page.come_anew()
    assert page.server.address != address
    assert surroundings(page)["isolated"] is True
    assert page.browser.processes()[0] == browser

    # Whoever left the hall before is not taken for a crash, however slowly it is left again.
    surroundings(page)
    spent = page.browser.cpu_seconds()
    for _ in range(3):
        page.come_again()
        assert surroundings(page)["isolated"] is True
        assert not page.server.gone.is_set()
        # Processes that have ended have used what they used.
        spent, before = page.browser.cpu_seconds(), spent
        assert spent > before


def test_a_browser_that_ended_is_not_come_to_anew(page):
    surroundings(page)
    page.browser.processes()[0].kill()
    with pytest.raises(CaseError):
        page.come_anew()


def test_switches_that_nobody_can_read_are_refused_and_leave_nothing():
    engine = engine_folder()
    assert engine is not None
    before = set(threading.enumerate())
    with pytest.raises(UnsupportedError, match="switches cannot be read"):
        Page(program(), engine, "wasm", '--x="abc')
    assert until(lambda: set(threading.enumerate()) <= before)


def test_a_tab_that_crashes_is_told_from_a_browser_that_ends(page):
    surroundings(page)
    for one in page.browser.renderers():
        one.kill()
    with refusal("tab_crashed"):
        surroundings(page)


def test_a_browser_that_ends_says_how(page):
    surroundings(page)
    page.browser.processes()[0].kill()
    with pytest.raises(CaseError) as caught:
        surroundings(page)
    assert caught.value.reason == "browser_ended"
    assert "-9" in caught.value.message


@pytest.fixture
def without_namespaces(tmp_path):
    """A browser as it is where a system forbids what its sandbox is made of."""
    real = program()
    fake = tmp_path / "chromium"
    fake.write_text(
        "#!/bin/sh\n"
        f'export LD_LIBRARY_PATH="{real.parent}"\n'
        f'case "$*" in *--no-sandbox*) exec "{real}" "$@";; esac\n'
        "echo 'FATAL: No usable sandbox! See elsewhere.' >&2; exit 133\n"
    )
    fake.chmod(0o755)
    return fake


def test_a_user_without_namespaces_is_told_how_to_have_them(without_namespaces, monkeypatch):
    monkeypatch.setattr(process, "is_root", lambda: False)
    engine = engine_folder()
    assert engine is not None
    page = Page(without_namespaces, engine, "wasm")
    try:
        with pytest.raises(UnsupportedError, match="forbids the user namespaces") as caught:
            surroundings(page)
        assert caught.value.reason == "no_sandbox"
        assert "kernel.apparmor_restrict_unprivileged_userns=0" in caught.value.advice
        assert page.browser.started.sandboxed
    finally:
        page.close()


def test_root_in_a_container_measures_without_a_sandbox_and_it_is_said(
    without_namespaces, monkeypatch
):
    monkeypatch.setattr(process, "is_root", lambda: True)
    monkeypatch.setattr(process, "detect_container", lambda: "/.dockerenv is there")
    engine = engine_folder()
    assert engine is not None
    page = Page(without_namespaces, engine, "wasm")
    try:
        assert surroundings(page)["isolated"] is True
        assert not page.browser.started.sandboxed
        assert (
            "root in a container gets none (/.dockerenv is there)" in page.browser.started.without
        )
    finally:
        page.close()


def test_root_outside_a_container_is_asked_to_be_another_user(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "is_root", lambda: True)
    monkeypatch.setattr(process, "detect_container", lambda: "")
    with pytest.raises(UnsupportedError, match="no sandbox where root starts it") as caught:
        process.BrowserProcess(tmp_path / "chromium", "wasm", "", "about:blank")
    assert caught.value.reason == "no_sandbox"
    assert "normal user" in caught.value.advice


def test_who_asks_for_no_sandbox_gets_none_and_it_is_said(without_namespaces, monkeypatch):
    monkeypatch.setattr(process, "is_root", lambda: False)
    made = process.BrowserProcess(without_namespaces, "wasm", "--no-sandbox", "about:blank")
    try:
        assert made.started.without == "The browser ran without its sandbox, as its switches said."
    finally:
        made.close()


def test_a_page_that_does_not_answer_is_given_up(page):
    surroundings(page)
    for one in page.browser.processes():
        one.suspend()
    with refusal("browser_hung"):
        page.ask("surroundings", seconds=0.5, device_type="cpu")


def test_closing_leaves_neither_process_nor_file():
    page = made()
    surroundings(page)
    processes, folder = page.browser.processes(), page.browser.folder
    assert len(processes) > 1
    assert folder.is_dir()
    page.close()
    page.close()
    assert all(map(over, processes))
    assert not folder.exists()


WORKER = """
import sys, time
from accelbench.engines.browser.assets import engine_folder
from accelbench.engines.browser.page_link import Page
from pathlib import Path
page = Page(Path(sys.argv[1]), engine_folder(), "wasm")
page.ask("surroundings", seconds=60, device_type="cpu")
print(page.browser.folder, *(one.pid for one in page.browser.processes()), flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it with its parent")
def test_a_killed_worker_leaves_neither_browser_nor_profile(tmp_path_factory):
    base = tmp_path_factory.mktemp("t")  # whoever else starts a browser removes such profiles, too
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(program())],
        env={**os.environ, "TMPDIR": str(base)},
        stdout=subprocess.PIPE,
        text=True,
    )
    folder, *pids = worker.stdout.readline().split()
    processes = [psutil.Process(int(pid)) for pid in pids]
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert until(lambda: all(map(over, processes)))
    assert Path(folder).is_relative_to(base)
    assert until(lambda: not Path(folder).exists())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("std::bad_alloc", "out_of_memory"),
        ("Array buffer allocation failed", "out_of_memory"),
        ("static void SafeIntExceptionHandler::SafeIntOnOverflow() Integer", "out_of_memory"),
        ("A valid external Instance reference no longer exists.", "device_lost"),
        ("[WebGPU] Device is lost", "device_lost"),
        ("Can't create a session. ERROR_CODE: 9", "session_failed"),
    ],
)
def test_what_a_page_says_becomes_a_reason(message, reason):
    found = understood({"name": "Error", "message": message, "stack": ""}, "open")
    assert found.reason == reason


def test_a_browser_hears_of_several_lists_of_features_as_one():
    given = ["--enable-features=A", "--x", "--y=1", "--enable-features=B,C", "--disable-features=D"]
    assert merged(given) == ["--enable-features=A,B,C", "--x", "--y=1", "--disable-features=D"]


def test_what_the_device_itself_says_counts_before_what_its_failure_is_called():
    error = {"name": "OperationError", "message": "mapAsync failed", "stack": "", "lost": "unknown"}
    assert understood(error, "run").reason == "device_lost"
    assert understood({**error, "lost": None}, "run").reason == "run_failed"
