"""How wide a text is in the font that pictures are laid out with.

vl-convert brings Liberation Sans and measures with it; its letters are as wide as those of
Helvetica, Arial and Arimo. A viewer that has none of them draws with a wider font, and what was
laid out for a narrower one would be cut off: an SVG therefore says of each text how long it is.

vl-convert keeps its fonts to itself: fontTools has read the table of widths out of it, which
`tests/present/measured_font.py` writes and a test compares with the version that is here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

#: What is asked for: first what was measured with, then what is as wide, then whatever is there.
FONT = "Liberation Sans, Arimo, Helvetica, Arial, sans-serif"

_TABLE = Path(__file__).with_name("font_widths.json")
_TEXT = re.compile(r"(<text [^>]*)>(.*?)(?=</text>)", re.DOTALL)
_LINE = re.compile(r"(<tspan[^>]*)>([^<]*)(?=</tspan>)")
_SIZE, _WEIGHT = re.compile(r'font-size="([\d.]+)px"'), re.compile(r'font-weight="(\w+)"')
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'"}
_ENTITY = re.compile("|".join(map(re.escape, _ENTITIES)))
_HALF_BOLD = 600


@cache
def _widths(bold: bool) -> Mapping[str, float]:
    table: dict[str, dict[str, str]] = json.loads(_TABLE.read_text(encoding="utf-8"))
    face = table["bold" if bold else "regular"]
    return {letter: int(wide) / 1000 for wide, letters in face.items() for letter in letters}


def width(text: str, size: float, *, bold: bool = False) -> float | None:
    """In pixels; None of letters that the table does not know: nobody guesses them."""
    known = _widths(bold)
    advances = [known.get(letter) for letter in text]
    whole = [advance for advance in advances if advance is not None]
    return sum(whole) * size if len(whole) == len(advances) else None


def fitted(svg: str) -> str:
    """The same picture, each text of it as long as it was laid out for, whatever font draws it."""
    return _TEXT.sub(_fitted, svg)


def _fitted(text_match: re.Match[str]) -> str:
    opening, inner = text_match.groups()
    size_match = _SIZE.search(opening)
    if size_match is None:
        return text_match.group()
    weight = _WEIGHT.search(opening)
    size, bold = float(size_match.group(1)), weight is not None and _is_bold(weight.group(1))

    def line(match: re.Match[str]) -> str:
        return f"{match.group(1)}{_length(match.group(2), size, bold)}>{match.group(2)}"

    return f"{opening}>{_LINE.sub(line, inner)}" if "<" in inner else line(text_match)


def _is_bold(weight: str) -> bool:
    return int(weight) >= _HALF_BOLD if weight.isdigit() else weight == "bold"


def _length(escaped: str, size: float, bold: bool) -> str:
    text = _ENTITY.sub(lambda entity: _ENTITIES[entity.group()], escaped)
    # One letter has nothing to be set closer.
    known = width(text, size, bold=bold) if len(text) > 1 else None
    return "" if known is None else f' textLength="{known:.1f}" lengthAdjust="spacingAndGlyphs"'
