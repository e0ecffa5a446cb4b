"""Predictor of models without operators, from what they take on other devices. Pure numpy.

The logarithm of a result is the level of its column, a shift of its row, and the deviation of both.
A column is a model at its sizes in an engine (platform, runtime, precision, mode). A row is a
device with its threads and options. A new device deviates as known ones do: their deviations are
the covariance by which a few measurements tell all other columns of a device. Known devices that
agree with those measurements count more. Before any measurement, those of a similar name do.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from accelbench.predict.case_predictions import Basis, CasePredictions
from accelbench.predict.cases import CaseConfiguration, PredictedCase
from accelbench.predict.device_limits import LEVEL
from accelbench.predict.held_out import HeldOutError
from accelbench.predict.signatures import Floats, Ints

_ROUNDS = 40
#: Results that an effect of zero is worth: of a column, of a row, and of an engine in a row.
_WORTH = (0.01, 0.01, 5.0)
#: Standard deviations, as logarithms: of a device in a runtime, in a precision, at a setting; of a
#: level that one device was measured for; of a result for reasons of its own.
_RUNTIME, _PRECISION, _SETTING, _LEVEL_OF_ONE, _NOISE = 0.2, 0.2, 0.3, 0.2, 0.1
_LEAST_SHIFT = 0.4
#: What settings of a device share of its deviations, however many threads they are apart.
_SHARED = 0.5
#: Doublings of threads where a row does not state them.
_MIDDLE = 2.0
#: How fast devices lose weight by how far they are from what was measured, and the least weight.
_AGREEMENT, _LEAST = 0.08, 0.02
#: Weight of a device whose name has nothing in common with another.
_STRANGER = 0.03
_EXPECTED, _MOST_SURPRISING = 5.0, 4.0  # results that a scale of one is worth; deviations
#: A device's own results that are conditioned on: more take the cube of their number.
_MOST_OWN = 600
#: Fewer devices tell nothing of another.
FEWEST_DEVICES = 4
#: Devices that are left out to find how wide intervals are, and results kept of each: none, as many
#: as anchors, or all but a fifth.
_MOST_TRIED = 20
_ANCHORS, _LEFT_OUT = 10, 0.2
_WIDTH_OF_NONE = 2.0
_WORD = re.compile(r"[a-z]+\d+[a-z0-9+]*|[a-z]{2,}|\d{3,}")


#: A case as the grid sees it; -1 is a column that was never learned.
Cells = np.ndarray[tuple[int, ...], np.dtype[np.void]]
_CELL = np.dtype([
    ("column", np.int64), ("row", np.int64), ("engine", np.int64), ("runtime", np.int64),
    ("precision", np.int64), ("device", np.int64), ("setting", np.int64), ("doublings", np.float64),
])  # fmt: skip


@dataclass
class GridPredictor:
    """A predictor of one target for models without operators, on platforms of one kind."""

    target: str
    known: tuple[PredictedCase, ...]
    log_values: Floats
    _numbers: dict[str, dict[Hashable, int]] = field(default_factory=dict)

    def _number(self, kind: str, key: Hashable) -> int:
        numbers = self._numbers.setdefault(kind, {})
        return numbers.setdefault(key, len(numbers))

    def _cells(self, cases: Sequence[PredictedCase], *, learn: bool = False) -> Cells:
        cells = np.zeros(len(cases), dtype=_CELL)
        of_place: dict[CaseConfiguration, tuple[object, ...]] = {}
        columns = self._numbers.setdefault("column", {})
        for at, case in enumerate(cases):
            place = case.configuration
            if place not in of_place:
                setting = (place.threads, place.options)
                engine = self._number("engine", replace(place, device="", threads=None, options=""))
                of_place[place] = (
                    self._number("row", (place.device, *setting)), engine,
                    self._number("runtime", place.runtime),
                    self._number("precision", place.precision),
                    self._number("device", place.device), self._number("setting", setting),
                    np.log2(place.threads) if place.threads else _MIDDLE,
                )  # fmt: skip
            key = case.model, case.shapes, of_place[place][1]
            column = self._number("column", key) if learn else columns.get(key, -1)
            cells[at] = (column, *of_place[place])
        return cells

    @cached_property
    def _grid(self) -> _Grid:
        cells = self._cells(self.known, learn=True)
        return _Grid.of(cells, self.log_values, self._numbers.setdefault("device", {}))

    def can_answer(self, cases: Sequence[PredictedCase]) -> Ints:
        """Return the rows of cases whose model was measured at their sizes in their engine."""
        assert self._grid  # columns are learned with it
        return np.flatnonzero(self._cells(cases)["column"] >= 0)

    def predict(self, cases: Sequence[PredictedCase]) -> CasePredictions:
        """Return predictions of cases; NaN for those that it cannot answer."""
        value, low, high = np.full((3, len(cases)), np.nan)
        basis = [Basis.OTHER_CONFIGURATIONS] * len(cases)
        measured, places = set(self.known), {case.configuration for case in self.known}
        rows = self.can_answer(cases)
        mean, deviation, counts = self._grid.predict(self._cells(cases)[rows])
        half = deviation * [self.widths[_amount(count)][0] for count in counts.tolist()]
        value[rows], low[rows], high[rows] = np.exp([mean, mean - half, mean + half])
        for row in rows.tolist():
            if cases[row] in measured:
                basis[row] = Basis.MEASURED
            elif cases[row].configuration in places:
                basis[row] = Basis.ELSEWHERE
        return CasePredictions(value, low, high, tuple(basis))

    def covariance(self, cases: Sequence[PredictedCase]) -> tuple[Floats, float]:
        """Return the covariance of the errors of predictions, and the noise of a measurement.

        What it cannot answer has none.
        """
        total = np.zeros((len(cases), len(cases)))
        rows = self.can_answer(cases)
        total[np.ix_(rows, rows)] = self._grid.covariance(self._cells(cases)[rows])
        return total, _NOISE**2

    def held_out_error(self, basis: Basis, place: CaseConfiguration) -> HeldOutError | None:
        """Return the error on devices that were left out but for as much as is known of this."""
        if basis is Basis.MEASURED:
            return None
        own = sum(case.configuration.device == place.device for case in self.known)
        _, median, count = self.widths[_amount(own)]
        return HeldOutError(median, count, f"devices of {place.hardware}") if count else None

    @cached_property
    def widths(self) -> Mapping[str, tuple[float, float, int]]:
        """The half width, the median error and its number of cases, by how much was measured."""
        grid, rng = self._grid, np.random.default_rng(0)
        tried = rng.permutation(np.unique(grid.cells["device"]))[:_MOST_TRIED]
        errors = [grid.left_out_errors(int(device), rng) for device in tried]
        return {amount: _width([each[amount] for each in errors]) for amount in _AMOUNTS}


_NOTHING, _FEW, _MOST = "nothing", "few", "most"
_AMOUNTS = (_NOTHING, _FEW, _MOST)


def _amount(own: int) -> str:
    return _NOTHING if not own else _FEW if own <= 4 * _ANCHORS else _MOST


def _width(errors: Sequence[Floats]) -> tuple[float, float, int]:
    """Return nine in ten errors in deviations, each device counting alike, and the median."""
    errors = [each for each in errors if each.shape[1]]
    if not errors:
        return _WIDTH_OF_NONE, 0.0, 0
    every = np.concatenate(errors, axis=1)
    weights = np.concatenate([np.full(pair.shape[1], 1 / pair.shape[1]) for pair in errors])
    order = np.argsort(every[1])
    share = np.cumsum(weights[order]) / weights.sum()
    width = float(every[1][order][min(int(np.searchsorted(share, LEVEL)), len(order) - 1)])
    return width, float(np.median(np.expm1(every[0]))), every.shape[1]


@dataclass(frozen=True)
class _Grid:
    """Levels, shifts and deviations of known cells."""

    cells: Cells
    log_values: Floats
    devices: Mapping[Hashable, int]  # numbers of names, those that are asked about included
    effects: Sequence[Floats]  # of columns, of rows, of engines in rows
    deviations: Floats  # rows × columns
    counts: Ints  # rows that a column was measured in
    rows: Cells  # the first cell of each row

    @classmethod
    def of(cls, cells: Cells, log_values: Floats, devices: Mapping[Hashable, int]) -> _Grid:
        """Return the grid of what was measured."""
        rows, first, row = np.unique(cells["row"], return_index=True, return_inverse=True)
        row, column, engine = row.ravel(), cells["column"], cells["engine"]
        engines, columns = (int(some.max(initial=-1)) + 1 for some in (engine, column))
        effects = _effects(log_values, (column, row, row * engines + engine))
        sums, counts = np.zeros((2, len(rows), columns))
        np.add.at(sums, (row, column), log_values - effects[0][column] - effects[1][row])
        np.add.at(counts, (row, column), 1.0)
        # Missing columns of a row take its mean in their engine. Filled by what the covariance of
        # the others implies, new phones were off by 11.3 instead of 8.3 %.
        engine_of = np.zeros(columns, dtype=np.int64)
        engine_of[column] = engine
        each = np.zeros(len(rows) * engines)
        each[: len(effects[2])] = effects[2]
        start = each.reshape(len(rows), engines)[:, engine_of]
        deviations = np.where(counts > 0, sums / np.maximum(counts, 1.0), start)
        measured = (counts > 0).sum(axis=0)
        return cls(cells, log_values, devices, effects, deviations, measured, cells[first])

    @cached_property
    def _slope(self) -> float:
        """What a doubling of threads adds to a shift, within devices."""
        apart, rest = self.rows["doublings"].copy(), self.effects[1].copy()
        for device in np.unique(self.rows["device"]):
            mine = self.rows["device"] == device
            apart[mine] -= apart[mine].mean()
            rest[mine] -= rest[mine].mean()
        return float(apart @ rest / max(float(apart @ apart), 1e-9))

    @cached_property
    def _shifts(self) -> Floats:
        return np.asarray(self.effects[1] - self._slope * self.rows["doublings"])

    @cached_property
    def _shift_variance(self) -> float:
        return max(float(self._shifts.std()), _LEAST_SHIFT) ** 2

    def _prior(self, device: int, *, by_name: bool) -> Floats:
        """Return the weights of known rows for a device: equal ones, or by their names."""
        each = np.ones(len(self.rows))
        if by_name:
            words = {number: _words(str(name)) for name, number in self.devices.items()}
            counts = np.bincount(self.rows["device"])
            each = np.array([
                (_STRANGER + _in_common(words[device], words[one])) / counts[one]
                for one in self.rows["device"].tolist()
            ])  # fmt: skip
        each[self.rows["device"] == device] = 0.0
        return np.asarray(each / max(float(each.sum()), 1e-12))

    def _base(self, cells: Cells, prior: Floats) -> Floats:
        """Return the logarithms on a device before anything was measured of it."""
        column = cells["column"]
        mean = float(prior @ self._shifts) + prior @ self.deviations[:, column]
        return np.asarray(self.effects[0][column] + self._slope * cells["doublings"] + mean)

    def _kernel(self, some: Cells, others: Cells, weights: Floats) -> Floats:
        """Return the covariance of cells of one device."""

        def same(name: str) -> Floats:
            return np.asarray(some[name][:, None] == others[name][None], dtype=np.float64)

        left, right = (self.deviations[:, cells["column"]] for cells in (some, others))
        near = np.exp(-np.abs(some["doublings"][:, None] - others["doublings"][None]))
        total = (left.T * weights) @ right * (_SHARED + (1.0 - _SHARED) * near)
        total += self._shift_variance + _SETTING**2 * (near + same("setting"))
        total += _RUNTIME**2 * same("runtime") + _PRECISION**2 * same("precision")
        return np.asarray(total)

    def _variance(self, cells: Cells, weights: Floats) -> Floats:
        """Return the diagonal of the kernel, and what levels may be off by."""
        column = cells["column"]
        level = _LEVEL_OF_ONE**2 / np.maximum(self.counts[column], 1.0)
        fixed = self._shift_variance + 2 * _SETTING**2 + _RUNTIME**2 + _PRECISION**2
        return np.asarray(weights @ self.deviations[:, column] ** 2 + level + fixed)

    def _own(self, device: int) -> Ints:
        """Return the known cells of a device; of many as many are drawn evenly."""
        rows = np.flatnonzero(self.cells["device"] == device)
        if len(rows) > _MOST_OWN:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_OWN, replace=False))
        return rows

    def predict(self, cells: Cells) -> tuple[Floats, Floats, Ints]:
        """Return means and deviations of cells, and how many results each device has."""
        mean, deviation = np.zeros((2, len(cells)))
        counts = np.zeros(len(cells), dtype=np.int64)
        for device in np.unique(cells["device"]).tolist():
            rows, own = np.flatnonzero(cells["device"] == device), self._own(device)
            counts[rows] = np.count_nonzero(self.cells["device"] == device)
            given = self.cells[own], self.log_values[own]
            mean[rows], deviation[rows] = self._on_device(device, *given, cells[rows])
        return mean, deviation, counts

    def _on_device(
        self, device: int, known: Cells, log_values: Floats, cells: Cells
    ) -> tuple[Floats, Floats]:
        """Return means and deviations of cells of a device, given some results of it."""
        prior = self._prior(device, by_name=not len(known))
        base = self._base(cells, prior)
        if not len(known):
            return base, np.sqrt(self._variance(cells, prior) + _NOISE**2)
        residual = log_values - self._base(known, prior)
        weights = self._agreeing(known, log_values - self.effects[0][known["column"]], prior)
        cross, inner = (self._kernel(some, known, weights) for some in (cells, known))
        scale = _surprise(inner, residual)
        inner += _NOISE**2 * np.eye(len(known))
        solved = np.linalg.solve(inner, np.column_stack([residual, cross.T]))
        variance = self._variance(cells, weights) - np.einsum("ij,ji->i", cross, solved[:, 1:])
        deviation = scale * np.sqrt(np.maximum(variance, 0.0) + _NOISE**2)
        return base + cross @ solved[:, 0], deviation

    def _agreeing(self, known: Cells, residual: Floats, prior: Floats) -> Floats:
        """Return weights of rows by how their deviations agree with a device's, up to shifts."""
        apart = residual[None] - self.deviations[:, known["column"]]
        for setting in np.unique(known["setting"]):
            mine = known["setting"] == setting
            apart[:, mine] -= np.median(apart[:, mine], axis=1, keepdims=True)
        weights = np.exp(-np.median(np.abs(apart), axis=1) / _AGREEMENT) + _LEAST
        weights[prior == 0.0] = 0.0
        return np.asarray(weights / max(float(weights.sum()), 1e-12))

    def covariance(self, cells: Cells) -> Floats:
        """Return the covariance of what predictions of cells are off by."""
        total = np.zeros((len(cells), len(cells)))
        for device in np.unique(cells["device"]).tolist():
            rows, known = np.flatnonzero(cells["device"] == device), self.cells[self._own(device)]
            prior = self._prior(device, by_name=False)
            block = self._kernel(cells[rows], cells[rows], prior)
            if len(known):
                cross = self._kernel(cells[rows], known, prior)
                inner = self._kernel(known, known, prior) + _NOISE**2 * np.eye(len(known))
                block -= cross @ np.linalg.solve(inner, cross.T)
            total[np.ix_(rows, rows)] = block
        return total

    def left_out_errors(self, device: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Return errors of a device's cells, and errors in deviations, by how much is known.

        Its values on other devices are left out too: tables carry results over to twins, and a copy
        would tell what is left out.
        """
        pairs = np.stack([self.cells["column"], self.log_values], axis=1)
        number = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        mine = self.cells["device"] == device
        kept = np.flatnonzero(~np.isin(number, number[mine]) & ~mine)
        others = _Grid.of(self.cells[kept], self.log_values[kept], self.devices)
        is_known = np.isin(self.cells["column"], others.cells["column"])
        drawn = rng.permutation(np.flatnonzero(mine & is_known))[:_MOST_OWN]
        found = {}
        for amount, count in zip(
            _AMOUNTS, (0, _ANCHORS, int((1 - _LEFT_OUT) * len(drawn))), strict=True
        ):
            own, rest = np.sort(drawn[:count]), np.sort(drawn[count:])
            given = self.cells[own], self.log_values[own]
            mean, deviation = others._on_device(device, *given, self.cells[rest])
            error = np.abs(self.log_values[rest] - mean)
            found[amount] = np.stack([error, error / deviation])
        return found


def _effects(log_values: Floats, owners: Sequence[Ints]) -> list[Floats]:
    """Return the effects of owners, shrunk, by backfitting."""
    sizes = [int(owner.max(initial=-1)) + 1 for owner in owners]
    counts = [np.bincount(owner, minlength=size) for owner, size in zip(owners, sizes, strict=True)]
    effects = [np.zeros(size) for size in sizes]
    rest = log_values.copy()
    for _ in range(_ROUNDS):
        for effect, owner, count, worth in zip(effects, owners, counts, _WORTH, strict=True):
            rest += effect[owner]
            effect[:] = np.bincount(owner, rest, len(effect)) / (count + worth)
            rest -= effect[owner]
    return effects


def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name.lower()))


def _in_common(some: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of the words of two names that both have."""
    return len(some & others) / max(len(some | others), 1)


def _surprise(covariance: Floats, residual: Floats) -> float:
    """Return how far results are from what the others imply, in deviations: 1 as expected."""
    inverse = np.linalg.inv(covariance + _NOISE**2 * np.eye(len(residual)))
    squares = (inverse @ residual) ** 2 / np.diag(inverse)
    total = _EXPECTED + float(np.minimum(squares, _MOST_SURPRISING**2).sum())
    return float(np.sqrt(total / (_EXPECTED + len(residual))))
