"""Where this user's caches are: artefacts, engines' own caches, a browser that was fetched."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER_VARIABLE = "ACCELBENCH_CACHE"


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The one folder that all of them lie in."""
    named = environment.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(environment.get("XDG_CACHE_HOME") or "~/.cache")
    return base.expanduser() / "accelbench"
