"""In a worker: what a reference leaves to be compared with, and the comparison itself.

Nothing here is timed. Inputs are others than those that were: nobody can have remembered them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.catalog.inputs import repeating
from accelbench.core.errors import UnsupportedError
from accelbench.core.identity import plain
from accelbench.core.protocols import Candid, Session
from accelbench.core.serial import case_from_json
from accelbench.measure.loop import refuse_fallback
from accelbench.run.agreement import agree, allowed_for
from accelbench.run.kept import OTHER, RIGHT, Batches, Outputs, load, pick, save
from accelbench.run.selfcheck import other_seed, right_seed


def left(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Leave a reference's outputs for its items and for others; say what rounding costs it."""
    case, folder, draw = _asked(request)
    precision = request["rounded"]
    if request["whole"]:
        for name, drawn in ((RIGHT, right_seed(seed)), (OTHER, other_seed(seed))):
            save(pick(session.outputs(session.prepare(case, drawn)), draw), folder / name)
    error = None
    if precision is not None and isinstance(session, Candid):
        found = session.rounded(session.prepare(case, right_seed(seed)), precision)
        error = finite(agree(found, *_kept(folder), precision, draw=draw).error)
    return {"rounded": error}


def from_fp64(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """How far a reference is from itself in fp64."""
    case, folder, draw = _asked(request)
    if not isinstance(session, Candid):
        raise UnsupportedError("no_fp64", "the reference does not compute in fp64")
    found = session.exact(session.prepare(case, right_seed(seed)))
    return {"error": finite(agree(found, *_kept(folder), case.precision, draw=draw).error)}


def compared(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Hold a whole batch against the few items of the reference that it repeats."""
    case, folder, draw = _asked(request)
    items = request["items"]
    with repeating(items):
        inputs = session.prepare(case, right_seed(seed))
    held = agree(
        session.outputs(inputs),
        *_kept(folder),
        case.precision,
        allowed=allowed_for(case.precision, request["rounded"]),
        batches=Batches(items, case.shapes.batch),
        draw=draw,
    )
    evidence = session.evidence()
    refuse_fallback(evidence)
    return {
        "evidence": plain(evidence),
        "error": finite(held.error),
        "tolerance": held.tolerance,
        "errors": {name: finite(error) for name, error in held.errors.items()},
        "wrong": held.wrong,
        "telling": held.telling,
    }


def finite(value: float) -> float | None:
    """A number as JSON holds it."""
    return value if math.isfinite(value) else None


def _asked(request: Mapping[str, Any]) -> tuple[Any, Path, int]:
    return case_from_json(request["case"]), Path(request["folder"]), request["draw"]


def _kept(folder: Path) -> tuple[Outputs, Outputs]:
    return load(folder / RIGHT), load(folder / OTHER)
