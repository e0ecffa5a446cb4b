"""`accelbench doctor`: Python, clock, processes, load, store and cache of a made-up machine."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from doctor_world import QUIET, Records, answering, installed, only, raising

from accelbench.cli.commands.doctor import world
from accelbench.core.protocols import Absent
from accelbench.engines.artifacts.cache import Cache
from accelbench.hardware.common import ProbeFailedError, ProbeTimeoutError
from accelbench.hardware.doctor import checks
from accelbench.hardware.doctor.checks import CHECKS, GROUPS, examine, is_healthy
from accelbench.hardware.doctor.world import DoctorCheck, Health
from accelbench.hardware.limits import ResourceLimits


def test_a_machine(here):
    # A machine where all is well gets a yes.
    found = examine(here)
    assert is_healthy(found)
    assert [one for _, one in found if one.health is Health.HINT] == []
    groups = [group for group, _ in found]
    assert groups == sorted(groups, key=GROUPS.index)
    assert set(groups) == set(GROUPS)
    # Every finding that is not well says what mends it.
    busy = replace(QUIET, load=(90.0, 1, 1), governor="powersave")
    ill = replace(
        installed(here, torch="1.0", ray="2.60", amdsmi="6.4"),
        look=lambda: busy,
        python=(3, 9, 0),
        command=raising(ProbeFailedError("it died")),
        importable=lambda module: True,
        detect=lambda: {"cuda": [Absent("cuda", "no driver", "Install one.")]},
    )
    found = [one for _, one in examine(ill)]
    assert {one.health for one in found} == set(Health)
    assert not [one for one in found if one.health is not Health.OK and not one.remedy]

    # A check that fails itself is broken and the others go on.
    def die(world):
        raise ValueError("in pieces")

    found = examine(here, [DoctorCheck("places", "a thing", die), *CHECKS])
    (broken,) = [one for _, one in found if one.health is Health.BROKEN]
    assert (broken.name, "in pieces" in broken.said) == ("a thing", True)
    assert not is_healthy(found)
    assert len(found) > len(CHECKS)
    assert only(checks.python(here)).health is Health.OK
    assert only(checks.python(replace(here, python=(3, 10, 9)))).health is Health.BROKEN
    # A clock with coarse steps is worth knowing.
    assert only(checks.clock(here)).details["tick_ns"] == 50
    slow = iter(range(0, 10**12, 15_600_000))
    found = only(checks.clock(replace(here, clock_ns=lambda: next(slow))))
    assert (found.health, "15600 ms" in found.said) == (Health.HINT, True)


# -- the machine


@pytest.mark.parametrize(
    ("answer", "health"),
    [
        ({"fork": True, "pidfd": True}, Health.OK),
        ({"fork": True, "pidfd": False}, Health.OK),
        ({"fork": False, "pidfd": False}, Health.HINT),
    ],
)
def test_workers_that_cannot_be_forked_are_started_anew(here, answer, health):
    found = only(checks.isolation(replace(here, command=answering(json.dumps(answer)))))
    assert found.health is health


def test_forking(here):
    gone = replace(here, command=raising(ProbeTimeoutError("no answer within 20 s")))
    assert only(checks.isolation(gone)).health is Health.BROKEN
    # Forking is really tried.
    done = subprocess.run(
        [sys.executable, "-c", checks._FORKING], capture_output=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["fork"] is (sys.platform != "win32")


def test_load_stores_and_the_cache(here):
    # Load governor and turbo are hints and a part of a cpu too.
    noisy = replace(
        here,
        look=lambda: replace(QUIET, load=(9.0, 9.0, 9.0), governor="powersave"),
        files=Records(no_turbo="0"),
    )
    found = checks.noise(noisy)
    assert [one.name for one in found] == ["load", "governor", "turbo"]
    assert {one.health for one in found} == {Health.HINT}
    quota = replace(QUIET, limits=ResourceLimits(cpu_quota=1.5))
    assert only(checks.limits(replace(here, look=lambda: quota))).health is Health.HINT
    assert only(checks.limits(here)).said == "8 of 8 CPUs, all memory may be used"
    # A store is made kept or said to be no store.
    assert only(checks.store(here)).health is Health.OK
    here.store.write_bytes(bytes(8) + b"DUCK" + bytes(100))
    assert only(checks.store(here)).health is Health.OK
    here.store.write_text("a letter to a friend")
    assert only(checks.store(here)).said.endswith("is not a DuckDB file")
    assert only(checks.store(replace(here, store=here.store.parent))).health is Health.BROKEN
    below = replace(here, store=here.store / "deeper" / "x.duckdb")
    assert only(checks.store(below)).health is Health.BROKEN
    # The cache tells its size and a disk that is too small.
    here.cache.path.mkdir()
    (here.cache.path / "model.onnx").write_bytes(bytes(1000))
    assert only(checks.cache(here)).details["bytes"] == 1000
    full = only(checks.cache(replace(here, free_bytes=lambda path: 10)))
    assert (full.health, full.remedy) == (Health.HINT, "export X=FOLDER")
    blocked = replace(here.cache, path=here.cache.path / "model.onnx" / "deeper")
    assert only(checks.cache(replace(here, cache=blocked))).health is Health.BROKEN
    assert [p.name for p in here.cache.path.iterdir()] == ["model.onnx"]  # nothing is left behind


def test_what_counts_against_the_cap_is_what_the_cap_is_for(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path))
    fetched = tmp_path / "browser" / "chromium-1.0.0" / "chromium"
    fetched.parent.mkdir(parents=True)
    fetched.write_bytes(bytes(1000))
    Cache().folder.mkdir()
    (Cache().folder / "model.onnx").write_bytes(bytes(10))
    assert only(checks.cache(world(None, 60.0))).details["bytes"] == 10
