"""Models by devices without operator graphs: each known device is a sample of a vector over models.

An item is a model in a runtime and precision. Its level is the mean over devices; what a device at
a setting adds is a shift and a vector over items, and the vectors of known devices give the
covariance by which a few items measured on a device say all others. Vectors that agree with what
was measured count more. Settings of one device share most of their vectors, the more the nearer
their numbers of threads are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from accelbench.predict.signatures import Floats, Ints
from prediction.measurements import TableMeasurement

Item = tuple[str, str, str]

_ROUNDS = 30
_SHRINKAGE = 2.0  # measurements that an effect of zero is worth
# Standard deviations, of logarithms: of a device's shift at least, of a setting's, of what each
# doubling of threads adds, of an item on a device beside all vectors, and of noise.
_SHIFT, _SETTING, _SLOPE, _ITEM, _NOISE = 0.4, 0.2, 0.3, 0.05, 0.06
_MIDDLE = 2.0  # doublings of threads about which slopes turn: four of them
_SHARED = 0.6  # of a vector, at every setting of a device
_LEVEL = 0.2  # of an item that was measured on one device
_AGREEMENT, _LEAST = 0.08, 0.02  # of the weight of a known device
_EXPECTED, _MOST_SURPRISING = 5.0, 4.0  # measurements that a scale of one is worth; deviations
_FREEDOM, _REWEIGHTINGS = 3.0, 6  # of the Student-t noise of what was measured


def item_of(m: TableMeasurement) -> Item:
    """What of a measurement is alike on every device."""
    return m.model, m.configuration.runtime, m.configuration.precision


def device_of(m: TableMeasurement) -> tuple[str, str]:
    """What has a vector: hardware at one setting, since threads change which models are fast."""
    return m.configuration.hardware, m.configuration.setting


def doublings(setting: str) -> float:
    """The logarithm to base two of a setting's threads, the middle where it names none."""
    threads = re.search(r"num_threads=(\d+)", setting)
    return float(np.log2(max(int(threads[1]), 1))) if threads else _MIDDLE


def _beside_threads(setting: str) -> str:
    return re.sub(r"num_threads=\d+", "", setting)


@dataclass(frozen=True)
class DeviceGrid:
    """Levels of items, what threads add, and the vectors of known devices."""

    items: dict[Item, int]
    level: Floats
    mean: float  # the shift of the mean device with one thread
    slope: float  # what a doubling of threads adds
    spread: float  # standard deviation of devices' shifts
    devices: tuple[tuple[str, str], ...]  # hardware and its setting
    vectors: Floats  # devices × items: less the level and the shift
    counts: Floats  # devices that an item was measured on

    @classmethod
    def of(cls, measurements: Sequence[TableMeasurement]) -> DeviceGrid:
        """The grid of measurements of one kind of hardware; repeats of a cell are averaged."""
        items = {item: n for n, item in enumerate(dict.fromkeys(map(item_of, measurements)))}
        numbers = {name: n for n, name in enumerate(dict.fromkeys(map(device_of, measurements)))}
        device = np.array([numbers[device_of(m)] for m in measurements])
        item = np.array([items[item_of(m)] for m in measurements])
        log_value = np.log([m.value for m in measurements])
        ways = {way: n for n, way in enumerate(dict.fromkeys(item[1:] for item in items))}
        way = np.array([ways[item[1:]] for item in items])
        group = device * len(ways) + way[item]
        level, shift, by_group = _effects(
            log_value, (item, device, group), (len(items), len(numbers), len(numbers) * len(ways))
        )
        sums, counts = np.zeros((2, len(numbers), len(items)))
        np.add.at(sums, (device, item), log_value - level[item] - shift[device])
        np.add.at(counts, (device, item), 1)
        # A vector is filled by its mean in a runtime and precision. To fill it by what the others'
        # covariance says made new phones 11.3 % wrong, from 8.3.
        start = by_group.reshape(len(numbers), -1)[:, way]
        vectors = np.where(counts > 0, sums / np.maximum(counts, 1), start)
        slope = _slope(shift, tuple(numbers))
        rest = shift - slope * np.array([doublings(name[1]) for name in numbers])
        return cls(
            items,
            level,
            float(rest.mean()),
            slope,
            float(rest.std()),
            tuple(numbers),
            vectors,
            (counts > 0).sum(axis=0).astype(np.float64),
        )

    def base(self, m: TableMeasurement) -> float:
        """The logarithm of a figure on the mean device."""
        threads = self.slope * doublings(m.configuration.setting)
        return float(self.level[self.items[item_of(m)]] + self.mean + threads)

    def without(self, device: str) -> DeviceGrid:
        """The same with one device fewer; levels keep what it added to them."""
        kept = [n for n, (name, _) in enumerate(self.devices) if name != device]
        names = tuple(self.devices[n] for n in kept)
        return replace(self, devices=names, vectors=self.vectors[kept])


