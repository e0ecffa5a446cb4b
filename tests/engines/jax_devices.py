"""A step of one device and of two, in a process of its own: XLA parts a processor as it starts.

python jax_devices.py FILE       leaves what each way gave, as NumPy's arrays and JSON
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from made_up import THREE_CLASSES, made_up
from torch import nn
from training_sessions import CPU, case_of

from accelbench.core.abilities import RankExchange
from accelbench.core.case import Target
from accelbench.core.model import InputSpec
from accelbench.core.protocols import Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Timing
from accelbench.engines.jax import JaxRuntime
from accelbench.engines.jax.session import JaxSession

#: The ways of a step: those of two devices first, as the processor is parted once.
WAYS = ("ddp", "fsdp", "alone")
BATCH, WIDTH = 8, 16


class SmallEncoder(nn.Module):
    """What a step has to do with: a table, attention, both kinds of norms, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, WIDTH)
        self.joined = nn.Linear(WIDTH, 3 * WIDTH)
        self.layer_norm = nn.LayerNorm(WIDTH)
        self.batch_norm = nn.BatchNorm1d(WIDTH)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.table(ids)
        split = self.joined(hidden).unflatten(-1, (3, 2, WIDTH // 2)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*split.unbind(0))
        hidden = self.layer_norm(hidden + seen.transpose(1, 2).flatten(2)).mean(1)
        return {"logits": self.head(self.drop(self.batch_norm(hidden)))}


MODEL = made_up(
    SmallEncoder, InputSpec("ids", ("batch", 6), "int64", 0, 50), training=THREE_CLASSES
)


def opened(way: str) -> JaxSession:
    """A session of a way."""
    case = case_of(MODEL, batch=BATCH, optimizer="sgd")
    case = replace(case, target=Target("jax", "cpu"))
    if way != "alone":
        case = replace(case, world_size=2, options={**case.options, "strategy": way})
    session = JaxRuntime().open(Job(case, CPU, JobSettings(threads=2)))
    assert isinstance(session, JaxSession)
    return session


def stepped(session: JaxSession, way: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """The first step's gradients and five losses, with dropout, and what is told of them."""
    case = session._job.case
    inputs = session.prepare(case)
    session.compile(inputs)
    first = session.sample(inputs, 1, Timing.EACH).losses
    # What SGD's momentum begins with is the gradient itself.
    gradients = session._procedure._state["first"]
    arrays |= {f"{way} {name}": np.asarray(gradient) for name, gradient in gradients.items()}
    later = session.sample(inputs, 4, Timing.EACH).losses
    session.inspect(inputs)
    evidence = session.evidence()
    weights = session._model.weights.values()
    return {
        "losses": [*first, *later],
        "digest": session.weights_digest,
        "devices": evidence.devices,
        "threads": evidence.details["threads"],
        "details": evidence.details.get("distributed"),
        "bytes_of_a_device": sum(w.addressable_shards[0].data.nbytes for w in weights),
        "exchanged": dict(session.exchanged(case)) if isinstance(session, RankExchange) else None,
    }


def main(file: Path) -> None:
    """Every way."""
    arrays: dict[str, Any] = {}
    told = {}
    for way in WAYS:
        session = opened(way)
        told[way] = stepped(session, way, arrays)
        session.close()
    np.savez(file, **arrays)
    file.with_suffix(".json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
