"""`accelbench recommend`: which hardware for a model, by what was measured, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.lists import SpacedLists, refuse_beside
from accelbench.cli.arguments.shared_options import AS_JSON
from accelbench.core.errors import UsageError
from accelbench.core.nouns import numbers, seconds
from accelbench.exchange.prices import PRICES_HELP, prices_at
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.judge.filters import hardware_words, model_words
from accelbench.present.terminal.terminal import BESIDE, deliver, json_text
from accelbench.present.terminal.watch import ProgressLine

if TYPE_CHECKING:
    from accelbench.cli.services.recommending import Recommendations, Recommender
    from accelbench.recommend.constraints.best_under import Limits

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_TASKS = "classification, generation, embedding, speech_recognition, fine_tuning, training"


@app.command(cls=SpacedLists)
def recommend(
    models: list[str] = typer.Argument(
        None,
        metavar="MODEL",
        help="Names, aliases or hub ids; without any, every model with results.",
        show_default=False,
    ),
    # -- the question
    model_family: str | None = typer.Option(
        None,
        "--model-family",
        "--family",
        help="Of a model that is in no catalogue and no result; without MODEL only those of it.",
    ),
    batch_size: list[str] = typer.Option(
        [], "--batch-size", "--batch-sizes", help="Items in one step; 1 by default."
    ),
    mode: str | None = typer.Option(
        None, "--mode", help="inference or training; inference by default."
    ),
    task: str | None = typer.Option(
        None, "--task", help=f"{_TASKS}. Without MODEL: which models are best at it."
    ),
    hardware: list[str] = typer.Option(
        [],
        "--hardware",
        "--available-hardware",
        help="Choose among these only: platforms, cuda:NAME, a part of a device's name, or here.",
    ),
    precision: str | None = typer.Option(
        None, "--precision", help="Only figures in this one; any by default."
    ),
    deployment: str | None = typer.Option(
        None, "--deployment", help="Where it will run: browser, mobile, edge, intel, mac, …"
    ),
    sequence_length: int | None = typer.Option(
        None, "--sequence-length", help="Tokens in one item; as measured by default."
    ),
    image_size: int | None = typer.Option(
        None, "--image-size", help="Side of a square image in pixels."
    ),
    gpu_count: int | None = typer.Option(
        None, "--gpu-count", help="For so many devices together; with --max-memory-gb each."
    ),
    max_memory_gb: float | None = typer.Option(None, "--max-memory-gb", help="Of each device."),
    # -- limits
    memory_mb: float | None = typer.Option(
        None,
        "--memory-mb",
        "--memory-constrained",
        help="With any limit, the batch size and precision that keep it with the most items a"
        " second. At most so much; --verify tries batches up to 4,096.",
    ),
    max_latency_ms: float | None = typer.Option(
        None, "--max-latency-ms", help="At most so long for a step."
    ),
    min_throughput: float | None = typer.Option(
        None, "--min-throughput", help="At least so many items a second."
    ),
    max_error: float | None = typer.Option(
        None, "--max-error", help="At most so far from the outputs in fp32, as verified."
    ),
    max_cost: float | None = typer.Option(
        None, "--max-cost", help="At most so much for a million items; needs --prices."
    ),
    max_power: float | None = typer.Option(
        None, "--max-power", help="At most so many watts, as measured by run --energy."
    ),
    max_energy: float | None = typer.Option(
        None, "--max-energy", help="At most so many joules for an item, likewise."
    ),
    verify: bool = typer.Option(
        False,
        "--verify",
        help="Measure the answer here, store it, and answer anew; under --memory-mb or"
        " --max-latency-ms search for the largest batch that fits, in each precision.",
    ),
    budget: str | None = typer.Option(
        None, "--budget", help="How long such a search may take, such as 10m, which is usual."
    ),
    # -- what it rests on
    config: Path | None = typer.Option(
        None, "--config", help="Weights, preferences and thresholds: JSON, comments allowed."
    ),
    matrix_file: Path | None = typer.Option(
        None, "--matrix-file", help="A Markdown table of what suits what, believed first."
    ),
    db: Path | None = typer.Option(
        None,
        "--db",
        help="A database, a lake or a folder of results; else $ACCELBENCH_DB, else"
        " ./accelbench.duckdb.",
    ),
    machine: str | None = typer.Option(
        None,
        "--machine",
        help="A host name, id or source, whose results alone count; else those of all.",
    ),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    # -- what is shown
    create_map: bool = typer.Option(
        False, "--create-map", help="Instead: a map of all families, sizes, batches and modes."
    ),
    explain: bool = typer.Option(
        False, "--explain", help="Weights, preferences, and what each figure rests on."
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="Write the JSON document to this file; one that exists is refused.",
    ),
    as_json: bool = AS_JSON,
    beside: Path | None = typer.Option(None, BESIDE, hidden=True),
    # -- the documents' spellings
    model_name: list[str] = typer.Option([], "--model", "--model-name", hidden=True),
) -> None:
    """Recommend hardware for models: measured before estimated before ruled, each named.

    Ends with 0 where there is an answer, also where nothing wins clearly; with 1 where nothing
    suits or keeps the limits; with 4 where it cannot be told, nothing being measured.
    """
    from accelbench.cli.services.recommending import Recommender
    from accelbench.present.terminal.documents import show

    refuse_suffix(output, (".json",))
    refuse_taken(output)
    named = [*model_words(models), *model_words(model_name)]
    limits = _limits(
        memory_mb, max_latency_ms, min_throughput, max_error, max_cost, max_power, max_energy
    )
    sizes = {"sequence_length": sequence_length, "image_size": image_size}
    for name, size in sizes.items():
        if size is not None and size < 1:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} takes a number from 1, not {size}.", "Or leave it out.")
    question = {
        "model_family": model_family,
        "mode": mode,
        "task_type": task,
        "available_hardware": _names(hardware),
        "precision": precision,
        "deployment": deployment,
        "shapes": {name: value for name, value in sizes.items() if value is not None},
        "distributed_config": _distributed(gpu_count, max_memory_gb),
    }
    batches = numbers(batch_size, "--batch-size")
    priced = prices_at(prices)
    if max_cost is not None and priced is None:
        raise UsageError("--max-cost needs a price.", "Name a file of prices with --prices.")
    progress = ProgressLine(sys.stderr)
    recommender = Recommender(
        db,
        config,
        matrix_file,
        {n: v for n, v in question.items() if v},
        batches,
        priced,
        machine=machine,
        verify=verify,
        hear=progress.say,
    )
    if create_map:
        refuse_beside(
            {
                "MODEL": named,
                "--task": task,
                "a limit": limits,
                "--verify": verify,
                "--model-family": model_family,
                "--batch-size": batches,
                "--mode": mode,
                "--precision": precision,
                "--deployment": deployment,
                "a size": question["shapes"],
                "--gpu-count": gpu_count,
                "--explain": explain,
            },
            "--create-map is of all families, sizes, batches and modes: {} means nothing.",
            "Leave it out.",
        )
        _deliver(recommender.selection_map(), output)
        return
    if budget is not None and (limits is None or not verify):
        raise UsageError("--budget is of a search by --verify under a limit.", "Leave it out.")
    search = seconds(budget, "--budget")
    with progress:
        answer = _found(recommender, named, task, limits, verify, search)
    if beside is not None:
        deliver(json_text(answer.data), beside)
    if as_json or output is not None:
        _deliver(answer.data, output)
    else:
        show(answer.document(explain))
    raise typer.Exit(answer.exit_code)


def _found(
    recommender: Recommender,
    named: list[str],
    task: str | None,
    limits: Limits | None,
    verify: bool,
    budget: float | None,
) -> Recommendations:
    if limits is not None:
        return recommender.under(named, limits, verify, budget)
    if task is not None and not named:
        if verify:
            raise UsageError("--verify needs a MODEL.", "Name what is to be measured.")
        return recommender.ranking(task)
    return recommender.answers(named, verify)


def _names(values: list[str]) -> tuple[str, ...]:
    """Platforms and devices, `gpu` as those that it stands for."""
    return tuple(name for word in hardware_words(values) for name in _of_gpus(word))


def _of_gpus(word: str) -> tuple[str, ...]:
    """For gpu the one that is here; where none is, whichever has results."""
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.detect import GPU, gpu_here

    if word.lower() != GPU:
        return (word,)
    try:
        return (gpu_here(),)
    except SurroundingsError:
        return ("cuda", "rocm", "mps")


def _limits(*given: float | None) -> Limits | None:
    from accelbench.recommend.constraints.best_under import Limits

    return None if all(limit is None for limit in given) else Limits(*given)


def _distributed(count: int | None, gigabytes: float | None) -> dict[str, Any] | None:
    if count is None and gigabytes is not None:
        raise UsageError("--max-memory-gb is of each device.", "Say how many with --gpu-count.")
    if count is None:
        return None
    if count < 1:
        raise UsageError(
            f"--gpu-count takes a number from 1, not {count}.", "Use 4, or leave it out."
        )
    if gigabytes is not None and not 0 < gigabytes < float("inf"):
        raise UsageError(
            f"--max-memory-gb takes a number above 0, not {gigabytes:g}.",
            "Use 16, or leave it out.",
        )
    return {"gpu_count": count, **({"max_memory_gb": gigabytes} if gigabytes else {})}


def _deliver(document: dict[str, Any], output: Path | None) -> None:
    deliver(json_text(document), output)
