"""Colours: distances, shades for devices of one platform, dark paper, one column on a phone. Pure.

Distances are in OKLab (Ottosson 2020), contrasts those of WCAG 2.2. Up to six devices have shades
of their own; the names of more stand beside their marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import ceil, cos, dist, hypot, pi, sin
from textwrap import wrap
from typing import Any

from accelbench.core.plugins import HARDWARE, find_entry_points
from accelbench.core.rows import Row
from accelbench.hardware.common import SPARE_COLOURS, colour_of
from accelbench.present.charts.axes import HIGH, LOOK, PANEL_HIGH, PANEL_WIDE, WIDE, Spec

Triple = tuple[float, float, float]

#: The papers of both themes.
LIGHT_PAPER, DARK_PAPER = "#ffffff", "#0f1419"
#: Of marks against their paper, by WCAG 1.4.11; of letters, by 1.4.3.
MARK_CONTRAST, TEXT_CONTRAST = 3.0, 4.5
#: Devices of one platform that have a shade of their own; those beyond begin again.
MOST_SHADES = 6
_FIXED: Mapping[str, str] = LOOK["dark"]["fixed"]
_PLATFORMS: Mapping[str, str] = LOOK["dark"]["platforms"]
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
    bases = dict.fromkeys(
        [*_PLATFORMS, *map(colour_of, find_entry_points(HARDWARE)), *SPARE_COLOURS]
    )
    pairs: dict[str, str] = {}
    for base in reversed(list(bases)):  # a platform's own colour before another's shade
        dark = _PLATFORMS.get(base) or _lightened(base)
        pairs |= dict(zip(shades(base)[1:], shades(dark, DARK_PAPER)[1:], strict=False))
    return pairs | {base: _PLATFORMS.get(base) or _lightened(base) for base in bases}


def _lightened(colour: str) -> str:
    """Return the same hue, light enough for dark paper; the dark counterpart of a pale fill."""
    lightness, green_red, blue_yellow = _lab(colour)
    if lightness > _PALE:
        return _hex_of((1.2 - lightness, green_red, blue_yellow))
    return _hex_of((0.56 + 0.7 * max(0.0, lightness - 0.32), green_red, blue_yellow))


def _hex_of(lab: Triple) -> str:
    for step in range(20, -1, -1):
        share = step / 20
        roots = _times(_FROM_LAB, (lab[0], lab[1] * share, lab[2] * share))
        red, green, blue = _times(_FROM_CONES, (roots[0] ** 3, roots[1] ** 3, roots[2] ** 3))
        if min(red, green, blue) >= -1e-4 and max(red, green, blue) <= 1.0001:
            break
    return "#" + "".join(f"{round(255 * _encoded(part)):02x}" for part in (red, green, blue))


@lru_cache(maxsize=4096)
def _lab(colour: str) -> Triple:
    long, middle, short = (max(0.0, cone) ** (1 / 3) for cone in _times(_TO_CONES, _linear(colour)))
    return _times(_TO_LAB, (long, middle, short))


@lru_cache(maxsize=4096)
def _luminance(colour: str) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(colour: str) -> Triple:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
        for part in parts
    )
    return red, green, blue


def _encoded(part: float) -> float:
    part = min(max(part, 0.0), 1.0)
    return 12.92 * part if part <= 0.0031308 else float(1.055 * part ** (1 / 2.4) - 0.055)


def _times(matrix: Sequence[Triple], vector: Triple) -> Triple:
    first, second, third = (
        row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2] for row in matrix
    )
    return first, second, third


#: A platform and a device of it → its colour.
DeviceColours = Mapping[tuple[str, str], str]
_PAINTED = ("colour", "paint")


def device_colours(records: Iterable[Row]) -> DeviceColours:
    """The colours of those devices whose platform has others beside them."""
    devices: dict[str, set[str]] = {}
    for datum in records:
        if datum.get("hardware") and datum.get("device"):
            devices.setdefault(str(datum["hardware"]), set()).add(str(datum["device"]))
    return {
        (platform, device): shade
        for platform, names in devices.items()
        if 1 < len(names) <= MOST_SHADES
        for device, shade in zip(sorted(names), shades(colour_of(platform)), strict=False)
    }


def by_device(body: Spec) -> Spec:
    """The body of a picture with each of its devices in its own shade, lines of them as well."""
    colours = device_colours(_records(body))
    if not colours:
        return body
    lines = {
        str(datum["line"]): shade
        for datum in _records(body)
        if "line" in datum and (shade := colours.get(_device(datum)))
    }
    recoloured: Spec = _recoloured(body, colours, lines)
    return recoloured


def _device(datum: Row) -> tuple[str, str]:
    return str(datum.get("hardware")), str(datum.get("device"))


def _records(value: object) -> Iterator[Row]:
    if isinstance(value, Mapping):
        if isinstance(data := value.get("data"), Mapping):
            yield from data.get("values", ())
        for name, member in value.items():
            if name != "data":
                yield from _records(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _records(member)


def _recoloured(value: Any, colours: DeviceColours, lines: Mapping[str, str]) -> Any:
    if isinstance(value, list | tuple):
        return [_recoloured(member, colours, lines) for member in value]
    if not isinstance(value, Mapping):
        return value
    made: dict[str, Any] = {}
    for name, member in value.items():
        if name == "data" and isinstance(member, Mapping) and "values" in member:
            made[name] = {
                **member,
                "values": [
                    {field: _in_shade(field, one, datum, colours) for field, one in datum.items()}
                    for datum in member["values"]
                ],
            }
        elif name == "color" and isinstance(member, Mapping) and member.get("field") == "line":
            made[name] = _scaled(member, lines)
        else:
            made[name] = _recoloured(member, colours, lines)
    return made


def _in_shade(name: str, value: object, datum: Row, colours: DeviceColours) -> object:
    shade = colours.get(_device(datum)) if name in _PAINTED else None
    if shade is None or not isinstance(value, str):
        return value
    # Of a hatching the colour is a part of the pattern's name.
    return value.replace(colour_of(str(datum["hardware"]))[1:], shade[1:])


def _scaled(channel: Mapping[str, Any], lines: Mapping[str, str]) -> Spec:
    scale = channel.get("scale")
    if not isinstance(scale, Mapping) or "range" not in scale:
        return dict(channel)
    pairs = zip(scale["domain"], scale["range"], strict=True)
    return {**channel, "scale": {**scale, "range": [lines.get(n, c) for n, c in pairs]}}


LIGHT, DARK = "light", "dark"
#: Letters of a line, and pixels of a view, where a phone shows it without making it smaller.
_NARROW_LINE, _NARROW_WIDE, _NARROW_NAMED = 50, 260, 170
_NARROW_LABEL, _NARROW_TITLE = 150, 330
_NAMED = ("nominal", "ordinal")
#: The colours of a picture that is drawn, in its elements; and one that Vega worked out itself.
_TAG = re.compile(r"<[^>]+>")
_PAINT = re.compile(r'(\s(?:fill|stroke|stop-color)=")([^"]+)')
_HATCH_ID = re.compile(r'(\sid="hatch-)([0-9a-f]{6})(?=")')
_WORKED_OUT = re.compile(r'\s(?:fill|stroke|stop-color)="(?:rgb|hsl)')
#: Pixels beside and above a view: names of marks or figures, titles, an axis; a line of letters.
_BESIDE, _BESIDE_NAMED, _ABOVE, _BELOW, _LETTERS = 75, 230, 34, 54, 15


@dataclass(frozen=True)
class Look:
    """How a picture is looked at."""

    theme: str = LIGHT
    narrow: bool = False

    def of(self, spec: Spec) -> Spec:
        """A specification looked at so."""
        fitted = narrowed(spec) if self.narrow else spec
        # On dark paper every colour is another one, and nothing else is.
        return respelled(fitted, on_dark) if self.theme == DARK else fitted


def repainted(picture: str) -> str | None:
    """An SVG on light paper as it would be drawn on dark paper, for a hundredth of the time.

    None where it has a colour between two of its specification's: that between others is another.
    """
    if any(_WORKED_OUT.search(tag) for tag in _TAG.findall(picture)):
        return None

    def tag(match: re.Match[str]) -> str:
        painted = _PAINT.sub(lambda at: at[1] + on_dark(at[2]), match[0])
        return _HATCH_ID.sub(lambda at: at[1] + on_dark(f"#{at[2]}")[1:], painted)

    return _TAG.sub(tag, picture)


def respelled(value: Any, spell: Callable[[str], str]) -> Any:
    """The same with every text in it, names too, spelled otherwise."""
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, Mapping):
        return {spell(name): respelled(member, spell) for name, member in value.items()}
    return [respelled(one, spell) for one in value] if isinstance(value, list | tuple) else value


def narrowed(spec: Spec) -> Spec:
    """The same in one column, its lines broken so that its letters stay as large as they are."""
    made: dict[str, Any] = {**_thin(spec), "title": _broken(spec["title"])}
    config = spec["config"]
    made["config"] = {
        **config,
        "padding": 6,
        "title": {**config["title"], "fontSize": 16, "limit": _NARROW_TITLE},
        "axis": {**config["axis"], "labelLimit": _NARROW_LABEL},
        "legend": {**config["legend"], "columns": 1, "labelLimit": _NARROW_TITLE},
    }
    return made


def _thin(view: Spec) -> Spec:
    made = dict(view)
    for several in ("concat", "vconcat", "hconcat"):
        if several in view:
            made[several] = [_thin(part) for part in view[several]]
    if "concat" in view:
        made["columns"] = 1
    if "layer" in view:
        made["layer"] = [_short_named(layer) for layer in view["layer"]]
    if "title" in view and isinstance(view["title"], Mapping):
        made["title"] = _broken(dict(view["title"]))
    if isinstance(view.get("width"), int | float):
        wide = _NARROW_NAMED if _is_named(view) else _NARROW_WIDE
        made["width"] = min(view["width"], wide)
    return made


def _short_named(layer: Spec) -> Spec:
    up = layer.get("encoding", {}).get("y", {})
    axis = up.get("axis")
    if not isinstance(axis, Mapping) or "labelLimit" not in axis:
        return layer
    short = {**axis, "labelLimit": min(axis["labelLimit"], _NARROW_LABEL)}
    return {**layer, "encoding": {**layer["encoding"], "y": {**up, "axis": short}}}


def _broken(title: Spec) -> Spec:
    return {
        name: [part for line in _lines(text) for part in wrap(line, _NARROW_LINE) or [""]]
        if name == "subtitle"
        else text
        for name, text in title.items()
    }


def _lines(text: str | Iterable[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _is_named(view: Spec) -> bool:
    encodings = (layer.get("encoding", {}) for layer in (view, *view.get("layer", ())))
    return any(encoding.get("y", {}).get("type") in _NAMED for encoding in encodings)


def expected_size(spec: Spec) -> tuple[int, int]:
    """About how wide and high a picture will be, in pixels, before anything is drawn."""
    title = spec.get("title", {})
    above = 24 + _LETTERS * len(_lines(title.get("subtitle", ()))) + 28
    views = spec.get("concat") or spec.get("vconcat") or spec.get("hconcat") or [spec]
    columns = spec.get("columns", 1 if "vconcat" in spec else len(views))
    sizes = [_size(view) for view in views]
    rows = ceil(len(sizes) / columns)
    wide = max(sum(w for w, _ in sizes[r * columns : (r + 1) * columns]) for r in range(rows))
    high = sum(max(h for _, h in sizes[r * columns : (r + 1) * columns]) for r in range(rows))
    longest = max(map(len, _lines(title.get("subtitle", ""))), default=0)
    return max(round(wide), round(5.7 * longest)) + 28, round(above + high + 26 * (rows - 1))


def _size(view: Spec) -> tuple[float, float]:
    title = view.get("title", {}) if "config" not in view else {}
    lines = len(_lines(title.get("subtitle", ()))) + 1 if title else 0
    wide = _pixels(view, "width", "x", PANEL_WIDE if title else WIDE)
    high = _pixels(view, "height", "y", PANEL_HIGH if title else HIGH)
    beside = _BESIDE_NAMED if _is_named(view) else _BESIDE
    return wide + beside, high + _ABOVE * bool(title) + _LETTERS * lines + _BELOW


def _pixels(view: Spec, side: str, channel: str, usual: float) -> float:
    given = view.get(side, usual)
    if isinstance(given, Mapping):
        return float(given.get("step", 20)) * max(1, len(_names_along(view, channel)))
    return float(given)


def _names_along(view: Spec, channel: str) -> set[str]:
    names: set[str] = set()
    records = view.get("data", {}).get("values", ())
    for layer in (view, *view.get("layer", ())):
        field = layer.get("encoding", {}).get(channel, {}).get("field")
        own = layer.get("data", {}).get("values", records)
        names |= {str(datum[field]) for datum in own if field in datum}
    return names
