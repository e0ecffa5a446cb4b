"""Whether predicted memory fits a device, and the words for where it does not. Pure."""

from __future__ import annotations

_GIB = 2.0**30


def is_too_large(needed: float | None, room: float | None) -> bool:
    """Whether more memory is needed than there is; of what is not known it is not said."""
    return needed is not None and room is not None and needed > room


def memory_words(needed: float, room: float) -> str:
    """How much is needed of how much there is."""
    return f"{needed / _GIB:,.3g} GiB of {room / _GIB:,.3g} GiB"