def _effects(
    log_value: Floats, owners: tuple[Ints, ...], sizes: tuple[int, ...]
) -> tuple[Floats, Floats, Floats]:
    """Levels of items, shifts of devices and shrunken effects of groups, by backfitting."""
    effects = [np.zeros(size) for size in sizes]
    for _ in range(_ROUNDS):
        for n, owner in enumerate(owners):
            rest = log_value - sum(effects[k][other] for k, other in enumerate(owners) if k != n)
            counts = np.bincount(owner, minlength=sizes[n])
            shrinkage = _SHRINKAGE if n == len(owners) - 1 else 1e-6
            totals = np.bincount(owner, weights=rest, minlength=sizes[n])
            effects[n] = totals / (counts + shrinkage)
    return effects[0], effects[1], effects[2]


def _slope(shift: Floats, names: tuple[tuple[str, str], ...]) -> float:
    """What a doubling of threads adds to a shift, within devices."""
    threads = np.array([doublings(setting) for _, setting in names])
    across = along = 0.0
    for hardware in dict.fromkeys(name for name, _ in names):
        mine = np.array([name == hardware for name, _ in names])
        apart = threads[mine] - threads[mine].mean()
        across += float(apart @ (shift[mine] - shift[mine].mean()))
        along += float(apart @ apart)
    return across / along if along > 0 else 0.0


