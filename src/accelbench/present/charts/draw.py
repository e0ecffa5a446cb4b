"""Draw a specification as SVG, PNG or a page that can be pointed at; no browser, no network.

vl-convert brings its own engine: 0.6 s for the first picture of a process, 0.04 s for each after.
Tooltips and descriptions of thousands of marks are a fourth of the time of a report, which has both
as a table: `still` leaves them out. A letter that no font has is drawn as the box of an unassigned
code point; PNGs have its code point instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from accelbench.core.errors import MissingExtraError
from accelbench.core.rows import Row
from accelbench.core.safe_text import visible
from accelbench.present.charts.axes import PAPER, Spec
from accelbench.present.charts.chart import Picture
from accelbench.present.charts.font_metrics import FONT, fitted
from accelbench.present.charts.palette import respelled
from accelbench.present.pages.rendering import Drawn, rendered

_TOLD = "tooltip"
#: As expressions call a record.
_OF_A_RECORD = "datum"


def still(spec: Spec) -> Spec:
    """The same picture: without what is told of marks, and without figures that only this told."""
    named = frozenset(_words(spec))
    # An expression names fields within it: all of them, as nobody looks for more than a name.
    expressions = "\n".join(word for word in named if _OF_A_RECORD in word)
    drawn = _bare(spec, lambda field: field in named or field in expressions)
    return {**drawn, "config": {**drawn.get("config", {}), "aria": False}}


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if name != _TOLD and not _is_data(name, member):
                yield from _words(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _words(member)


def _bare(value: Any, is_drawn: Callable[[str], bool]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: {**member, "values": _thinned(member["values"], is_drawn)}
            if _is_data(name, member)
            else _bare(member, is_drawn)
            for name, member in value.items()
            if name != _TOLD
        }
    return [_bare(one, is_drawn) for one in value] if isinstance(value, list | tuple) else value


def _thinned(records: Sequence[Row], is_drawn: Callable[[str], bool]) -> list[Row]:
    kept = {field for field in {name for one in records for name in one} if is_drawn(field)}
    return [{name: value for name, value in one.items() if name in kept} for one in records]


def _is_data(name: str, member: object) -> bool:
    return name == "data" and isinstance(member, Mapping) and "values" in member


#: What the font that comes with the renderer has for certain: Latin, Greek and Cyrillic.
_KNOWN = re.compile("[\x00-\u052f]*")
#: Of a plane for private use: no font has it.
_NOBODYS = "\U000f0000"


def drawable(text: str, engine: ModuleType) -> str:
    """Text with the letters that would be boxes as their code points, `<U+1F600>`."""
    if _KNOWN.fullmatch(text):
        return text
    return "".join(
        letter if _KNOWN.fullmatch(letter) or _has(letter, engine) else f"<U+{ord(letter):04X}>"
        for letter in text
    )


def _has(letter: str, engine: ModuleType) -> bool:
    return _glyphs_drawn(letter, engine) != _glyphs_drawn(_NOBODYS, engine)


@cache  # a letter takes half a millisecond
def _glyphs_drawn(letter: str, engine: ModuleType) -> bytes:
    svg = rendered("letter.svg", font=FONT, code=ord(letter))
    image: bytes = engine.svg_to_png(svg, scale=1.0)
    return image


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
    drawn: str = _engine().vegalite_to_svg(
        respelled(spec, spell), vl_version=_VEGA_LITE, allowed_base_urls=[]
    )
    numbers: dict[str, int] = {}
    drawn = _CLIP.sub(lambda at: f"{at[1]}{numbers.setdefault(at[2], len(numbers))}", drawn)
    hatched = _hatched(drawn)
    if not hatched:
        return drawn
    head, opened, rest = drawn.partition(">")
    return head + opened + rendered("definitions.svg", hatched=hatched, paper=_paper(spec)) + rest


def page(picture: Picture) -> str:
    """As one HTML file that shows what a mark is of; nothing of it is fetched."""
    return rendered(
        "chart_page.html",
        picture=picture,
        hatched=_hatched(json.dumps(picture.spec)),
        paper=_paper(picture.spec),
        spec=respelled(picture.spec, visible),
        bundle=_bundle(),
    )


def _paper(spec: Spec) -> str:
    return str(spec.get("config", {}).get("background", PAPER))


def _hatched(text: str) -> list[str]:
    return sorted(set(_HATCH.findall(text)))


@cache
def _bundle() -> Drawn:
    text: str = _engine().javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_VEGA_LITE)
    return Drawn(text.replace("</script", "<\\/script"))


def _engine() -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "charts", "Drawing charts") from error
    engine: ModuleType = vl_convert
    return engine
