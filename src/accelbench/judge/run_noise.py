"""By how much runs of a question differ: from the runs of its series that are stored. Pure.

A machine's noise floor: launches of one and the same thing, compared with each other. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import Row, number
from accelbench.core.unusable_reasons import is_from_table
from accelbench.core.vocabulary import Provenance, Status
from accelbench.evidence.launches import launches_of
from accelbench.judge.verdicts import METRICS, Judged, Metric, NoisePrior, judged
from accelbench.measure.launch_verdicts import (
    Noise,
    aa_noise,
    abba_order,
    least_effect,
    minimum_detectable_effect,
    pool_runs,
    required_launches,
)
from accelbench.measure.run_to_run_noise import Runs, find_gate_noise, noise_between

#: Runs of a series that are looked at, the newest.
OLDER_RUNS = 60
#: An import's run is everything that came with it, perhaps of years.


@dataclass(frozen=True)
class Run:
    """What the launches of one run of a series came to, by the names of metrics."""

    moment: str
    values: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Histories:
    """The runs of series on one machine, and which series ran alike."""

    runs: Mapping[str, Sequence[Run]] = field(default_factory=dict)  # by series
    beside: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)  # series

    def launches(self, row: Row, metric: Metric) -> Noise | None:
        """The noise of launches in older runs of a row's series."""
        runs = self.runs.get(str(row.get("series_key")), ())
        values = [run.values.get(metric.name, ()) for run in runs]
        return pool_runs([value for value in values if len(value) > 1])

    def between(self, row: Row, metric: Metric) -> Noise:
        """Return by how much runs of a row's series differ, for the interval of a comparison."""
        key = str(row.get("series_key"))
        return noise_between(self._of(key, metric), self._neighbours(row, metric), metric.runs)

    def for_gate(self, row: Row, metric: Metric, now: Sequence[float]) -> Noise:
        """Return by how much runs of a row's series differ, as a check takes it.

        Args:
            row: a result of the run that is judged.
            metric: the metric that is judged.
            now: the launches of that run: not noise, but one more run of its level.
        """
        key = str(row.get("series_key"))
        own = self._of(key, metric)
        moment = str(row.get("started_at") or "")
        at = sum(run.moment < moment for run in self._known(key, metric))
        runs = [*own[:at], now, *own[at:]]
        return find_gate_noise(runs, self._neighbours(row, metric), metric.runs, at)

    def _neighbours(self, row: Row, metric: Metric) -> Iterable[Runs]:
        key = str(row.get("series_key"))
        others = [other for other in self.beside.get(alike(row), ()) if other != key]
        return (self._of(other, metric) for other in others)

    def _of(self, key: str, metric: Metric) -> list[Sequence[float]]:
        return [run.values[metric.name] for run in self._known(key, metric)]

    def _known(self, key: str, metric: Metric) -> list[Run]:
        runs = sorted(self.runs.get(key, ()), key=lambda run: run.moment)[-OLDER_RUNS:]
        return [run for run in runs if run.values.get(metric.name)]


def histories(rows: Iterable[Row]) -> Histories:
    """Of results of one machine, one row a launch, where there is no store to ask.

    As a store is asked (`query.histories`): runs count that were measured here.
    """
    launches: dict[str, dict[str, list[Row]]] = {}
    for row in launches_of(rows):
        counts = row.get("status") == Status.OK and row.get("started_at") and _measured(row)
        if counts and row.get("series_key") and row.get("run_id"):
            of_series = launches.setdefault(str(row["series_key"]), {})
            of_series.setdefault(str(row["run_id"]), []).append(row)
    runs = {
        key: [Run(_moment(several), _values(several)) for several in of_series.values()]
        for key, of_series in launches.items()
    }
    about = {key: alike(next(iter(of_series.values()))[0]) for key, of_series in launches.items()}
    return of_runs(runs, about)


def of_runs(runs: Mapping[str, Sequence[Run]], about: Mapping[str, tuple[str, str]]) -> Histories:
    """Histories of runs that were read already.

    Args:
        runs: by series.
        about: the engine and the device of each series.
    """
    beside: dict[tuple[str, str], list[str]] = {}
    # Those with the longest history first: they know most.
    for key in sorted(runs, key=lambda run: (-len(runs[run]), run)):
        beside.setdefault(about[key], []).append(key)
    return Histories(runs, beside)


def of_one_run(a: Row, b: Row) -> bool:
    """Whether two results are launches of one run; an import is no run of anybody's."""
    run = a.get("run_id")
    return bool(run) and run == b.get("run_id") and not is_from_table(a)


def between_rows(a: Row, b: Row, known: Histories) -> Noise | None:
    """By how much two results' runs differ, by the louder series; None where they are of one."""
    if of_one_run(a, b):
        return None
    noises = (known.between(row, METRICS[0]) for row in (a, b))
    return max(noises, key=lambda noise: noise.value)


def alike(row: Row) -> tuple[str, str]:
    """What neighbours have in common: the engine and the device."""
    return str(row.get("runtime")), str(row.get("device_fingerprint") or row.get("device_name"))


def _measured(row: Row) -> bool:
    return row.get("provenance") == Provenance.MEASURED and bool(row["comparable"])


def _moment(rows: Sequence[Row]) -> str:
    return max(str(row.get("started_at")) for row in rows)


def _values(rows: Sequence[Row]) -> dict[str, list[float]]:
    return {
        metric.name: [value for row in rows if (value := metric.of(row)) is not None and value > 0]
        for metric in METRICS
    }


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
    arms = abba_order(pairs)
    sides = [[v for v, of in zip(values, arms, strict=False) if of == arm] for arm in "ab"]
    known = NoisePrior(Noise(noise, len(values) - 1), None)
    itself = judged(metric, sides[0], sides[1], known)
    return NoiseFloor(ordered[0], metric, tuple(values), noise, itself)
