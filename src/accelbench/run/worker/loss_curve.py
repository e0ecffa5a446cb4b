"""The losses of a few training steps without dropout, which nobody times."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

from accelbench.core.abilities import DropoutSwitchable, TrainingReference
from accelbench.core.clock import Clock
from accelbench.core.protocols import Session
from accelbench.core.serial import case_from_json
from accelbench.core.vocabulary import Timing
from accelbench.measure.losses import LossLog
from accelbench.measure.validated_session import CheckedSession
from accelbench.run.verify.timed_steps import CHANCE
from accelbench.run.verify.training_steps import TrainingSteps, WeightMoves


def loss_curve(
    session: Session,
    request: Mapping[str, Any],
    clock: Clock,
    wall: Clock | None,
    timed: TrainingSteps | None,
) -> dict[str, Any]:
    """Train from a fresh start; return the losses, and which weights moved.

    The steps are asked for in blocks that nobody foresees: what trains in the last step of a block
    alone has another curve.

    Args:
        session: the open model, which has to be DropoutSwitchable.
        request: the case, how many steps, and what a reference does otherwise: nudge, narrow.
        clock: the one that blocks are timed by.
        wall: one that the session does not own.
        timed: the steps of the case that were timed.
    """
    log = LossLog()
    checked = CheckedSession(session, clock, wall, log.note).session
    reference = session if isinstance(session, TrainingReference) else None
    nudge, narrow = request.get("nudge", 0.0), request.get("narrow", False)
    with cast(DropoutSwitchable, session).without_dropout():
        inputs = nudge_inputs(checked.prepare(case_from_json(request["case"])), nudge)
        if nudge and reference is not None:
            reference.nudge(nudge)
        moves = WeightMoves(session, request.get("draw", 0))
        with reference.narrow_products() if reference and narrow else nullcontext():
            left = request["steps"]
            while left:
                block = min(left, CHANCE.randint(1, request["steps"]))
                checked.sample(inputs, block, Timing.EACH)
                left -= block
        moved, still = moves.end()
    idle = timed.idle(moved) if timed is not None else []
    return {"losses": log.losses, "moved": moved, "still": still, "idle": idle}


def nudge_inputs(inputs: Any, by: float) -> Any:
    """Return a torch session's inputs with numbers a little larger; ids and labels as they are."""
    if not by:
        return inputs
    return {
        name: value * (1 + by) if value.is_floating_point() else value
        for name, value in inputs.items()
    }
