"""What agent and ranks are told, and the files by which they tell of a failure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

#: Of the environment of ranks: the folder, the agent's number, the key that admits who asks.
FOLDER_VARIABLE = "ACCELBENCH_RANKS"
AGENT_VARIABLE = "ACCELBENCH_RANKS_AGENT"
KEY_VARIABLE = "ACCELBENCH_RANKS_KEY"

_BACKENDS = {"cpu": "gloo"}  # NCCL on GPUs, and what ROCm's PyTorch calls so

LAUNCH, FAILURE, DOOR = "launch.json", "failure.json", "door"


@dataclass(frozen=True)
class RankLaunch:
    """One group of ranks, as one node starts its own."""

    run_id: str
    here: int  # ranks of this node
    backend: str  # gloo, or nccl, which ROCm's PyTorch calls RCCL's too
    threads: int  # of each
    seconds: float  # within which the others have to come
    collective_seconds: float  # that a collective waits for a rank that does not come
    nodes: int = 1
    node: int = 0
    rendezvous: str = ""  # host:port of node 0, where there are several

    def write(self, folder: Path) -> None:
        """Into a folder, where agent and ranks find it."""
        (folder / LAUNCH).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> RankLaunch:
        """Out of that folder."""
        return cls(**json.loads((folder / LAUNCH).read_text()))


def error_file(folder: Path, rank: int) -> Path:
    """Where a rank leaves why it gave up."""
    return folder / f"rank-{rank}.json"


def backend_of(hardware: str) -> str:
    """By which collectives are carried out."""
    return _BACKENDS.get(hardware, "nccl")
