"""Torch's elastic agent as a process: it starts the ranks of this node and ends them together.

    python -m accelbench.engines.pytorch.distributed.agent FOLDER

FOLDER has `launch.json`, a `RankLaunch`. If a rank fails, the others are ended, and which one it
was and how it ended is left in `failure.json`.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

from accelbench.engines.pytorch.distributed.group import (
    AGENT_VARIABLE,
    FAILURE,
    FOLDER_VARIABLE,
    RankLaunch,
)

#: What a rank may take to end by itself when it is told to; one that hangs does not.
_END_SECONDS = 3
_RANK = "accelbench.engines.pytorch.distributed.rank"
_LAST_LINES = 12
_LOGS = "logs"


def main(folder: Path) -> int:
    """Start the ranks, and wait for their end."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    launch = RankLaunch.read(folder)
    os.environ[AGENT_VARIABLE] = str(os.getpid())
    os.environ[FOLDER_VARIABLE] = str(folder)
    alone = launch.nodes == 1
    config = LaunchConfig(
        min_nodes=launch.nodes,
        max_nodes=launch.nodes,
        nproc_per_node=launch.here,
        # Machines that meet at one place have one run of training at a time.
        run_id=uuid.uuid4().hex if alone else "accelbench",
        rdzv_backend="c10d" if alone else "static",
        rdzv_endpoint="127.0.0.1:0" if alone else launch.rendezvous,
        rdzv_configs={"timeout": launch.seconds} | ({} if alone else {"rank": launch.node}),
        local_addr="127.0.0.1" if alone else None,
        max_restarts=0,
        monitor_interval=0.05,
        shutdown_timeout=_END_SECONDS,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / _LOGS), redirects=Std.ALL),
    )
    try:
        elastic_launch(config, sys.executable)("-P", "-m", _RANK)
    except ChildFailedError as error:
        # Whoever was killed is the cause, and not who then missed it.
        rank, failure = min(
            error.failures.items(), key=lambda entry: (entry[1].exitcode >= 0, entry[1].timestamp)
        )
        body = {
            "rank": rank,
            "exit_code": failure.exitcode,
            "last_lines": last_lines(folder, failure.local_rank),
        }
        (folder / FAILURE).write_text(json.dumps(body))
        return 1
    return 0


def last_lines(folder: Path, local_rank: int) -> list[str]:
    """Return the last lines of a rank of this node on its error stream."""
    # The failure itself names no file where the rank left none of torch's own making.
    logs = sorted(folder.glob(f"{_LOGS}/*/attempt_*/{local_rank}/stderr.log"))
    words = logs[-1].read_text(errors="replace").strip() if logs else ""
    return words.splitlines()[-_LAST_LINES:]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
