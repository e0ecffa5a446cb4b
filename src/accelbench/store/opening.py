"""Which store an option names: a database file or a lake."""

from __future__ import annotations

import os
from pathlib import Path

from accelbench.store.database import DEFAULT_NAME, ENVIRONMENT, Database, default_path
from accelbench.store.places import FolderPlace, place_of


def store_at(option: Path | str | None = None) -> Database:
    """Return the database or the lake of an option, ACCELBENCH_DB, or the default."""
    # A folder that exists and a URL are lakes.
    word = option or os.environ.get(ENVIRONMENT)
    place = None if word is None else place_of(word)
    if place is not None:
        from accelbench.store.lake import Lake

        return Lake.at(place, str(word) if isinstance(place, FolderPlace) else "")
    return Database(default_path(Path(word) if word else None), typed=str(word or DEFAULT_NAME))
