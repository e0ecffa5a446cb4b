"""`accelbench fleet run`: measure on every node of a fleet; each result is of one machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.command_options import options_of
from accelbench.cli.arguments.fleet_options import (
    ADDRESS,
    TOKEN_FILE,
    NarrowedContext,
    defaults_of,
    with_options_of,
)
from accelbench.cli.commands import run as one_machine
from accelbench.cli.commands.run import termination_as_interrupt
from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.core.word_lists import seconds
from accelbench.exchange.prices import prices_at

if TYPE_CHECKING:
    from accelbench.cli.services.running import RunOptions
    from accelbench.run.plan.request import Request

#: Options of `accelbench run` that a fleet does not have: of one machine, or of no machine at all;
#: and what would run code of others on every node.
_OF_ONE_MACHINE = frozenset(
    {"browser", "plan_schema", "save_plan", "simulate", "trust_remote_code"}
)


@with_options_of(one_machine.app, _OF_ONE_MACHINE)
def run(
    ctx: typer.Context,
    each: bool = typer.Option(
        False, "--each", help="Every node measures every case that it can: the spread between them."
    ),
    address: str | None = ADDRESS,
    token_file: Path | None = TOKEN_FILE,
    attempts: int = typer.Option(
        3, "--attempts", min=1, help="How often cases are tried where nodes are lost or hang."
    ),
    silence: str | None = typer.Option(
        None, "--silence", help="After which a node that says nothing is taken for hung; 90s."
    ),
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
    from accelbench.cli.arguments import run_arguments
    from accelbench.cli.arguments.run_words import settings_of
    from accelbench.cli.arguments.thresholds import refuse_threshold
    from accelbench.cli.services import fleet_running, running
    from accelbench.cli.services.against import against_of
    from accelbench.cli.services.asked import asked_run
    from accelbench.cli.services.run_end import finish
    from accelbench.run.fleet.dispatch import DispatchRules
    from accelbench.run.fleet.fleet_address import FleetAddress
    from accelbench.run.fleet.fleet_execute import FleetOptions

    refuse_threshold(typed["threshold"])
    _refuse_machines(typed)
    asked = asked_run(ctx, typed, options_of(one_machine.app))
    if asked is None and each:
        raise UsageError(
            "A resumed run keeps what it began with: --each cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    as_json, quiet = typed["as_json"], typed["quiet"]
    compare, threshold = typed["compare"], typed["threshold"]
    stream = sys.stderr if as_json else sys.stdout
    places = running.OutputPlaces(
        database=None if typed["no_database"] else (typed["db_path"] or typed["db"]),
        use_database=not typed["no_database"],
        output_dir=typed["output_dir"],
        output_ci=typed["output_ci"],
        report=typed["create_report"],
        prices=prices_at(typed["prices"]) if compare or typed["create_report"] else None,
        command=("accelbench", "fleet", "run"),
    )
    rules = DispatchRules(
        attempts=attempts, silence=seconds(silence, "--silence") or DispatchRules.silence
    )
    where = FleetAddress.of(address, token_file)
    with termination_as_interrupt():
        if asked is None:
            resumed = str(typed["resume"])
            ended = fleet_running.resume_run(resumed, where, places, rules, stream, quiet)
            finish(ended, places, stream, as_json, quiet, compare, threshold)
        _refuse_planned(asked.typed)
        if each and asked.typed["nodes"] > 1:
            raise UsageError(
                "--each has every node measure by itself, and --nnodes several together.",
                "Leave one of them out.",
            )
        how = running.RunOptions(
            settings_of(asked.typed),
            against=against_of(asked.typed["against"]),
            limit=asked.typed["limit"],
            label=run_arguments.label(asked.typed["label"]),
            names=asked.names,
            selector=running.selector_of(places),
            precisions_named=asked.precisions,
            plan_files=asked.plans.about,
            notes=asked.plans.notes,
        )
        options = FleetOptions(each, rules)
        if typed["dry_run"]:
            fleet_running.show_plan(asked.parts, how, where, options, sys.stdout, as_json=as_json)
            return
        ended = fleet_running.new_run(asked.parts, how, where, options, places, stream, quiet)
        finish(ended, places, stream, as_json, quiet, compare, threshold, asked.passed_over)


def planned_options(
    ctx: typer.Context, names: Sequence[str], typed: Mapping[str, Any]
) -> tuple[tuple[Request, ...], RunOptions]:
    """What a plan file asks for, for another command that measures on a fleet.

    Args:
        ctx: the command's.
        names: of the file, and of models of it that alone are meant.
        typed: of the options of accelbench run those that the command has too.

    Raises:
        UsageError: the file cannot be read, or says what a fleet does not have.
    """
    from accelbench.cli.arguments.run_words import settings_of
    from accelbench.cli.services.asked import asked_run
    from accelbench.cli.services.plan_files import plan_files_among
    from accelbench.cli.services.running import RunOptions

    if not plan_files_among(names[:1])[0]:
        raise UsageError(
            f"{in_quotes(names[0])} is no plan file.", "Name a .yaml, .toml or .json file."
        )
    app = one_machine.app
    given = {"models": list(names), **typed}
    whole = {**defaults_of(app), **given}
    asked = asked_run(NarrowedContext(ctx, given), whole, options_of(app))
    assert asked is not None
    _refuse_planned(asked.typed)
    if asked.typed["nodes"] > 1:
        raise UsageError(
            "What is validated is each node by itself, and the plan says --nnodes.", "Leave it out."
        )
    return asked.parts, RunOptions(
        settings_of(asked.typed),
        limit=asked.typed["limit"],
        names=asked.names,
        precisions_named=asked.precisions,
        plan_files=asked.plans.about,
        notes=asked.plans.notes,
    )


def _refuse_machines(typed: Any) -> None:
    """Nodes that make a step together are chosen by the fleet, which brings them together."""
    if typed["node_rank"] is not None or typed["rendezvous"]:
        raise UsageError(
            "A fleet chooses the nodes that make a step together, and where they meet: --node-rank"
            " and --rdzv-endpoint are of accelbench run.",
            "Leave them out; --nnodes says how many nodes.",
        )


def _refuse_planned(typed: Any) -> None:
    """A plan file may say what no option of this command can."""
    _refuse_machines(typed)
    said = [name for name in sorted(_OF_ONE_MACHINE) if typed.get(name)]
    if said:
        name = said[0].replace("_", "-")
        raise UsageError(
            f"The plan says {name}, which a fleet's run does not have.",
            "Measure it by accelbench run, or leave it out.",
        )
