"""Every chart there is, in the order in which people ask: a new one is a declaration and a line."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.report.charts.bars import (
    COST_BY_BATCH,
    FRAMEWORKS,
    HARDWARE_COST,
    HARDWARE_LATENCY,
    HARDWARE_MEMORY,
    HARDWARE_THROUGHPUT,
    MODES,
    PRECISIONS,
    TRAINING_COST,
)
from accelbench.report.charts.by_batch import LATENCY_BY_BATCH, MEMORY_BY_BATCH, THROUGHPUT_BY_BATCH
from accelbench.report.charts.chart import Chart
from accelbench.report.charts.collectives import COLLECTIVES, COMMUNICATION, RANKS
from accelbench.report.charts.compatibility import COMPATIBILITY
from accelbench.report.charts.distribution import COLD_WARM, DISTRIBUTION
from accelbench.report.charts.model_panels import MODEL_PANELS
from accelbench.report.charts.pareto import ENERGY_LATENCY, PARETO
from accelbench.report.charts.roofline import ROOFLINE
from accelbench.report.charts.scaling import SCALING
from accelbench.report.charts.spread import ARCHITECTURES
from accelbench.report.charts.trend import TREND

CHARTS: Mapping[str, Chart] = {
    chart.name: chart
    for chart in (
        *(HARDWARE_LATENCY, HARDWARE_THROUGHPUT, HARDWARE_MEMORY),
        *(LATENCY_BY_BATCH, THROUGHPUT_BY_BATCH, MEMORY_BY_BATCH, MODEL_PANELS),
        *(MODES, PRECISIONS, FRAMEWORKS, ARCHITECTURES),
        *(HARDWARE_COST, COST_BY_BATCH, TRAINING_COST),
        *(SCALING, COMMUNICATION, RANKS, COLLECTIVES),
        *(DISTRIBUTION, COLD_WARM, PARETO, ENERGY_LATENCY, ROOFLINE, TREND, COMPATIBILITY),
    )
}
