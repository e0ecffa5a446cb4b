"""What measured neighbours say of a cell of a table of models by devices. Pure.

A cell is a model on a device in a runtime and precision. Its neighbours are the same model on
other devices, brought to a common level by each device's offset, and other cells of the model and
its family on the same device. What is of the cell itself is left out of its features, so those of
a measured cell look as if it were empty. Releases near in time count most: a device whose power
mode was changed between two releases became three times faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.signatures import Floats, Ints
from prediction.measurements import TableMeasurement

_ROUNDS = 4
_NEAR = 0.02  # distance of devices at which a weight falls to 1/e, in logarithms
_LEAST = 1e-3  # of a weight
_FADING = 2.0  # months in which a weight falls to 1/e
_SHRINKAGE = 2.0  # measurements that an offset of zero in a month is worth
_PRIOR = 5.0  # shared items that the typical distance of devices is worth
_FARTHEST = 1.5  # a residual counts as no more
_ALIKE = {"fp16": "float", "fp32": "float", "int8": "w8a8"}
_MOST_CODES = 250  # of a category; scikit-learn takes no more
#: Columns of features that hold small numbers: device, runtime, precision.
CATEGORIES = (0, 1, 2)
#: The column of the distance to the nearest device with the same item.
NEAREST = 6

Key = Callable[[TableMeasurement], tuple[str, ...]]


def runtime_of(m: TableMeasurement) -> str:
    """The runtime without the name of the frontend: torchscript_onnx_tflite is tflite."""
    name = re.sub(r"^torchscript_(onnx_)?(?=\w)", "", m.configuration.runtime)
    return {"ort": "onnx"}.get(head := name.split("_")[0], head)


def precision_of(m: TableMeasurement) -> str:
    """The precision by one of its names: releases called int8 what they call w8a8 today."""
    return _ALIKE.get(m.configuration.precision, m.configuration.precision)


def cell_of(m: TableMeasurement) -> tuple[str, ...]:
    """What is empty or measured: a model, where and in which runtime and precision it runs."""
    return (m.model, m.configuration.hardware, m.configuration.setting,
            m.configuration.runtime, m.configuration.precision)  # fmt: skip


def _device(m: TableMeasurement) -> tuple[str, ...]:
    return m.configuration.hardware, m.configuration.setting


def _way(m: TableMeasurement) -> tuple[str, ...]:
    return m.configuration.runtime, m.configuration.precision


#: Groups of cells on one device whose residuals are averaged.
_GROUPS: tuple[Key, ...] = (
    lambda m: (m.model, *_device(m)),
    lambda m: (m.model, *_device(m), precision_of(m)),
    lambda m: (m.model, *_device(m), runtime_of(m)),
    lambda m: (m.model, *_device(m), runtime_of(m), precision_of(m)),
    lambda m: (m.family, *_device(m)),
    lambda m: (m.family, *_device(m), runtime_of(m), precision_of(m)),
)


@dataclass(frozen=True)
class NeighbourFeatures:
    """Features of every row, and the logarithm that its neighbours say of it."""

    features: Floats
    estimate: Floats  # NaN where no other device has the item


def neighbour_features(
    train: Sequence[TableMeasurement], test: Sequence[TableMeasurement]
) -> NeighbourFeatures:
    """Features of the rows of both tables, those of training first."""
    return _Table(train, test).features()


class _Table:
    """Both tables as numbers, with the levels of training."""

    def __init__(self, train: Sequence[TableMeasurement], test: Sequence[TableMeasurement]) -> None:
        self.rows = [*train, *test]
        self.number = len(train)
        self.log_value = np.log([m.value for m in train])
        self.device = self._codes(_device)
        self.devices = int(self.device.max()) + 1
        self.item = self._codes(lambda m: (m.model, *_way(m)))
        self.cell = self._codes(cell_of)
        self.month, self.fading = _months([m.month for m in self.rows])
        self.offset = self._offsets()
        self.residual = self.log_value - self.offset[: self.number]

    def features(self) -> NeighbourFeatures:
        elsewhere = self._elsewhere()
        known = np.isfinite(elsewhere)
        apart = self._distances()[self.device]
        weights = np.where(known, np.exp(-apart / _NEAR) + _LEAST, 0.0)
        total = weights.sum(axis=1)
        mean = (weights * np.nan_to_num(elsewhere)).sum(axis=1) / np.where(total > 0, total, np.nan)
        spread = np.sqrt(
            np.where(known, (elsewhere - mean[:, None]) ** 2, 0).sum(axis=1)
            / np.maximum(known.sum(axis=1), 1)
        )
        nearest = np.where(known, apart, np.inf).min(axis=1)
        rest = np.nan_to_num(self.residual - mean[: self.number])
        rest = np.clip(rest, -_FARTHEST, _FARTHEST)
        columns = [
            np.minimum(self.device, _MOST_CODES),
            np.minimum(self._codes(lambda m: (m.configuration.runtime,)), _MOST_CODES),
            np.minimum(self._codes(lambda m: (precision_of(m),)), _MOST_CODES),
            np.array([np.log(max(m.parameters_m, 1e-3)) for m in self.rows]),
            np.array([np.log(max(m.image_size, 1)) for m in self.rows]),
            np.array([m.month for m in self.rows]),
            np.where(np.isfinite(nearest), nearest, np.nan), mean, spread, total,
            *(self._around(self._codes(key), rest) for key in _GROUPS),
            *(elsewhere - mean[:, None]).T,
        ]  # fmt: skip
        return NeighbourFeatures(np.column_stack(columns), mean + self.offset)

    def _codes(self, key: Key) -> Ints:
        numbers: dict[tuple[str, ...], int] = {}
        return np.array([numbers.setdefault(key(m), len(numbers)) for m in self.rows])

    def _sums(self, group: Ints, values: Floats) -> tuple[Floats, Floats]:
        """Totals and weights of groups in each month, of training, near months counting most."""
        shape = (int(group.max()) + 1, len(self.fading))
        place = group[: self.number] * shape[1] + self.month[: self.number]
        totals = np.bincount(place, values, shape[0] * shape[1]).reshape(shape)
        counts = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
        return totals @ self.fading, counts @ self.fading

    def _offsets(self) -> Floats:
        """The level of a device in a runtime and precision, in the row's month."""
        own = self._codes(lambda m: (*_device(m), *_way(m)))
        number = self.number
        offset = np.zeros(int(own.max()) + 1)
        level = np.zeros(int(self.item.max()) + 1)
        for _ in range(_ROUNDS):
            level = _medians(self.item[:number], self.log_value - offset[own[:number]], len(level))
            offset = _medians(own[:number], self.log_value - level[self.item[:number]], len(offset))
        rest = self.log_value - level[self.item[:number]] - offset[own[:number]]
        totals, weights = self._sums(own, np.clip(rest, -_FARTHEST, _FARTHEST))
        return np.asarray(offset[own] + (totals / (weights + _SHRINKAGE))[own, self.month])

    def _elsewhere(self) -> Floats:
        """The level that a row's item has on every other device, rows × devices."""
        place = self.item * self.devices + self.device
        shape = (int(self.item.max()) + 1) * self.devices
        everywhere = np.arange(self.devices)
        totals, weights = self._sums(place, self.residual)
        padded = np.zeros((2, shape, len(self.fading)))
        padded[0, : len(totals)], padded[1, : len(weights)] = totals, weights
        chosen = self.item[:, None] * self.devices + everywhere[None]
        some = padded[:, chosen, self.month[:, None]]
        level = np.where(some[1] > 0, some[0] / np.maximum(some[1], 1e-300), np.nan)
        level[np.arange(len(level)), self.device] = np.nan
        return np.asarray(level)

    def _distances(self) -> Floats:
        """How far devices are apart: the median over items that both measured."""
        shape = (int(self.item.max()) + 1, self.devices)
        place = self.item[: self.number] * self.devices + self.device[: self.number]
        counts = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
        totals = np.bincount(place, self.residual, shape[0] * shape[1]).reshape(shape)
        level = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        return distances(level)

    def _around(self, group: Ints, rest: Floats) -> Floats:
        """The mean residual of other cells of a row's group."""
        totals, weights = self._sums(group, rest)
        own_totals, own_weights = self._sums(self.cell, rest)
        left = weights[group, self.month] - own_weights[self.cell, self.month]
        total = totals[group, self.month] - own_totals[self.cell, self.month]
        return np.where(left > 1e-6, total / np.maximum(left, 1e-6), np.nan)


