"""Where Ray keeps sockets and logs of a fleet on this machine: in a folder of this user alone.

Ray makes its own folder, and all below, writable for everybody, and its sockets ask for no token.
So that folder lies in another, which nobody else may enter.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from accelbench.core.errors import SurroundingsError
from accelbench.core.visible import in_quotes

_PREFIX = "accelbench-ray-"
_PRIVATE = 0o700


def ray_folder() -> Path:
    """Ray's own folder: short, as the names of sockets may be no longer than 107 bytes.

    Raises:
        SurroundingsError: what lies around it is somebody else's.
    """
    user = _user()
    outer = Path(tempfile.gettempdir()) / f"{_PREFIX}{'user' if user is None else user}"
    outer.mkdir(mode=_PRIVATE, exist_ok=True)
    if not _is_own(outer):
        raise SurroundingsError(
            f"{in_quotes(str(outer))} is no folder of this user's, and Ray's sockets would lie in"
            " it.",
            "Have it removed, or set TMPDIR to a folder of your own.",
        )
    outer.chmod(_PRIVATE)
    return outer / "ray"


def keep_private(session: str) -> None:
    """The same of a node that joined: its head says where Ray's folder is, by the head's user.

    Args:
        session: the folder of Ray's session, within Ray's own; "" where it is not known.
    """
    outer = Path(session).parent.parent
    if session and outer.name.startswith(_PREFIX) and _is_own(outer):
        outer.chmod(_PRIVATE)


def _is_own(folder: Path) -> bool:
    there = folder.lstat()
    return stat.S_ISDIR(there.st_mode) and _user() in (None, there.st_uid)


def _user() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None
