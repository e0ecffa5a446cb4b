"""The GPU day in its dry form: every part answers, and what a GPU alone would show is walked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_day"
sys.path.append(str(ROOT / "benchmarks"))

from gpu_day import against_bare, bare_machine, compiling, engines, launches, running  # noqa: E402
from gpu_day.part import Day, NotHereError, Part, Recorder  # noqa: E402

PARTS = (
    "environment", "detection", "telemetry", "energy", "memory", "precisions", "training",
    "compile", "onnxruntime", "jax", "fidelity", "perturbation", "launches", "conformance",
)  # fmt: skip
#: What a CPU has no equivalent of, or none on virtual machines.
ELSEWHERE = {"telemetry", "energy", "memory", "compile", "onnxruntime", "jax", "perturbation"}


class Kept(Recorder):
    """What a part has found, in this process."""

    def __init__(self, day: Day, seconds: float = 60.0) -> None:
        self.figures: dict[str, Any] = {}
        self.checks: dict[str, Any] = {}
        super().__init__(day, time.monotonic() + seconds, self._keep)

    def _keep(self, message: tuple[str, str, Any]) -> None:
        kind, name, value = message
        (self.figures if kind == "figure" else self.checks)[name] = value

    def reached(self) -> list[bool | None]:
        return [one["reached"] for one in self.checks.values()]


@pytest.fixture
def dry(tmp_path: Path) -> Day:
    return Day("cpu", True, tmp_path)


@pytest.fixture
def cuda(tmp_path: Path) -> Day:
    return Day("cuda", False, tmp_path)


def row(**other: Any) -> dict[str, Any]:
    """A result as `accelbench run --json` has it, as far as it is read."""
    return {
        "model": "bert-base", "batch_size": 8, "mode": "inference", "precision": "fp32",
        "compiled": False, "runtime": "pytorch", "status": "ok", "verification": "ok",
        "latency_p50_ms": 2.0, "device": "cuda:0", "device_memory_peak_mb": 100.0, "warnings": [],
        "evidence": {"devices": ["cuda:0"], "shares": {}}, "nulls": {}, **other,
    }  # fmt: skip


# -- the whole of it ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def dry_day(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("day") / "figures" / "day.json"
    command = [sys.executable, str(SCRIPT), "--dry", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert [path.name for path in out.parent.iterdir()] == ["day.json"]
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.mark.full
def test_the_dry_form(dry_day):
    # Every part of the dry form answers.
    parts = dry_day["parts"]
    assert tuple(parts) == PARTS
    statuses = {name: one["status"] for name, one in parts.items()}
    assert set(statuses.values()) <= {"ok", "not_here"}
    assert {name for name, status in statuses.items() if status == "not_here"} <= ELSEWHERE
    assert all(one["reason"] for one in parts.values() if one["status"] == "not_here")
    assert all(one["figures"] for one in parts.values() if one["status"] == "ok")
    assert dry_day["reached"]
    # The dry form measures and verifies.
    found = {name: one["figures"] for name, one in dry_day["parts"].items()}
    bf16 = found["precisions"]["resnet-tiny batch 1 inference bf16"]
    assert bf16["verification"] == "ok"
    assert bf16["latency_p50_ms"] > 0
    assert found["fidelity"]["resnet-tiny, same process"]["high_95"] > 0
    assert found["launches"]["provenance"] == ["simulated"]
    assert found["conformance"]["tests"]["passed"] > 5
    assert len(found["training"]["resnet-tiny: losses of a bare loop"]) == 3


def test_without_a_gpu_it_says_so_and_ends_with_3():
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1


# -- time ---------------------------------------------------------------------------------


def sleeps(at: Recorder) -> None:
    at.figure("before", 1)
    at.figure("child", subprocess.Popen(["sleep", "60"]).pid)
    time.sleep(60)


def test_a_part_over_its_share_is_ended_with_all_it_has_started(dry):
    start = time.monotonic()
    entry = running.run_part(Part("sleeping", 1, sleeps), dry, 0.5)
    assert time.monotonic() - start < 10
    assert (entry["status"], entry["reason"]) == ("failed", "ended after its share of 0.5 s")
    assert entry["figures"]["before"] == 1
    child = entry["figures"]["child"]
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


def test_what_comes_after_the_limit_is_not_reached(dry):
    parts = [
        Part("quick", 10, lambda at: at.figure("x", 1), slack=1.0),
        Part("sleeping", 0.5, sleeps, slack=1.0),
        Part("late", 60, lambda at: None),
    ]
    out = dry.folder / "day.json"
    assert not running.run_day(parts, dry, 12, out, {"benchmark": "gpu_day"})
    kept = json.loads(out.read_text(encoding="utf-8"))["parts"]
    assert [one["status"] for one in kept.values()] == ["ok", "failed", "not_reached"]
    assert kept["late"]["reason"]


def test_parts_that_end(dry):
    # A part that crashes takes nothing with it.
    entry = running.run_part(Part("crash", 1, lambda at: os._exit(7)), dry, 20)
    assert entry["status"] == "failed"
    assert entry["reason"].endswith("exit code 7")
    # An unreached limit is no good end.
    part = Part("limits", 1, lambda at: at.at_most("too much", 2.0, 1.0))
    entry = running.run_part(part, dry, 20)
    assert entry["status"] == "ok"
    assert not running.is_good(entry)
    # As many intervals may miss as chance explains.
    assert [launches.most_missed(n) for n in (1, 2, 10)] == [1, 2, 4]
    kept = Kept(dry)
    launches.covering(kept, [[1.0, 1.1, 1.0, 1.05, 1.1, 1.02]])
    assert kept.figures["A/A"]["comparisons"] == 1


# -- a bare machine -----------------------------------------------------------------------


def test_made_entry_points_are_those_of_the_project(tmp_path):
    bare_machine.entry_points(tmp_path)
    (made,) = distributions(path=[str(tmp_path)])
    project = bare_machine.project()
    expected = {"console_scripts": project["scripts"], **project["entry-points"]}
    found: dict[str, dict[str, str]] = {group: {} for group in expected}
    for point in made.entry_points:
        found[point.group][point.name] = point.value
    assert found == expected
    assert (made.name, made.version) == ("accelbench", project["version"])


def test_every_package_of_the_core_is_of_the_machine_or_carried():
    known = {*bare_machine.OF_THE_MACHINE, *bare_machine.CARRIED}
    core = {line.split(">=")[0] for line in bare_machine.project()["dependencies"]}
    assert core <= known


def test_missing_packages_are_named_with_the_line_that_fetches_them(monkeypatch, tmp_path):
    lacking = {"duckdb", "torch"}
    monkeypatch.setattr(bare_machine, "_installed", lambda name: name not in lacking)
    monkeypatch.setattr(bare_machine, "on_path", lambda folders: None)
    with pytest.raises(bare_machine.BareMachineError) as told:
        bare_machine.ready(tmp_path, tmp_path / "wheels")
    said = str(told.value)
    assert said.startswith("Missing packages: torch, duckdb.")
    assert "pip download --no-deps --only-binary=:all:" in said
    assert said.endswith("This Python itself has to have torch.")


# -- parts that only a GPU runs -------------------------------------------------------------


def test_across_processes_takes_the_pairs_that_fit(monkeypatch, cuda):
    monkeypatch.setattr(against_bare, "accelbench_median", lambda *_: time.sleep(0.02) or 2.0)
    monkeypatch.setattr(against_bare, "bare_median", lambda *_: time.sleep(0.02) or 2.0)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    kept = Kept(cuda, 1.0)
    against_bare.perturbation(kept)
    found = kept.figures["bert-tiny on one core"]
    assert found["pairs"] >= against_bare.FEWEST
    assert kept.reached() == [True]
    against_bare.across(kept, "too short", "bert-tiny", 0.01)
    assert "absent" in kept.figures["too short"]


def test_a_compiled_case_is_held_against_the_eager_one(monkeypatch, cuda):
    compiled = row(compiled=True, compile_ms=900.0, first_inference_ms=3.0, latency_p50_ms=1.0)
    monkeypatch.setattr(
        compiling, "measured", lambda at, words: [compiled if "--compile" in words else row()]
    )
    kept = Kept(cuda)
    compiling.compiling(kept)
    assert kept.figures["bert-base batch 8 inference fp32 compiled ÷ eager"] == 0.5
    assert all(kept.reached())
    again = Kept(cuda)
    warned = {**compiled, "warnings": ["It was compiled again once during the measurement."]}
    compiling.judged(again, [warned])
    assert again.reached().count(False) == 1


def test_engines_have_to_have_run_where_they_were_asked_to(monkeypatch, cuda):
    with pytest.raises(NotHereError, match="no_such_engine is not installed"):
        engines.present("no_such_engine")
    fell = row(evidence={"devices": ["cpu:0"], "shares": {}})
    kept = Kept(cuda)
    apart = {"devices": ["cuda:0", "cpu:0"], "shares": {"cuda:0": 0.4, "cpu:0": 0.6}}
    engines.ran_on(kept, [row(model="gpt2"), fell, row(model="t5", evidence=apart)])
    assert [what for what, one in kept.checks.items() if not one["reached"]] == [
        "bert-base batch 8 inference fp32: device",
        "t5 batch 8 inference fp32: share of time on the device",
    ]


class Clock:
    """Time that passes when it is asked for, and as long as is slept."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 0.0005
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Meters:
    """Meters of a GPU that takes 100 W and counts energy every five milliseconds."""

    source = "made up"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def power_watts(self) -> float:
        return 100.0

    def energy_millijoules(self) -> float:
        return int(self._clock.now / 0.005) * 500.0

    def temperature_celsius(self) -> float:
        return 40.0

    def clocks(self) -> Any:
        from accelbench.hardware.telemetry.common import Clocks

        return Clocks(1980.0, 2619.0)

    def throttled(self) -> tuple[str, ...]:
        return ()

    def device_memory_used(self) -> int:
        return 2**20

    def close(self) -> None:
        return None


