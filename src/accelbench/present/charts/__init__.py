"""Every chart there is, in the order in which people ask: a new one is a declaration and a line."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.present.charts.bars import (
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
from accelbench.present.charts.by_batch import (
    LATENCY_BY_BATCH,
    MEMORY_BY_BATCH,
    THROUGHPUT_BY_BATCH,
)
from accelbench.present.charts.chart import Chart
from accelbench.present.charts.collectives import COLLECTIVES, COMMUNICATION, RANKS
from accelbench.present.charts.compatibility import COMPATIBILITY
from accelbench.present.charts.distribution import COLD_WARM, DISTRIBUTION
from accelbench.present.charts.model_panels import MODEL_PANELS
from accelbench.present.charts.pareto import ENERGY_LATENCY, PARETO
from accelbench.present.charts.roofline import ROOFLINE
from accelbench.present.charts.scaling import SCALING
from accelbench.present.charts.spread import ARCHITECTURES
from accelbench.present.charts.trend import TREND

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
