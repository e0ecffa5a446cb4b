"""The chart of collectives: a line each over the bytes of their buffer, with intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_up_charts import drawn as chart_drawn
from made_up_charts import values

from accelbench.core.calibration import TimedCollectives
from accelbench.core.protocols import Device
from accelbench.present.chart_data import collectives_of
from accelbench.present.charts.chart import Picture, Subject
from made_up_calibration import calibrated_store, made_calibration, with_collectives

LAB = {"machine": "lab", "cpu": "A processor", "cpus_logical": 2, "memory_total": 24 * 2**30}
HERE = "lab (A processor, 2 CPUs, 24 GiB)"


def timed(ranks: int = 2, **more: Any) -> list[TimedCollectives]:
    return with_collectives(made_calibration(), ranks, **more).collectives


def drawn(*several: TimedCollectives) -> Picture:
    return chart_drawn("collectives", Subject(collectives=several))


def test_collectives():
    # A panel is of bandwidth and one of time with a line for each collective.
    rates, times = drawn(*timed()).spec["concat"]
    for panel, title in ((rates, "bus bandwidth, GB/s (log)"), (times, "time, µs (log)")):
        (line,) = [layer for layer in panel["layer"] if layer["mark"]["type"] == "line"]
        assert line["encoding"]["y"]["title"] == title
        for axis in ("x", "y"):
            assert line["encoding"][axis]["scale"]["type"] == "log"
        assert line["encoding"]["color"]["scale"]["domain"] == [
            "all_reduce", "all_gather", "reduce_scatter", "broadcast",
        ]  # fmt: skip
    # Figures and intervals are those of the calibration.
    (known,) = timed(latency=100e-6, rate=1e9)
    found = drawn(known)
    row = next(
        row for row in found.records if (row["collective"], row["bytes"]) == ("all_gather", 2**20)
    )
    assert row["µs"] == pytest.approx(1.2 * (100 + 2**20 / 1e3), rel=1e-3)
    assert row["GB/s"] == pytest.approx(2**20 / 2 / row["µs"] / 1e3)  # (n − 1) ÷ n of 2 ranks
    assert row["from GB/s"] < row["GB/s"] < row["to GB/s"]
    # The shortest time is the highest bandwidth.
    assert row["from µs"] == pytest.approx(2**20 / 2 / row["to GB/s"] / 1e3)
    assert len(found.records) == len(known.figures)
    rules = [layer for panel in found.spec["concat"] for layer in panel["layer"]
             if layer["mark"]["type"] == "rule"]  # fmt: skip
    assert len(rules) == 2
    # Each number of ranks has panels of its own and what speaks against them is said.
    (four,) = timed(4)
    found = drawn(*timed(), replace(four, warnings=("Others used 40 %.",)))
    titles = [panel["title"]["text"] for panel in found.spec["concat"]]
    assert titles == [f"cpu A · {n} ranks" for n in (2, 2, 4, 4)]
    assert "cpu A, 4 ranks: Others used 40 %." in found.about
    assert "48 probes, 384 samples; 2026-03-04 with torch 2.13.0." in found.about
    # More than the picture has room for is counted.
    found = drawn(*(one for ranks in range(2, 8) for one in timed(ranks)))
    assert len(found.spec["concat"]) == 8
    assert any("2 more pairs of panels not drawn" in sentence for sentence in found.about)
    # Hostile names are made harmless.
    (known,) = timed()
    found = drawn(replace(known, device_name="card\u202egnp"))
    assert "\u202e" not in str(found.spec)
    assert all("\u202e" not in str(value) for value in values(found.spec))


def test_a_picture_of_a_machine_has_its_collectives_of_the_platforms_that_it_is_of(tmp_path):
    card = Device("cuda", "A card")
    database = calibrated_store(
        tmp_path / "a.duckdb",
        with_collectives(made_calibration()), with_collectives(made_calibration(card), 8),
        machine=LAB,
    )  # fmt: skip

    def known(machine: str, *hardware: str) -> list[int]:
        rows = [{"hardware": name} for name in hardware]
        return [entry.ranks for entry in collectives_of(database, machine, rows)]

    assert known(HERE, "cpu") == [2]
    assert sorted(known(HERE, "cpu", "cuda")) == [2, 8]
    assert known("elsewhere (A processor, 2 CPUs, 24 GiB)", "cpu") == []
