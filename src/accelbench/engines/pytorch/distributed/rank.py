"""One rank: it joins the others and does with them what rank 0 is asked for.

    python -m accelbench.engines.pytorch.distributed.rank        started by torch's elastic agent

Rank 0 opens a door in the folder, where whoever has the key may ask. A question is passed on by a
group of gloo's that carries nothing else; all do the same and answer, and rank 0 gives the answers
in the order of the ranks. One that cannot go on says why in a file and ends, and with it all.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from accelbench.core import child_launcher
from accelbench.core.errors import CaseError
from accelbench.core.processes import BY_KERNEL
from accelbench.engines.pytorch.distributed.group import (
    AGENT_VARIABLE,
    DOOR,
    FOLDER_VARIABLE,
    KEY_VARIABLE,
    RankLaunch,
    error_file,
)

#: Between two questions anything may happen where the ranks are asked from: a day.
_IDLE = timedelta(days=1)
#: What is raised where a rank has waited for another in vain.
_LATE, _GONE = ("timed out", "timeout"), ("connection closed by peer", "connection reset")


def main() -> int:
    """Live a rank's life."""
    if BY_KERNEL:
        child_launcher.die_with_parent(int(os.environ[AGENT_VARIABLE]))
    else:
        child_launcher.die_with_pipe(sys.stdin.fileno())
    folder, rank = Path(os.environ[FOLDER_VARIABLE]), int(os.environ["RANK"])
    try:
        _serve(folder, rank)
    except BaseException as error:
        sys.stderr.write(traceback.format_exc())
        sys.stderr.flush()
        error_file(folder, rank).write_text(json.dumps(_described(error, rank)))
        return 1
    return 0


def _described(error: BaseException, rank: int) -> dict[str, Any]:
    if isinstance(error, CaseError):
        return {
            "status": error.status,
            "reason": error.reason,
            "message": f"rank {rank}: {error.message}",
            "advice": error.advice,
        }
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    late = _says(error, _LATE)
    vain = late or _says(error, _GONE)
    return {
        "status": "timeout" if late else "failed",
        "reason": "rank_lost" if vain else "exception",
        "message": f"rank {rank}: {said}",
        "advice": "",
        "in_vain": vain,
    }


def _says(error: BaseException, phrases: tuple[str, ...]) -> bool:
    first = str(error).strip().partition("\n")[0].lower()
    return any(phrase in first for phrase in phrases)


def _serve(folder: Path, rank: int) -> None:
    # Imported when ties and files are there: from now on whatever happens is told.
    import torch
    import torch.distributed as dist

    from accelbench.engines.pytorch.distributed.rank_session import Ranks, RankWork

    launch = RankLaunch.read(folder)
    torch.set_num_threads(launch.threads)
    local = int(os.environ["LOCAL_RANK"])
    if launch.backend == "nccl":
        torch.cuda.set_device(local)
    patience = timedelta(seconds=launch.collective_seconds)
    dist.init_process_group(launch.backend, timeout=patience)
    # Whoever asks waits for nobody longer than a collective does; who is asked waits for questions.
    questions = dist.new_group(backend="gloo", timeout=patience if rank == 0 else _IDLE)
    meeting = dist.new_group(backend="gloo", timeout=patience)
    ranks = Ranks(rank, dist.get_world_size(), local, questions, meeting, launch)
    work = RankWork(ranks)
    try:
        if rank == 0:
            _lead(folder, ranks, work)
        else:
            _follow(ranks, work)
    finally:
        work.close()
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


def _lead(folder: Path, ranks: Any, work: Any) -> None:
    key = bytes.fromhex(os.environ[KEY_VARIABLE])
    with Listener(str(folder / DOOR), authkey=key) as listener, listener.accept() as asker:
        while (question := _next(asker)) is not None:
            ranks.passed_on(question)
            asker.send(ranks.gathered(work.answer(question)))
        ranks.passed_on(None)


def _next(asker: Connection) -> dict[str, Any] | None:
    try:
        question: dict[str, Any] | None = asker.recv()
    except (EOFError, OSError):
        return None
    return question


def _follow(ranks: Any, work: Any) -> None:
    while (question := _passed_on(ranks)) is not None:
        ranks.gathered(work.answer(question))


def _passed_on(ranks: Any) -> dict[str, Any] | None:
    """Return the next question; None if there is none any more, or rank 0 has gone between two.

    Whoever asks may be ended without a word, and rank 0 with it: nothing is lost by that.
    """
    try:
        question: dict[str, Any] | None = ranks.passed_on(None)
    except RuntimeError as error:
        if not _says(error, _GONE):
            raise
        return None
    return question


if __name__ == "__main__":
    sys.exit(main())
