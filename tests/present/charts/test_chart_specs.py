"""Every chart of a fixed set of results, as the specification it was when somebody looked at it.

After a change on purpose: look at the pictures, then write the files anew with
`ACCELBENCH_GOLDEN=write pytest tests/present/charts/test_chart_specs.py`, and read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from made_up_charts import subject_for

from accelbench.present.charts import CHARTS
from accelbench.present.charts.chart import Subject, picture

GOLDEN = Path(__file__).parent / "golden"


def rounded(value: Any) -> Any:
    """Nine digits: the last ones are the processor's, not the chart's."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def spec_of(name: str) -> dict[str, Any]:
    made = picture(CHARTS[name], subject_for(name))
    assert made is not None
    found = rounded(made.spec)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", CHARTS)
def test_the_specification_is_as_it_was_looked_at(name):
    path = GOLDEN / f"{name}.json"
    found = spec_of(name)
    if os.environ.get("ACCELBENCH_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


def test_there_is_no_file_of_a_chart_that_is_gone():
    assert {one.stem for one in GOLDEN.glob("*.json")} == set(CHARTS)


@pytest.mark.parametrize("name", CHARTS)
def test_the_specification_is_what_vega_lite_says_it_may_be(name):
    altair = pytest.importorskip("altair")
    spec = spec_of(name)
    # Altair's schema has a number behind the dot; ours names the first alone, as people write it.
    assert spec["$schema"].endswith(f"/{altair.SCHEMA_VERSION.split('.')[0]}.json")
    altair.Chart.from_dict(spec, validate=True)


@pytest.mark.parametrize("name", CHARTS)
def test_the_specification_compiles(name):
    vl_convert = pytest.importorskip("vl_convert")
    vega = vl_convert.vegalite_to_vega(spec_of(name), vl_version="6.1")
    assert vega["marks"]


@pytest.mark.parametrize("name", CHARTS)
def test_what_it_is_of_is_said(name):
    """The machine below the title; samples too, but for ratings and for runs of history."""
    said = " ".join(spec_of(name)["title"]["subtitle"])
    assert "lab (AMD EPYC, 2 CPUs, 24 GiB)" in said
    assert "samples" in said or name in ("trend", "compatibility")
    assert spec_of(name)["description"].startswith(CHARTS[name].title)


#: Units are said by name; a platform, a model and an architecture have none.
UNITS = (
    "processes",
    "bytes",
    "GB/s",
    "µs",
    "ms",
    "items/s",
    "MB",
    "FLOP/B",
    "GFLOP/s",
    "batch size",
    "UTC",
    "$",
    ", J",
)


@pytest.mark.parametrize("name", CHARTS)
def test_every_axis_of_figures_has_a_unit(name):
    titles = [
        channel.get("title")
        for encoding in _encodings(spec_of(name))
        for place, channel in encoding.items()
        if place in ("x", "y") and channel.get("type") in ("quantitative", "temporal")
    ]
    assert titles or name in ("compatibility", "ranks")
    for title in titles:
        assert any(unit in title for unit in UNITS), title


def _encodings(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for one in value for found in _encodings(one)]
    if not isinstance(value, dict):
        return []
    own = [value["encoding"]] if "encoding" in value else []
    return own + [found for one in value.values() for found in _encodings(one)]


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_to_show_is_no_picture(name):
    assert picture(CHARTS[name], Subject()) is None
