"""What the hub's local cache holds, as its own library finds it. Asks nobody."""

from __future__ import annotations

from pathlib import Path

#: Loading a model begins with it, so that every model that was fetched has it.
_FIRST = "config.json"


def snapshot(hub_id: str) -> str | None:
    """The commit that loading a model by this id would take; None where it would be fetched."""
    folder = cached_folder(hub_id)
    return None if folder is None else folder.name


def cached_folder(hub_id: str) -> Path | None:
    """The folder of that commit in the cache; None where it would be fetched."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    try:
        path = try_to_load_from_cache(hub_id, _FIRST)
    except (OSError, ValueError):
        return None
    # A cached file lies in the folder of its commit; what is known not to exist is no path.
    return Path(path).parent if isinstance(path, str) else None
