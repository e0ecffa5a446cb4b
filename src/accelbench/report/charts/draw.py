"""Drawing: a specification as SVG, PNG or a page that can be pointed at; no browser, no network.

vl-convert brings its own engine: 0.6 s for the first picture of a process, 0.04 s for each after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from types import ModuleType

from accelbench.core.errors import MissingExtraError
from accelbench.core.visible import visible
from accelbench.report.charts.axes import Spec
from accelbench.report.charts.chart import Picture
from accelbench.report.charts.font_metrics import fitted
from accelbench.report.charts.glyphs import drawable
from accelbench.report.charts.still import still
from accelbench.report.charts.theme import PAPER
from accelbench.report.pages.rendering import Drawn, rendered

#: Of those that vl-convert brings; `look.SCHEMA` names its first number.
_VEGA_LITE = "6.1"
#: Dots per CSS pixel of a PNG: sharp on a slide.
_SCALE = 2.0
#: vl-convert counts what clips marks over all pictures of a process.
_CLIP = re.compile(r'((?:<clipPath id="|clip-path="url\(#)clip)(\d+)')
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
    drawn = _drawn(still(spec), lambda text: drawable(visible(text), engine))
    image: bytes = engine.svg_to_png(drawn, scale=_SCALE)
    return image


def _drawn(spec: Spec, spell: Callable[[str], str] = visible) -> str:
    """As SVG, with the patterns that its fills name."""
    drawn: str = _engine().vegalite_to_svg(
        _shown(spec, spell), vl_version=_VEGA_LITE, allowed_base_urls=[]
    )
    numbers: dict[str, int] = {}
    drawn = _CLIP.sub(lambda at: f"{at[1]}{numbers.setdefault(at[2], len(numbers))}", drawn)
    hatched = _hatched(drawn)
    if not hatched:
        return drawn
    head, opened, rest = drawn.partition(">")
    return head + opened + rendered("definitions.svg", hatched=hatched, paper=_paper(spec)) + rest


def _shown(value: object, spell: Callable[[str], str] = visible) -> object:
    """The specification with every name in it as text: labels and tooltips are some of them."""
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, Mapping):
        return {spell(name): _shown(member, spell) for name, member in value.items()}
    return [_shown(member, spell) for member in value] if isinstance(value, list | tuple) else value


def page(picture: Picture) -> str:
    """As one HTML file that shows what a mark is of; nothing of it is fetched."""
    return rendered(
        "chart_page.html",
        picture=picture,
        hatched=_hatched(json.dumps(picture.spec)),
        paper=_paper(picture.spec),
        spec=_shown(picture.spec),
        bundle=_bundle(),
    )


def _paper(spec: Spec) -> str:
    return str(spec.get("config", {}).get("background", PAPER))


def _hatched(text: str) -> list[str]:
    """The colour of every pattern that is named there."""
    return sorted(set(_HATCH.findall(text)))


@cache
def _bundle() -> Drawn:
    """Vega, Vega-Lite and vega-embed, for a page."""
    text: str = _engine().javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_VEGA_LITE)
    return Drawn(text.replace("</script", "<\\/script"))


def _engine() -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "charts", "Drawing charts") from error
    engine: ModuleType = vl_convert
    return engine
