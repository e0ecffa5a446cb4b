"""`accelbench doctor`: each check against a machine made up for it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from shells import ended

from accelbench.cli import doctor as command
from accelbench.cli.display.doctor import show
from accelbench.core.protocols import Absent, Device, RuntimeInfo
from accelbench.core.words import Provenance
from accelbench.hardware.browsers import Browser
from accelbench.hardware.common import ProbeFailedError, ProbeTimeoutError
from accelbench.hardware.doctor import machine, packages
from accelbench.hardware.doctor.checks import CHECKS, GROUPS, browser, examine, platforms, well
from accelbench.hardware.doctor.engines import engine
from accelbench.hardware.doctor.finding import Check, Finding, Health
from accelbench.hardware.doctor.versions import meets, parse
from accelbench.hardware.doctor.world import Folder, World
from accelbench.hardware.limits import Limits
from accelbench.hardware.machine import CpuSeconds, MachineSnapshot

QUIET = MachineSnapshot(
    taken_ns=0,
    cpus=8,
    cpu=CpuSeconds(1.0, 0.1, 0.0),
    load=(0.1, 0.1, 0.1),
    memory_available=2**34,
    swapped_bytes=0,
    governor="performance",
)
OUR_NEEDS = ["numpy<3,>=2.0", "torch<3,>=2.6; extra == 'torch'", "jax<0.12,>=0.7; extra == 'jax'"]


class Records:
    """Files by path."""

    def __init__(self, **texts):
        self._texts = {key.replace("__", "/"): text for key, text in texts.items()}

    def text(self, path):
        return next((t for key, t in self._texts.items() if path.endswith(key)), None)

    def names(self, path):
        return []


class NoPrograms:
    def find(self):
        return []

    def version(self, browser):
        return ""


class FakeRuntime:
    """A runtime's card and nothing behind it."""

    def __init__(self, **info):
        said = {"name": "fake", "hardware": ("cpu",), "package": "fake", "extra": "fake", **info}
        self.info = RuntimeInfo(**said)

    def probe(self):
        raise AssertionError("an engine was asked in this process")

    supports = clock = open = probe


def answering(text):
    return lambda args, seconds: text


def raising(error):
    def command(args, seconds):
        raise error

    return command


@pytest.fixture
def here(tmp_path: Path) -> World:
    """A machine where all is well and nothing optional is installed."""
    have = {"numpy": "2.4.6"}
    ticks = iter(range(0, 10**9, 50))
    return World(
        store=tmp_path / "store.duckdb",
        cache=Folder("artefact cache", tmp_path / "cache", 2**30, "export X=FOLDER"),
        version_of=have.get,
        requires_of=lambda name: OUR_NEEDS if name == "accelbench" else [],
        importable=lambda module: False,
        runtimes=lambda: [("fake", FakeRuntime())],
        detect=lambda: {"cpu": [Device("cpu", "a CPU")]},
        files=Records(),
        command=answering('{"fork": true, "pidfd": true}'),
        programs=NoPrograms(),
        which=lambda name: None,
        look=lambda: QUIET,
        clock_ns=lambda: next(ticks),
        free_bytes=lambda path: 2**40,
        environment={},
        python=(3, 12, 1),
        system="linux",
    )


def installed(world: World, needs: dict[str, list[str]] | None = None, **versions: str) -> World:
    have = {"numpy": "2.4.6", **{k.replace("_", "-"): v for k, v in versions.items()}}
    asked = {"accelbench": OUR_NEEDS, **(needs or {})}
    return replace(world, version_of=have.get, requires_of=lambda name: asked.get(name, []))


def only(findings: list[Finding]) -> Finding:
    (one,) = findings
    return one


def test_a_machine_where_all_is_well_gets_a_yes(here):
    found = examine(here)
    assert well(found)
    assert [one for _, one in found if one.health is Health.HINT] == []
    groups = [group for group, _ in found]
    assert groups == sorted(groups, key=GROUPS.index)
    assert set(groups) == set(GROUPS)


def test_every_finding_that_is_not_well_says_what_mends_it(here):
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


def test_a_check_that_fails_itself_is_broken_and_the_others_go_on(here):
    def die(world):
        raise ValueError("in pieces")

    found = examine(here, [Check("places", "a thing", die), *CHECKS])
    (broken,) = [one for _, one in found if one.health is Health.BROKEN]
    assert (broken.name, "in pieces" in broken.said) == ("a thing", True)
    assert not well(found)
    assert len(found) > len(CHECKS)


# -- the machine


def test_an_old_python_is_broken(here):
    assert only(machine.python(here)).health is Health.OK
    assert only(machine.python(replace(here, python=(3, 10, 9)))).health is Health.BROKEN


