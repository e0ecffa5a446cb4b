"""Charts along an axis: platforms, precisions, engines, modes beside each other. Pure."""

from __future__ import annotations

from accelbench.analysis.questions import AXES
from accelbench.report.charts.bars import Comparison, Figure, compared
from accelbench.report.charts.chart import Chart


def _chart(
    name: str, title: str, answers: str, needs: str, axis: str, figure: Figure, axis_title: str
) -> Chart:
    comparison = Comparison(AXES[axis], figure, axis_title)
    return Chart(name, title, answers, needs, lambda subject: compared(subject, comparison))


_LATENCY = "latency of a batch, ms"

HARDWARE_LATENCY = _chart(
    "hardware-latency",
    "Hardware: latency",
    "how fast each platform is",
    "a model on two platforms",
    "hardware",
    lambda point: point.latency,
    _LATENCY,
)
HARDWARE_THROUGHPUT = _chart(
    "hardware-throughput",
    "Hardware: throughput",
    "how many items a second each platform brings",
    "a model on two platforms",
    "hardware",
    lambda point: point.throughput,
    "throughput, items/s",
)
HARDWARE_MEMORY = _chart(
    "hardware-memory",
    "Hardware: memory",
    "how much memory each platform takes",
    "a model on two platforms, with its memory",
    "hardware",
    lambda point: point.memory,
    "peak memory, MB (2^20)",
)
PRECISIONS = _chart(
    "precision",
    "Precisions",
    "what a narrower precision brings",
    "a model in two precisions",
    "precision",
    lambda point: point.latency,
    _LATENCY,
)
FRAMEWORKS = _chart(
    "framework",
    "Frameworks",
    "which engine is fastest on the same platform",
    "a model by two engines on a platform",
    "runtime",
    lambda point: point.latency,
    _LATENCY,
)
MODES = _chart(
    "training-inference",
    "Training against inference",
    "how much longer a training step takes than an inference step",
    "a model in inference and in training",
    "mode",
    lambda point: point.latency,
    _LATENCY,
)
