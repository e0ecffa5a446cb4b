"""A page as it looks: its boxes as lines of text, what is wrong with them, and pictures for people.

The letters are those of one font file and pictures are blanks of one size, so that boxes are the
same on every machine with the same build of the browser.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chrome import Chrome
from measured_font import files_of_faces
from playwright.sync_api import Route

HERE = Path(__file__).parent
MEASURED = (HERE / "measured.js").read_text(encoding="utf-8")
WIDTHS = (1440, 1024, 400)
SCHEMES: Sequence[Literal["light", "dark"]] = ("light", "dark")
#: What text has to stand out by from what is behind it: WCAG 2.2, level AA.
CONTRAST = 4.5
#: Pixels by which a box may differ: two builds of a browser round differently.
TOLERANCE = 2
_BLANK = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" width="640" height="360"/>'
#: A look may choose other pictures, of the other theme: they are there once they are decoded.
_DRAWN = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame(); await frame();
  await Promise.all([...document.images].map((one) => one.decode().catch(() => {})));
  await frame();
})()"""
_NUMBERS = re.compile(r"^(.*) (-?\d+) (-?\d+) (\d+) (\d+)$")


@dataclass(frozen=True)
class Look:
    """What was seen of a page at a width."""

    boxes: Sequence[str]
    faults: Sequence[str]


@contextmanager
def alike_everywhere(tab: Chrome) -> Iterator[None]:
    """Pictures are blanks meanwhile, and pages may be given a font of ours."""

    def blank(route: Route) -> None:
        route.fulfill(body=_BLANK, content_type="image/svg+xml")

    devtools = tab.page.context.new_cdp_session(tab.page)
    devtools.send("Page.enable")
    devtools.send("Page.setBypassCSP", {"enabled": True})
    pattern = re.compile(r"\.svg(\?|$)")
    tab.page.route(pattern, blank)
    # A colour on its way to another is neither.
    tab.page.emulate_media(reduced_motion="reduce")
    try:
        yield
    finally:
        tab.page.emulate_media(reduced_motion="null")
        tab.page.unroute(pattern)
        devtools.send("Page.setBypassCSP", {"enabled": False})
        devtools.detach()


def fonts() -> str:
    """A style by which every letter is of the same file."""
    files = files_of_faces()
    faces = (("400", "regular"), ("600 900", "bold"))
    declared = "".join(
        f"@font-face {{ font-family: Looks; font-weight: {weight};"
        f" src: url(data:font/ttf;base64,{base64.b64encode(files[name]).decode()}) }}\n"
        for weight, name in faces
    )
    return f"{declared} * {{ font-family: Looks !important; }} footer {{ visibility: hidden; }}"


def looked_at(tab: Chrome, address: str, style: str) -> dict[int, Look]:
    """A page at every width, light and dark: opened once."""
    tab.go(address)
    tab.js(
        "(async (style) => { const one = document.createElement('style'); one.textContent = style;"
        " document.head.append(one); for (const it of document.images) it.loading = 'eager';"
        " await document.fonts.ready; })(" + repr(style) + ")"
    )
    return {wide: _at(tab, wide) for wide in WIDTHS}


def _at(tab: Chrome, wide: int) -> Look:
    boxes: list[str] = []
    faults: list[str] = []
    for scheme in SCHEMES:
        tab.look(scheme, wide)
        tab.js(_DRAWN)
        seen: dict[str, Any] = tab.js(f"{MEASURED}()")
        where = f"{wide} px, {scheme}"
        if seen["over"] > 0:
            faults.append(f"{where}: {seen['over']} px too wide")
        for fault in ("cut", "overlapping", "broken"):
            faults += [f"{where}: {fault}: {one}" for one in seen[fault]]
        ratio, which = seen["faintest"]
        if ratio < CONTRAST:
            faults.append(f"{where}: contrast {ratio} of {which}")
        if boxes and boxes != seen["boxes"]:
            faults.append(f"{where}: its boxes are others than in light")
        boxes = boxes or seen["boxes"]
    return Look(boxes, faults)


def as_text(looks: dict[int, Look]) -> str:
    """What is kept of a page: a line a box, with its left, top, width and height."""
    return "".join(
        f"{wide} px\n" + "".join(f"  {line}\n" for line in look.boxes)
        for wide, look in looks.items()
    )


def differences(kept: str, made: str) -> list[str]:
    """Lines that are others, beyond what browsers round."""
    before, now = kept.splitlines(), made.splitlines()
    found = [
        f"- {old}\n+ {new}" for old, new in zip(before, now, strict=False) if not _alike(old, new)
    ]
    if len(before) != len(now):
        found.append(f"{len(before)} lines before, {len(now)} now")
    return found


def _alike(old: str, new: str) -> bool:
    one, other = _NUMBERS.match(old), _NUMBERS.match(new)
    if one is None or other is None:
        return old == new
    return one[1] == other[1] and all(
        abs(int(one[n]) - int(other[n])) <= TOLERANCE for n in range(2, 6)
    )
