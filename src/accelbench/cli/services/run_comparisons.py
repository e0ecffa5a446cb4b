"""`accelbench run --compare`: what a run measured, side by side along every axis that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from accelbench.cli.display.terminal import print_line, print_lines
from accelbench.core.provenance import comparable
from accelbench.exchange.prices import Prices


def comparisons(
    rows: Sequence[Mapping[str, Any]], prices: Prices | None, started: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Of a run's own results, by axis.

    Args:
        rows: its results.
        prices: what figures cost by, where the user gave any.
        started: what the run said when it began.
    """
    from accelbench.analysis.comparison import along_every_axis
    from accelbench.analysis.costs import with_costs
    from accelbench.analysis.machines import machine_of

    run = str(started["run_id"])
    priced = with_costs(rows, prices, {run: machine_of(run, started.get("environment"))})
    return along_every_axis([row for row in priced if comparable(row)])


def document_of_comparisons(by_axis: Mapping[str, Any], prices: Prices | None) -> dict[str, Any]:
    """The same in plain JSON."""
    from accelbench.analysis.questions import AXES
    from accelbench.report.comparison import document

    return {name: document(lines, AXES[name], prices) for name, lines in by_axis.items()}


def print_comparisons(by_axis: Mapping[str, Any], prices: Prices | None, stream: IO[str]) -> None:
    """The tables."""
    from accelbench.analysis.questions import AXES
    from accelbench.cli.display.compare import show

    if not by_axis:
        print_lines(
            ("", "Nothing to compare: nothing was measured at two values of one axis."), stream
        )
    for name, lines in by_axis.items():
        print_line(stream=stream)
        show(lines, AXES[name], stream=stream, prices=prices)