def test_meters_and_the_energy_counter_are_read_under_load(monkeypatch, dry):
    from gpu_day import energy, telemetry

    clock = Clock()
    loop = SimpleNamespace(forward=lambda steps: clock.sleep(0.01 * steps))
    for module in (energy, telemetry):
        monkeypatch.setattr(module, "telemetry_for", lambda device: Meters(clock))
    monkeypatch.setattr(energy, "time", clock)
    monkeypatch.setattr(energy, "BareLoop", lambda *_: loop)
    kept = Kept(dry)
    energy.energy(kept)
    assert kept.checks["power, counter ÷ readings"]["reached"]
    # A step takes 10 ms, and the loop around it half a millisecond of this clock.
    assert kept.figures["joules_per_item"]["whole"] == pytest.approx(1.05, rel=0.05)
    assert kept.figures["counter"]["median_gap_ms"] == pytest.approx(5, rel=0.3)
    seen = Kept(dry)
    telemetry.telemetry(seen)
    assert seen.figures["idle"]["clocks"] == [1980.0, 2619.0]
    # Its power is as high under load as it is without.
    assert [what for what, one in seen.checks.items() if not one["reached"]] == [
        "power under load ÷ idle"
    ]


def test_a_peak_is_held_against_the_bare_loop(cuda):
    from gpu_day.rows import held_against

    kept = Kept(cuda)
    held_against(kept, row(), 99.0)
    held_against(kept, row(model="gpt2"), 90.0)
    held_against(kept, row(model="t5", device_memory_peak_mb=None), 90.0)
    assert kept.reached() == [True, False]
    assert "absent" in kept.figures["t5 batch 8 inference fp32: peak memory"]
