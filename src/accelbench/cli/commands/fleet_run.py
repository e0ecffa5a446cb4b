"""`accelbench fleet run`: measure on every node of a fleet; each result is of one machine."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from accelbench.cli.arguments.fleet_options import ADDRESS, TOKEN_FILE
from accelbench.cli.arguments.size_options import OPTIONS, Sizes, sizes_of, with_size_options
from accelbench.core.errors import UsageError
from accelbench.core.word_lists import numbers, seconds, words

#: What may stand beside --resume: everything else was settled when the run began.
_BESIDE_RESUME = frozenset(
    {"resume", "address", "token_file", "db", "no_database", "output_dir", "as_json", "quiet"}
)


@with_size_options
def run(
    ctx: typer.Context,
    models: list[str] | None = typer.Argument(
        None, metavar="MODEL", help="Names, aliases or hub ids; accelbench models lists them."
    ),
    # -- what, as `accelbench run` has it
    set_name: str | None = typer.Option(None, "--set", help="A set of models: key or small."),
    models_file: Path | None = typer.Option(
        None, "--models-file", help="JSON that describes models of your own."
    ),
    category: list[str] | None = typer.Option(
        None, "--category", help="Families or modalities: vision, text, embedding …"
    ),
    every: bool = typer.Option(False, "--all", help="Every model of the catalogue."),
    limit: int | None = typer.Option(None, "--limit", min=1, help="At most so many cases."),
    hardware: list[str] | None = typer.Option(
        None, "--hardware", help="Platforms, such as cpu or cuda; all that nodes have by default."
    ),
    framework: list[str] | None = typer.Option(
        None, "--framework", help="Runtimes, such as pytorch or onnxruntime."
    ),
    batch_sizes: list[str] | None = typer.Option(
        None, "--batch-sizes", help="Items in one step; 1, 8, 32, 128 as memory allows."
    ),
    sizes: Sizes = OPTIONS,
    precision: list[str] | None = typer.Option(
        None, "--precision", help="fp32, fp16, bf16, int8, amp-fp16 or amp-bf16; fp32 by default."
    ),
    mode: list[str] | None = typer.Option(
        None, "--mode", help="inference, training, or both; inference by default."
    ),
    compiled: bool = typer.Option(False, "--compile", help="Compile; timed apart."),
    runtime_options: list[str] | None = typer.Option(
        None, "--option", metavar="RUNTIME.NAME=VALUE", help="An option of one runtime's own."
    ),
    weights: str = typer.Option(
        "random", "--weights", help="random (seeded), hub, or a folder that every node has."
    ),
    # -- how
    iterations: int | None = typer.Option(None, "--iterations", min=1, help="So many samples."),
    warmup: int | None = typer.Option(None, "--warmup", min=0, help="So many warm-up steps."),
    launches: int | None = typer.Option(
        None, "--launches", min=1, help="Fresh processes for each case, all on one node."
    ),
    against: str | None = typer.Option(
        None,
        "--against",
        metavar="ENV",
        help="Measure in turns with it, on the same node: an environment that every node has, or a"
        " setting such as threads=1.",
    ),
    threads: int | None = typer.Option(None, "--threads", min=1, help="Threads of the engine."),
    seed: int = typer.Option(0, "--seed", min=0, max=2**63 - 1, help="Seed of weights and inputs."),
    verify: str = typer.Option("auto", "--verify", help="auto, or require."),
    verify_only: bool = typer.Option(False, "--verify-only", help="Verify, and time nothing."),
    benchmark_only: bool = typer.Option(False, "--benchmark-only", help="Verify nothing."),
    no_fix: bool = typer.Option(False, "--no-fix", help="Try no workaround."),
    timeout: str | None = typer.Option(
        None, "--timeout", help="For loading and for each case; 10m by default."
    ),
    # -- where
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
    dry_run: bool = typer.Option(False, "--dry-run", help="Show the nodes and the plan."),
    resume: str | None = typer.Option(
        None, "--resume", metavar="RUN", help="Go on with a run that was cut off; its id, or last."
    ),
    # -- where it goes
    db: Path | None = typer.Option(
        None, "--db", help="Database or lake; ACCELBENCH_DB, or accelbench.duckdb here."
    ),
    no_database: bool = typer.Option(False, "--no-database", help="Keep only the journals."),
    output_dir: Path | None = typer.Option(None, "--output-dir", help="Folder for result files."),
    label: str | None = typer.Option(None, "--label", help="A name for this run."),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON document on standard output, progress on standard error."
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Nothing but errors."),
) -> None:
    """Measure models on the nodes of a fleet; store every sample here.

    A case runs on one node that has its platform, alone on its device (for the CPU: on the whole
    node), with all its launches. It is tried again elsewhere where its node is lost or hangs.
    What a node measures is a run of its own, RUN.NODE, with that node's environment.

    Ends as `accelbench run` does.
    """
    from accelbench.catalog.find import called
    from accelbench.cli.arguments import run_arguments
    from accelbench.cli.commands.run import termination_as_interrupt
    from accelbench.cli.services import fleet_running, running
    from accelbench.cli.services.against import against_of
    from accelbench.cli.services.run_end import finish
    from accelbench.core.job_settings import JobSettings
    from accelbench.run.fleet.dispatch import DispatchRules
    from accelbench.run.fleet.fleet_address import FleetAddress
    from accelbench.run.fleet.fleet_execute import FleetOptions
    from accelbench.run.plan.request import Request
    from accelbench.run.plan.run_settings import DEFAULT_TIMEOUT, RunSettings
    from accelbench.runtimes.shared.names import runtimes_named

    _refuse_beside_resume(ctx)
    stream = sys.stderr if as_json else sys.stdout
    places = running.OutputPlaces(
        database=None if no_database else db,
        use_database=not no_database,
        output_dir=output_dir,
        command=("accelbench", "fleet", "run"),
    )
    rules = DispatchRules(
        attempts=attempts, silence=seconds(silence, "--silence") or DispatchRules.silence
    )
    where = FleetAddress.of(address, token_file)
    with termination_as_interrupt():
        if resume is not None:
            ended = fleet_running.resume_run(resume, where, places, rules, stream, quiet)
            finish(ended, places, stream, as_json, quiet, compare=False, threshold=None)
        names = words(models)
        chosen = run_arguments.models_for(
            names=names,
            set_name=set_name,
            categories=words(category),
            specific=[],
            every=every,
            hardware_named=bool(hardware),
            models_file=models_file,
        )
        request = Request(
            models=chosen,
            hardware=run_arguments.platforms(words(hardware)),
            runtimes=runtimes_named(words(framework)),
            batch_sizes=numbers(batch_sizes, "--batch-sizes"),
            **sizes_of(sizes),
            precisions=run_arguments.precisions(words(precision)),
            modes=run_arguments.modes(words(mode), training=False),
            training_options={},
            simulate=False,
            options=run_arguments.options(compiled, threads),
            runtime_options=run_arguments.runtime_options(runtime_options),
        )
        how = running.RunOptions(
            RunSettings(
                job=JobSettings(seed=seed, weights=run_arguments.weights(weights), threads=threads),
                launches=run_arguments.launches(launches, words(framework), against),
                iterations=iterations,
                warmup=warmup,
                timeout=seconds(timeout, "--timeout") or DEFAULT_TIMEOUT,
                fix=not no_fix,
                verify=run_arguments.verification(verify, verify_only, benchmark_only),
            ),
            against=against_of(against),
            limit=limit,
            label=run_arguments.label(label),
            names=called(names, chosen),
            precisions_named=run_arguments.precisions(words(precision)) if precision else (),
        )
        options = FleetOptions(each, rules)
        if dry_run:
            fleet_running.show_plan(request, how, where, options, sys.stdout, as_json=as_json)
            return
        ended = fleet_running.new_run(request, how, where, options, places, stream, quiet)
        finish(ended, places, stream, as_json, quiet, compare=False, threshold=None)


def _refuse_beside_resume(ctx: typer.Context) -> None:
    """Words that would silently be ignored are refused instead."""
    given = {
        parameter.name: parameter.opts[0] if parameter.opts[0].startswith("-") else "a model"
        for parameter in ctx.command.params
        if parameter.name
        and (source := ctx.get_parameter_source(parameter.name))
        and source.name == "COMMANDLINE"
    }
    settled = [option for name, option in given.items() if name not in _BESIDE_RESUME]
    if "resume" in given and settled:
        raise UsageError(
            f"A resumed run keeps what it began with: {settled[0]} cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    if "no_database" in given and "db" in given:
        raise UsageError("--no-database and --db contradict each other.", "Leave one out.")
