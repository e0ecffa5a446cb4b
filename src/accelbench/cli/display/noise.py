"""A machine's noise floor for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import IO

from accelbench.analysis.run_noise import NoiseFloor
from accelbench.exchange.titles import title


def show(all_floors: Sequence[NoiseFloor], stream: IO[str] | None = None) -> None:
    """Print it."""
    from rich.table import Table
    from rich.text import Text

    from accelbench.cli.display.console import console as made_for

    console = made_for(stream)
    for name, floors in groupby(all_floors, key=lambda floor: title(floor.row)):
        console.print(Text(name, style="bold"))
        table = Table.grid(padding=(0, 2, 0, 0))
        for floor in floors:
            table.add_row(
                f"  {floor.metric.name}",
                f"noise {floor.noise:.2%}",
                "launches find "
                + ", ".join(f"{k}: {shown:.1%}" for k, _, shown in floor.finds() if shown),
                f"against itself: {floor.against_itself.answer.value}",
            )
        console.print(table)
    console.print()
    console.print(
        Text(
            "Noise is what launches of the same differ by. So many launches a side find a change of"
            " so much, four times in five; accelbench check knows this noise from now on."
        )
    )
