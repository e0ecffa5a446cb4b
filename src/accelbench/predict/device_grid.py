"""Models by devices without operator graphs: each known device is a sample of a vector over models.

An item is a model in a runtime and precision. Its level is the mean over devices; what a device
adds is a vector over items, and the vectors of known devices give the covariance by which a few
items measured on a device say all others. Vectors that agree with what was measured count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.graphs import Floats, Ints
from accelbench.predict.measurements import TableMeasurement

Item = tuple[str, str, str]

_ROUNDS = 15
_SHRINKAGE = 2.0  # measurements that an effect of zero is worth
_SHIFT, _SETTING, _NOISE = 0.4, 0.3, 0.06  # standard deviations, of logarithms
_LEVEL = 0.2  # of an item that was measured on one device
_AGREEMENT, _LEAST = 0.08, 0.02  # of the weight of a known device


def item_of(m: TableMeasurement) -> Item:
    """What of a measurement is alike on every device."""
    return m.model, m.configuration.runtime, m.configuration.precision


def device_of(m: TableMeasurement) -> tuple[str, str]:
    """What has a vector: hardware at one setting, since threads change which models are fast."""
    return m.configuration.hardware, m.configuration.setting


@dataclass(frozen=True)
class DeviceGrid:
    """Levels of items, effects of settings, and the vectors of known devices."""

    items: dict[Item, int]
    level: Floats
    settings: dict[str, float]
    devices: tuple[tuple[str, str], ...]  # hardware and its setting
    vectors: Floats  # devices × items: less the level
    counts: Floats  # devices that an item was measured on

    @classmethod
    def of(cls, measurements: Sequence[TableMeasurement]) -> DeviceGrid:
        """The grid of measurements of one kind of hardware; repeats of a cell are averaged."""
        items = {one: n for n, one in enumerate(dict.fromkeys(map(item_of, measurements)))}
        names = tuple(dict.fromkeys(map(device_of, measurements)))
        numbers = {name: n for n, name in enumerate(names)}
        settings = list(dict.fromkeys(m.configuration.setting for m in measurements))
        device = np.array([numbers[device_of(m)] for m in measurements])
        item = np.array([items[item_of(m)] for m in measurements])
        setting = np.array([settings.index(m.configuration.setting) for m in measurements])
        log_value = np.log([m.value for m in measurements])
        # A device's vector is filled by its mean in a runtime and precision where it is empty.
        kinds = {kind: n for n, kind in enumerate(dict.fromkeys(one[1:] for one in items))}
        kind_of = np.array([kinds[one[1:]] for one in items])
        group = device * len(kinds) + kind_of[item]
        sizes = (len(items), len(names) * len(kinds), len(names), len(settings))
        level, by_group, by_device, by_setting = _effects(
            log_value, (item, group, device, setting), sizes
        )
        filled = by_device[:, None] + by_group.reshape(len(names), -1)[:, kind_of]
        rest = log_value - level[item] - by_setting[setting]
        sums, counts = np.zeros(filled.shape), np.zeros(filled.shape)
        np.add.at(sums, (device, item), rest)
        np.add.at(counts, (device, item), 1)
        vectors = np.where(counts > 0, sums / np.maximum(counts, 1), filled)
        return cls(
            items,
            level,
            dict(zip(settings, by_setting, strict=True)),
            names,
            vectors,
            (counts > 0).sum(axis=0).astype(np.float64),
        )

    def base(self, m: TableMeasurement) -> float:
        """The logarithm of a figure on the mean device."""
        setting = self.settings.get(m.configuration.setting, 0.0)
        return float(self.level[self.items[item_of(m)]] + setting)

    def without(self, device: str) -> DeviceGrid:
        """The same with one device fewer; levels keep what it added to them."""
        kept = [n for n, (name, _) in enumerate(self.devices) if name != device]
        names = tuple(self.devices[n] for n in kept)
        return DeviceGrid(
            self.items, self.level, self.settings, names, self.vectors[kept], self.counts
        )


def _effects(
    log_value: Floats, owners: tuple[Ints, ...], sizes: tuple[int, ...]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Levels of items and shrunken effects of groups, devices and settings, by backfitting."""
    effects = [np.zeros(size) for size in sizes]
    for _ in range(_ROUNDS):
        for n, owner in enumerate(owners):
            rest = log_value - sum(effects[k][other] for k, other in enumerate(owners) if k != n)
            counts = np.bincount(owner, minlength=sizes[n])
            shrinkage = 1e-6 if n == 0 else _SHRINKAGE
            totals = np.bincount(owner, weights=rest, minlength=sizes[n])
            effects[n] = totals / (counts + shrinkage)
    return effects[0], effects[1], effects[2], effects[3]


class DeviceProcess:
    """The Gaussian process of one device's rows, given the vectors of others."""

    def __init__(self, grid: DeviceGrid, rows: Sequence[TableMeasurement]) -> None:
        self.grid = grid
        self.item = np.array([grid.items[item_of(m)] for m in rows], dtype=np.int64)
        self.base = np.array([grid.base(m) for m in rows])
        names = list(dict.fromkeys(m.configuration.setting for m in rows))
        self.setting = np.array([names.index(m.configuration.setting) for m in rows])
        self.weights = np.full(len(grid.devices), 1 / max(len(grid.devices), 1))

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
        own = self._variance(wanted)
        inner = self._covariance(known, known) + _NOISE**2 * np.eye(len(known))
        solved = np.linalg.solve(inner, np.column_stack([residual, cross.T]))
        mean = self.base[wanted] + cross @ solved[:, 0]
        variance = own - np.einsum("ij,ji->i", cross, solved[:, 1:])
        return np.asarray(mean), np.sqrt(np.maximum(variance, 0) + _NOISE**2)

    def _weigh(self, known: Ints, residual: Floats) -> None:
        """Count devices by how well their vectors agree with what was measured, up to a shift."""
        apart = residual[None] - self.grid.vectors[:, self.item[known]]
        apart = apart - np.median(apart, axis=1, keepdims=True)
        deviation = np.median(np.abs(apart), axis=1)
        weights = np.exp(-deviation / _AGREEMENT) + _LEAST
        self.weights = weights / weights.sum()

    def _covariance(self, one: Ints, other: Ints) -> Floats:
        left, right = self.grid.vectors[:, self.item[one]], self.grid.vectors[:, self.item[other]]
        shared = (left * self.weights[:, None]).T @ right
        same = self.setting[one][:, None] == self.setting[other][None]
        return np.asarray(shared + _SHIFT**2 + _SETTING**2 * same)

    def _variance(self, rows: Ints) -> Floats:
        vectors = self.grid.vectors[:, self.item[rows]]
        shared = (vectors**2 * self.weights[:, None]).sum(axis=0)
        level = _LEVEL**2 / np.maximum(self.grid.counts[self.item[rows]], 1)
        return np.asarray(shared + level + _SHIFT**2 + _SETTING**2)
