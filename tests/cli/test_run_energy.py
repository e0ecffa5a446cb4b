"""`run --energy` from the command to its row, and what reads the row: by a powercap folder of the
test's own, whose counters grow by 40 W and 10 W.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accelbench.hardware.telemetry.rapl import POWERCAP_VARIABLE
from accelbench.measure.energy import ENERGY_COLUMN_NAMES

WATTS = {"intel-rapl:0": 40, "intel-rapl:0:0": 10}
#: Full within the windows, as real ones are within minutes.
RANGE_UJ = 130_000_000
RUN = "run resnet-tiny --framework pytorch --hardware cpu --batch-sizes 2 --iterations 5"


def written(path: Path, text: str) -> None:
    """In one step, so that nobody reads a part of it."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


@pytest.fixture(scope="module")
def powercap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Counters that follow the clock, however seldom they are written."""
    root = tmp_path_factory.mktemp("powercap")
    for name, kind in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")):
        (root / name).mkdir()
        written(root / name / "name", kind)
        written(root / name / "max_energy_range_uj", str(RANGE_UJ))
        written(root / name / "energy_uj", "0")
    ended, began = threading.Event(), time.monotonic()

    def count() -> None:
        while not ended.wait(0.005):
            for name, watts in WATTS.items():
                microjoules = round(watts * 1e6 * (time.monotonic() - began))
                written(root / name / "energy_uj", str(microjoules % RANGE_UJ))

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    yield root
    ended.set()
    thread.join()


def accelbench(words: str, folder: Path, **variables: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "accelbench", *words.split()],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def measured(powercap: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The database's folder, and the row."""
    folder = tmp_path_factory.mktemp("run")
    words = f"{RUN} --threads 1 --benchmark-only --energy --json"
    out = accelbench(words, folder, **{POWERCAP_VARIABLE: str(powercap)})
    (row,) = json.loads(out)["results"]
    return folder, row


def test_energy_of_a_real_run_is_what_the_counters_say(measured):
    row = measured[1]
    assert row["power_watts"] == pytest.approx(50, rel=0.1)
    assert row["idle_power_watts"] == pytest.approx(50, rel=0.1)
    assert row["energy_method"] == "counter"
    assert row["energy_source"] == ("RAPL: 1 CPU package and its DRAM; other processes included")
    assert row["energy_updates"] >= 20
    assert row["energy_window_ms"] >= 4_500
    assert row["energy_steps"] > 1
    assert row["energy_per_item_joules"] == pytest.approx(row["energy_joules"] / 2)
    low, high = row["energy_ci_low_joules"], row["energy_ci_high_joules"]
    assert low <= row["energy_joules"] <= high
    assert not set(row["nulls"]) & set(ENERGY_COLUMN_NAMES)


def test_what_reads_results_has_it(measured):
    folder, row = measured
    watts = row["power_watts"]
    kept = accelbench(
        f"recommend resnet-tiny --hardware cpu --max-power {watts + 1} --json", folder
    )
    (answer,) = json.loads(kept)["recommendations"]
    assert answer["best"]["power_watts"] == watts
    assert answer["best"]["energy_per_item_joules"] == row["energy_per_item_joules"]
    accelbench("db export r.csv", folder)
    header, line = (folder / "r.csv").read_text(encoding="utf-8").splitlines()[:2]
    assert "energy_per_item_joules" in header
    assert str(row["energy_per_item_joules"]) in line
