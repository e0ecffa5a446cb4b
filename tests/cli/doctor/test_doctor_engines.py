"""`accelbench doctor`: engines, platforms and browsers."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
from doctor_world import FakeRuntime, NoPrograms, answering, healths, raising

from accelbench.cli.commands.doctor import world
from accelbench.core.plugins import ENGINES, PluginError
from accelbench.core.protocols import Absent, Device, Support
from accelbench.core.vocabulary import Provenance
from accelbench.engines.browser import BrowserRuntime, assets
from accelbench.hardware.browsers import Browser
from accelbench.hardware.common import ProbeFailedError, ProbeTimeoutError
from accelbench.hardware.doctor.checks import browser, engine, examine, platforms
from accelbench.hardware.doctor.world import Finding, Health


def test_engines(here):
    # An engine is missing well or broken.
    assert engine(here, "fake", FakeRuntime()).remedy == "accelbench setup fake"
    assert engine(here, "fake", FakeRuntime(extra="")).remedy == "pip install fake"
    assert engine(here, "fake", FakeRuntime()).health is Health.MISSING
    there = replace(here, importable=lambda module: True)
    said = {"version": "1.2", "import_seconds": 0.5, "devices": ["cpu (host)"]}
    good = replace(there, command=answering("a banner\n" + json.dumps(said)))
    found = engine(good, "fake", FakeRuntime())
    assert (found.health, found.said) == (Health.OK, "fake 1.2, imported in 0.5 s; sees cpu (host)")
    nothing = replace(there, command=answering(json.dumps({**said, "devices": []})))
    assert engine(nothing, "fake", FakeRuntime()).health is Health.HINT
    crash = replace(there, command=raising(ProbeFailedError("ended with -11")))
    ill = engine(crash, "fake", FakeRuntime())
    assert (ill.health, "ended with -11" in ill.said) == (Health.BROKEN, True)
    assert ill.remedy == "accelbench setup fake --reinstall"
    slow = engine(replace(there, command=raising(ProbeTimeoutError("x"))), "fake", FakeRuntime())
    assert (slow.health, "within 60 s" in slow.said) == (Health.BROKEN, True)
    assert "--timeout" in slow.remedy
    mute = replace(there, command=answering("a banner"))
    assert engine(mute, "fake", FakeRuntime()).health is Health.BROKEN
    # A runtime that cannot be loaded is broken and one that simulates is not asked.
    point = EntryPoint("x", "y:Engine", ENGINES)
    error = PluginError(point, ImportError("no module y"))
    assert engine(here, "x", error).health is Health.BROKEN
    simulating = FakeRuntime(provenance=Provenance.SIMULATED)
    found = examine(replace(here, runtimes=lambda: [("scripted", simulating)]))
    assert not [one for group, one in found if group == "runtimes"]
    # Each engine is asked by its name and within the time.
    asked = []

    def command(args, seconds):
        asked.append((args[-1], seconds))
        raise ProbeFailedError("enough")

    there = replace(here, importable=lambda module: True, command=command, engine_seconds=7.0)
    engine(there, "fake", FakeRuntime())
    assert asked == [("fake", 7.0)]


def test_the_engines_own_process_answers_for_a_runtime_without_an_engine(tmp_path):
    script = tmp_path / "script.json"
    script.write_text('{"probe": [{"hardware": "cpu", "name": "scripted"}]}', encoding="utf-8")
    module = "accelbench.hardware.doctor.engine"
    done = subprocess.run(
        [sys.executable, "-P", "-m", module, "scripted"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "ACCELBENCH_SCRIPT": str(script)},
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["devices"] == ["cpu (scripted)"]


def test_an_absent_platform_is_missing_and_a_failing_detector_is_broken(here):
    found = platforms(
        replace(
            here,
            detect=lambda: {
                "cuda": [Absent("cuda", "no NVIDIA driver is loaded", "Install it.")],
                "tpu": [Absent("tpu", "its detector failed: OSError: x", "", {"broken": True})],
                "qnn": [Device("qnn", "QNN HTP emulation", emulated=True)],
                "rocm": [Device("rocm", "MI300", i) for i in range(2)],
            },
        )
    )
    assert healths(found) == {
        "cuda": Health.MISSING,
        "tpu": Health.BROKEN,
        "qnn": Health.OK,
        "rocm": Health.OK,
        # Nothing there has a meter.
        "energy of rocm:0": Health.MISSING,
        "energy of rocm:1": Health.MISSING,
    }
    assert "emulated" in found[2].said
    assert found[3].said == "MI300 and 1 more"


def test_a_meter_of_one_device_is_there_whatever_others_lack(here, monkeypatch):
    """Beside a CPU without RAPL, a GPU whose board counts its energy was called missing."""
    meters = {"cpu:0": "not available (there is no RAPL)", "cuda:0": "NVML: the device's board"}
    monkeypatch.setattr("accelbench.hardware.doctor.checks.describe_meters", lambda *_: meters)
    found = {each.name: each for each in platforms(replace(here, detect=dict))}
    assert found["energy of cpu:0"].health is Health.MISSING
    assert found["energy of cuda:0"].health is Health.OK
    assert found["energy of cuda:0"].remedy == ""


class Browsers(NoPrograms):
    def __init__(self, *browsers, vain=""):
        self.browsers, self.vain = browsers, vain

    def find(self):
        return list(self.browsers)

    def explain_missing(self):
        return self.vain


FIREFOX = Browser("Firefox", "/usr/bin/firefox", "firefox")


def test_a_browser_is_optional_and_must_be_of_chromiums_kind(here):
    assert {one.health for one in browser(here)} == {Health.MISSING}
    chromium = Browser("Chromium", "/usr/bin/chromium", "chromium")
    there = replace(here, programs=Browsers(FIREFOX, chromium), which=lambda name: f"/bin/{name}")
    assert [one.said for one in browser(there)] == ["Chromium at /usr/bin/chromium", "/bin/npm"]
    (found, _) = browser(replace(here, programs=Browsers(FIREFOX)))
    assert found.health is Health.MISSING
    assert found.said == "no browser of Chromium's kind found, only Firefox"


def test_a_missing_browser_is_fetched_where_one_can_be_and_else_installed(here):
    fetched, npm = browser(replace(here, browser_remedy="accelbench setup browser --with-chromium"))
    assert fetched.remedy == "accelbench setup browser --with-chromium"
    assert "Install Node.js with npm" in npm.remedy
    installed, _ = browser(here)
    assert installed.remedy == "Install Chrome, Edge or Chromium."


@pytest.mark.parametrize(
    ("fetchable", "remedy"), [(True, "accelbench setup browser --with-chromium"), (False, "")]
)
def test_the_command_knows_whether_a_browser_can_be_fetched(monkeypatch, fetchable, remedy):
    monkeypatch.setattr(assets, "chromium_runs_here", lambda: fetchable)
    assert world(None, 60.0).browser_remedy == remedy


def test_browsers_and_runtimes(here):
    # A browser that is named in vain is to be mended.
    found, _ = browser(replace(here, programs=Browsers(vain="there is no program at /x")))
    assert (found.health, found.said) == (Health.BROKEN, "there is no program at /x")
    assert "unset ACCELBENCH_BROWSER" in found.remedy

    # A runtime that is not set up is missing and not asked further.
    class NotSetUp(FakeRuntime):
        def ready(self):
            return Support(False, "not_set_up", "its engine has not been fetched", "fetch it")

    there = replace(here, importable=lambda module: True, command=raising(AssertionError()))
    found = engine(there, "fake", NotSetUp())
    assert found == Finding("fake", Health.MISSING, "its engine has not been fetched", "fetch it")


def test_the_browser_runtime_names_the_command_that_sets_it_up(here, tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    found = engine(replace(here, importable=lambda module: True), "browser", BrowserRuntime())
    assert (found.health, found.remedy) == (
        Health.MISSING,
        "Fetch it with: accelbench setup browser",
    )
