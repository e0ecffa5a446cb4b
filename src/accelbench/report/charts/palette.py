"""Colours as numbers: how far apart two are, how they stand out, and each one's on dark paper.

Pure. Distances are in OKLab (Ottosson 2020), contrasts those of WCAG 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product
from math import cos, dist, hypot, pi, sin

from accelbench.core.plugins import HARDWARE, registered
from accelbench.hardware.colours import SPARE, colour_of

Triple = tuple[float, float, float]

#: The papers of both themes.
LIGHT_PAPER, DARK_PAPER = "#ffffff", "#0f1419"
#: Of marks against their paper, by WCAG 1.4.11; of letters, by 1.4.3.
MARK_CONTRAST, TEXT_CONTRAST = 3.0, 4.5
#: Devices of one platform that have a shade of their own; those beyond begin again.
MOST_SHADES = 6
#: Colours that are no platform's, on light paper and on dark: letters, lines, fills of heat maps.
_FIXED = {
    "#1b1f24": "#e6edf3",
    "#57606a": "#a9b4c0",
    "#d8dee4": "#303943",
    LIGHT_PAPER: DARK_PAPER,
    "#b3261e": "#ff8f87",
    "#00708c": "#4cc3e0",
    "#7f8790": "#8b949e",
    "#8fd3a6": "#1c5c33",
    "#cfe8b0": "#41591b",
    "#f6dc93": "#674d0c",
    "#eeb0aa": "#752823",
    "#d5dff0": "#33405a",
    "#dcd3f0": "#43366b",
    "#e6e9ed": "#2a313a",
    "#f4f6f8": "#1a2129",
    "#4fa3b5": "#1f6474",
    "#5aa5d6": "#2b6b96",
    "#f7f7f7": "#20262d",
    "#f08a3c": "#96430a",
}
#: Our platforms' on dark paper, searched for together as those on light paper were.
_PLATFORMS = {
    "#009c78": "#50cba4",
    "#24306c": "#6060a8",
    "#902424": "#cc5424",
    "#9c6024": "#cc9000",
    "#4878fc": "#ccccfc",
    "#3c3ca8": "#6c6cf0",
    "#18546c": "#548da7",
    "#1818fc": "#78f0b4",
    "#c048c0": "#f379f1",
    "#6c0030": "#a84860",
    "#5ca400": "#90d848",
}
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_CONES = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
#: Where shades are looked for: lightness, turns of the hue, and shares of the chroma.
_LIGHTNESS = tuple(0.30 + 0.05 * step for step in range(13))
_TURNS = tuple(pi / 180 * degrees for degrees in (0, -18, 18, -36, 36))
_CHROMA = (1.0, 0.55)
#: Paler than this is a fill under dark letters, and darker than that its counterpart.
_PALE = 0.82
_COLOUR = re.compile(r"(#[0-9a-f]{6})([0-9a-f]{2})?")
_HATCH = re.compile(r"url\(#hatch-([0-9a-f]{6})\)")


def contrast(colour: str, other: str) -> float:
    """How far two colours' luminances stand apart: from 1 to 21."""
    low, high = sorted((_luminance(colour), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def difference(colour: str, other: str) -> float:
    """How different two colours look, in OKLab: 0.02 is what an eye just tells."""
    return dist(_lab(colour), _lab(other))


@lru_cache(maxsize=256)
def shades(base: str, paper: str = LIGHT_PAPER) -> Sequence[str]:
    """Shades of a platform's colour for its devices: the colour itself, then each furthest from
    those before it that still stands out from the paper.
    """
    _, green_red, blue_yellow = _lab(base)
    chroma = max(hypot(green_red, blue_yellow), 0.06)
    unit = (green_red / chroma, blue_yellow / chroma)
    options = []
    for level, turn, share in product(_LIGHTNESS, _TURNS, _CHROMA):
        axis = (
            unit[0] * cos(turn) - unit[1] * sin(turn),
            unit[0] * sin(turn) + unit[1] * cos(turn),
        )
        colour = _hex_of((level, axis[0] * chroma * share, axis[1] * chroma * share))
        if contrast(colour, paper) >= MARK_CONTRAST:
            options.append(colour)
    known = [base]
    while len(known) < MOST_SHADES and options:
        known.append(max(options, key=lambda one: min(difference(one, other) for other in known)))
    return tuple(known)


def on_dark(text: str) -> str:
    """What stands for a colour on dark paper; what is no colour stays as it is."""
    if hatched := _HATCH.fullmatch(text):
        return f"url(#hatch-{_on_dark('#' + hatched.group(1))[1:]})"
    if match := _COLOUR.fullmatch(text.lower()):
        return _on_dark(match.group(1)) + (match.group(2) or "")
    return text


@lru_cache(maxsize=1024)
def _on_dark(colour: str) -> str:
    return _FIXED.get(colour) or _of_platforms().get(colour) or _lightened(colour)


@cache
def _of_platforms() -> dict[str, str]:
    """Each platform's colour and its devices' shades."""
    bases = dict.fromkeys([*_PLATFORMS, *map(colour_of, registered(HARDWARE)), *SPARE])
    pairs: dict[str, str] = {}
    for base in reversed(list(bases)):  # a platform's own colour before another's shade
        dark = _PLATFORMS.get(base) or _lightened(base)
        pairs |= dict(zip(shades(base)[1:], shades(dark, DARK_PAPER)[1:], strict=False))
    return pairs | {base: _PLATFORMS.get(base) or _lightened(base) for base in bases}


def _lightened(colour: str) -> str:
    """The same hue, as light as dark paper needs it; of a pale fill the dark counterpart."""
    lightness, green_red, blue_yellow = _lab(colour)
    if lightness > _PALE:
        return _hex_of((1.2 - lightness, green_red, blue_yellow))
    return _hex_of((0.56 + 0.7 * max(0.0, lightness - 0.32), green_red, blue_yellow))


def _hex_of(lab: Triple) -> str:
    """As "#rrggbb": with as much of its chroma as a screen has."""
    for step in range(20, -1, -1):
        share = step / 20
        red, green, blue = _linear_of((lab[0], lab[1] * share, lab[2] * share))
        if min(red, green, blue) >= -1e-4 and max(red, green, blue) <= 1.0001:
            break
    return "#" + "".join(f"{round(255 * _encoded(part)):02x}" for part in (red, green, blue))


def _linear_of(lab: Triple) -> Triple:
    long, middle, short = (root**3 for root in _times(_FROM_LAB, lab))
    return _times(_FROM_CONES, (long, middle, short))


@lru_cache(maxsize=4096)
def _lab(colour: str) -> Triple:
    long, middle, short = (max(0.0, cone) ** (1 / 3) for cone in _times(_TO_CONES, _linear(colour)))
    return _times(_TO_LAB, (long, middle, short))


@lru_cache(maxsize=4096)
def _luminance(colour: str) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(colour: str) -> Triple:
    red, green, blue = (_decoded(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return red, green, blue


def _decoded(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _encoded(part: float) -> float:
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else float(1.055 * part ** (1 / 2.4) - 0.055)


def _times(matrix: Sequence[Triple], vector: Triple) -> Triple:
    first, second, third = (
        row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2] for row in matrix
    )
    return first, second, third
