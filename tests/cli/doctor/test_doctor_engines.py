"""`accelbench doctor`: engines, platforms and browsers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

from doctor_world import (
    FakeRuntime,
    NoPrograms,
    answering,
    healths,
    raising,
)

from accelbench.core.protocols import Absent, Device
from accelbench.core.words import Provenance
from accelbench.hardware.browsers import Browser
from accelbench.hardware.common import ProbeFailedError, ProbeTimeoutError
from accelbench.hardware.doctor.checks import browser, examine, platforms
from accelbench.hardware.doctor.engines import engine
from accelbench.hardware.doctor.finding import Health


def test_an_engine_is_missing_well_or_broken(here):
    assert engine(here, "fake", FakeRuntime()).remedy == "pip install 'accelbench[fake]'"
    assert engine(here, "fake", FakeRuntime(extra="")).remedy == "pip install fake"
    assert engine(here, "fake", FakeRuntime()).health is Health.MISSING
    there = replace(here, importable=lambda module: True)
    said = {"version": "1.2", "import_seconds": 0.5, "devices": ["cpu (host)"]}
    good = replace(there, command=answering("a banner\n" + json.dumps(said)))
    found = engine(good, "fake", FakeRuntime())
    assert (found.health, found.said) == (
        Health.OK,
        "fake 1.2, imported in 0.5 s; sees cpu (host)",
    )
    nothing = replace(there, command=answering(json.dumps({**said, "devices": []})))
    assert engine(nothing, "fake", FakeRuntime()).health is Health.HINT
    crash = replace(there, command=raising(ProbeFailedError("ended with -11")))
    ill = engine(crash, "fake", FakeRuntime())
    assert (ill.health, "ended with -11" in ill.said) == (Health.BROKEN, True)
    assert ill.remedy == "pip install --force-reinstall 'accelbench[fake]'"
    slow = engine(replace(there, command=raising(ProbeTimeoutError("x"))), "fake", FakeRuntime())
    assert (slow.health, "within 60 s" in slow.said) == (Health.BROKEN, True)
    assert "--timeout" in slow.remedy
    mute = replace(there, command=answering("a banner"))
    assert engine(mute, "fake", FakeRuntime()).health is Health.BROKEN


def test_a_runtime_that_cannot_be_loaded_is_broken_and_one_that_simulates_is_not_asked(here):
    assert engine(here, "x", ImportError("no module y")).health is Health.BROKEN
    simulating = FakeRuntime(provenance=Provenance.SIMULATED)
    found = examine(replace(here, runtimes=lambda: [("scripted", simulating)]))
    assert not [one for group, one in found if group == "runtimes"]


def test_each_engine_is_asked_by_its_name_and_within_the_time(here):
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
                "tpu": [Absent("tpu", "its detector failed: OSError: x", "Report it.")],
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
    }
    assert "emulated" in found[2].said
    assert found[3].said == "MI300 and 1 more"


def test_a_browser_is_optional_and_must_be_of_chromiums_kind(here):
    assert {one.health for one in browser(here)} == {Health.MISSING}

    class Programs(NoPrograms):
        def find(self):
            return [
                Browser("Firefox", "/usr/bin/firefox", "firefox"),
                Browser("Chromium", "/usr/bin/chromium", "chromium"),
            ]

    found = browser(replace(here, programs=Programs(), which=lambda name: f"/usr/bin/{name}"))
    assert [one.said for one in found] == [
        "Chromium at /usr/bin/chromium",
        "/usr/bin/node",
        "/usr/bin/npm",
    ]
