"""A machine's noise floor: launches of one and the same thing, compared with each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accelbench.analysis.judging import METRICS, Judged, Metric, NoisePrior, judged
from accelbench.core.rows import Row, number
from accelbench.core.spreads import FEWEST_LAUNCHES
from accelbench.core.vocabulary import Status
from accelbench.measure.launches import (
    Noise,
    aa_noise,
    abba,
    least_effect,
    minimum_detectable_effect,
    required_launches,
)

#: Of so many launches a side it is told what they find.
_SIDES = (5, 10, 20, 40)


@dataclass(frozen=True)
class NoiseFloor:
    """One figure of one question, measured again and again."""

    row: Row
    metric: Metric
    values: tuple[float, ...]  # one a launch, in order of time
    noise: float
    against_itself: Judged  # every second one compared with the others: nothing changed

    @property
    def launches_for_the_least(self) -> int:
        """How many a side show the smallest change that counts at all."""
        return required_launches(self.noise)

    def finds(self) -> list[tuple[int, float, float | None]]:
        """For so many launches a side: what a change has to exceed, and which is found."""
        return [
            (k, least_effect(k, self.noise), minimum_detectable_effect(k, self.noise))
            for k in _SIDES
        ]


def floors(rows: Iterable[Row]) -> list[NoiseFloor]:
    """The noise of each question's figures; of those that ran in twice five launches and more."""
    rows_by_case: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("status") == Status.OK:
            rows_by_case.setdefault(str(row.get("case_id")), []).append(row)
    return [
        floor
        for launches in rows_by_case.values()
        for metric in METRICS
        if (floor := _floor(launches, metric)) is not None
    ]


def _floor(launches: Sequence[Row], metric: Metric) -> NoiseFloor | None:
    ordered = sorted(launches, key=lambda row: int(number(row, "launch") or 0))
    values = [value for row in ordered if (value := metric.of(row)) is not None and value > 0]
    noise = aa_noise(values)
    pairs = len(values) // 2
    if noise is None or pairs < FEWEST_LAUNCHES:
        return None
    arms = abba(pairs)
    sides = [[v for v, of in zip(values, arms, strict=False) if of == arm] for arm in "ab"]
    known = NoisePrior(Noise(noise, len(values) - 1), None)
    itself = judged(metric, sides[0], sides[1], known)
    return NoiseFloor(ordered[0], metric, tuple(values), noise, itself)
