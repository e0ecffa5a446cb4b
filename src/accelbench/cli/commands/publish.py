"""`accelbench publish`: a database or a lake as static pages that any web server can host."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import typer

from accelbench.cli.arguments.shared_options import parameters_of
from accelbench.core.formatting import format_count
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.present.terminal.terminal import complain, print_lines
from accelbench.present.terminal.watch import StatusOfPages
from accelbench.present.terminal.words import duration

_, option = parameters_of("publish")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def publish(
    folder: Path = typer.Argument(..., metavar="DIR", help="Made, or an earlier bundle replaced."),
    title: str = typer.Option("Benchmark results", "--title", help="Named on every page."),
    as_recorded: bool = option(False, "--as-recorded"),
    most: int = option(100, "--pages", min=1, max=100_000),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    db: Path | None = option(None, "--db"),
) -> None:
    """Write the dashboard as static files: any web server hosts them, and nothing else is asked.

    The table of results is filtered, ordered and grouped in the visitor's browser.
    """
    from accelbench.cli.commands.dashboard import needs_its_packages
    from accelbench.cli.services.opening import filled

    needs_its_packages()
    from accelbench.present.publishing import bundle
    from accelbench.present.publishing.private_facts import hosts_in

    bundle.check_folder(folder.expanduser().resolve())
    given = load_prices(prices)
    database = filled(db)
    complain(_told(hosts_in(database), as_recorded))
    begun = time.monotonic()
    with StatusOfPages(sys.stderr) as status:
        made = bundle.publish(
            database,
            folder,
            title=title,
            as_recorded=as_recorded,
            prices=given,
            most=most,
            tell=status.told,
        )
    written = (
        f"{made.folder}: {format_count(made.pages, 'page')}, {format_count(made.files, 'file')},"
        f" {made.size / 1e6:.1f} MB; {format_count(made.configurations, 'configuration')} in"
        " the table;"
        f" {duration(time.monotonic() - begun)}"
    )
    print_lines(
        (
            written,
            *([f"{made.left_out} --pages N draws more."] if made.left_out else []),
            f"Look at it: python -m http.server --directory {made.folder}",
        )
    )


def _told(hosts: list[str], as_recorded: bool) -> str:
    if not as_recorded:
        return "Host names, commands, branches and paths are left out; --as-recorded tells them."
    names = ", ".join(hosts[:5]) or "none"
    more = f" and {len(hosts) - 5} more" if len(hosts) > 5 else ""
    return f"Published as recorded, with commands, branches, paths and host names: {names}{more}."
