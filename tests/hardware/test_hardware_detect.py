"""All platforms together: order, names, detectors that misbehave, and one from outside."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hardware_records import RecordedFiles

from accelbench.core.errors import UsageError
from accelbench.core.protocols import Absent, Device
from accelbench.core.vocabulary import HARDWARE
from accelbench.hardware import detect as module
from accelbench.hardware.detect import (
    LazyInventory,
    detect,
    detect_all,
    list_platforms,
    run_detector,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "new-hardware"

PIP_INSTALL = [sys.executable, "-m", "pip", "install", "--quiet"]
PIP_INSTALL += ["--no-index", "--no-deps", "--no-build-isolation"]


def test_platforms_are_asked_by_name():
    found = detect_all()
    assert tuple(found)[: len(HARDWARE)] == HARDWARE
    for name, ones in found.items():
        assert ones
        assert {one.hardware for one in ones} == {name}
        gone = [one for one in ones if isinstance(one, Absent)]
        assert len(gone) in (0, 1)
        assert all(one.reason and one.remedy for one in gone)
        assert not gone or len(ones) == 1

    (cpu,) = detect("cpu")
    assert isinstance(cpu, Device)
    with pytest.raises(UsageError, match="Did you mean cuda"):
        detect("cudda")
    with pytest.raises(UsageError, match="Known: cpu, cuda"):
        detect("zzz")


class Raises:
    def detect(self):
        raise RuntimeError("two\nlines")


class Silent:
    def detect(self):
        return []


def test_detectors_that_misbehave_become_reasons():
    (gone,) = run_detector("strange", Raises())
    assert gone.reason == "its detector failed: RuntimeError: two lines"
    assert "--debug" in gone.remedy
    (gone,) = run_detector("strange", Silent())
    assert "no answer" in gone.reason
    (gone,) = run_detector("strange", object())
    assert "AttributeError" in gone.reason


def test_a_detector_that_cannot_be_imported_spoils_nothing(monkeypatch):
    points = {
        "cpu": EntryPoint("cpu", "accelbench.hardware.cpu:CpuDetector", "accelbench.hardware"),
        "zeta": EntryPoint("zeta", "no_such_package:Detector", "accelbench.hardware"),
        "alpha": EntryPoint("alpha", "no_such_package:Detector", "accelbench.hardware"),
    }
    monkeypatch.setattr(module, "find_entry_points", lambda group: points)
    assert list_platforms() == ("cpu", "alpha", "zeta")
    found = detect_all()
    assert isinstance(found["cpu"][0], Device)
    assert "ModuleNotFoundError" in found["zeta"][0].reason


def example():
    spec = importlib.util.spec_from_file_location("hailo_example", EXAMPLE / "accelbench_hailo.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_example_finds_its_device_in_a_record():
    files = RecordedFiles({"/dev/hailo0": "", "/sys/module/hailo_pci/version": "4.20.0"})
    (device,) = example().HailoDetector(files).detect()
    assert (device.hardware, device.driver) == ("hailo", "hailo_pci 4.20.0")


def test_the_example_installs_and_becomes_a_platform(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source)
    subprocess.run(
        [*PIP_INSTALL, "--target", str(target), str(source)],
        check=True,
        capture_output=True,
        timeout=240,
    )
    path = os.pathsep.join(filter(None, (str(target), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", "hardware", "cpu,hailo", "--json"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )
    said = json.loads(done.stdout)["hardware"]
    assert list(said) == ["cpu", "hailo"]
    assert said["cpu"]["present"] is True
    if not list(Path("/dev").glob("hailo*")):
        assert said["hailo"]["reason"] == "there is no /dev/hailo*"
    assert said["hailo"]["runtimes"] == []


def test_a_platform_that_is_not_looked_up_is_not_asked(monkeypatch):
    asked = []

    def one(hardware, _):
        asked.append(hardware)
        return [Device(hardware, hardware)]

    monkeypatch.setattr("accelbench.hardware.detect._detect", one)
    found = LazyInventory()
    assert found["cpu"] == found["cpu"] == [Device("cpu", "cpu")]
    assert asked == ["cpu"]
    assert found.get("nothing of the kind", ()) == ()
    assert "cuda" in found
    assert "nothing of the kind" not in found
    assert list(found) == list(list_platforms())
    assert asked == ["cpu"]
    dict(found)
    assert sorted(asked) == sorted(list_platforms())
