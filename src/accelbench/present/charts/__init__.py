"""Every chart there is, in the order in which people ask: a new one is a declaration and a line."""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.present.charts import bars
from accelbench.present.charts.by_batch import (
    LATENCY_BY_BATCH,
    MEMORY_BY_BATCH,
    MODEL_PANELS,
    THROUGHPUT_BY_BATCH,
)
from accelbench.present.charts.chart import Chart
from accelbench.present.charts.collectives import COLLECTIVES, COMMUNICATION, RANKS
from accelbench.present.charts.compatibility import COMPATIBILITY
from accelbench.present.charts.pareto import ENERGY_LATENCY, PARETO, ROOFLINE
from accelbench.present.charts.scaling import SCALING
from accelbench.present.charts.spread import ARCHITECTURES, COLD_WARM, DISTRIBUTION
from accelbench.present.charts.trend import TREND

CHARTS: Mapping[str, Chart] = {
    chart.name: chart
    for chart in (
        *(bars.HARDWARE_LATENCY, bars.HARDWARE_THROUGHPUT, bars.HARDWARE_MEMORY),
        *(LATENCY_BY_BATCH, THROUGHPUT_BY_BATCH, MEMORY_BY_BATCH, MODEL_PANELS),
        *(bars.MODES, bars.PRECISIONS, bars.FRAMEWORKS, ARCHITECTURES),
        *(bars.HARDWARE_COST, bars.COST_BY_BATCH, bars.TRAINING_COST),
        *(SCALING, COMMUNICATION, RANKS, COLLECTIVES),
        *(DISTRIBUTION, COLD_WARM, PARETO, ENERGY_LATENCY, ROOFLINE, TREND, COMPATIBILITY),
    )
}