class DeviceProcess:
    """The Gaussian process of one device's rows, given the vectors of others."""

    def __init__(self, grid: DeviceGrid, rows: Sequence[TableMeasurement]) -> None:
        self.grid = grid
        self.item = np.array([grid.items[item_of(m)] for m in rows], dtype=np.int64)
        self.base = np.array([grid.base(m) for m in rows])
        names = list(dict.fromkeys(m.configuration.setting for m in rows))
        self.setting = np.array([names.index(m.configuration.setting) for m in rows])
        self.weights = np.full(len(grid.devices), 1 / max(len(grid.devices), 1))
        self.alike, self.shifts = _settings(names, max(_SHIFT, grid.spread))

    def choose(self, candidates: Ints, number: int) -> Ints:
        """The candidates that lower the variance of all of them most, one after the other."""
        pool = candidates[:: max(1, len(candidates) // 600)]
        covariance = self._covariance(pool, pool) + _NOISE**2 * np.eye(len(pool))
        chosen: list[int] = []
        for _ in range(min(number, len(pool))):
            gain = (covariance**2).sum(axis=0) / np.maximum(np.diag(covariance), 1e-9)
            gain[chosen] = -1
            best = int(np.argmax(gain))
            chosen.append(best)
            column = covariance[:, best].copy()
            covariance = covariance - np.outer(column, column) / max(column[best], 1e-9)
        return pool[np.array(sorted(chosen), dtype=np.int64)]

    def condition(self, known: Ints, log_value: Floats, wanted: Ints) -> tuple[Floats, Floats]:
        """Means and deviations of rows, given the logarithms measured of others."""
        residual = log_value - self.base[known]
        if len(known):
            self._weigh(known, residual)
        cross = self._covariance(wanted, known)
        inner = self._covariance(known, known)
        scale = _surprise(inner, residual)
        inner = inner + np.diag(_noise(inner, residual))
        solved = np.linalg.solve(inner, np.column_stack([residual, cross.T]))
        mean = self.base[wanted] + cross @ solved[:, 0]
        variance = self._variance(wanted) - np.einsum("ij,ji->i", cross, solved[:, 1:])
        return np.asarray(mean), scale * np.sqrt(np.maximum(variance, 0) + _NOISE**2)

    def _weigh(self, known: Ints, residual: Floats) -> None:
        """Count devices by how well their vectors agree with what was measured, up to a shift."""
        apart = residual[None] - self.grid.vectors[:, self.item[known]]
        setting = self.setting[known]
        for number in np.unique(setting):
            mine = setting == number
            apart[:, mine] -= np.median(apart[:, mine], axis=1, keepdims=True)
        deviation = np.median(np.abs(apart), axis=1)
        weights = np.exp(-deviation / _AGREEMENT) + _LEAST
        self.weights = weights / weights.sum()

    def _covariance(self, some: Ints, other: Ints) -> Floats:
        left, right = self.grid.vectors[:, self.item[some]], self.grid.vectors[:, self.item[other]]
        shared = (left * self.weights[:, None]).T @ right
        settings = np.ix_(self.setting[some], self.setting[other])
        same = self.item[some][:, None] == self.item[other][None]
        return np.asarray(shared * self.alike[settings] + self.shifts[settings] + _ITEM**2 * same)

    def _variance(self, rows: Ints) -> Floats:
        vectors = self.grid.vectors[:, self.item[rows]]
        shared = (vectors**2 * self.weights[:, None]).sum(axis=0)
        level = _LEVEL**2 / np.maximum(self.grid.counts[self.item[rows]], 1)
        shift = np.diag(self.shifts)[self.setting[rows]]
        return np.asarray(shared + level + shift + _ITEM**2)


def _noise(covariance: Floats, residual: Floats) -> Floats:
    """The variance of each measurement's noise: one that the others deny counts as a noisier."""
    noise = np.full(len(residual), _NOISE**2)
    for _ in range(_REWEIGHTINGS):
        mean = covariance @ np.linalg.solve(covariance + np.diag(noise), residual)
        apart = (residual - mean) ** 2
        noise = (_FREEDOM * _NOISE**2 + apart) / (_FREEDOM + 1)
    return noise


def _surprise(covariance: Floats, residual: Floats) -> float:
    """How far measurements are from what the others say of them, in deviations: 1 as expected."""
    inverse = np.linalg.inv(covariance + _NOISE**2 * np.eye(len(residual)))
    squares = (inverse @ residual) ** 2 / np.diag(inverse)
    total = _EXPECTED + float(np.minimum(squares, _MOST_SURPRISING**2).sum())
    return float(np.sqrt(total / (_EXPECTED + len(residual))))


def _settings(names: Sequence[str], shift: float) -> tuple[Floats, Floats]:
    """How alike vectors are between settings of a device, and the covariance of their shifts."""
    threads = np.array([doublings(name) for name in names])
    near = np.exp(-np.abs(threads[:, None] - threads[None]))
    beside = [_beside_threads(name) for name in names]
    same = np.array([[a == b for b in beside] for a in beside], dtype=np.float64)
    slopes = np.outer(threads - _MIDDLE, threads - _MIDDLE)
    shifts = shift**2 + _SLOPE**2 * slopes + _SETTING**2 * (near * same + np.eye(len(names)))
    return _SHARED + (1 - _SHARED) * near, shifts
