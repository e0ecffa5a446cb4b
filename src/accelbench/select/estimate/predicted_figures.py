"""A prediction as a figure that a candidate is ranked by. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accelbench.core.figures import Statistic
from accelbench.core.vocabulary import Provenance
from accelbench.predict.learned_words import POOR
from accelbench.select.estimate.figures import PREDICTED, Figure
from accelbench.select.evidence.cells import EvidenceCell, EvidenceRow
from accelbench.select.evidence.origins import FigureOrigin

if TYPE_CHECKING:
    from accelbench.predict.answers import PredictedFigures


def predicted_figure(predicted: PredictedFigures) -> Figure:
    """A prediction as a figure: of the way that it says, in its 90 % interval."""
    row: EvidenceRow = {
        "model": predicted["model"],
        "hardware": predicted["hardware"],
        "device_name": predicted["device"],
        "runtime": predicted["runtime"],
        "precision": predicted["precision"],
        "mode": predicted["mode"],
        "compiled": predicted["compiled"],
        "threads": predicted["threads"],
        "batch_size": predicted["batch_size"],
        "throughput_unit": predicted["throughput_unit"],
        "provenance": Provenance.PREDICTED,
    }
    cell = EvidenceCell(row, (), (predicted["throughput"],), statistic=Statistic.MEDIAN)
    return Figure(
        PREDICTED,
        predicted["latency_ms"],
        predicted["throughput"],
        predicted["latency_low_ms"],
        predicted["latency_high_ms"],
        cell,
        _basis(predicted),
        batch=predicted["batch_size"],
        predicted=predicted,
        origin=FigureOrigin(tuple(predicted["rests_on"])),
    )


def _basis(predicted: PredictedFigures) -> str:
    """What a prediction rests on, and by how much such ones are off where that is poor."""
    error = predicted["held_out_error"]
    poor = "" if error is None or error <= POOR else f", off by {error:,.0%} in the median held out"
    return f"from {predicted['basis']}{poor}"
