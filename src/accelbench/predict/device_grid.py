"""Predictor of models without operators, from what they take on other devices. Pure numpy.

The logarithm of a result is the level of its column, a shift of its row, and the deviation of both.
A column is a model at its sizes in an engine (platform, runtime, precision, mode). A row is a
device with its threads and options. A new device deviates as known ones do: their deviations are
the covariance by which a few measurements tell all other columns of a device. Known devices that
agree with those measurements count more. Before any measurement, those of a similar name do.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
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


def _engine_of(place: CaseConfiguration) -> CaseConfiguration:
    return replace(place, device="", threads=None, options="")


def _row_of(place: CaseConfiguration) -> tuple[str, int | None, str]:
    return place.device, place.threads, place.options


def _numbers(keys: Iterable[Hashable], known: dict[Hashable, int], *, learn: bool) -> Ints:
    """Return the number of each key; a key that was never learned is -1."""
    if learn:
        return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
    return np.array([known.get(key, -1) for key in keys], dtype=np.int64)


@dataclass(frozen=True)
class _Cells:
    """Cases as the grid sees them, an entry each; -1 is a number that is not known."""

    column: Ints
    engine: Ints
    row: Ints  # of known rows
    doublings: Floats  # of threads
    setting: Ints  # threads and options
    device: tuple[str, ...]
    fields: Ints  # runtime and precision, as numbers

    def __len__(self) -> int:
        return len(self.column)

    def only(self, rows: Ints) -> _Cells:
        """Return some of the cells."""
        return _Cells(
            self.column[rows], self.engine[rows], self.row[rows], self.doublings[rows],
            self.setting[rows], tuple(self.device[row] for row in rows.tolist()),
            self.fields[rows],
        )  # fmt: skip


@dataclass
class GridPredictor:
    """A predictor of one target for models without operators, on platforms of one kind.

    Attributes:
        widths: half of an interval of 90 %, as standard deviations, and the median error, by how
            much of a device was measured: nothing, a few cases, most. Found when first needed.
    """

    target: str
    known: tuple[PredictedCase, ...]
    log_values: Floats
    kept_widths: Mapping[str, tuple[float, float, int]] | None = None
    _names: dict[str, dict[Hashable, int]] = field(default_factory=dict)

    @property
    def whole(self) -> list[PredictedCase]:
        """The known cases."""
        return list(self.known)

    # -- cells

    def _cells(self, cases: Sequence[PredictedCase], *, learn: bool = False) -> _Cells:
        places = list(dict.fromkeys(case.configuration for case in cases))
        number = {place: at for at, place in enumerate(places)}
        engines = [_engine_of(place) for place in places]
        fields = [
            _numbers([getattr(each, name) for each in engines], self._known(name), learn=learn)
            for name in ("runtime", "precision")
        ]
        threads = [max(place.threads, 1) if place.threads else 0 for place in places]
        settings = [(place.threads, place.options) for place in places]
        of = np.array([number[case.configuration] for case in cases], dtype=np.int64)
        engine = _numbers(engines, self._known("engine"), learn=learn)[of]
        column = _numbers(
            [(c.model, c.shapes, at) for c, at in zip(cases, engine.tolist(), strict=True)],
            self._known("column"), learn=learn,
        )  # fmt: skip
        rows = _numbers(map(_row_of, places), self._known("row"), learn=learn)
        doublings = np.array([np.log2(count) if count else _MIDDLE for count in threads])
        setting = _numbers(settings, self._known("setting"), learn=True)
        return _Cells(
            column, engine, rows[of], doublings[of], setting[of],
            tuple(case.configuration.device for case in cases), np.stack(fields, axis=1)[of],
        )  # fmt: skip

    def _known(self, kind: str) -> dict[Hashable, int]:
        return self._names.setdefault(kind, {})

    def can_answer(self, cases: Sequence[PredictedCase]) -> Ints:
        """Return the rows of cases whose model was measured at their sizes in their engine."""
        assert self._grid  # names are learned with it
        return np.flatnonzero(self._cells(cases).column >= 0)

    # -- what was learned

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid.of(self._cells(self.known, learn=True), self.log_values)

    def predict(self, cases: Sequence[PredictedCase]) -> CasePredictions:
        """Return predictions of cases; NaN for those that it cannot answer."""
        value, low, high = np.full((3, len(cases)), np.nan)
        basis = [Basis.OTHER_CONFIGURATIONS] * len(cases)
        measured, places = set(self.known), {case.configuration for case in self.known}
        rows = self.can_answer(cases)
        mean, deviation, counts = self._grid.predict(self._cells(cases).only(rows))
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
        total[np.ix_(rows, rows)] = self._grid.covariance(self._cells(cases).only(rows))
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
        if self.kept_widths is not None:
            return self.kept_widths
        grid, rng = self._grid, np.random.default_rng(0)
        tried = rng.permutation(sorted(set(grid.cells.device)))[:_MOST_TRIED]
        errors = [grid.left_out_errors(str(device), rng) for device in tried]
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

    cells: _Cells
    log_values: Floats
    effects: Sequence[Floats]  # of columns, of rows, of engines in rows
    deviations: Floats  # rows × columns
    counts: Floats  # devices that a column was measured on
    rows: Sequence[int]  # the first cell of each row

    @classmethod
    def of(cls, cells: _Cells, log_values: Floats) -> _Grid:
        """Return the grid of what was measured."""
        engines = int(cells.engine.max(initial=-1)) + 1
        group = cells.row * engines + cells.engine
        owners = (cells.column, cells.row, group)
        effects = _effects(log_values, owners)
        rows, columns = int(cells.row.max(initial=-1)) + 1, int(cells.column.max(initial=-1)) + 1
        rest = log_values - effects[0][cells.column] - effects[1][cells.row]
        sums, counts = np.zeros((2, rows, columns))
        np.add.at(sums, (cells.row, cells.column), rest)
        np.add.at(counts, (cells.row, cells.column), 1.0)
        engine_of = np.zeros(columns, dtype=np.int64)
        engine_of[cells.column] = cells.engine
        # Missing columns of a row take its mean in their engine. Filled by what the covariance of
        # the others implies, new phones were off by 11.3 instead of 8.3 %.
        each = np.zeros(rows * engines)
        each[: len(effects[2])] = effects[2]
        start = each.reshape(rows, engines)[:, engine_of]
        deviations = np.where(counts > 0, sums / np.maximum(counts, 1.0), start)
        first = np.unique(cells.row, return_index=True)[1]
        return cls(cells, log_values, effects, deviations, (counts > 0).sum(axis=0), first.tolist())

    @cached_property
    def _doublings(self) -> Floats:
        return self.cells.doublings[self.rows]

    @cached_property
    def _devices(self) -> list[str]:
        return [self.cells.device[row] for row in self.rows]

    @cached_property
    def _slope(self) -> float:
        """What a doubling of threads adds to a shift, within devices."""
        names = np.array(self._devices)
        apart, rest = self._doublings.copy(), self.effects[1].copy()
        for name in set(self._devices):
            mine = names == name
            apart[mine] -= apart[mine].mean()
            rest[mine] -= rest[mine].mean()
        return float(apart @ rest / max(float(apart @ apart), 1e-9))

    @cached_property
    def _shifts(self) -> Floats:
        return np.asarray(self.effects[1] - self._slope * self._doublings)

    def _levels(self, cells: _Cells) -> Floats:
        return self.effects[0][cells.column]

    def _deviations_of(self, cells: _Cells) -> Floats:
        return self.deviations[:, cells.column]

    def _prior(self, device: str, *, by_name: bool) -> Floats:
        """Return the weights of known rows for a device: equal ones, or by their names."""
        words = _words(device)
        each = np.ones(len(self._devices))
        if by_name:
            weight = {name: _STRANGER + _in_common(words, _words(name)) for name in self._devices}
            each = np.array([weight[name] / self._devices.count(name) for name in self._devices])
        each[[name == device for name in self._devices]] = 0.0
        return np.asarray(each / max(float(each.sum()), 1e-12))

    def base(self, cells: _Cells, prior: Floats) -> Floats:
        """Return the logarithms on a device before anything was measured of it."""
        threads = self._slope * cells.doublings
        mean = float(prior @ self._shifts) + prior @ self._deviations_of(cells)
        return np.asarray(self._levels(cells) + threads + mean)

    def kernel(self, some: _Cells, others: _Cells, weights: Floats) -> Floats:
        """Return the covariance of cells of one device."""
        left, right = self._deviations_of(some), self._deviations_of(others)
        near = np.exp(-np.abs(some.doublings[:, None] - others.doublings[None]))
        same = some.setting[:, None] == others.setting[None]
        total = (left.T * weights) @ right * (_SHARED + (1.0 - _SHARED) * near)
        total += max(float(self._shifts.std()), _LEAST_SHIFT) ** 2
        total += _SETTING**2 * (near + same)
        for place, spread in enumerate((_RUNTIME, _PRECISION)):
            total += spread**2 * (some.fields[:, place, None] == others.fields[None, :, place])
        return np.asarray(total)

    def _variance(self, cells: _Cells, weights: Floats) -> Floats:
        """Return the diagonal of the kernel, and what levels may be off by."""
        level = _LEVEL_OF_ONE**2 / np.maximum(self.counts[cells.column], 1.0)
        shared = weights @ self._deviations_of(cells) ** 2
        fixed = max(float(self._shifts.std()), _LEAST_SHIFT) ** 2 + 2 * _SETTING**2
        return np.asarray(shared + level + fixed + _RUNTIME**2 + _PRECISION**2)

    def own(self, device: str) -> Ints:
        """Return the known cells of a device; of many as many are drawn evenly."""
        rows = np.flatnonzero([name == device for name in self.cells.device])
        if len(rows) > _MOST_OWN:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_OWN, replace=False))
        return rows

    def predict(self, cells: _Cells) -> tuple[Floats, Floats, Ints]:
        """Return means and deviations of cells, and how many results each device has."""
        mean, deviation = np.zeros((2, len(cells)))
        counts = np.zeros(len(cells), dtype=np.int64)
        devices = np.array(cells.device)
        for device in dict.fromkeys(cells.device):
            rows, own = np.flatnonzero(devices == device), self.own(device)
            given = self.cells.only(own), self.log_values[own]
            mean[rows], deviation[rows] = self.on_device(device, *given, cells.only(rows))
            counts[rows] = sum(name == device for name in self.cells.device)
        return mean, deviation, counts

    def on_device(
        self, device: str, known: _Cells, log_values: Floats, cells: _Cells
    ) -> tuple[Floats, Floats]:
        """Return means and deviations of cells of a device, given some results of it."""
        prior = self._prior(device, by_name=not len(known))
        base = self.base(cells, prior)
        if not len(known):
            return base, np.sqrt(self._variance(cells, prior) + _NOISE**2)
        residual = log_values - self.base(known, prior)
        weights = self._agreeing(known, log_values - self._levels(known), prior)
        cross, inner = self.kernel(cells, known, weights), self.kernel(known, known, weights)
        scale = _surprise(inner, residual)
        inner += _NOISE**2 * np.eye(len(known))
        solved = np.linalg.solve(inner, np.column_stack([residual, cross.T]))
        variance = self._variance(cells, weights) - np.einsum("ij,ji->i", cross, solved[:, 1:])
        deviation = scale * np.sqrt(np.maximum(variance, 0.0) + _NOISE**2)
        return base + cross @ solved[:, 0], deviation

    def _agreeing(self, known: _Cells, residual: Floats, prior: Floats) -> Floats:
        """Return weights of rows by how their deviations agree with a device's, up to shifts."""
        apart = residual[None] - self._deviations_of(known)
        for setting in np.unique(known.setting):
            mine = known.setting == setting
            apart[:, mine] -= np.median(apart[:, mine], axis=1, keepdims=True)
        weights = np.exp(-np.median(np.abs(apart), axis=1) / _AGREEMENT) + _LEAST
        weights[prior == 0.0] = 0.0
        return np.asarray(weights / max(float(weights.sum()), 1e-12))

    def covariance(self, cells: _Cells) -> Floats:
        """Return the covariance of what predictions of cells are off by."""
        total = np.zeros((len(cells), len(cells)))
        devices = np.array(cells.device)
        for device in dict.fromkeys(cells.device):
            rows, own = np.flatnonzero(devices == device), self.own(device)
            prior = self._prior(device, by_name=False)
            some, known = cells.only(rows), self.cells.only(own)
            block = self.kernel(some, some, prior)
            if len(own):
                cross = self.kernel(some, known, prior)
                inner = self.kernel(known, known, prior) + _NOISE**2 * np.eye(len(own))
                block -= cross @ np.linalg.solve(inner, cross.T)
            total[np.ix_(rows, rows)] = block
        return total

    def without(self, device: str) -> _Grid:
        """Return the grid without a device, and without its values on other devices.

        Tables carry results over to twins: a copy would tell what is left out.
        """
        pairs = np.stack([self.cells.column, self.log_values], axis=1)
        number = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
        mine = np.array([name == device for name in self.cells.device])
        rows = np.flatnonzero(~np.isin(number, number[mine]) & ~mine)
        cells = self.cells.only(rows)
        known = np.unique(cells.row, return_inverse=True)[1].ravel()
        return _Grid.of(replace(cells, row=known), self.log_values[rows])

    def left_out_errors(self, device: str, rng: np.random.Generator) -> dict[str, Floats]:
        """Return errors of a device's cells, and errors in deviations, by how much is known."""
        others = self.without(device)
        mine = np.flatnonzero([name == device for name in self.cells.device])
        mine = mine[np.isin(self.cells.column[mine], others.cells.column)]
        drawn = rng.permutation(mine)[:_MOST_OWN]
        found = {}
        for amount, kept in zip(
            _AMOUNTS, (0, _ANCHORS, int((1 - _LEFT_OUT) * len(drawn))), strict=True
        ):
            own, rest = np.sort(drawn[:kept]), np.sort(drawn[kept:])
            given = self.cells.only(own), self.log_values[own]
            mean, deviation = others.on_device(device, *given, self.cells.only(rest))
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
