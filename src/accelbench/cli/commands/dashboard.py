"""`accelbench dashboard`: look at a database or a lake in a browser."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.present.terminal.terminal import print_line, print_lines

if TYPE_CHECKING:
    from accelbench.present.dashboard.guard import AccessRule
    from accelbench.present.dashboard.snapshot import SnapshotKeeper
    from accelbench.store.database import Database

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

#: On a command line a token can be read by everybody on the machine.
TOKEN_VARIABLE = "ACCELBENCH_DASHBOARD_TOKEN"  # noqa: S105 — a variable's name
_NEW = "new"
_SHORTEST = 16


@app.command()
def dashboard(
    host: str = typer.Option("127.0.0.1", "--host", help="Where to listen: this machine alone."),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65535, help="Else 8501, or a free one; 0 takes any."
    ),
    token: str | None = typer.Option(
        None,
        "--token",
        help=f"What visitors have to know; `new` makes one. Else ${TOKEN_VARIABLE}.",
    ),
    opened: bool = typer.Option(False, "--open/--no-open", help="Open it in the browser."),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    db: Path | None = typer.Option(
        None, "--db", help="The database or the lake; else $ACCELBENCH_DB, else here."
    ),
) -> None:
    """Look at results in a browser: filter, compare, drill down, follow a run. It changes nothing.

    Ctrl-C ends it.
    """
    needs_its_packages()
    from accelbench.present.dashboard.guard import AccessRule, is_loopback
    from accelbench.present.dashboard.snapshot import SnapshotKeeper

    door = AccessRule(host, _token(token))
    if not is_loopback(host) and not door.token:
        raise UsageError(
            f"{host} can be reached by others, who have to know a token.",
            f"--token new makes one; ${TOKEN_VARIABLE} gives one of yours.",
        )
    given = load_prices(prices)
    database = _filled(db)
    with SnapshotKeeper(database, _refill(database), prices=given) as keeper:
        keeper.begin()  # the store is read while everything else is imported
        _serve(database, door, keeper, port, opened)


def _serve(
    database: Database, door: AccessRule, keeper: SnapshotKeeper, port: int | None, opened: bool
) -> None:
    from accelbench.present.dashboard import serve
    from accelbench.present.dashboard.routes import application

    with serve.listening(door.host, port) as made:
        address = serve.address(door, made)

        def begun(_: object) -> None:
            print_lines((f"Dashboard of {database.name}: {address}", "Ctrl-C ends it."))
            sys.stdout.flush()
            if opened:
                import webbrowser

                webbrowser.open(address)

        pages = application(database, door, keeper)
        # Who ends it by another signal ends it as well as by Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            serve.serve(pages, made, begun)
        except KeyboardInterrupt:
            print_line()


def needs_its_packages() -> None:
    """Refuse where a package of the extra is missing."""
    from importlib.util import find_spec

    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "dashboard", "The dashboard")


def _token(option: str | None) -> str:
    word = os.environ.get(TOKEN_VARIABLE, "") if option is None else option
    if word == _NEW:
        return secrets.token_urlsafe(24)
    if word and (len(word) < _SHORTEST or not word.isascii() or not word.isprintable()):
        raise UsageError(
            f"A token has {_SHORTEST} plain characters or more.", "--token new makes one."
        )
    return word


def _filled(path: Path | None) -> Database:
    from accelbench.cli.services.opening import filled

    database = filled(path)
    with database.keep_open():  # what cannot be read is said here, not on every page
        return database


def _refill(database: Database) -> Callable[[], object] | None:
    from accelbench.store.lake import Lake

    return database.fill if isinstance(database, Lake) else None
