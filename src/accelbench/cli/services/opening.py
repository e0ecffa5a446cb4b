"""Databases as commands open them: filled from their journals, what is wrong with them told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.cli.display.terminal import complain
from accelbench.query import stored_results

if TYPE_CHECKING:
    from accelbench.store.database import Database


def filled(path: Path | None) -> Database:
    """The database, with what runs left in the journals."""
    return stored_results.filled(path, complain)


def filled_if_any(path: Path | None, filters: Mapping[str, Sequence[Any]]) -> Database:
    """As `filled`; where nobody named a database and there is none, nothing is measured yet.

    Raises:
        NothingMeasuredError: there is none, with the command that would bring what is asked for.
    """
    return stored_results.filled_if_any(path, filters, complain)
