"""`accelbench run`: measure models on hardware, and store every sample."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import typer

from accelbench.cli.arguments.distributed_options import (
    DISTRIBUTED,
    DistributedWords,
    refuse_no_meeting,
    with_distributed_options,
)
from accelbench.cli.arguments.lists import SpacedLists
from accelbench.cli.arguments.plan_keys import options_of
from accelbench.cli.arguments.run_words import OPTIONS, Sizes, with_size_options
from accelbench.cli.display.terminal import complain
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK
from accelbench.exchange.prices import PRICES_HELP

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_plan_schema(flag: bool) -> None:
    if flag:
        from accelbench.cli.arguments.plan_keys import plan_keys
        from accelbench.exchange.plans.document import schema_of

        sys.stdout.write(json.dumps(schema_of(plan_keys(options_of(app))), indent=2) + "\n")
        raise typer.Exit


@app.command(cls=SpacedLists)
@with_size_options
@with_distributed_options
def run(
    ctx: typer.Context,
    models: list[str] | None = typer.Argument(
        None,
        metavar="MODEL",
        help="Names, aliases or hub ids; accelbench models lists them. Or your own: model.onnx,"
        " model.py:make. Or plan files: YAML, TOML or JSON.",
    ),
    # -- what
    set_name: str | None = typer.Option(
        None, "--set", "--models-set", help="A set of models: key, architectures, small or custom."
    ),
    models_file: Path | None = typer.Option(
        None, "--models-file", "--custom-models", help="JSON that describes models of your own."
    ),
    category: list[str] | None = typer.Option(
        None, "--category", help="Families or modalities: vision, text, embedding …"
    ),
    specific: list[str] | None = typer.Option(
        None, "--specific-models", help="Of the set, only these."
    ),
    every: bool = typer.Option(False, "--all", help="Every model of the catalogue."),
    limit: int | None = typer.Option(None, "--limit", min=1, help="At most so many measurements."),
    hardware: list[str] | None = typer.Option(
        None,
        "--hardware",
        help="Platforms, such as cpu, cuda:1 or gpu; all present by default; auto takes, for each"
        " model, what accelbench recommend names.",
    ),
    simulate: bool = typer.Option(
        False,
        "--simulate",
        help="What --hardware names and is not here, such as cuda:a100-80gb, gets figures from its"
        " document: limits, not measured, never compared.",
    ),
    browser: Path | None = typer.Option(
        None, "--browser", help="The browser that webgpu, webnn and wasm run in: its program."
    ),
    framework: list[str] | None = typer.Option(
        None,
        "--framework",
        help="Runtimes, such as pytorch or onnxruntime; both is pytorch and jax, in turns.",
    ),
    batch_sizes: list[str] | None = typer.Option(
        None, "--batch-sizes", help="Items in one step; 1, 8, 32, 128 as memory allows."
    ),
    sizes: Sizes = OPTIONS,
    inputs: list[str] | None = typer.Option(
        None,
        "--input",
        metavar="NAME=…",
        help="Of an input of your own model its type, shape and values, as far as they are not in"
        " its file or example: ids=int64[batch,128]:0..30522.",
    ),
    reference: str = typer.Option(
        "",
        "--reference",
        metavar="NAME",
        help="Of a callable of your own, the function of the same file whose answers are right.",
    ),
    input_file: Path | None = typer.Option(
        None,
        "--input-file",
        metavar="FILE.npz",
        help="Arrays that a model file is fed with, by the names of its inputs; others are drawn.",
    ),
    data: Path | None = typer.Option(
        None,
        "--data",
        help="Real inputs: a folder of images, sound or text, in class folders where they have"
        " labels; a table of text and label (.csv, .tsv, .jsonl); or arrays with labels (.npz).",
    ),
    preprocessing: str | None = typer.Option(
        None,
        "--preprocessing",
        metavar="RECIPE",
        help="How your own model takes its data: imagenet, half, unit, bytes of pictures,"
        " wave:RATE, normalised:RATE of sound, or the path of a preprocessor_config.json or a"
        " tokenizer.json; else that beside it.",
    ),
    accuracy: str = typer.Option(
        "auto",
        "--accuracy",
        metavar="METRIC",
        help="With labelled --data: top1, top5, f1, perplexity or off; what the labels say.",
    ),
    accuracy_samples: int | None = typer.Option(
        None, "--accuracy-samples", min=1, help="Of labelled data at most so many; else all."
    ),
    precision: list[str] | None = typer.Option(
        None,
        "--precision",
        help="fp32, fp16, bf16, int8, amp-fp16 or amp-bf16; fp32 by default, or"
        " the engine's first if it lacks fp32.",
    ),
    mode: list[str] | None = typer.Option(
        None, "--mode", help="inference, training, or both; inference by default."
    ),
    optimizer: str | None = typer.Option(
        None, "--optimizer", help="For training: adamw (the default) or sgd."
    ),
    checkpointing: bool = typer.Option(
        False, "--gradient-checkpointing", help="For training: less memory, more work."
    ),
    pure: bool = typer.Option(
        False, "--pure", help="For training in fp16 or bf16: half-precision weights, no autocast."
    ),
    distributed: DistributedWords = DISTRIBUTED,
    nodes: int = typer.Option(
        1, "--nnodes", min=1, help="For --distributed: machines that have as many processes each."
    ),
    rendezvous: str | None = typer.Option(
        None, "--rdzv-endpoint", metavar="HOST:PORT", help="Where they meet: at machine 0."
    ),
    compiled: bool = typer.Option(
        False, "--compile", help="Compile with the runtime's own compiler; timed apart."
    ),
    runtime_options: list[str] | None = typer.Option(
        None,
        "--option",
        metavar="RUNTIME.NAME=VALUE",
        help="An option of one runtime's own, such as openvino.hint=throughput.",
    ),
    weights: str = typer.Option(
        "random", "--weights", help="random (seeded), hub, or a folder with safetensors."
    ),
    trust_remote_code: bool = typer.Option(
        False, "--trust-remote-code", help="Let a weights folder bring its own code."
    ),
    # -- how
    iterations: int | None = typer.Option(
        None, "--iterations", min=1, help="Exactly so many samples, instead of until it is known."
    ),
    warmup: int | None = typer.Option(
        None, "--warmup", min=0, help="Exactly so many warm-up steps, instead of until steady."
    ),
    launches: int | None = typer.Option(
        None,
        "--launches",
        min=1,
        help="Fresh processes for each case, 1 by default, 5 for --framework both and --against;"
        " verdicts need five or more.",
    ),
    against: str | None = typer.Option(
        None,
        "--against",
        metavar="ENV",
        help="Measure in turns with it, and compare with it: another environment (a folder, a"
        " Python, a command that starts one), commit:REVISION, or a setting such as threads=1.",
    ),
    threshold: float | None = typer.Option(
        None,
        "--threshold",
        help="For --against: end as `accelbench check` does; 0.1: what is 10 % worse is.",
    ),
    threads: int | None = typer.Option(
        None, "--threads", min=1, help="Threads of the engine; its own default otherwise."
    ),
    seed: int = typer.Option(0, "--seed", min=0, max=2**63 - 1, help="Seed of weights and inputs."),
    verify: str = typer.Option(
        "auto",
        "--verify",
        help="Outputs against PyTorch in fp32 on the CPU: auto, or require, where what cannot be"
        " verified fails.",
    ),
    verify_only: bool = typer.Option(False, "--verify-only", help="Verify, and time nothing."),
    benchmark_only: bool = typer.Option(
        False, "--benchmark-only", help="Time, and verify nothing."
    ),
    profile: bool = typer.Option(
        False,
        "--profile",
        help="Say afterwards where each case's time goes, by operator, in a session of its own.",
    ),
    energy: bool = typer.Option(
        False,
        "--energy",
        help="Energy and power too, by the device's own meter, in a pass of its own of some 9 s.",
    ),
    no_fix: bool = typer.Option(
        False, "--no-fix", help="Try no workaround where a model does not go through."
    ),
    timeout: str | None = typer.Option(
        None,
        "--timeout",
        help="For loading and each case (10m by default), describing a model (5m), and for"
        " --against to answer (2m).",
    ),
    budget: str | None = typer.Option(
        None, "--budget", help="For the whole run, such as 10m; every case gets a share."
    ),
    save_plan: Path | None = typer.Option(
        None,
        "--save-plan",
        metavar="FILE",
        help="Write what is asked for as a plan file, by its suffix, and measure nothing.",
    ),
    plan_schema: bool = typer.Option(
        False,
        "--plan-schema",
        is_eager=True,
        callback=_print_plan_schema,
        help="Print the JSON Schema of plan files.",
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show the plan and how long it takes."),
    resume: str | None = typer.Option(
        None, "--resume", metavar="RUN", help="Go on with a run that was cut off; its id, or last."
    ),
    # -- where it goes
    db: Path | None = typer.Option(
        None, "--db", help="Database; ACCELBENCH_DB, or accelbench.duckdb here."
    ),
    no_database: bool = typer.Option(
        False, "--no-database", help="Keep only the journal and the files asked for."
    ),
    output_dir: Path | None = typer.Option(
        None,
        "--output-dir",
        help="Folder for result files: raw_results/MODEL_HARDWARE_….json, and profiles/",
    ),
    output_ci: Path | None = typer.Option(
        None, "--output-ci", help="One JSON file with every result of this run."
    ),
    compare: bool = typer.Option(
        False, "--compare", help="Afterwards, compare what was measured along every axis."
    ),
    create_report: bool = typer.Option(
        False,
        "--create-report",
        help="Afterwards, a report as HTML; with --output-dir there, beside visualizations/.",
    ),
    prices: Path | None = typer.Option(
        None, "--prices", help=f"For --compare and --create-report. {PRICES_HELP}"
    ),
    label: str | None = typer.Option(None, "--label", help="A name for this run."),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON document on standard output, progress on standard error."
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Nothing but errors."),
    # -- the documents' spellings
    batch_size: list[str] | None = typer.Option(None, "--batch-size", hidden=True),
    device: list[str] | None = typer.Option(None, "--device", hidden=True),
    model_id: list[str] | None = typer.Option(None, "--model-id", "--model", hidden=True),
    model_families: list[str] | None = typer.Option(
        None, "--model-families", "--model-family", hidden=True
    ),
    multiple_models: bool = typer.Option(False, "--multiple-models", hidden=True),
    training: bool = typer.Option(False, "--training", "--training-mode", hidden=True),
    small_models: bool = typer.Option(False, "--small-models", hidden=True),
    save: bool = typer.Option(False, "--save", "--auto-store-db", hidden=True),
) -> None:
    """Measure models on hardware; store every sample.

    Results go into the database as they come, and a run that is cut off goes on
    with --resume. Lists take commas, spaces or repetition.

    Ends with 0 where all went well; with 1 where a case failed; with 3 where a platform, runtime
    or precision that was named gave no result, or nothing was measured at all.
    """
    typed = dict(locals())
    typed |= {**typed.pop("sizes"), **typed.pop("distributed")}
    from accelbench.cli.arguments import run_arguments
    from accelbench.cli.arguments.lists import refuse_threshold
    from accelbench.cli.services import running
    from accelbench.cli.services.asked import asked_run
    from accelbench.cli.services.asked import save as save_asked
    from accelbench.cli.services.picking import picked_models
    from accelbench.cli.services.plan_files import project_note
    from accelbench.cli.services.running import finish
    from accelbench.core.nouns import seconds
    from accelbench.core.processes import limited_to

    refuse_threshold(threshold)
    with termination_as_interrupt():
        typed["models"] = models or picked_models(typed, ctx) or models
    options = options_of(app)
    with limited_to(seconds(timeout, "--timeout")):
        asked = asked_run(ctx, typed, options)
    if asked is not None and save_plan is None:
        refuse_no_meeting(asked.typed)
    run_arguments.use_browser(browser)
    stream = sys.stderr if as_json else sys.stdout
    places = replace(
        running.places_of(typed),
        csv_dir=run_arguments.guide_folder(framework, model_id) if output_dir is None else None,
    )
    with termination_as_interrupt():
        if asked is None:
            ended = running.resume_run(str(resume), places, stream, quiet)
            finish(ended, places, stream, as_json, quiet, compare, threshold)
        if asked.typed["node_rank"]:
            from accelbench.cli.services.fleet_running import take_part

            raise typer.Exit(take_part(asked, stream))
        asked = replace(asked, further_notes=project_note("run", app))
        if save_plan is not None:
            save_asked(save_plan, asked, options, stream, quiet)
            if not dry_run:
                raise typer.Exit(EXIT_OK)
        if dry_run:
            from accelbench.cli.services.dry_run import show_plan

            code = show_plan(asked, places, stream=sys.stdout, as_json=as_json)
            for text in asked.passed_over:
                complain(f"Left out: {text}")
            raise typer.Exit(EXIT_ENVIRONMENT if asked.passed_over else code)
        ended = running.new_run(asked, places, stream, quiet)
        finish(ended, places, stream, as_json, quiet, compare, threshold, asked.passed_over)


class termination_as_interrupt:  # noqa: N801 - reads as the statement it is
    """SIGTERM ends a run as cleanly as Ctrl-C does; outside the conductor both just end it."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGTERM, self._interrupt)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)
        if kind is KeyboardInterrupt:
            # Said here, because typer's own exit code for it has changed from 1 to 130.
            from accelbench.cli.services.running import EXIT_INTERRUPTED

            complain("interrupted.")
            raise typer.Exit(EXIT_INTERRUPTED) from None

    @staticmethod
    def _interrupt(*_: object) -> None:
        raise KeyboardInterrupt
