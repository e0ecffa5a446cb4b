"""A worker's comparison of outputs with a reference, and the outputs that a reference leaves.

Nothing here is timed. The inputs differ from the timed ones, so no engine can have remembered
outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from accelbench.core.abilities import RoundingReference
from accelbench.core.case import Case
from accelbench.core.clock import Clock
from accelbench.core.errors import UnsupportedError
from accelbench.core.identity import to_plain
from accelbench.core.precision import FEW_VALUES
from accelbench.core.protocols import Session
from accelbench.core.serial import case_from_json
from accelbench.models.inputs import choosing, last_places_moved
from accelbench.run.verify.agreement import (
    OTHERS,
    RIGHT,
    Agreement,
    Batches,
    Outputs,
    agree,
    join_complex_pairs,
    load,
    pick,
    rows_of,
    save,
)
from accelbench.run.verify.self_check import other_seed, right_seed
from accelbench.run.verify.timed_steps import copied_items, moved_items
from accelbench.run.verify.verdicts import compute_tolerance

#: How often others are drawn where one draw may lie near the first by chance, and a result be right
#: by chance: X-CLIP's one logit moved by a twentieth of what it moves by on the whole.
_DRAWS = 4

#: A batch with more outputs is not run once more: to sort them takes as long.
_SMALL_BYTES = 2**26


def left(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Store a reference's outputs for its items and for others; return what rounding costs it."""
    case, folder, draw = _asked(request)
    precision = request["rounded"]
    if request["whole"]:
        right = pick(session.outputs(_prepared(session, seed, request)), draw)
        save(right, folder / RIGHT)
        for number in range(_DRAWS if _tells_little(right) else 1):
            # What is called with its own example has no other inputs: what its outputs amount to is
            # the yardstick then, as if those of others were nothing.
            other = _nothing(right)
            if case.model.inputs:
                inputs = _prepared(session, seed, request, _other(seed, number))
                other = pick(session.outputs(inputs), draw)
            save(other, folder / OTHERS.format(number))
    if precision is None or not isinstance(session, RoundingReference):
        return {"rounded": None, "errors": {}}
    outputs = session.rounded(_prepared(session, seed, request), precision)
    held = agree(outputs, *_kept(folder), precision)
    return {"rounded": finite(held.error), "errors": _finite(held.errors)}


