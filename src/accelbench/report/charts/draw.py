"""Drawing: a specification as SVG, PNG or a page that can be pointed at; no browser, no network.

vl-convert brings its own engine: 0.6 s for the first picture of a process, 0.04 s for each after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from accelbench.core.errors import MissingExtraError
from accelbench.core.visible import html as text_of
from accelbench.core.visible import visible
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.chart import Picture
from accelbench.report.charts.font_metrics import fitted
from accelbench.report.charts.glyphs import drawable

#: Of those that vl-convert brings; `look.SCHEMA` names its first number.
_VEGA_LITE = "6.1"
#: Dots per CSS pixel of a PNG: sharp on a slide.
_SCALE = 2.0
#: What a page may do: run what it brings. It can fetch nothing and evaluate no text as a program,
#: which is why Vega interprets its expressions (`ast`).
_NOTHING_ELSE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)
_HATCH = re.compile(r"url\(#hatch-([0-9a-f]{6})\)")


def refuse_undrawable(needed_for: str) -> None:
    """Say before hours of measuring what would be missing after them."""
    if find_spec("vl_convert") is None:
        raise MissingExtraError("vl-convert-python", "charts", needed_for)


def svg(spec: Spec) -> str:
    """As SVG, whatever fonts its viewer has."""
    return fitted(_drawn(spec))


def png(spec: Spec) -> bytes:
    """As PNG, in the font that it was laid out with; what no font has is its code point."""
    engine = _engine()
    drawn = _drawn(spec, lambda text: drawable(visible(text), engine))
    found: bytes = engine.svg_to_png(drawn, scale=_SCALE)
    return found


def _drawn(spec: Spec, spell: Callable[[str], str] = visible) -> str:
    """As SVG, with the patterns that its fills name."""
    drawn: str = _engine().vegalite_to_svg(
        _shown(spec, spell), vl_version=_VEGA_LITE, allowed_base_urls=[]
    )
    patterns = _patterns(drawn)
    head, opened, rest = drawn.partition(">")
    return f"{head}{opened}<defs>{patterns}</defs>{rest}" if patterns else drawn


def _shown(value: Any, spell: Callable[[str], str] = visible) -> Any:
    """The specification with every name in it as text: labels and tooltips are some of them."""
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, Mapping):
        return {spell(name): _shown(one, spell) for name, one in value.items()}
    return [_shown(one, spell) for one in value] if isinstance(value, list | tuple) else value


def page(picture: Picture) -> str:
    """As one HTML file that shows what a mark is of; nothing of it is fetched."""
    spec = json.dumps(_shown(picture.spec), ensure_ascii=True).replace("<", "\\u003c")
    about = "".join(f"<p>{text_of(line)}</p>" for line in picture.about)
    patterns = _patterns(json.dumps(picture.spec))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text_of(picture.chart.title)}</title></head><body>"
        f'<svg width="0" height="0" aria-hidden="true"><defs>{patterns}</defs></svg>'
        f'<main><h1 hidden>{text_of(picture.chart.title)}</h1><div id="chart"></div>'
        f"<noscript>{about}</noscript></main>"
        f"<script>{_bundle()}</script><script>"
        f"vegaEmbed('#chart', {spec}, {{renderer: 'svg', actions: false, ast: true}})"
        "</script></body></html>"
    )


def _patterns(text: str) -> str:
    """The definition of every pattern that is named there."""
    return "".join(
        f'<pattern id="hatch-{colour}" width="6" height="6" patternUnits="userSpaceOnUse"'
        f' patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff"/>'
        f'<rect width="2.5" height="6" fill="#{colour}"/></pattern>'
        for colour in sorted(set(_HATCH.findall(text)))
    )


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed, for a page."""
    text: str = _engine().javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_VEGA_LITE)
    return text.replace("</script", "<\\/script")


def _engine() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "charts", "Drawing charts") from error
    return vl_convert
