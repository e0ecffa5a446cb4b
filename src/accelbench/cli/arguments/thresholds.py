"""What a change has to exceed, as users say it."""

from __future__ import annotations

from accelbench.core.errors import UsageError


def refuse_threshold(threshold: float | None) -> None:
    """What is no share of a change."""
    if threshold is not None and not 0 < threshold < 10:
        raise UsageError(f"{threshold:g} is no threshold.", "0.1 stands for 10 %.")
