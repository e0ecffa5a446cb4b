"""A comparison as records, one a side; `check` takes them for a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from accelbench.core.columns import CONFIGURATION_COLUMNS
from accelbench.core.precision import error_of, summarise_inexact
from accelbench.core.result_statistics import TAILS, Statistic, step_of
from accelbench.core.rows import record, texts
from accelbench.core.unusable_reasons import FAILED, LAUNCHED
from accelbench.exchange.prices import DEFAULT_CURRENCY, Prices
from accelbench.exchange.titles import LAUNCH_COLUMNS, LAUNCH_VALUES
from accelbench.judge.accuracies import accuracy_against, accuracy_among
from accelbench.judge.comparison import Compared
from accelbench.judge.costs import known_price
from accelbench.judge.questions import ComparisonAxis
from accelbench.judge.ratios import CANNOT_TELL
from accelbench.judge.sides import Side
from accelbench.judge.versions import engine_version
from accelbench.measure.launch_verdicts import geometric_mean

#: What a side is of.
OF_A_SIDE = (
    *("model", "family"),
    *(name for name in CONFIGURATION_COLUMNS if name != "model"),
    *("run_id", "provenance"),
)

ComparedGroups = Sequence[Sequence[Compared]]


def document(
    groups: ComparedGroups, axis: ComparisonAxis, prices: Prices | None = None
) -> list[dict[str, object]]:
    """Each side of each question, in plain JSON values."""
    currency = DEFAULT_CURRENCY if prices is None else prices.currency
    return [_line(line, axis, currency) for lines in groups for line in lines]


def _line(line: Compared, axis: ComparisonAxis, currency: str) -> dict[str, object]:
    price = known_price(line.side.row)
    row, base, ratio = line.side.row, line.baseline, line.ratio
    return {
        **{name: row.get(name) for name in OF_A_SIDE},
        "engine_version": engine_version(row) or None,
        "submitter": record(row, "conditions").get("Submitter"),
        "axis": axis.name,
        "launches": len(line.side.times),
        "quality": line.side.quality,
        "verification_error": max(
            (error for row in line.side.rows if (error := error_of(row)) is not None), default=None
        ),
        "not_exact": summarise_inexact(line.side.rows),
        **_accuracy(line),
        "figure": str(line.side.statistic),
        "latency_ms": _latency(line.side),
        "latency_p50_ms": _median(line.side),
        "item_ms": _item(line.side),
        "throughput": line.side.throughput,
        "throughput_unit": row.get("throughput_unit"),
        **_kind(line.side),
        "memory_mb": line.side.memory_mb,
        "energy_per_item_joules": line.side.energy_per_item,
        "power_watts": line.side.power_watts,
        "cost_per_million": line.side.cost,
        "cost_per_step": line.side.step_cost,
        "currency": currency if line.side.cost or line.side.step_cost else None,
        "price_per_hour": None if price is None else price.per_hour,
        "priced_by": None if price is None else price.name,
        "baseline": None if base is None else " ".join(str(v) for v in base.value if v is not None),
        "baseline_launches": None if base is None else len(base.times),
        "baseline_figure": None if base is None else str(base.statistic),
        "baseline_latency_ms": None if base is None else _latency(base),
        "baseline_item_ms": None if base is None else _item(base),
        "baseline_throughput": None if base is None else base.throughput,
        "speedup": line.speedup,
        "speedup_by": None if ratio is None else ratio.statistic.value,
        "speedup_low": None if ratio is None else ratio.shown[0],
        "speedup_high": None if ratio is None else ratio.shown[1],
        "direction": None if ratio is None else ratio.direction.value,
        "speedup_interval_of": None if ratio is None else ratio.of or None,
        "speedup_by_means": None if ratio is None else ratio.by_means,
        "cannot_tell": CANNOT_TELL if ratio is not None and not ratio.told else "",
        "memory_ratio": line.memory_ratio,
        "efficiency": line.efficiency,
        "knee": line.knee,
        "refused": line.refused,
        "differs": list(line.differs),
        **_alike(line.side),
        "slower_runtimes": list(line.side.others),
        "faster_unlike": list(line.side.faster),
        "failed_since": list(line.failed_since),
        "launches_tried": row.get(LAUNCHED) or len(line.side.rows) + line.side.unusable,
        "failed_launches": row.get(FAILED) or 0,
        "launches_set_aside": line.side.older,
        "newer_launches_set_aside": line.side.newer,
        "unusable_launches_left_out": line.side.unusable,
        LAUNCH_VALUES: [
            {name: row[name] for name in LAUNCH_COLUMNS if row.get(name) is not None}
            for row in line.side.rows
        ],
    }


def _kind(side: Side) -> dict[str, object]:
    digests = {row["weights_digest"] for row in side.rows if row.get("weights_digest")}
    ways = dict.fromkeys(way for row in side.rows for way in texts(row, "workarounds"))
    return {
        "weights_digest": digests.pop() if len(digests) == 1 else None,
        "workarounds": list(ways),
        "emulated": any(row.get("emulated") for row in side.rows),
    }


def _accuracy(line: Compared) -> dict[str, object]:
    known = accuracy_among(line.side.rows)
    beside = line.baseline is not None and line.side is not line.baseline
    cost = (
        accuracy_against(line.side.rows, line.baseline.rows) if beside and line.baseline else None
    )
    held = None if cost is None else cost.difference
    return {
        "accuracy_metric": None if known is None else known.metric.value,
        "accuracy": None if known is None else known.value,
        "accuracy_low": None if known is None else known.low,
        "accuracy_high": None if known is None else known.high,
        "accuracy_samples": None if known is None else known.samples,
        "accuracy_difference": None if held is None else held.value,
        "accuracy_difference_low": None if held is None else held.low,
        "accuracy_difference_high": None if held is None else held.high,
        "accuracy_difference_told": None if held is None else held.is_significant,
        "accuracy_lost": None if held is None else held.lost,
        "accuracy_gained": None if held is None else held.gained,
        "accuracy_refused": "" if cost is None else cost.refused,
    }


def _alike(side: Side) -> dict[str, object]:
    low, high, figure = side.range_alike or (None, None, None)
    rates = (low, high) if figure is Statistic.RATE else (None, None)
    times = (None, None) if figure is Statistic.RATE else (low, high)
    return {
        "fastest_of": side.fastest_of,
        "alike_throughput_low": rates[0],
        "alike_throughput_high": rates[1],
        "alike_item_ms_low": times[0],
        "alike_item_ms_high": times[1],
    }


def _latency(side: Side) -> float | None:
    """Return a mean or a median, never a tail or a rate."""
    return None if side.step is None or side.step[1] in TAILS else side.step[0]


def _item(side: Side) -> float | None:
    """Return the time that is compared; a rate of many requests at once has none."""
    return side.time_ms if side.step is not None else None


def _median(side: Side) -> float | None:
    medians = [step_of(row, Statistic.MEDIAN) for row in side.rows]
    known = [median for median in medians if median is not None]
    return geometric_mean(known) if known and len(known) == len(medians) else None
