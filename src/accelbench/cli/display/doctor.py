"""What `accelbench doctor` prints for people, within 80 columns."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accelbench.cli.display.console import console as made_for
from accelbench.core.visible import visible
from accelbench.hardware.doctor.checks import Examined, well
from accelbench.hardware.doctor.world import ILL, Finding, Health

_STYLES = {
    Health.OK: "green",
    Health.HINT: "yellow",
    Health.MISSING: "dim",
    Health.BROKEN: "bold red",
    Health.CLASH: "bold red",
}


def show(findings: Examined, console: Console | None = None) -> None:
    """Group by group, then what mends what is ill, then what brings what is missing."""
    console = console or made_for()
    for group, pairs in groupby(findings, key=lambda pair: pair[0]):
        console.print(Text(group, style="bold"))
        console.print(
            Padding(_table([finding for _, finding in pairs]), (0, 0, 1, 2), expand=False)
        )
    ones = [finding for _, finding in findings]
    _remedies(console, "To mend", [finding for finding in ones if finding.health in ILL])
    _remedies(
        console, "Worth knowing", [finding for finding in ones if finding.health is Health.HINT]
    )
    _remedies(console, "What would bring the rest", [o for o in ones if o.health is Health.MISSING])
    counted = [f"{sum(o.health is h for o in ones)} {h}" for h in Health]
    verdict = (
        "Nothing that is installed is broken." if well(findings) else "Something needs mending."
    )
    console.print(Text(f"{verdict} {', '.join(counted)}."))


def _table(ones: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(max_width=18, overflow="fold")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in ones:
        health = Text(finding.health.value, style=_STYLES[finding.health])
        table.add_row(Text(visible(finding.name)), health, Text(visible(finding.said)))
    return table


def _remedies(console: Console, title: str, ones: list[Finding]) -> None:
    rows = [finding for finding in ones if finding.remedy]
    if not rows:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(max_width=18, overflow="fold")
    table.add_column(overflow="fold")
    for finding in rows:
        table.add_row(Text(visible(finding.name), style="dim"), Text(visible(finding.remedy)))
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
