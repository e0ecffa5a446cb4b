"""Charts on dark paper and in one column, devices of a platform apart, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from made_up_charts import drawn, result, spec_of, subject_for, values

from accelbench.core.plugins import HARDWARE, find_entry_points
from accelbench.hardware.common import SPARE_COLOURS, colour_of
from accelbench.judge.points import points
from accelbench.present.charts import CHARTS, axes, collectives, compatibility, draw, predicted
from accelbench.present.charts.axes import axis, decades
from accelbench.present.charts.chart import Roof, Subject, picture
from accelbench.present.charts.palette import (
    DARK,
    DARK_PAPER,
    LIGHT_PAPER,
    MARK_CONTRAST,
    TEXT_CONTRAST,
    Look,
    contrast,
    device_colours,
    difference,
    expected_size,
    narrowed,
    on_dark,
    repainted,
    shades,
)

pytest.importorskip("vl_convert")

#: What an eye tells at a glance: four times what it just tells.
LEAST_DIFFERENCE = 0.075
OURS = sorted(
    n for n, p in find_entry_points(HARDWARE).items() if p.value.startswith("accelbench.")
)
MARKS = [*map(colour_of, OURS), *SPARE_COLOURS, *axes.GROUP_COLOURS, axes.REST_COLOUR]
FILLS = [*compatibility._LEVELS.values(), predicted._PALE, predicted._FULL]
FILLS += collectives._COLOURS


def test_contrast_and_platforms():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    dark = [on_dark(colour_of(name)) for name in OURS]
    assert min(difference(*pair) for pair in combinations(dark, 2)) >= 0.10


@pytest.mark.parametrize("colour", MARKS)
def test_a_mark_stands_out_from_either_paper(colour):
    assert contrast(colour, LIGHT_PAPER) >= MARK_CONTRAST
    assert contrast(on_dark(colour), DARK_PAPER) >= MARK_CONTRAST


@pytest.mark.parametrize("letters", [axes.INK, axes.DIM, axes.ALERT, axes.BETTER])
def test_letters_can_be_read_on_either_paper(letters):
    assert contrast(letters, LIGHT_PAPER) >= TEXT_CONTRAST
    assert contrast(on_dark(letters), DARK_PAPER) >= TEXT_CONTRAST


@pytest.mark.parametrize("fill", FILLS)
def test_letters_can_be_read_on_the_fills_of_heat_maps(fill):
    assert contrast(axes.INK, fill) >= TEXT_CONTRAST
    assert contrast(on_dark(axes.INK), on_dark(fill)) >= TEXT_CONTRAST


@pytest.mark.parametrize("platform", OURS)
def test_devices_of_a_platform_are_told_apart_on_either_paper(platform):
    light = shades(colour_of(platform))
    assert len(set(light)) == 6
    for paper, colours in ((LIGHT_PAPER, light), (DARK_PAPER, [*map(on_dark, light)])):
        assert min(contrast(colour, paper) for colour in colours) >= MARK_CONTRAST
        assert min(difference(*pair) for pair in combinations(colours, 2)) >= LEAST_DIFFERENCE


def test_devices_of_a_platform():
    # Two devices of a platform have marks and a legend of their own.
    rows = [
        result(hardware="cuda", device_name=device, runtime=engine, ms=ms)
        for device, ms in (("NVIDIA A100", 4.0), ("NVIDIA GeForce RTX 4090", 3.0))
        for engine in ("pytorch", "onnxruntime")
    ]
    made = drawn("pareto", Subject(points(rows)))
    marks = {(d["device"], d["colour"]) for d in values(made.spec) if "ms" in d}
    known = device_colours(made.records)
    assert marks == {(device, colour) for (_, device), colour in known.items()}
    assert len({colour for _, colour in marks}) == 2
    assert {d["place"] for d in values(made.spec) if set(d) == {"place"}} == {"A100", "RTX 4090"}
    # More devices than shades are all in the platform s colour.
    records = [{"hardware": "cpu", "device": f"d{n}"} for n in range(7)]
    assert device_colours(records) == {}
    assert len(device_colours(records[:6])) == 6


@pytest.mark.parametrize("name", ["hardware-latency", "compatibility", "ranks", "trend"])
def test_a_dark_picture_has_no_colour_of_the_light_one(name):
    svg = draw.svg(Look(DARK).of(spec_of(name)))
    assert f'fill="{DARK_PAPER}"' in svg
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]{6})"', svg))
    assert axes.INK not in used
    assert LIGHT_PAPER not in used
    letters = {
        one.get("fill")
        for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    }
    assert letters
    for letter in letters - {None, "transparent", DARK_PAPER}:
        assert contrast(str(letter), DARK_PAPER) >= TEXT_CONTRAST, letter


@pytest.mark.parametrize("name", sorted(CHARTS))
@pytest.mark.parametrize("narrow", [False, True])
def test_a_light_picture_repainted_is_the_dark_one(name, narrow):
    """But for what is said of a mark to who hears it, which names its colours."""

    def seen(picture: str) -> tuple[str, list[str]]:
        hatches = r"<pattern .*?</pattern>"
        shown = re.sub(rf' aria-label="[^"]*"|{hatches}', "", picture)
        return shown, sorted(re.findall(hatches, picture))

    spec = spec_of(name)
    dark = repainted(draw.svg(Look(narrow=narrow).of(spec)))
    if dark is not None:
        assert seen(dark) == seen(draw.svg(Look(DARK, narrow=narrow).of(spec)))


def test_dark_paper():
    # A colour between two is not repainted.
    assert repainted('<svg><rect fill="#4878fc"/></svg>') is not None
    assert repainted('<svg><text>fill="rgb(0, 0, 0)"</text></svg>') is not None
    assert repainted('<svg><rect fill="rgb(12, 34, 56)"/></svg>') is None
    # A hatching on dark paper is on that paper.
    svg = draw.svg(Look(DARK).of(spec_of("hardware-latency")))
    patterns = re.findall(r"<pattern.*?</pattern>", svg)
    assert all(f'fill="{DARK_PAPER}"' in pattern for pattern in patterns)
    assert any(on_dark(colour_of("cuda")) in pattern for pattern in patterns)


def width_of(svg: str) -> float:
    return float(re.findall(r'<svg[^>]* width="([\d.]+)"', svg)[0])


@pytest.mark.parametrize("name", ["hardware-latency", "latency-by-batch", "pareto", "trend"])
def test_one_column_fits_a_phone_with_letters_as_large_as_they_are(name):
    narrow = Look(narrow=True).of(spec_of(name))
    svg = draw.svg(narrow)
    assert width_of(svg) <= 430  # on 376 px its letters of 12 px are 10.5 px and more
    assert min(map(float, re.findall(r'font-size="([\d.]+)px"', svg))) >= 11
    assert narrow.get("columns", 1) == 1


@pytest.mark.parametrize("name", CHARTS)
def test_the_room_that_a_picture_is_given_is_about_what_it_takes(name):
    spec = spec_of(name)
    for shown in (spec, narrowed(spec)):
        wide, high = expected_size(shown)
        svg = draw.svg(shown)
        size = re.search(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"', svg)
        assert size is not None
        across, down = size.groups()
        assert (high / wide) / (float(down) / float(across)) == pytest.approx(1, abs=0.6)


@pytest.mark.parametrize(
    ("low", "high"), [(1.3, 4.7), (0.011, 0.019), (23.0, 31.0), (0.5, 700.0), (1e-3, 1e5)]
)
def test_lines_of_a_logarithmic_axis_are_two_round_numbers_or_more(low, high):
    ticks = decades(low, high)
    assert len(ticks) >= 2
    assert all(low <= tick <= high for tick in ticks)
    assert max(len(f"{tick:g}".replace(".", "").strip("0")) for tick in ticks) <= 2


def test_axes_and_lines():
    assert axis("latency of a batch, ms", [3e6]).of("value")["axis"]["format"] == ",.4~r"
    assert axis("throughput, items/s", [3e6]).of("value")["axis"]["format"] == "~s"
    # Runs of one moment have no axis of time.
    (series,) = subject_for("trend").series[:1]
    at_once = replace(
        series, points=[p._replace(moment="2026-01-02T03:04:05Z") for p in series.points]
    )
    assert picture(CHARTS["trend"], Subject(series=[series])) is not None
    assert picture(CHARTS["trend"], Subject(series=[at_once])) is None
    assert "at different times" in CHARTS["trend"].needs
    # A single line is no front.
    line = [result(ms=10.0 * n, batch_size=n) for n in (1, 2, 4)]
    assert picture(CHARTS["pareto"], Subject(points(line))) is None
    other = result(ms=3.0, runtime="onnxruntime")
    assert picture(CHARTS["pareto"], Subject(points([*line, other]))) is not None
    assert "more than the batch" in CHARTS["pareto"].needs
    # A roofline without a roof is none.
    of_cpu = Subject(points([result()]))
    assert picture(CHARTS["roofline"], of_cpu) is None
    roofs = [Roof("cpu", "AMD EPYC", "fp32", 1e12, 5e10, "documented")]
    assert picture(CHARTS["roofline"], Subject(points([result()]), roofs=roofs)) is not None
    assert "hardware --calibrate" in CHARTS["roofline"].needs
