"""Predictions in configurations that were never measured, from the nearest that was.

Where the model itself was measured anywhere, its own time is the base, else the predictor's. The
share of the time that computing takes is scaled by the ratio of the peaks, the share of memory by
that of the bandwidths, and launches not at all (exponents of one were best on held-out GPUs).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from accelbench.predict.signatures import CLASSES, Floats, Ints
from prediction.graph_predictor import GraphPredictor, element_bytes, limits_of
from prediction.measurements import TableConfiguration
from prediction.operator_network import ClassTimes, GraphBatches

#: How a prediction came about, which decides how far it may be off.
MEASURED = "measured in the same configuration"
NEW_MODEL = "new model, known hardware"
SAME_HARDWARE = "measured on the same hardware, other software"
NEW_HARDWARE = "measured on other hardware"
BOTH_NEW = "new model, new hardware"
SHARES = 2 * len(CLASSES) + 1
BASES = (MEASURED, NEW_MODEL, SAME_HARDWARE, NEW_HARDWARE, BOTH_NEW)


def distance(known: TableConfiguration, wanted: TableConfiguration) -> float:
    """How far two configurations are apart: what changes times most counts most."""
    apart = 300.0 * (known.kind != wanted.kind) + software_distance(known, wanted)
    if known.hardware == wanted.hardware:
        return apart
    source, target = limits_of(known), limits_of(wanted)
    ratios = abs(np.log(source.peak(known.precision) / target.peak(wanted.precision)))
    ratios += abs(np.log(source.bandwidth / target.bandwidth))
    return float(apart + 20 + min(10 * ratios, 30))


def software_distance(known: TableConfiguration, wanted: TableConfiguration) -> float:
    """The part of it that is no hardware."""
    return float(
        1000 * (known.mode != wanted.mode)
        + 100 * (known.compiled != wanted.compiled)
        + 60 * (known.precision != wanted.precision)
        + 15 * (known.channels_last != wanted.channels_last)
        + min(8 * abs(known.version - wanted.version), 12)
    )


@dataclass(frozen=True)
class TransferredTimes:
    """Logarithms of milliseconds a sample, each with its basis and the shares of its time."""

    log_ms: Floats
    basis: tuple[str, ...]
    shares: Floats  # of ClassTimes


class TransferPredictor:
    """Predicts any configuration from those that are allowed as sources."""

    def __init__(
        self, predictor: GraphPredictor, sources: Collection[int], *, own_times: bool = True
    ) -> None:
        self.predictor = predictor
        self.cells = predictor.cells
        self.sources = sorted(sources)
        self.measured: dict[int, dict[int, tuple[float, float]]] = {}
        if own_times:
            allowed = set(self.sources)
            columns = zip(self.cells.graph, self.cells.configuration, self.cells.log_ms,
                          self.cells.batch, strict=True)  # fmt: skip
            for graph, configuration, log_ms, batch in columns:
                if configuration in allowed:
                    self.measured.setdefault(int(graph), {})[int(configuration)] = (log_ms, batch)

    def nearest(self, wanted: TableConfiguration) -> list[int]:
        """The sources, nearest first."""
        known = self.cells.configurations
        return sorted(self.sources, key=lambda number: distance(known[number], wanted))

    def predict(
        self, pairs: GraphBatches, wanted: Sequence[TableConfiguration]
    ) -> TransferredTimes:
        """The times of graphs, each in the configuration that is wanted of it."""
        log_ms, basis = np.zeros(len(wanted)), [""] * len(wanted)
        shares = np.zeros((len(wanted), SHARES))
        for configuration in dict.fromkeys(wanted):
            mine = np.array([n for n, other in enumerate(wanted) if other == configuration])
            some = GraphBatches(pairs.chosen[mine], pairs.batch[mine])
            times = self._in(configuration, some)
            log_ms[mine], shares[mine] = times.log_ms, times.shares
            for place, name in zip(mine, times.basis, strict=True):
                basis[place] = name
        return TransferredTimes(log_ms, tuple(basis), shares)

    def _in(self, wanted: TableConfiguration, pairs: GraphBatches) -> TransferredTimes:
        order = self.nearest(wanted)
        mode = self.cells.configurations[order[0]].mode
        usable = [n for n in order if self.cells.configurations[n].mode == mode]
        nearest = np.full(len(pairs.chosen), order[0], dtype=np.int64)
        own = [self._own(int(graph), usable) for graph in pairs.chosen]
        times = self.predictor.times(pairs, nearest)
        log_totals = np.log(times.total)
        base = np.zeros(len(own))
        new = np.array([time is None for time in own])
        if new.any():
            some = GraphBatches(pairs.chosen[new], pairs.batch[new])
            base[new] = self.predictor.predict(some, nearest[new])
        if not new.all():
            base[~new] = self._carried(pairs, log_totals, own)
        scaled = self._scaled(order[0], wanted, times)
        basis = [self._basis(wanted, order[0], time) for time in own]
        return TransferredTimes(
            base + np.log(scaled.total) - log_totals, tuple(basis), scaled.shares
        )

    def _own(self, graph: int, order: list[int]) -> tuple[int, float, float] | None:
        """A graph's own time in the nearest configuration it was measured in."""
        times = self.measured.get(graph)
        nearest = None if not times else next((n for n in order if n in times), None)
        return None if nearest is None or not times else (nearest, *times[nearest])

    def _carried(
        self, pairs: GraphBatches, log_totals: Floats, own: list[tuple[int, float, float] | None]
    ) -> Floats:
        """Own times, carried to the nearest configuration and the batch that is asked for."""
        held = [(n, time) for n, time in enumerate(own) if time is not None]
        rows = np.array([n for n, _ in held])
        sources: Ints = np.array([time[0] for _, time in held], dtype=np.int64)
        log_ms = np.array([time[1] for _, time in held])
        batch = np.array([time[2] for _, time in held])
        times = self.predictor.times(GraphBatches(pairs.chosen[rows], batch), sources)
        return np.asarray(log_ms + log_totals[rows] - np.log(times.total))

    def _scaled(self, source: int, wanted: TableConfiguration, times: ClassTimes) -> ClassTimes:
        known = self.cells.configurations[source]
        if known.hardware == wanted.hardware and known.precision == wanted.precision:
            return times
        origin, target = limits_of(known), limits_of(wanted)
        faster = target.peak(wanted.precision) / origin.peak(known.precision)
        wider = target.bandwidth / origin.bandwidth * element_bytes(known) / element_bytes(wanted)
        return times.scaled(faster, wider)

    def _basis(
        self, wanted: TableConfiguration, source: int, own: tuple[int, float, float] | None
    ) -> str:
        known = self.cells.configurations
        same = known[source].hardware == wanted.hardware
        if own is None:
            return NEW_MODEL if same else BOTH_NEW
        if known[own[0]] == wanted:
            return MEASURED
        return SAME_HARDWARE if known[own[0]].hardware == wanted.hardware else NEW_HARDWARE
