"""The one colour that a platform has in every chart: its detector declares it, a plugin's too.

The eleven of our own were searched for together: any two are at least 0.10 apart in OKLab, five
times what an eye just tells, also as protanopes and deuteranopes see them. Their luminance stays
between 0.03 and 0.30, so that each has a contrast of 3 and more with white paper.
"""

from __future__ import annotations

import re
from functools import cache
from zlib import crc32

from accelbench.core.plugins import HARDWARE, PluginError, load, registered

#: For a platform that declares none, or one that nobody has registered: imported figures have such.
SPARE = ("#5c5c5c", "#847800", "#6c84a0", "#b45430", "#846c9c", "#3c6c3c")
_FORM = re.compile(r"#[0-9a-fA-F]{6}")


@cache
def colour_of(hardware: str) -> str:
    """As "#rrggbb"; the same one each time, whatever else is drawn."""
    point = registered(HARDWARE).get(hardware)
    if point is not None:
        try:
            declared = getattr(load(point), "colour", None)
        except PluginError:
            declared = None
        if isinstance(declared, str) and _FORM.fullmatch(declared):
            return declared.lower()
    return SPARE[crc32(hardware.encode()) % len(SPARE)]
