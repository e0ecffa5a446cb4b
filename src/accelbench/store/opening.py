"""Choice between a database file and a lake for an option."""

from __future__ import annotations

import os
from pathlib import Path

from accelbench.store.database import DEFAULT_NAME, ENVIRONMENT, Database, default_path
from accelbench.store.places import FolderPlace, parse_place


def open_store(option: Path | str | None = None) -> Database:
    """Return the database or the lake of an option, ACCELBENCH_DB, or the default."""
    # A folder that exists and a URL are lakes.
    word = option or os.environ.get(ENVIRONMENT)
    place = None if word is None else parse_place(word)
    if place is not None:
        from accelbench.store.lake import Lake

        return Lake.from_place(place, str(word) if isinstance(place, FolderPlace) else "")
    return Database(
        default_path(Path(word) if word else None), typed_path=str(word or DEFAULT_NAME)
    )
