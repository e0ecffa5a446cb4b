"""Looking at a model's file, in a process that ends afterwards.

`python -m accelbench.models.file_models.looking FILE SHAPES` prints a description of the file,
then the cost of a pass. A hostile file can end only this process by the readers' C++ code.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.core.jsonc import loads
from accelbench.core.model import FileFormat
from accelbench.core.processes import send_answer
from accelbench.models.file_models.kinds import FileRefusedError, format_of, reader_of
from accelbench.models.file_models.unchanged import digest_of, stamp_of
from accelbench.models.graph_files.costs import graph_name

_COUNTING_SECONDS = 30
#: Address space of the readers' code (OpenVINO's takes 1.5 GiB of it), and of what is read: a graph
#: and what is made of it. A number in one byte of a file may become eight in memory.
_READERS_BYTES, _TIMES_READ = 6 * 2**30, 4


def look(path: Path) -> dict[str, Any]:
    """Describe a file, or raise FileRefusedError."""
    kind = format_of(path)
    before = stamp_of([path])
    answer = reader_of(kind).look(path)
    if not answer["inputs"]:
        raise FileRefusedError("It takes no input: what it gives is a constant.")
    files = [path, *map(Path, answer["beside"])]
    stamp = stamp_of(files)
    digest = digest_of(files)
    if (stamp_of([path]), stamp_of(files)) != (before, stamp):
        raise FileRefusedError("It was changed while it was read.", "Wait until it is whole.")
    return {"format": kind, "digest": digest, "stamp": stamp, **answer}


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
    """Print the description of a file, or its refusal."""
    try:
        path = Path(arguments[0])
        if path.is_file():
            _bound(path)
        answer = look(path)
    except FileRefusedError as error:
        answer = {"error": error.message, "advice": error.advice}
    except (RecursionError, MemoryError) as error:
        answer = {"error": f"It is too much for its reader ({type(error).__name__}).", "advice": ""}
    send_answer(answer)
    if "error" not in answer:
        send_answer(_count_costs(path, FileFormat(answer["format"]), loads(arguments[1])))


def _count_costs(path: Path, kind: FileFormat, shapes: Mapping[str, Any]) -> dict[str, Any]:
    if kind.uncounted:
        return {"uncounted": kind.uncounted}
    from accelbench.models.graph_files.costs import count_file
    from accelbench.models.graph_files.steps import UntracedError

    if sys.platform != "win32":
        signal.alarm(_COUNTING_SECONDS)  # ends the process: what was looked at has been told
    try:
        return {"counted": count_file(path, graph_name(kind), shapes)}
    except UntracedError as error:
        message = error.message.rstrip(".")
        return {"uncounted": message[:1].lower() + message[1:]}
    except Exception as error:  # of readers, on what engines may take all the same
        return {"uncounted": f"counting it failed ({type(error).__name__})"}


if __name__ == "__main__":
    main(sys.argv[1:])
