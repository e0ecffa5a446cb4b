"""`accelbench fleet`: measure on many machines that Ray connects."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.run_spec_options import (
    RunCommand,
    defaults,
    typed_options,
    with_run_options,
)
from accelbench.cli.arguments.shared_options import AS_JSON, NamedCommands, parameters_of
from accelbench.cli.commands.run import termination_as_interrupt
from accelbench.core.errors import EXIT_INCONCLUSIVE, EXIT_NO, UsageError
from accelbench.core.formatting import format_count, parse_duration
from accelbench.core.safe_text import in_quotes
from accelbench.present.terminal.terminal import print_line

if TYPE_CHECKING:
    from accelbench.cli.services.run_request import AskedRun
    from accelbench.core.run_options import RunSpec
    from accelbench.fleet.fleet_nodes import FleetNode


_, option = parameters_of("fleet")
#: Options of `accelbench run` that a fleet does not have: of one machine, or of no machine at all;
#: and those that would run code of others on every node.
_OF_ONE_MACHINE = frozenset(
    {"browser", "plan_schema", "save_plan", "simulate", "trust_remote_code"}
)
#: Typed as what typer puts in their place.
ADDRESS: Any = option(None, "--address", metavar="HOST:PORT")
TOKEN_FILE: Any = option(None, "--token-file")


@with_run_options(_OF_ONE_MACHINE)
def run(
    ctx: typer.Context,
    each: bool = option(False, "--each"),
    address: str | None = ADDRESS,
    token_file: Path | None = TOKEN_FILE,
    attempts: int = option(3, "--attempts", min=1),
    silence: str | None = option(None, "--silence"),
    **typed: Any,
) -> None:
    """Measure models on the nodes of a fleet; store every sample here.

    Takes what accelbench run takes, plan files among it. A case runs on one node that has its
    platform, alone on its device (for the CPU: on the whole node), with all its launches; with
    --distributed --nnodes N on N nodes that make each step together. It is
    tried again elsewhere where its node is lost or hangs. What a node measures is a run of its
    own, RUN.NODE, with that node's environment.

    Ends as accelbench run does.
    """
    from accelbench.cli.arguments.shared_options import refuse_threshold
    from accelbench.cli.services import fleet_running, running
    from accelbench.cli.services.run_request import asked_run
    from accelbench.fleet.dispatch import DispatchRules
    from accelbench.fleet.fleet_run import FleetOptions
    from accelbench.fleet.session import FleetAddress

    refuse_threshold(typed["threshold"])
    asked = asked_run(typed, typed_options(ctx))
    spec = asked.spec
    if spec.resume is not None and each:
        raise UsageError(
            "A resumed run keeps its settings: --each cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    stream = sys.stderr if spec.as_json else sys.stdout
    places = replace(running.places_of(spec), command=("accelbench", "fleet", "run"))
    rules = DispatchRules(
        attempts=attempts, silence=parse_duration(silence, "--silence") or DispatchRules.silence
    )
    where = FleetAddress.resolve(address, token_file)
    with termination_as_interrupt():
        if spec.resume is not None:
            ended = fleet_running.resume_run(spec.resume, where, places, rules, stream, spec.quiet)
            running.finish(ended, places, stream, spec)
        _refuse_planned(spec)
        if each and spec.nodes > 1:
            raise UsageError(
                "--each measures on every node separately, and --nnodes on several together.",
                "Leave one of them out.",
            )
        options = FleetOptions(each, rules)
        if spec.dry_run:
            fleet_running.show_plan(asked, where, options, places, sys.stdout, as_json=spec.as_json)
            return
        ended = fleet_running.new_run(asked, where, options, places, stream, spec.quiet)
        running.finish(ended, places, stream, spec, asked.passed_over)


def planned_work(ctx: typer.Context, names: Sequence[str], typed: Mapping[str, Any]) -> AskedRun:
    """Return what a plan file, or named models of it, ask for, for another command of a fleet."""
    from accelbench.cli.services.plan_files import plan_files_among
    from accelbench.cli.services.run_request import asked_run

    if not plan_files_among(names[:1])[0]:
        raise UsageError(
            f"{in_quotes(names[0])} is not a plan file.", "Name a .yaml, .toml or .json file."
        )
    given = {"models": list(names), **typed}
    asked = asked_run({**defaults(), **given}, typed_options(ctx, given))
    _refuse_planned(asked.spec)
    if asked.spec.nodes > 1:
        raise UsageError(
            "Each node is validated separately, and the plan has nnodes.", "Leave it out."
        )
    return asked


def _refuse_planned(spec: RunSpec) -> None:
    """Refuse what a fleet decides itself, and what it does not have."""
    if spec.node_rank is not None or spec.rendezvous:
        raise UsageError(
            "A fleet chooses the nodes that make a step together, and where they meet: --node-rank"
            " and --rdzv-endpoint are options of accelbench run.",
            "Leave them out; --nnodes says how many nodes.",
        )
    found = [name for name in sorted(_OF_ONE_MACHINE) if getattr(spec, name)]
    if found:
        name = found[0].replace("_", "-")
        raise UsageError(
            f"The plan contains {name}, which a fleet's run does not have.",
            "Measure it by accelbench run, or leave it out.",
        )


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
    host: str = option("127.0.0.1", "--host"),
    port: int = typer.Option(6379, "--port", min=1, max=65535, help="The port that nodes join at."),
    coordinator: bool = option(False, "--coordinator"),
) -> None:
    """Start a fleet with this machine as its head.

    Who joins, or has it measure, needs the token that is written into a file which only this user
    can read. Without --host nobody but this machine reaches it.
    """
    from accelbench.fleet import session
    from accelbench.fleet.ray_cluster import is_loopback
    from accelbench.hardware.detect import LazyInventory

    node = session.start(host, port, LazyInventory(), measures=not coordinator)
    print_line(f"A fleet is at {node.address}. Its token is in {node.token_file}.")
    alone = is_loopback(host)
    who = "Another node of this machine" if alone else "Another machine, with a copy of that file,"
    file = node.token_file if alone else Path(node.token_file).name
    words = ["accelbench", "fleet", "join", node.address, "--token-file", file]
    print_line(f"{who} joins with: {shlex.join(words)}")
    print_line("Measure with: accelbench fleet run MODEL …")


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
    from accelbench.fleet import session
    from accelbench.hardware.detect import LazyInventory

    node = session.join(address, token_file, host, LazyInventory())
    print_line(f"This machine measures for the fleet at {node.address}.")
    print_line("It leaves with: accelbench fleet stop")


@app.command()
def stop(keep_logs: bool = option(False, "--keep-logs")) -> None:
    """End what accelbench fleet started on this machine, and nothing else.

    Ray's logs go with it, but for those of a fleet in which a process of Ray had ended by itself.
    """
    from accelbench.fleet import session

    stopped = session.stop(keep_logs=keep_logs)
    ended = format_count(stopped.processes, "process", "processes")
    fleet = stopped.processes
    print_line(f"Ended {ended}." if fleet else "No fleet was started on this machine.")
    for folder in stopped.logs:
        why = "A process of Ray had ended before: its" if stopped.failed else "Ray's"
        print_line(f"{why} logs are in {folder}.")


@app.command()
def status(
    address: str | None = ADDRESS, token_file: Path | None = TOKEN_FILE, as_json: bool = AS_JSON
) -> None:
    """Show the nodes of a fleet: devices, versions, what differs among them, what they are at."""
    from accelbench.fleet.fleet_nodes import find_differences, warn_shared_machines
    from accelbench.fleet.session import FleetAddress
    from accelbench.present.terminal.watch import print_nodes

    where = FleetAddress.resolve(address, token_file)
    cluster = where.connect()
    nodes = cluster.list_nodes()
    at = cluster.read_activity(nodes)
    if as_json:
        document = {
            "address": where.address,
            "nodes": [_entry(node, at.get(node.id, "")) for node in nodes],
            "differences": [
                {"what": each.name, "values": {v: list(n) for v, n in each.values.items()}}
                for each in find_differences(nodes)
            ],
            "notes": warn_shared_machines(nodes),
        }
        sys.stdout.write(json.dumps(document) + "\n")
        return
    print_line(f"Fleet at {where.address}")
    print_nodes(nodes, at, sys.stdout)


def _entry(node: FleetNode, at: str) -> dict[str, Any]:
    return {
        "name": node.name,
        "id": node.id,
        "broken": node.broken or None,
        "accelbench": node.version,
        "python": node.environment.get("python"),
        "devices": [
            {"device": str(d), "name": d.name, "driver": d.driver or None}
            for found in node.devices.values()
            for d in found
        ],
        "packages": node.environment.get("packages") or {},
        "measures": at or None,
    }


@app.command()
def validate(
    ctx: typer.Context,
    address: str | None = ADDRESS,
    token_file: Path | None = TOKEN_FILE,
    db: Path | None = option(None, "--db"),
    models: list[str] | None = option(None, "--models"),
    plan: Path | None = option(None, "--plan"),
    probes: bool = option(False, "--probes"),
    hardware: list[str] | None = option(None, "--hardware"),
    framework: list[str] | None = option(None, "--framework"),
    launches: int = typer.Option(3, "--launches", min=1, help="Fresh processes for each case."),
    threshold: float = option(0.1, "--threshold", min=0.01),
    as_json: bool = AS_JSON,
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Only the verdict."),
) -> None:
    """Say which nodes fall out of their kind.

    Every node measures a short fixed plan, two small models of matrix products and convolutions
    with one item and with many; or a plan of yours; or the limits of its devices. Nodes with the
    same device are compared with the median of their kind.

    Ends with 1 where a node falls out, and with 4 where that cannot be told, as of a kind with two
    nodes: one of them is slower, and neither is known to be right.
    """
    from accelbench.cli.arguments import resolved_values
    from accelbench.cli.services import fleet_running
    from accelbench.core.formatting import split_words
    from accelbench.engines.shared.names import runtimes_named
    from accelbench.fleet.session import FleetAddress

    where = FleetAddress.resolve(address, token_file)
    if plan is not None:
        typed = {"hardware": hardware, "framework": framework, "launches": launches}
        planned = planned_work(ctx, [str(plan), *split_words(models)], typed)
        asked = replace(planned, spec=planned.spec.with_values(label=fleet_running.LABEL))
    else:
        asked = fleet_running.usual_work(
            split_words(models),
            split_words(hardware),
            runtimes_named(split_words(framework)),
            launches,
        )
    platforms = resolved_values.platforms(split_words(hardware)) if probes else None
    only_probes = probes and plan is None and not models
    work = None if only_probes else asked
    with termination_as_interrupt():
        verdict = fleet_running.validate(
            where, db, work, platforms, threshold, as_json=as_json, quiet=quiet
        )
    if verdict.bad:
        raise typer.Exit(EXIT_NO)
    if verdict.open:
        raise typer.Exit(EXIT_INCONCLUSIVE)


app.command("run", cls=RunCommand)(run)
