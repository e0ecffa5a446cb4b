"""In a worker: what a reference leaves to be compared with, and the comparison itself.

Nothing here is timed. Inputs are others than those that were: nobody can have remembered them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.catalog.inputs import repeating
from accelbench.catalog.last_places import last_places_moved
from accelbench.core.abilities import RoundingReference
from accelbench.core.errors import UnsupportedError
from accelbench.core.identity import plain
from accelbench.core.precision import FEW_VALUES
from accelbench.core.protocols import Session
from accelbench.core.serial import case_from_json
from accelbench.run.verify.agreement import agree, allowed_for
from accelbench.run.verify.reference_outputs import (
    OTHERS,
    RIGHT,
    Batches,
    Outputs,
    load,
    pick,
    save,
)
from accelbench.run.verify.self_check import other_seed, right_seed

#: How often others are drawn where one draw may lie near the first by chance, and a result be right
#: by chance: X-CLIP's one logit moved by a twentieth of what it moves by on the whole.
_DRAWS = 4


def left(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Leave a reference's outputs for its items and for others; say what rounding costs it."""
    case, folder, draw = _asked(request)
    precision = request["rounded"]
    if request["whole"]:
        right = pick(session.outputs(session.prepare(case, right_seed(seed))), draw)
        save(right, folder / RIGHT)
        for number in range(_DRAWS if _tells_little(right) else 1):
            # What is called with its own example has no other inputs: what its outputs amount to is
            # the yardstick then, as if those of others were nothing.
            other = _nothing(right)
            if case.model.inputs:
                other = pick(session.outputs(session.prepare(case, _other(seed, number))), draw)
            save(other, folder / OTHERS.format(number))
    if precision is None or not isinstance(session, RoundingReference):
        return {"rounded": None, "errors": {}}
    outputs = session.rounded(session.prepare(case, right_seed(seed)), precision)
    held = agree(outputs, *_kept(folder), precision, draw=draw)
    return {"rounded": finite(held.error), "errors": _finite(held.errors)}


def from_fp64(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """How far a reference is from itself in fp64."""
    if not isinstance(session, RoundingReference):
        raise UnsupportedError("no_fp64", "the reference does not compute in fp64")
    case = _asked(request)[0]
    return _from_itself(
        seed, request, lambda of_seed: session.exact(session.prepare(case, of_seed))
    )


def from_last_places(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """How far a reference is from itself where its inputs are off by their last places."""
    case = _asked(request)[0]

    def moved(of_seed: int) -> Mapping[str, Any]:
        with last_places_moved():
            inputs = session.prepare(case, of_seed)
        return session.outputs(inputs)

    return _from_itself(seed, request, moved)


def _from_itself(
    seed: int, request: Mapping[str, Any], again: Callable[[int], Mapping[str, Any]]
) -> dict[str, Any]:
    """How far outputs that ought to be a reference's are: at most, where it left several draws."""
    case, folder, draw = _asked(request)
    right, others = _kept(folder)
    seeds = [right_seed(seed), *(_other(seed, number) for number in range(len(others)))]
    draws = [right, *others]
    errors: dict[str, float] = {}
    worst = 0.0
    for number in range(len(draws) if len(others) > 1 else 1):
        rest = [sample for sample in draws if sample is not draws[number]]
        held = agree(again(seeds[number]), draws[number], rest, case.precision, draw=draw)
        worst = max(worst, held.error)
        for name, error in held.errors.items():
            errors[name] = max(error, errors.get(name, 0.0))
    return {"error": finite(worst), "errors": _finite(errors)}


def drawn(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Which outputs of a reference are others when the same inputs are run again."""
    case, folder, draw = _asked(request)
    first, again = (session.outputs(session.prepare(case, right_seed(seed))) for _ in range(2))
    held = agree(again, pick(first, draw), _kept(folder)[1], case.precision, draw=draw)
    return {"drawn": sorted(n for n, error in held.errors.items() if error > held.tolerance)}


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
    return {
        "evidence": plain(session.evidence()),
        "error": finite(held.error),
        "tolerance": held.tolerance,
        "errors": _finite(held.errors),
        "wrong": held.wrong,
        "telling": held.telling,
        "finite": held.finite,
    }


def finite(value: float) -> float | None:
    """A number as JSON holds it."""
    return value if math.isfinite(value) else None


def _finite(errors: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(error) for name, error in errors.items()}


def _asked(request: Mapping[str, Any]) -> tuple[Any, Path, int]:
    return case_from_json(request["case"]), Path(request["folder"]), request["draw"]


def _kept(folder: Path) -> tuple[Outputs, list[Outputs]]:
    others = (folder / OTHERS.format(number) for number in range(_DRAWS))
    return load(folder / RIGHT), [load(path) for path in others if path.exists()]


def _other(seed: int, number: int) -> int:
    return other_seed(seed) + number


def _nothing(outputs: Outputs) -> Outputs:
    return {
        name: replace(output, values=np.zeros_like(output.values))
        for name, output in outputs.items()
    }


def _tells_little(outputs: Outputs) -> bool:
    """Whether an output is of so few values that one other draw says little of its spread."""
    return any(
        output.is_number and 0 < output.values.size < FEW_VALUES for output in outputs.values()
    )
