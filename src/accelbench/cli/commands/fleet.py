"""`accelbench fleet`: measure on many machines, which Ray holds together."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import typer

from accelbench.cli.arguments.fleet_options import ADDRESS, TOKEN_FILE
from accelbench.cli.arguments.groups import NamedCommands
from accelbench.cli.arguments.lists import SpacedLists
from accelbench.cli.commands.fleet_run import planned_options, run
from accelbench.cli.commands.run import termination_as_interrupt
from accelbench.core.errors import EXIT_CANNOT_TELL, EXIT_NO

app = typer.Typer(
    cls=NamedCommands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


@app.callback()
def fleet() -> None:
    """Measure on many machines, which Ray holds together."""


@app.command()
def start(
    host: str = typer.Option(
        "127.0.0.1",
        "--host",
        help="The address of this machine that other nodes reach it by. Of the loopback address"
        " nodes of this machine alone can join.",
    ),
    port: int = typer.Option(6379, "--port", min=1, max=65535, help="The port that nodes join at."),
    coordinator: bool = typer.Option(
        False, "--coordinator", help="Measure nothing on this machine itself."
    ),
) -> None:
    """Start a fleet with this machine as its head.

    Who joins, or has it measure, needs the token that is written into a file which only this user
    can read. Without --host nobody but this machine reaches it.
    """
    from accelbench.cli.services import fleet_sessions

    fleet_sessions.start(host, port, measures=not coordinator)


@app.command()
def join(
    address: str = typer.Argument(..., metavar="HOST:PORT", help="Of the fleet's head."),
    token_file: Path | None = typer.Option(
        None, "--token-file", help="The file of its token, copied from the head."
    ),
    host: str | None = typer.Option(
        None, "--host", help="The address of this machine that the head reaches it by."
    ),
) -> None:
    """Let this machine measure for a fleet, until accelbench fleet stop."""
    from accelbench.cli.services import fleet_sessions

    fleet_sessions.join(address, token_file, host)


@app.command()
def stop(
    keep_logs: bool = typer.Option(
        False, "--keep-logs", help="Leave Ray's logs, and say where they are."
    ),
) -> None:
    """End what accelbench fleet started on this machine, and nothing else.

    Ray's logs go with it, but for those of a fleet in which a process of Ray had ended by itself.
    """
    from accelbench.cli.services import fleet_sessions

    fleet_sessions.stop(keep_logs=keep_logs)


@app.command()
def status(
    address: str | None = ADDRESS,
    token_file: Path | None = TOKEN_FILE,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Show the nodes of a fleet: devices, versions, what differs among them, what they are at."""
    from accelbench.cli.services import fleet_sessions
    from accelbench.run.fleet.fleet_address import FleetAddress

    where = FleetAddress.of(address, token_file)
    fleet_sessions.show_status(where, sys.stdout, as_json=as_json)


@app.command()
def validate(
    ctx: typer.Context,
    address: str | None = ADDRESS,
    token_file: Path | None = TOKEN_FILE,
    db: Path | None = typer.Option(
        None, "--db", help="Database or lake; ACCELBENCH_DB, or accelbench.duckdb here."
    ),
    models: list[str] | None = typer.Option(
        None, "--models", help="Instead of bert-tiny and resnet-tiny; of a plan, those alone."
    ),
    plan: Path | None = typer.Option(
        None, "--plan", help="A plan file: its cases, instead of the two models'."
    ),
    probes: bool = typer.Option(
        False,
        "--probes",
        help="Matrix products, bandwidths, attention and launches, as hardware --calibrate times"
        " them, half a minute a device; models only where --models or --plan names them.",
    ),
    hardware: list[str] | None = typer.Option(
        None, "--hardware", help="Platforms that are validated; all that nodes have by default."
    ),
    framework: list[str] | None = typer.Option(
        None, "--framework", help="Runtimes, such as pytorch; each platform's default otherwise."
    ),
    launches: int = typer.Option(3, "--launches", min=1, help="Fresh processes for each case."),
    threshold: float = typer.Option(
        0.1, "--threshold", min=0.01, help="How much slower than its kind a bad node is at least."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Only the verdict."),
) -> None:
    """Say which nodes fall out of their kind.

    Every node measures a short fixed plan, two small models of matrix products and convolutions
    with one item and with many; or a plan of yours; or the limits of its devices. Nodes with the
    same device are compared with the median of their kind.

    Ends with 1 where a node falls out, and with 4 where that cannot be told, as of a kind with two
    nodes: one of them is slower, and neither is known to be right.
    """
    from accelbench.cli.arguments import run_arguments
    from accelbench.cli.services import fleet_validation
    from accelbench.core.word_lists import words
    from accelbench.run.fleet.fleet_address import FleetAddress
    from accelbench.runtimes.shared.names import runtimes_named

    where = FleetAddress.of(address, token_file)
    if plan is not None:
        typed = {"hardware": hardware, "framework": framework, "launches": launches}
        requests, how = planned_options(ctx, [str(plan), *words(models)], typed)
        how = replace(how, label=fleet_validation.LABEL)
    else:
        requests, how = fleet_validation.usual_work(
            words(models), words(hardware), runtimes_named(words(framework)), launches
        )
    if probes and plan is None and not models:
        requests = ()
    platforms = run_arguments.platforms(words(hardware)) if probes else None
    work = fleet_validation.ValidationWork(requests, how, platforms)
    with termination_as_interrupt():
        verdict = fleet_validation.validate(
            where, db, work, threshold, as_json=as_json, quiet=quiet
        )
    if verdict.bad:
        raise typer.Exit(EXIT_NO)
    if verdict.open:
        raise typer.Exit(EXIT_CANNOT_TELL)


app.command("run", cls=SpacedLists)(run)
