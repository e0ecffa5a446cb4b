"""Each platform has one colour, told from every other by people who see fewer colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import pytest

from accelbench.core.plugins import HARDWARE, find_entry_points
from accelbench.hardware import common
from accelbench.hardware.common import colour_of

ROOT = Path(__file__).parents[3]
Colour = tuple[float, float, float]
Matrix = tuple[Colour, Colour, Colour]

#: Machado, Oliveira, Fernandes 2009, severity 1.0; they work on linear light.
SEEN_BY: dict[str, Matrix] = {
    "everybody": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopes": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopes": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
#: Five times what an eye just tells, in OKLab.
LEAST_DISTANCE = 0.10
#: Of a mark of this size against white paper.
LEAST_CONTRAST = 3.0
#: Without what else is installed where this runs.
OURS = sorted(
    n for n, p in find_entry_points(HARDWARE).items() if p.value.startswith("accelbench.")
)


def linear(colour: str) -> Colour:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return red, green, blue


def times(matrix: Matrix, colour: Colour) -> Colour:
    red, green, blue = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)
    return red, green, blue


def oklab(colour: Colour) -> Colour:
    """Ottosson 2020, from linear sRGB."""
    cones = times(
        (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        ),
        colour,
    )
    roots = tuple(max(one, 0.0) ** (1 / 3) for one in cones)
    assert len(roots) == 3
    return times(
        (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        ),
        roots,
    )


def seen(colour: str, matrix: Matrix) -> Colour:
    red, green, blue = (min(max(one, 0.0), 1.0) for one in times(matrix, linear(colour)))
    return oklab((red, green, blue))


def test_the_simulation_itself_confuses_red_with_green_and_not_blue_with_yellow():
    red, green, blue, yellow = "#c04020", "#6c7c20", "#2040e0", "#e0d020"
    for who in ("protanopes", "deuteranopes"):
        matrix = SEEN_BY[who]
        everybody = dist(seen(red, SEEN_BY["everybody"]), seen(green, SEEN_BY["everybody"]))
        assert dist(seen(red, matrix), seen(green, matrix)) < 0.6 * everybody
        assert dist(seen(blue, matrix), seen(yellow, matrix)) > 0.3


@pytest.mark.parametrize("who", SEEN_BY)
def test_any_two_platforms_are_told_apart_by(who):
    near = {
        (one, other): round(distance, 3)
        for one, other in combinations(OURS, 2)
        if (
            distance := dist(
                seen(colour_of(one), SEEN_BY[who]), seen(colour_of(other), SEEN_BY[who])
            )
        )
        < LEAST_DISTANCE
    }
    assert near == {}


@pytest.mark.parametrize("hardware", OURS)
def test_a_mark_stands_out_from_white_paper(hardware):
    red, green, blue = linear(colour_of(hardware))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert 1.05 / (luminance + 0.05) >= LEAST_CONTRAST


def test_every_platform_of_ours_declares_its_own():
    declared = {name: getattr(point.load(), "colour", None) for name, point in _ours()}
    assert None not in declared.values()
    assert len(set(declared.values())) == len(declared)
    assert {name: colour_of(name) for name in declared} == declared


def _ours() -> Iterator[tuple[str, EntryPoint]]:
    return ((name, find_entry_points(HARDWARE)[name]) for name in OURS)


class _Point:
    name, value, dist = "made_up", "made_up:Detector", None
    group = "accelbench.hardware"

    def __init__(self, detector: Any) -> None:
        self._detector = detector

    def load(self) -> Any:
        if isinstance(self._detector, Exception):
            raise self._detector
        return self._detector


@pytest.fixture
def registering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes platforms that somebody's package brings."""

    def register(**detectors: Any) -> None:
        found = {name: _Point(one) for name, one in detectors.items()}
        monkeypatch.setattr(common, "find_entry_points", lambda _: found)
        colour_of.cache_clear()

    yield register
    colour_of.cache_clear()


def test_the_example_of_a_plugin_declares_one_that_is_told_from_ours():
    text = (ROOT / "examples" / "new-hardware" / "accelbench_hailo.py").read_text(encoding="utf-8")
    (declared,) = re.findall(r'^    colour = "(#[0-9a-f]{6})"', text, re.MULTILINE)
    assert all(
        dist(seen(declared, matrix), seen(colour_of(name), matrix)) >= LEAST_DISTANCE
        for matrix in SEEN_BY.values()
        for name in OURS
    )


def test_colours_of_plugins(registering):
    registering(hailo=type("HailoDetector", (), {"colour": "#A0B0C0", "detect": None}))
    assert colour_of("hailo") == "#a0b0c0"
    # A plugin that cannot be imported has a spare one.
    registering(hailo=ModuleNotFoundError("hailo"))
    assert colour_of("hailo") in common.SPARE_COLOURS
    assert colour_of("nobody knows it") in common.SPARE_COLOURS


@pytest.mark.parametrize(
    "declared", ["red", "#12345", "#1234567", None, 7, '"/><script>', "url(http://x)", "#12345g"]
)
def test_what_is_no_colour_is_never_drawn(registering, declared):
    registering(hailo=type("HailoDetector", (), {"colour": declared, "detect": None}))
    assert colour_of("hailo") in common.SPARE_COLOURS
