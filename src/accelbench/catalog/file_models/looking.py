"""Looking at a model's file, in a process that ends afterwards.

`python -m accelbench.catalog.file_models.looking FILE` prints one line of JSON. Files come from
anywhere: what the readers in C++ make of a hostile one ends that process, and not the command.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from accelbench.catalog.file_models.kinds import FileRefusedError, format_of
from accelbench.catalog.file_models.unchanged import stamp_of

_AT_ONCE = 1 << 24
#: Address space of the readers' code (OpenVINO's takes 1.5 GiB of it), and of what is read: a graph
#: and what is made of it. A number in one byte of a file may become eight in memory.
_READERS_BYTES, _TIMES_READ = 6 * 2**30, 4


def look(path: Path) -> dict[str, Any]:
    """What a file is.

    Raises:
        FileRefusedError: it is not measured.
    """
    kind = format_of(path)
    module = import_module(f"accelbench.catalog.file_models.{kind.value}_file")
    before = stamp_of([path])
    answer = module.look(path)
    files = [path, *map(Path, answer["beside"])]
    stamp = stamp_of(files)
    digest = digest_of(files)
    if (stamp_of([path]), stamp_of(files)) != (before, stamp):
        raise FileRefusedError("It was changed while it was read.", "Wait until it is whole.")
    return {"format": kind.value, "digest": digest, "stamp": stamp, **answer}


def digest_of(files: Iterable[Path]) -> str:
    """The SHA-256 of some files, one after the other."""
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while part := file.read(_AT_ONCE):
                whole.update(part)
    return whole.hexdigest()


def _bound(path: Path) -> None:
    """Bound this process's memory: a small file can ask its reader for a lot."""
    if sys.platform == "win32":
        return
    import resource

    held = path.stat().st_size + sum(
        beside.stat().st_size for beside in (path.with_suffix(".bin"),) if beside.is_file()
    )
    most = _READERS_BYTES + _TIMES_READ * held
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(arguments: Sequence[str]) -> None:
    """Print what a file is, or why it is not measured."""
    try:
        path = Path(arguments[0])
        if path.is_file():
            _bound(path)
        answer = look(path)
    except FileRefusedError as error:
        answer = {"error": error.message, "advice": error.advice}
    except (RecursionError, MemoryError) as error:
        answer = {"error": f"It is too much for its reader ({type(error).__name__}).", "advice": ""}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
