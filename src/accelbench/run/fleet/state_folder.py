"""Where a fleet keeps what outlasts a command: tokens, what was started, journals of nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The one folder that all of it lies in."""
    if sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA", "~/AppData/Local"))
    elif sys.platform == "darwin":
        base = Path("~/Library/Application Support")
    else:
        base = Path(environment.get("XDG_STATE_HOME") or "~/.local/state")
    return base.expanduser() / "accelbench" / "fleet"
