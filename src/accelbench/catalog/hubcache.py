"""What the hub's local cache holds, by its own layout. Reads two small files, asks nobody."""

from __future__ import annotations

from pathlib import Path


def snapshot(hub_id: str) -> str | None:
    """The commit that loading a model by this id would take; None where it would be fetched.

    <cache>/models--<owner>--<name>/refs/main names the folder beneath snapshots/.
    """
    try:
        from huggingface_hub import constants
    except ImportError:
        return None
    folder = Path(constants.HF_HUB_CACHE) / f"models--{hub_id.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return commit if commit and (folder / "snapshots" / commit).is_dir() else None
