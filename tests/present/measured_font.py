"""The font that vl-convert brings, read by fontTools: how wide each of its letters is.

    python tests/present/measured_font.py

writes the table that pictures are laid out by anew, for another version of vl-convert's.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import vl_convert
from fontTools.ttLib import TTFont

TABLE = Path(__file__).parents[2] / "src/accelbench/present/charts/font_widths.json"
FACES = {"regular": "Liberation Sans", "bold": "Liberation Sans Bold"}
#: Letters of Europe, and signs. What joins or changes with its neighbours has no width of its own.
RANGES = (range(0x20, 0x530), range(0x1E00, 0x1F00), range(0x2010, 0x2028), range(0x2030, 0x2600))
#: How a TrueType font begins, and the tables that are read.
_BEGINS, _READ = b"\0\1\0\0", {b"head", b"hhea", b"hmtx", b"cmap", b"name"}
_MOST_TABLES = 40


def widths() -> dict[str, dict[str, str]]:
    """Each face: thousandths of the font's size, and the letters that are so wide."""
    found = {str(font["name"].getDebugName(4)): font for font in _fonts()}
    return {face: _of(found[name]) for face, name in FACES.items()}


def text(made: dict[str, dict[str, str]]) -> str:
    """The file: one line a width, so that a change reads well."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _of(font: TTFont) -> dict[str, str]:
    glyphs, advances, whole = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
    letters: dict[int, str] = {}
    for code in (code for codes in RANGES for code in codes if code in glyphs):
        if unicodedata.category(chr(code))[0] in "LNPS" or code in (0x20, 0xA0):
            wide = round(advances[glyphs[code]][0] * 1000 / whole)
            letters[wide] = letters.get(wide, "") + chr(code)
    return {str(wide): letters[wide] for wide in sorted(letters)}


def files_of_faces() -> dict[str, bytes]:
    """The file of each face: the same letters on every machine, whatever fonts that has."""
    wanted = {name: face for face, name in FACES.items()}
    found: dict[str, bytes] = {}
    for body in _files():
        name = str(TTFont(io.BytesIO(body), lazy=True)["name"].getDebugName(4))
        if name in wanted:
            found[wanted[name]] = body
        if len(found) == len(wanted):
            break
    return found


def _fonts() -> Iterator[TTFont]:
    """Every font of the engine."""
    for body in _files():
        yield TTFont(io.BytesIO(body), lazy=True)


def _files() -> Iterator[bytes]:
    """The file of every font that stands as a whole in the engine's library."""
    (library,) = Path(vl_convert.__file__).parent.glob("vl_convert*.so")
    with (
        library.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as held,
    ):
        at = -1
        while (at := held.find(_BEGINS, at + 1)) != -1:
            (count,) = struct.unpack_from(">H", held, at + 4)
            if not count < _MOST_TABLES:
                continue
            tables = [struct.unpack_from(">4s4xII", held, at + 12 + 16 * n) for n in range(count)]
            if {tag for tag, _, _ in tables} >= _READ:
                end = max(offset + length for _, offset, length in tables)
                yield held[at : at + end]


if __name__ == "__main__":
    TABLE.write_text(text(widths()), encoding="utf-8")