def test_a_clock_with_coarse_steps_is_worth_knowing(here):
    assert only(machine.clock(here)).details["tick_ns"] == 50
    slow = iter(range(0, 10**12, 15_600_000))
    found = only(machine.clock(replace(here, clock_ns=lambda: next(slow))))
    assert (found.health, "15600 ms" in found.said) == (Health.HINT, True)


@pytest.mark.parametrize(
    ("answer", "health"),
    [
        ({"fork": True, "pidfd": True}, Health.OK),
        ({"fork": True, "pidfd": False}, Health.OK),
        ({"fork": False, "pidfd": False}, Health.HINT),
    ],
)
def test_workers_that_cannot_be_forked_are_started_anew(here, answer, health):
    found = only(machine.isolation(replace(here, command=answering(json.dumps(answer)))))
    assert found.health is health


def test_a_process_that_cannot_fork_its_child_is_broken(here):
    gone = replace(here, command=raising(ProbeTimeoutError("no answer within 20 s")))
    assert only(machine.isolation(gone)).health is Health.BROKEN


def test_forking_is_really_tried():
    done = subprocess.run(
        [sys.executable, "-c", machine._FORKING], capture_output=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["fork"] is (sys.platform != "win32")


def test_load_governor_and_turbo_are_hints_and_a_part_of_a_cpu_too(here):
    noisy = replace(
        here,
        look=lambda: replace(QUIET, load=(9.0, 9.0, 9.0), governor="powersave"),
        files=Records(no_turbo="0"),
    )
    found = machine.noise(noisy)
    assert [one.name for one in found] == ["load", "governor", "turbo"]
    assert {one.health for one in found} == {Health.HINT}
    quota = replace(QUIET, limits=Limits(cpu_quota=1.5))
    assert only(machine.limits(replace(here, look=lambda: quota))).health is Health.HINT
    assert only(machine.limits(here)).said == "8 of 8 CPUs, all memory may be used"


def test_a_store_is_made_kept_or_said_to_be_no_store(here):
    assert only(machine.store(here)).health is Health.OK
    here.store.write_bytes(bytes(8) + b"DUCK" + bytes(100))
    assert only(machine.store(here)).health is Health.OK
    here.store.write_text("a letter to a friend")
    assert only(machine.store(here)).said.endswith("is not a DuckDB file")
    assert only(machine.store(replace(here, store=here.store.parent))).health is Health.BROKEN
    below = replace(here, store=here.store / "deeper" / "x.duckdb")
    assert only(machine.store(below)).health is Health.BROKEN


def test_the_cache_tells_its_size_and_a_disk_that_is_too_small(here):
    here.cache.path.mkdir()
    (here.cache.path / "model.onnx").write_bytes(bytes(1000))
    assert only(machine.cache(here)).details["bytes"] == 1000
    full = only(machine.cache(replace(here, free_bytes=lambda path: 10)))
    assert (full.health, full.remedy) == (Health.HINT, "export X=FOLDER")
    blocked = replace(here.cache, path=here.cache.path / "model.onnx" / "deeper")
    assert only(machine.cache(replace(here, cache=blocked))).health is Health.BROKEN
    assert [p.name for p in here.cache.path.iterdir()] == ["model.onnx"]  # nothing is left behind


# -- packages


def healths(findings):
    return {one.name: one.health for one in findings}


def test_extras_are_whole_absent_or_in_versions_they_were_not_made_for(here):
    found = packages.extras(installed(here, torch="2.13.0+cpu", jax="0.12.0"))
    assert healths(found) == {
        "accelbench itself": Health.OK,
        "extra jax": Health.CLASH,
        "extra torch": Health.OK,
    }
    (jax,) = [one for one in found if one.name == "extra jax"]
    assert jax.said == "jax 0.12.0 where <0.12,>=0.7 is needed"
    assert jax.remedy == "pip install 'accelbench[jax]'"
    assert healths(packages.extras(here))["extra torch"] is Health.MISSING


def test_what_packages_ask_of_each_other_is_held_against_what_is_there(here):
    needs = {"torch": ["sympy>=1.13", "numpy<2; python_version < '3'", "setuptools; extra == 'x'"]}
    found = only(packages.metadata(installed(here, needs, torch="2.13", sympy="1.12")))
    assert found.health is Health.CLASH
    assert found.said == "torch 2.13 needs sympy>=1.13; sympy 1.12 is installed"
    absent = only(packages.metadata(installed(here, needs, torch="2.13")))
    assert absent.health is Health.BROKEN
    assert only(packages.metadata(installed(here, needs, torch="2.13", sympy="1.14"))).health is (
        Health.OK
    )


@pytest.mark.parametrize(
    "there",
    [
        {"onnxruntime": "1.31.1", "onnxruntime_openvino": "1.24"},
        {"onnxruntime_gpu": "1.31.1", "onnxruntime_directml": "1.24"},
        {"amdsmi": "6.4", "ray": "2.60"},
    ],
)
def test_packages_that_overwrite_or_break_each_other_clash(here, there):
    found = only(packages.clashes(installed(here, **there)))
    assert found.health is Health.CLASH
    assert found.remedy.startswith("pip uninstall -y ")
    for package in there:
        alone = installed(here, **{package: there[package]}, onnxruntime_qnn="2.7")
        assert only(packages.clashes(alone)).health is Health.OK


def test_a_torch_that_does_not_fit_the_driver_is_worth_knowing(here):
    driver = Records(__proc__driver__nvidia__version="NVRM 580")
    builds = {"2.13.0+cu128": (Health.HINT, Health.OK), "2.13.0+cpu": (Health.OK, Health.HINT)}
    for version, (without, with_driver) in builds.items():
        world = installed(here, torch=version)
        assert only(packages.torch_build(world)).health is without
        assert only(packages.torch_build(replace(world, files=driver))).health is with_driver
    assert packages.torch_build(here) == []


def test_what_jax_brings_does_not_make_torch_a_build_for_cuda(here):
    brought = {"torch": "2.13.0+cpu", "nvidia_cuda_runtime_cu12": "12.9"}
    assert only(packages.torch_build(installed(here, **brought))).health is Health.OK
    plain = {**brought, "torch": "2.13.0"}  # as it comes from PyPI, where only that tells
    assert only(packages.torch_build(installed(here, **plain))).health is Health.HINT


@pytest.mark.parametrize(
    ("version", "spec", "answer"),
    [
        ("2.13.0+cpu", "<3,>=2.6", True),
        ("2.13.0", "==2.13", True),
        ("3.0.0", "<3", False),
        ("3.0rc1", "<3", False),
        ("2.6rc1", ">=2.6", False),
        ("2.6.0.post1", ">=2.6", True),
        ("0.10.2", "<0.12,>=0.7", True),
        ("1.4.9", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("1.5.0", "==1.4.*", False),
        ("1.4.7", "!=1.4.*", False),
        ("1.4.7", "!=1.4.7", False),
        ("2026.4.1", "<2027,>=2025.2", True),
        ("1.0", "", True),
        ("1.0", "@ https://example.org/x.whl", None),
        ("1!2.0", ">=1", None),
        ("nightly", ">=1", None),
    ],
)
def test_versions_meet_requirements_or_are_not_judged(version, spec, answer):
    assert meets(version, spec) is answer


def test_a_line_of_metadata_is_read_with_its_extra():
    one = parse("Torch.Audio[fast] (>=2.6,<3) ; extra == 'torch'")
    assert (one.name, one.spec, one.extra, one.conditional) == (
        "torch-audio", ">=2.6,<3", "torch", False,
    )  # fmt: skip
    assert parse("x>=1; python_version<'3.8'").conditional
    assert parse("; nonsense") is None


# -- runtimes and platforms


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


# -- the command


def run(monkeypatch, capsys, world, *arguments):
    monkeypatch.setattr(command, "world", lambda db, timeout: world)
    return ended(monkeypatch, "doctor", *arguments), capsys.readouterr().out


def test_the_command_says_no_only_where_something_installed_is_ill(here, monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, here, "--json")
    said = json.loads(out)
    assert (code, said["ok"]) == (0, True)
    assert said["counts"]["missing"] > 0
    ticks = iter(range(0, 10**9, 50))
    ill = replace(installed(here, ray="2.60", amdsmi="6.4"), clock_ns=lambda: next(ticks))
    code, out = run(monkeypatch, capsys, ill, "--json")
    said = json.loads(out)
    assert (code, said["ok"], said["counts"]["clash"]) == (3, False, 1)
    (clash,) = [one for one in said["checks"] if one["status"] == "clash"]
    assert clash["group"] == "packages"
    assert "pip uninstall -y amdsmi" in clash["remedy"]


def test_the_page_fits_80_columns_and_shows_what_a_terminal_would_obey(here):
    hostile = Finding(
        "evil\x1b[2J", Health.BROKEN, "said\x1b]0;title\x07 " + "x" * 200, "[red]mend"
    )
    out = io.StringIO()
    show([*examine(here), ("browser", hostile)], Console(file=out, width=80, highlight=False))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "[red]mend" in text
    assert "Something needs mending." in text


def test_nothing_heavy_is_imported_by_looking():
    code = (
        "import sys, json; from accelbench.cli.doctor import world;"
        "from dataclasses import replace; from accelbench.hardware.doctor.checks import examine;"
        "found = examine(replace(world(None, 60), detect=dict, runtimes=list));"
        "sys.stderr.write(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert not loaded & {"torch", "jax", "onnx", "onnxruntime", "openvino", "duckdb", "numpy"}
