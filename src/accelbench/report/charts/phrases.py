"""What is said in pictures: names that anybody may have chosen, made harmless; figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from accelbench.core.nouns import counted, digits
from accelbench.core.rows import Row
from accelbench.core.visible import visible

#: A name longer than this is cut in its middle: ends tell names apart.
_LONGEST = 42


def safe(text: object, longest: int = _LONGEST) -> str:
    """A name as a picture has room for it, with what is invisible or would act as its code point.

    A picture is text of somebody's in an XML file: a zero byte would break it, and U+202E would
    turn what stands beside it round.
    """
    plain = visible(str(text))
    if len(plain) <= longest:
        return plain
    head = longest // 2
    return f"{plain[:head]}…{plain[-(longest - head - 1) :]}"


def figure(value: float) -> str:
    """Three digits, or as many as a whole number has: 0.153, 12.3, 1,240."""
    return digits(value)


def in_common(together: str) -> list[str]:
    """What all that is drawn has alike; nothing where that is nothing."""
    return [f"All: {together}."] if together else []


#: Where all that pictures leave out stands: no filter tells two devices of a platform apart.
_ALL = "accelbench report lists all"


def left_out(number: int, noun: str, many: str = "", advice: str = _ALL) -> list[str]:
    """That there is more than is drawn, and how to see it; nothing where there is not."""
    count = counted(number, f"more {noun}", f"more {many or f'{noun}s'}")
    return [f"{count} not drawn: {advice}."] if number > 0 else []


def emulated(number: int, because: str = "such times mean nothing") -> list[str]:
    """That some were measured on a stand-in for their device, and are on no axis of times."""
    return [f"{counted(number, 'emulated configuration')} not drawn: {because}."] * (number > 0)


#: Why a figure of memory of such a cell is not drawn.
OF_A_STAND_IN = "they ran on a stand-in for their device"


def days(rows: Iterable[Row]) -> list[str]:
    """From which day to which they were measured; nothing where nobody knows."""
    known = sorted({str(row["started_at"])[:10] for row in rows if row.get("started_at")})
    if not known:
        return []
    return [known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"]
