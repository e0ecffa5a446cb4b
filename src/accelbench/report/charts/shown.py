"""A specification as somebody looks at it: on dark paper, in one column on a phone. Pure.

What is stored and passed on is the light and wide one; these are made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from textwrap import wrap
from typing import Any

from accelbench.report.charts.axes import Spec
from accelbench.report.charts.palette import on_dark
from accelbench.report.charts.theme import HIGH, PANEL_HIGH, PANEL_WIDE, WIDE

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
        return darkened(fitted) if self.theme == DARK else fitted


def darkened(spec: Spec) -> Spec:
    """The same on dark paper: every colour is another one, and nothing else is."""
    changed = _recoloured(spec)
    assert isinstance(changed, dict)
    return changed


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


def _recoloured(value: object) -> object:
    if isinstance(value, str):
        return on_dark(value)
    if isinstance(value, Mapping):
        return {name: _recoloured(member) for name, member in value.items()}
    return [_recoloured(member) for member in value] if isinstance(value, list | tuple) else value


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
    """A layer whose names beside it are as long as one column has room for."""
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
    """Whether its marks have their names beside them, which need half of the width."""
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
    """What stands along an axis of names, one after the other."""
    names: set[str] = set()
    records = view.get("data", {}).get("values", ())
    for layer in (view, *view.get("layer", ())):
        field = layer.get("encoding", {}).get(channel, {}).get("field")
        own = layer.get("data", {}).get("values", records)
        names |= {str(datum[field]) for datum in own if field in datum}
    return names
