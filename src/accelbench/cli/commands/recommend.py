"""`accelbench recommend`: which hardware for a model, by what was measured, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    SpacedLists,
    parameters_of,
    refuse_beside,
)
from accelbench.core.errors import UsageError
from accelbench.core.formatting import parse_duration, parse_integers
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.judge.filters import hardware_words, model_words
from accelbench.present.terminal.terminal import BESIDE, deliver, json_text
from accelbench.present.terminal.watch import ProgressLine

if TYPE_CHECKING:
    from accelbench.cli.services.recommending import Recommendations, Recommender
    from accelbench.recommend.constraints.best_under import Limits


argument, option = parameters_of("recommend")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_TASKS = "classification, generation, embedding, speech_recognition, fine_tuning, training"


@app.command(cls=SpacedLists)
def recommend(
    models: list[str] = argument(None, metavar="MODEL", show_default=False),
    # -- the question
    model_family: str | None = option(None, "--model-family", "--family"),
    batch_size: list[str] = option([], "--batch-size", "--batch-sizes"),
    mode: str | None = option(None, "--mode"),
    task: str | None = typer.Option(
        None, "--task", help=f"{_TASKS}. Without MODEL: which models are best at it."
    ),
    hardware: list[str] = option([], "--hardware", "--available-hardware"),
    precision: str | None = option(None, "--precision"),
    deployment: str | None = option(None, "--deployment"),
    sequence_length: int | None = option(None, "--sequence-length"),
    image_size: int | None = option(None, "--image-size"),
    gpu_count: int | None = option(None, "--gpu-count"),
    max_memory_gb: float | None = typer.Option(None, "--max-memory-gb", help="Of each device."),
    objective: str | None = option(None, "--objective"),
    anywhere: bool = option(False, "--anywhere"),
    # -- limits
    memory_mb: float | None = option(None, "--memory-mb", "--memory-constrained"),
    max_latency_ms: float | None = option(None, "--max-latency-ms"),
    min_throughput: float | None = option(None, "--min-throughput"),
    max_error: float | None = option(None, "--max-error"),
    max_cost: float | None = option(None, "--max-cost"),
    max_power: float | None = option(None, "--max-power"),
    max_energy: float | None = option(None, "--max-energy"),
    verify: bool = option(False, "--verify"),
    budget: str | None = option(None, "--budget"),
    # -- what it rests on
    config: Path | None = option(None, "--config"),
    matrix_file: Path | None = option(None, "--matrix-file"),
    db: Path | None = option(None, "--db"),
    machine: str | None = option(None, "--machine"),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    # -- what is shown
    create_map: bool = option(False, "--create-map"),
    explain: bool = option(False, "--explain"),
    output: Path | None = option(None, "--output", "-o"),
    as_json: bool = AS_JSON,
    beside: Path | None = typer.Option(None, BESIDE, hidden=True),
    # -- the documents' spellings
    model_name: list[str] = typer.Option([], "--model", "--model-name", hidden=True),
) -> None:
    """Recommend hardware for models: measured and predicted configurations by their probability.

    Each configuration has its value with an interval, and the probability of being the best under
    the objective and the limits. The exit code is 0 if there is an answer, 1 if nothing can run the
    model or keep the limits, and 4 if nothing is known.
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
        "objective": objective,
        "anywhere": anywhere,
    }
    batches = parse_integers(batch_size, "--batch-size")
    priced = load_prices(prices)
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
                "--objective": objective,
                "--anywhere": anywhere,
                "--explain": explain,
            },
            "--create-map is of all families, sizes, batches and modes: {} means nothing.",
            "Leave it out.",
        )
        _deliver(recommender.selection_map(), output)
        return
    if budget is not None and (limits is None or not verify):
        raise UsageError("--budget is of a search by --verify under a limit.", "Leave it out.")
    search = parse_duration(budget, "--budget")
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
    return tuple(name for word in hardware_words(values) for name in _of_gpus(word))


def _of_gpus(word: str) -> tuple[str, ...]:
    """For gpu the one that is here; where none is, whichever has results."""
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.detect import GPU, find_gpu

    if word.lower() != GPU:
        return (word,)
    try:
        return (find_gpu(),)
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
