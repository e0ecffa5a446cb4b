"""Modes by the words that people type."""

from __future__ import annotations

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Mode


def parse_mode(text: str, advice: str = "") -> Mode:
    """The mode of a word; case and the space around it do not matter.

    Args:
        text: what was typed.
        advice: what to use instead, where that is more than the names of all modes.

    Raises:
        UsageError: it is none.
    """
    try:
        return Mode(text.strip().lower())
    except ValueError:
        usual = f"Modes: {', '.join(Mode)}."
        raise UsageError(f"There is no mode {in_quotes(text)}.", advice or usual) from None
