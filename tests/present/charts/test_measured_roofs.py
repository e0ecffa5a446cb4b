"""Roofs of devices: measured where the device was calibrated, else its vendor's."""

from __future__ import annotations

from typing import Any

from made_up_charts import points, result

from accelbench.core.protocols import Device
from accelbench.present.chart_data import roofs_of
from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Roof, Subject, picture
from accelbench.store.database import Database
from made_up_calibration import calibrated_store, made_calibration

CARD = Device("cuda", "NVIDIA H100 80GB HBM3")


def row(device: Device, precision: str) -> dict[str, Any]:
    return {
        "hardware": device.hardware, "device_name": device.name, "precision": precision,
        "flops": 1e9,
    }  # fmt: skip


def roofs(database: Database, device: Device, *precisions: str) -> list[Roof]:
    return roofs_of(database, [row(device, precision) for precision in precisions])


def test_a_calibrated_device_has_its_measured_roof_in_each_precision(tmp_path):
    calibration = made_calibration(CARD, fp32=50e12, bandwidth=3e12, bf16=700e12)
    database = calibrated_store(tmp_path / "a.duckdb", calibration, device=CARD)
    narrow, wide = roofs(database, CARD, "fp32", "amp-bf16")
    assert (narrow.operations_per_second, wide.operations_per_second) == (700e12, 50e12)
    assert {roof.bytes_per_second for roof in (narrow, wide)} == {3e12}
    assert wide.source == "measured on 2026-03-04 by hardware --calibrate"


def test_a_precision_without_a_probe_has_its_vendors_roof(tmp_path):
    calibration = made_calibration(CARD, fp32=50e12, bandwidth=3e12)
    database = calibrated_store(tmp_path / "a.duckdb", calibration, device=CARD)
    (roof,) = roofs(database, CARD, "int8")
    assert roof.operations_per_second == 1979e12
    assert "datasheet" in roof.source
    assert roof.measured_on == ""


def test_without_a_calibration_a_roof_is_the_vendors_or_none(tmp_path):
    database = Database(tmp_path / "a.duckdb")
    database.ensure()
    assert [roof.operations_per_second for roof in roofs(database, CARD, "fp32")] == [67e12]
    assert roofs(database, Device("cpu", "A processor"), "fp32") == []


def test_a_chart_says_that_a_roof_is_measured_and_when():
    source = "measured on 2026-03-04 by hardware --calibrate"
    measured = Roof("cpu", "AMD EPYC", "fp32", 1.2e12, 4e10, source, "2026-03-04")
    told = Roof("cpu", "AMD EPYC", "fp32", 1.2e12, 4e10, "its maker's document")
    rows = [result(batch_size=n) for n in (1, 8)]
    for roof, label in ((measured, ", measured 2026-03-04"), (told, "")):
        made = picture(CHARTS["roofline"], Subject(points=points(rows, {}), roofs=[roof]))
        assert made is not None
        assert f"AMD EPYC, fp32: {roof.source}" in made.about
        assert set(_labels(made.spec)) == {f"EPYC, fp32{label}"}


def _labels(spec: Any) -> list[str]:
    """The names of roofs, wherever in a specification they stand."""
    if isinstance(spec, dict):
        named = [spec["roof"]] if isinstance(spec.get("roof"), str) else []
        return named + [name for value in spec.values() for name in _labels(value)]
    return [name for value in spec for name in _labels(value)] if isinstance(spec, list) else []