def from_fp64(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how far a reference is from itself in fp64."""
    if not isinstance(session, RoundingReference):
        raise UnsupportedError("no_fp64", "the reference does not compute in fp64")
    return _from_itself(
        seed, request, lambda of_seed: session.exact(_prepared(session, seed, request, of_seed))
    )


def from_last_places(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how far a reference is from itself with inputs that are off by their last places."""

    def moved(of_seed: int) -> Mapping[str, Any]:
        with last_places_moved():
            inputs = _prepared(session, seed, request, of_seed)
        return session.outputs(inputs)

    return _from_itself(seed, request, moved)


def _from_itself(
    seed: int, request: Mapping[str, Any], again: Callable[[int], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the largest error of outputs that should be a reference's, over its draws."""
    case, folder, _ = _asked(request)
    right, others = _kept(folder)
    seeds = [right_seed(seed), *(_other(seed, number) for number in range(len(others)))]
    draws = [right, *others]
    errors: dict[str, float] = {}
    worst = 0.0
    for number in range(len(draws) if len(others) > 1 else 1):
        rest = [sample for sample in draws if sample is not draws[number]]
        held = agree(again(seeds[number]), draws[number], rest, case.precision)
        worst = max(worst, held.error)
        for name, error in held.errors.items():
            errors[name] = max(error, errors.get(name, 0.0))
    return {"error": finite(worst), "errors": _finite(errors)}


def drawn(session: Session, seed: int, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a reference that differ when the same inputs are run again."""
    case, folder, draw = _asked(request)
    first, again = (session.outputs(_prepared(session, seed, request)) for _ in range(2))
    held = agree(again, pick(first, draw), _kept(folder)[1], case.precision)
    return {"drawn": sorted(n for n, error in held.errors.items() if error > held.tolerance)}


class OutputComparison:
    """A session's comparisons with references. It keeps the outputs of items in doubt."""

    def __init__(self, session: Session, seed: int, wall: Clock | None) -> None:
        """Prepare to compare; `wall` is a clock that the session does not own."""
        self._session, self._seed, self._wall = session, seed, wall
        self._kept: list[Mapping[str, Any]] = []  # outputs of the items in doubt, of each run

    def compare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Compare a batch, in a random order, with the items that the reference has computed.

        The answer names items that are still in doubt; a second request compares those.
        """
        yardstick = _Yardstick.of(request)
        if request.get("doubted"):
            kept, self._kept = self._kept, []
            runs = [yardstick.agree(outputs, yardstick.items) for outputs in kept]
            held, doubted = max(runs, key=lambda held: held.error), list[int]()
        else:
            held, doubted = self._compare(yardstick)
        evidence = to_plain(self._session.evidence())
        return {**_answer(held), "evidence": evidence, "doubted": doubted}

    def _compare(self, yardstick: _Yardstick) -> tuple[Agreement, list[int]]:
        """Run a batch and return its agreement with the reference, and the items in doubt."""
        self._kept = []
        order, again = yardstick.orders()
        outputs, took_ns = self._run(yardstick, order)
        held = yardstick.agree(outputs, order)
        if not (held.ok and held.telling) or set(order) <= set(yardstick.items):
            return held, []
        runs = {order: outputs}
        doubted = copied_items(
            outputs, yardstick.right, yardstick.batches(order), yardstick.precision, yardstick.draw
        )
        if not doubted and yardstick.spares(took_ns, outputs):
            runs[again] = self._run(yardstick, again)[0]
            second = yardstick.agree(runs[again], again)
            if not second.ok:
                return second, []
            doubted = moved_items(
                runs, yardstick.right, yardstick.others, yardstick.items, yardstick.precision
            )
        if doubted:
            self._kept = [yardstick.only(found, of, doubted) for of, found in runs.items()]
        return held, doubted

    def _run(
        self, yardstick: _Yardstick, order: Sequence[int]
    ) -> tuple[Mapping[str, Any], int | None]:
        """Return the outputs of items in this order, and how long the session took."""
        with choosing(order):
            inputs = self._session.prepare(yardstick.case, right_seed(self._seed))
        start = self._wall.now_ns() if self._wall else 0
        outputs = self._session.outputs(inputs)
        took_ns = self._wall.now_ns() - start if self._wall else None
        return join_complex_pairs(outputs, yardstick.right), took_ns


@dataclass(frozen=True)
class _Yardstick:
    """What a batch is compared with."""

    case: Case
    items: tuple[int, ...]  # of the reference
    right: Outputs
    others: list[Outputs]
    allowed: float
    draw: int
    spare_ns: float  # what a second run may take

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> _Yardstick:
        case, folder, draw = _asked(request)
        allowed = compute_tolerance(case.tolerance_precision, request["rounded"])
        spare_ns = request.get("spare_ns", 0.0)
        return cls(case, tuple(request["items"]), *_kept(folder), allowed, draw, spare_ns)

    @property
    def precision(self) -> str:
        return self.case.tolerance_precision

    def batches(self, order: tuple[int, ...]) -> Batches:
        return Batches(self.items, order)

    def orders(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return two orders of the batch's items, so that no position is known to be compared."""
        # If the reference has all items of the batch, they are in order, as for the reference.
        batch = self.case.shapes.batch
        if set(range(batch)) <= set(self.items):
            return (tuple(range(batch)),) * 2
        random = np.random.default_rng([self.draw, batch])
        first, second = (tuple(random.permutation(batch).tolist()) for _ in range(2))
        return first, second if second != first else first[::-1]

    def spares(self, took_ns: int | None, outputs: Mapping[str, Any]) -> bool:
        """Return whether there is time for another run like one that took so long."""
        nbytes = sum(np.asarray(output).nbytes for output in outputs.values())
        return took_ns is not None and took_ns <= self.spare_ns and nbytes <= _SMALL_BYTES

    def agree(self, outputs: Mapping[str, Any], order: tuple[int, ...]) -> Agreement:
        return agree(
            outputs, self.right, self.others, self.precision,
            allowed=self.allowed, batches=self.batches(order),
        )  # fmt: skip

    def only(
        self, outputs: Mapping[str, Any], order: tuple[int, ...], items: Sequence[int]
    ) -> dict[str, Any]:
        rows = np.array([order.index(item) for item in items], np.int64)
        return {
            name: np.array(rows_of(outputs[name], output.shape, rows, self.batches(order)))
            for name, output in self.right.items()
        }


def _answer(held: Agreement) -> dict[str, Any]:
    return {
        "error": finite(held.error),
        "tolerance": held.tolerance,
        "errors": _finite(held.errors),
        "wrong": held.wrong,
        "telling": held.telling,
        "finite": held.finite,
        "numeric": held.numeric,
    }


def finite(value: float) -> float | None:
    """Return a number as JSON holds it."""
    return value if math.isfinite(value) else None


def _finite(errors: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(error) for name, error in errors.items()}


def _prepared(
    session: Session, seed: int, request: Mapping[str, Any], of_seed: int | None = None
) -> Any:
    """Prepare a reference's items, of the seed of the comparison unless another is given."""
    with choosing(request["items"]):
        case = case_from_json(request["case"])
        return session.prepare(case, right_seed(seed) if of_seed is None else of_seed)


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
    """Return whether an output has so few values that one other draw does not show its spread."""
    return any(
        output.is_number and 0 < output.values.size < FEW_VALUES for output in outputs.values()
    )
