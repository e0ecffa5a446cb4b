"""Options that would silently be ignored beside another: refused instead."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.core.errors import UsageError


def refuse_beside(given: Mapping[str, object], sentence: str, remedy: str) -> None:
    """Refuse options of which any has a value.

    Args:
        given: options with what was typed.
        sentence: what is wrong; `{}` stands for those that were given.
        remedy: what to do.
    """
    options = ", ".join(option for option, value in given.items() if value)
    if options:
        raise UsageError(sentence.format(options), remedy)
