"""What a sceptical reader found hard to read in pictures, and must not come back."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from math import dist
from typing import Any

import pytest
from made_up_charts import LAB, drawn, result, results, values
from test_chart_colours import SEEN_BY, seen

from accelbench.judge.history import HistoryPoint as Moment
from accelbench.judge.history import Series
from accelbench.judge.points import points
from accelbench.judge.verdicts import METRICS
from accelbench.present.charts import CHARTS, draw
from accelbench.present.charts.axes import ALERT, BETTER
from accelbench.present.charts.chart import Picture, Roof, Subject
from accelbench.present.charts.font_metrics import fitted, width
from one_series import series_of


def bars(found: Picture) -> list[str]:
    return [one["bar"] for one in values(found.spec) if "bar" in one]


# -- kinds


def test_what_a_chart_counts():
    # Where all is of one kind no name says it.
    rows = [row for row in results() if row["provenance"] == "measured"]
    names = bars(drawn("precision", Subject(points(rows))))
    assert names
    assert not [name for name in names if "(" in name]
    # A distribution counts what it draws and what it does not.
    rows = [result(batch_size=n, launch=at, result_id=f"{n}-{at}") for n in (1, 2) for at in (0, 1)]
    rows.append(result(batch_size=8, sample_count=1, result_id="one sample alone"))
    rows.append(result(batch_size=4, provenance="imported", result_id="imported"))
    given = Subject(points(rows), {"1-0": [1.0, 2.0, 3.0]}, machine=LAB)
    about = drawn("latency-distribution", given).about
    assert about[0].startswith("1 configuration from 1 launch · 3 samples")
    assert any(line.startswith("3 more launches not drawn") for line in about)
    rows = [result(), result(hardware="cuda", provenance="imported", sample_count=None)]
    assert "10 samples and more" in drawn("hardware-latency", Subject(points(rows))).about[0]


# -- what is counted


@pytest.mark.parametrize("name", CHARTS)
def test_a_table_of_figures_has_no_columns_of_the_drawing(name):
    columns = {column for one in drawn(name).records for column in one}
    assert columns
    assert not columns & {"colour", "paint", "form", "line", "bar", "end", "place", "said", "at"}


# -- intervals


def noisy(high: float) -> Subject:
    rows = [
        result(ms=10.0, latency_ci_low_ms=9.0, latency_ci_high_ms=high),
        result(ms=13.0, hardware="cuda"),
        result(ms=20.0, batch_size=2, latency_ci_low_ms=0.001, latency_ci_high_ms=30.0),
    ]
    return Subject(points(rows), machine=LAB)


def marks(spec: Any, shape: str) -> list[dict[str, Any]]:
    panels = spec.get("concat", [spec])
    return [
        one
        for panel in panels
        for one in panel["layer"]
        if isinstance(one["mark"], dict) and one["mark"].get("shape") == shape
    ]


def test_intervals_in_a_chart():
    # An interval far beyond the bars is cut off and that is said.
    found = drawn("hardware-latency", noisy(780.0))
    (panel,) = found.spec["concat"]
    ends = {one["encoding"]["x"]["scale"]["domain"][1] for one in panel["layer"][:1]}
    assert max(ends) < 2 * 13.0
    (arrow,) = marks(found.spec, "triangle-right")
    assert [one["high"] for one in arrow["data"]["values"]] == [780.0]
    assert any("goes further" in line for line in found.about)
    assert {one["high"] for one in found.records} == {780.0, None}
    # An interval that has room is whole and nothing is said.
    found = drawn("hardware-latency", noisy(14.0))
    assert not marks(found.spec, "triangle-right")
    assert not any("goes further" in line for line in found.about)
    # A figure stands at the end of its bar not of its interval.
    (panel,) = drawn("hardware-latency", noisy(14.0)).spec["concat"]
    texts = [one for one in panel["layer"] if one["mark"]["type"] == "text"]
    assert {one["encoding"]["x"]["field"] for one in texts} == {"value"}
    # An interval leaves a chart of lines its shape.
    found = drawn("latency-by-batch", noisy(780.0))
    (panel,) = found.spec["concat"]
    low, high = panel["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low >= 0.0
    assert high < 100.0
    assert marks(found.spec, "triangle-up")
    assert any("goes further" in line for line in found.about)


# -- dashes


def test_lines_and_steps():
    # Lines of one engine differ in their width.
    rows = [
        result(batch_size=n, precision=precision)
        for n in (1, 2)
        for precision in ("fp32", "bf16", "int8")
    ]
    spec = drawn("latency-by-batch", Subject(points(rows))).spec["concat"][0]
    (line,) = [one for one in spec["layer"] if one["mark"]["type"] == "line"]
    widths = line["encoding"]["strokeWidth"]["scale"]
    assert widths["type"] == "ordinal"
    assert len(set(widths["range"])) == 3
    # A step for the better is not in the colour of one for the worse.
    low, high = [20.0, 20.1, 19.9, 20.0], [30.0, 30.1, 29.9, 30.0]
    for found, colour, verdict in (
        (stepped(*low, *high), ALERT, "worse"),
        (stepped(*high, *low), BETTER, "better"),
    ):
        steps = [one for one in values(found.spec) if "verdict" in one]
        assert {(one["colour"], one["verdict"]) for one in steps} == {(colour, verdict)}
        assert all(one["step"][0] == ("+" if verdict == "worse" else "-") for one in steps)
    # A first and a last point never came back.
    from accelbench.measure.changes import Spike

    series = history([20.0, 20.1, 19.9, 20.0, 20.1, 20.0])
    assert series.course is not None
    spikes = [Spike(at, 0.3) for at in (0, 2, 5)]
    changed = replace(series, course=replace(series.course, spikes=tuple(spikes), steps=()))
    found = drawn("trend", Subject(series=[changed], machine=LAB))
    alone = [at for at, one in enumerate(_moments(found)) if one["alone"]]
    assert alone == [2]


# -- over time


def history(values: list[float], minutes: int = 24 * 60) -> Series:
    moments = [
        Moment(
            f"2026-01-{1 + at * minutes // 1440:02} {at * minutes % 1440 // 60:02}:00:00+00",
            f"run-{at}",
            "abc",
            value,
            2,
        )
        for at, value in enumerate(values)
    ]
    return series_of(result(), METRICS[0], moments, 0.03)


def stepped(*values: float) -> Picture:
    return drawn("trend", Subject(series=[history(list(values))], machine=LAB))


@pytest.mark.parametrize("who", SEEN_BY)
def test_better_and_worse_are_told_apart_by(who):
    assert dist(seen(ALERT, SEEN_BY[who]), seen(BETTER, SEEN_BY[who])) > 0.1


def _moments(found: Picture) -> list[dict[str, Any]]:
    return [one for one in values(found.spec) if "alone" in one]


def test_sizes_of_steps():
    # Sizes of near steps are in rows and inside the frame.
    from accelbench.measure.changes import Step

    series = history([20.0] * 30, 60)
    assert series.course is not None
    steps = tuple(Step(at, 0.1, 0.05, 0.15, 0.001) for at in (20, 21, 22, 27, 28, 29))
    changed = replace(series, course=replace(series.course, steps=steps))
    found = drawn("trend", Subject(series=[changed], machine=LAB))
    told = [one for one in values(found.spec["concat"][0]["layer"][0]) if "verdict" in one]
    assert len(told) == 6
    assert len({one["row"] for one in told[:3]}) > 1
    assert told[-1]["left"]
    assert not told[0]["left"]
    assert {one["row"] for one in told} <= {0, 1, 2, 3}
    assert not any("not named by size" in line for line in found.about)
    # A step that has no room for its size is counted.
    from accelbench.measure.changes import Step

    series = history([20.0] * 200, 60)
    assert series.course is not None
    steps = tuple(Step(at, 0.1, 0.05, 0.15, 0.001) for at in range(100, 108))
    changed = replace(series, course=replace(series.course, steps=steps))
    found = drawn("trend", Subject(series=[changed], machine=LAB))
    bare = {one["moment"] for one in values(found.spec) if one.get("verdict") and not one["said"]}
    assert bare
    assert any(f"{len(bare)} steps not named by size" in line for line in found.about)


def test_hours_and_lengths_of_text():
    # Hours are of 24 and have their day.
    found = str(drawn("trend").spec)
    assert "labelExpr" in found
    assert "2026" in found
    pytest.importorskip("vl_convert")
    shown = re.findall(r">([^<>]+)</t", draw.svg(drawn("trend").spec))
    assert "2026" in shown
    assert not [text for text in shown if re.search(r"\b[AP]M\b", text)]
    # A text is as long as it was laid out for.
    said = (
        '<text font-size="10px" font-weight="600">ab</text><text font-size="10px">i &lt; M</text>'
    )
    found = fitted(said)
    assert re.findall(r'textLength="([\d.]+)"', found) == ["11.7", "22.0"]
    assert ">i &lt; M</text>" in found
    # Lines of a text have a length each.
    said = (
        '<text font-size="10px" fill="#fff"><tspan>aa</tspan><tspan x="0" dy="9">a</tspan></text>'
    )
    assert fitted(said).count("textLength") == 1
    assert '<tspan x="0" dy="9">a</tspan>' in fitted(said)
    assert width("🦙", 10) is None
    assert fitted('<text font-size="10px">🦙7b</text>') == '<text font-size="10px">🦙7b</text>'


# -- letters


@pytest.mark.skipif(sys.platform != "linux", reason="only there the library is looked into")
def test_the_table_is_what_is_in_the_font():
    pytest.importorskip("vl_convert")
    measured_font = pytest.importorskip("measured_font")
    assert measured_font.TABLE.read_text("utf-8") == measured_font.text(measured_font.widths())


@pytest.mark.parametrize(
    "words",
    [
        "Latency (p50) · fp32, batch 1,024: 0.153 ms × Quick_Fox [jvwxyz] & GTK/BHW",
        "Größe ± 0,5 · Модель №7 · Ταχύτητα ≤ ∞",
    ],
)
@pytest.mark.parametrize("bold", [False, True])
def test_the_table_is_of_the_font_that_pictures_are_laid_out_with(bold, words):
    """Bounds of a text in a picture without a margin are what the engine measured."""
    vl_convert = pytest.importorskip("vl_convert")
    size = 100
    spec = {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "padding": 0,
        "autosize": "pad",
        "marks": [
            {
                "type": "text",
                "encode": {
                    "enter": {
                        "text": {"value": words},
                        "fontSize": {"value": size},
                        "font": {"value": "Liberation Sans"},
                        "fontWeight": {"value": "bold" if bold else "normal"},
                    }
                },
            }
        ],
    }
    svg = vl_convert.vega_to_svg(spec)
    (said, *_) = re.findall(r'width="([\d.]+)"', svg)
    measured = float(said)
    found = width(words, size, bold=bold)
    assert found is not None
    assert measured == pytest.approx(found, rel=0.015)


def test_letters_training_batches_and_rooflines():
    # A picture is drawn in letters of one width.
    pytest.importorskip("vl_convert")
    svg = draw.svg(drawn("hardware-latency").spec)
    assert 'font-family="Liberation Sans, Arimo, Helvetica, Arial, sans-serif"' in svg
    assert svg.count("textLength") > 20
    # Training stands beside inference at every batch.
    rows = [
        result(batch_size=batch, ms=ms * batch, mode=mode)
        for batch in (1, 8, 32)
        for mode, ms in (("inference", 10.0), ("training", 30.0 + batch))
    ]
    rows.append(result(batch_size=64, ms=600.0))  # nothing was trained at this one
    found = drawn("training-inference", Subject(points(rows)))
    assert [(one["batch"], one["mode"]) for one in found.records] == [
        (batch, mode) for batch in (1, 8, 32) for mode in ("inference", "training")
    ]
    names = list(dict.fromkeys(bars(found)))
    assert names == [
        f"{mode} · batch {batch}" for batch in (1, 8, 32) for mode in ("inference", "training")
    ]
    # Of too many batches whole ones are left out.
    rows = [
        result(batch_size=2**power, ms=10.0 * 2**power, mode=mode)
        for power in range(7)
        for mode in ("inference", "training")
    ]
    found = drawn("training-inference", Subject(points(rows)))
    assert sorted({one["batch"] for one in found.records}) == [1, 2, 4, 8, 16]
    assert "4 more bars not drawn: accelbench report lists all." in found.about
    # Four marks had no name at all.
    several = [
        result(batch_size=n, runtime=engine) for engine in ("jax", "pytorch") for n in (1, 8)
    ]
    roofs = [Roof("cpu", "AMD EPYC", "fp32", 1e12, 5e10, "documented")]
    made = drawn("roofline", Subject(points=points(several, {}), roofs=roofs))
    assert "All: inference · cpu · fp32 · image 64." in made.about
    assert [one.split("  ")[1] for one in made.about if one[:1].isdigit() and "  " in one] == [
        f"resnet-tiny · {engine} · batch {n}" for n in (8, 1) for engine in ("jax", "pytorch")
    ]
    assert sorted(one["number"] for one in made.records) == [1, 2, 3, 4]