def distances(level: Floats) -> Floats:
    """Median distances between the columns of items × devices, NaN where nothing was measured."""
    number = level.shape[1]
    apart, shared = np.zeros((number, number)), np.zeros((number, number))
    for n in range(number):
        for k in range(n):
            both = level[:, n] - level[:, k]
            both = both[np.isfinite(both)]
            shared[n, k] = len(both)
            if len(both):
                apart[n, k] = np.median(np.abs(both - np.median(both)))
    apart, shared = apart + apart.T, shared + shared.T
    well = shared >= 4 * _PRIOR
    typical = float(np.median(apart[well])) if well.any() else 2 * _NEAR
    shrunk = (apart * shared + _PRIOR * typical) / (shared + _PRIOR)
    np.fill_diagonal(shrunk, 0.0)
    return np.asarray(shrunk)


def _months(months: Sequence[float]) -> tuple[Ints, Floats]:
    """Numbers of months, and the weight that one month has in another."""
    several, numbers = np.unique(np.nan_to_num(months), return_inverse=True)
    away = np.abs(several[:, None] - several[None])
    return numbers.astype(np.int64), np.exp(-away / _FADING) + _LEAST


def _medians(group: Ints, values: Floats, number: int) -> Floats:
    """The median of each group, 0 where it has none."""
    order = np.lexsort((values, group))
    sizes = np.bincount(group, minlength=number)
    starts = np.cumsum(sizes) - sizes
    inside = np.minimum(starts + np.maximum(sizes - 1, 0) // 2, len(values) - 1)
    upper = np.minimum(starts + sizes // 2, len(values) - 1)
    ordered = values[order]
    return np.where(sizes > 0, (ordered[inside] + ordered[upper]) / 2, 0.0)
