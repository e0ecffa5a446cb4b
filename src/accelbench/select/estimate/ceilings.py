"""How quick a step can be, by what its device does and what the model makes of devices. Pure.

    operations a millisecond ≤ 2 × the device's best
                             ≤ 4 × the device's best × the share of its best that the model reaches
                                   where it was measured at about the batch, the device filled

The best of a device is the rate that one in twenty models exceeds there, in one precision. Which
share of it a model reaches hardly depends on the device: of 885 vision models measured on a
GeForce RTX 4090 and on a Core i9, one reached more than four times the share on the other, and 37
more than twice (public figures of timm, batches of 256 to 1,024 on the card, 1 on the processor).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from accelbench.hardware.rooflines import called
from accelbench.select.estimate.figures import Figure, is_near
from accelbench.select.evidence.cells import EvidenceCell, rounded
from accelbench.select.evidence.sql import Key, Rates

#: Seen were up to twice, where a name stands for several sizes of a model.
_BEYOND_BEST = 2.0
_BEYOND_SHARE = 4.0
#: With less than this share of its best a device may have waited for work: of 1,000 models whose
#: large batches fill a card, 995 reach more.
_FILLED = 0.04


def bounded(
    figure: Figure, flops: float | None, own: Iterable[EvidenceCell], rates: Rates
) -> Figure:
    """An estimate, no quicker than it can be.

    Args:
        figure: the estimate.
        flops: operations of one item of the model.
        own: the model's figures, wherever they were measured.
        rates: of devices, as far as they are known.
    """
    if figure.measured or not flops:
        return figure
    limit = _limit(figure, flops, own, rates)
    if limit is None:
        return figure
    rate, why = limit
    least = flops * figure.batch / rate
    if least <= figure.low:
        return figure
    middle = max(figure.latency, least)
    return replace(
        figure,
        latency=middle,
        throughput=figure.throughput * figure.latency / middle,
        low=least,
        high=max(figure.high, middle),
        note=f"{figure.note}; no less than {rounded(least)} ms, {why}",
    )


def key_of(cell: EvidenceCell) -> Key:
    """Where a figure belongs among the rates."""
    return cell.hardware, cell.device, cell.precision, cell.mode


def _limit(
    figure: Figure, flops: float, own: Iterable[EvidenceCell], rates: Rates
) -> tuple[float, str] | None:
    """The most operations a millisecond, and by what."""
    limits = []
    documented = _documented(figure.cell)
    if documented is not None:
        limits.append((documented, "by what its maker says it computes"))
    best = rates.get(key_of(figure.cell))
    if best is not None:
        limits.append((_BEYOND_BEST * best, "by the most that any model reaches there"))
        near = (cell for cell in own if is_near(cell.batch, figure.batch))
        share = max((_share(cell, flops, rates) for cell in near), default=0.0)
        if share >= _FILLED:
            reached = f"by the {share:.0%} of another device's best that the model reaches there"
            limits.append((_BEYOND_SHARE * best * share, reached))
    return min(limits, default=None)


def _share(cell: EvidenceCell, flops: float, rates: Rates) -> float:
    best = rates.get(key_of(cell))
    return flops * cell.batch / cell.latency / best if best else 0.0


def _documented(cell: EvidenceCell) -> float | None:
    """Operations a millisecond that its maker gives for the precision; None of most devices."""
    narrow = cell.precision.removeprefix("amp-")
    roofline = called(cell.hardware, cell.device)
    known = None if roofline is None else roofline.highest_per_second(narrow)
    return None if known is None else known / 1e3
