"""Which letters a picture made of dots can show: those that some font of this machine has.

A renderer draws one empty box for every letter that no font has, emoji most often. It is asked:
what is drawn as a code point that nobody has assigned is a box.
"""

from __future__ import annotations

import re
from functools import cache
from types import ModuleType

from accelbench.report.charts.font_metrics import FONT
from accelbench.report.pages.rendering import rendered

#: What the font that comes with the renderer has for certain: Latin, Greek and Cyrillic.
_KNOWN = re.compile("[\x00-\u052f]*")
#: Of a plane for private use: no font has it.
_NOBODYS = "\U000f0000"


def drawable(text: str, engine: ModuleType) -> str:
    """Text with the letters that would be boxes as their code points, `<U+1F600>`.

    Args:
        text: what is to be drawn.
        engine: the renderer, vl-convert.
    """
    if _KNOWN.fullmatch(text):
        return text
    return "".join(
        letter if _KNOWN.fullmatch(letter) or _has(letter, engine) else f"<U+{ord(letter):04X}>"
        for letter in text
    )


@cache
def _has(letter: str, engine: ModuleType) -> bool:
    """Half a millisecond a letter, once."""
    return _drawn(letter, engine) != _box(engine)


@cache
def _box(engine: ModuleType) -> bytes:
    return _drawn(_NOBODYS, engine)


def _drawn(letter: str, engine: ModuleType) -> bytes:
    svg = rendered("letter.svg", font=FONT, code=ord(letter))
    image: bytes = engine.svg_to_png(svg, scale=1.0)
    return image
