"""Every chart there is, in the order in which people ask: a new one is a line of this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from accelbench.present.charts import (
    bars,
    by_batch,
    collectives,
    compatibility,
    pareto,
    scaling,
    spread,
    trend,
)
from accelbench.present.charts.chart import Chart, ChartBody, Subject, label_of
from accelbench.present.charts.marks import MEMORY, THROUGHPUT

_DRAWN: Mapping[str, Callable[[Subject], ChartBody | None]] = {
    "hardware-latency": bars.draw_bars,
    "hardware-throughput": partial(bars.draw_bars, quantity=THROUGHPUT),
    "hardware-memory": partial(bars.draw_bars, quantity=MEMORY),
    "latency-by-batch": by_batch.along_batches,
    "throughput-by-batch": partial(by_batch.along_batches, quantity=THROUGHPUT),
    "memory-by-batch": partial(by_batch.along_batches, quantity=MEMORY),
    "model-panels": by_batch.draw_model,
    "training-inference": partial(bars.draw_bars, axis="mode"),
    "precision": partial(bars.draw_bars, axis="precision"),
    "framework": partial(bars.draw_bars, axis="runtime"),
    "architecture": spread.draw_architectures,
    "hardware-cost": bars.draw_costs,
    "cost-by-batch": bars.draw_costs_by_batch,
    "training-cost": bars.draw_training_costs,
    "scaling": scaling.draw_scaling,
    "communication": collectives.draw_communication,
    "ranks": collectives.draw_ranks,
    "collectives": collectives.draw_collectives,
    "latency-distribution": spread.draw_samples,
    "cold-warm": spread.draw_cold_warm,
    "pareto": pareto.draw_front,
    "energy-latency": partial(pareto.draw_front, quantity=pareto.ENERGY),
    "roofline": pareto.draw_roofline,
    "trend": trend.draw_trend,
    "compatibility": compatibility.draw_matrix,
}
CHARTS: Mapping[str, Chart] = {
    name: Chart(**vars(label_of(name)), draw=draw) for name, draw in _DRAWN.items()
}
