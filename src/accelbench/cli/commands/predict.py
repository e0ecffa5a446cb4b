"""`accelbench predict`: what nobody has measured, and how good such predictions are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from accelbench.cli.arguments.lists import SpacedLists
from accelbench.cli.display.tables import print_json
from accelbench.cli.display.terminal import print_line
from accelbench.core.errors import UsageError
from accelbench.core.word_lists import words

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_FIGURES = ("n", "mdape", "mape", "within25", "coverage90", "bias")


@app.command(cls=SpacedLists)
def predict(
    model: list[str] | None = typer.Argument(None, hidden=True),
    evaluate: bool = typer.Option(
        False, "--evaluate", help="Train on one table, predict another and score the predictions."
    ),
    train: list[str] = typer.Option(
        [], "--train", metavar="FILE", help="Parquet in the tidy schema to learn from."
    ),
    test: Path | None = typer.Option(
        None, "--test", metavar="FILE", help="Parquet in the tidy schema to predict."
    ),
    graph_features: Path | None = typer.Option(
        None, "--graph-features", metavar="FILE", help="Parquet of the models' operators."
    ),
    anchors: int = typer.Option(
        0, "--anchors", metavar="K", help="Take K measurements of each hardware to calibrate."
    ),
    target: str = typer.Option("latency", "--target", help="latency or memory."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
) -> None:
    """Say how well figures that nobody measured are predicted: --evaluate, on two tables.

    mdape and mape are the median and mean error in percent, within25 the share that is off by less
    than 25 %, coverage90 the share inside the 90 % interval.
    """
    if model or not evaluate:
        raise UsageError(
            "Predicting single models is not possible yet.",
            "Score predictions with --evaluate --train FILE --test FILE.",
        )
    if not train or test is None:
        raise UsageError("--evaluate needs --train and --test.", "Give a Parquet file for each.")
    from accelbench.predict.evaluation import EvaluationRequest
    from accelbench.predict.evaluation import evaluate as scored

    paths = tuple(Path(word) for word in words(train))
    evaluation = scored(EvaluationRequest(paths, test, graph_features, anchors, target))
    if as_json:
        print_json(evaluation)
    else:
        _print_scores(evaluation)


def _print_scores(evaluation: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from accelbench.cli.display.console import console
    from accelbench.core.visible import visible

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(evaluation["target"], overflow="fold")
    for name in _FIGURES:
        table.add_column(name, justify="right", no_wrap=True)
    rows = {"overall": evaluation, **evaluation["per_hardware"], **evaluation["per_basis"]}
    for name, scores in rows.items():
        table.add_row(Text(visible(name)), *(_spelled(scores[figure]) for figure in _FIGURES))
    console().print(table)
    for kind, method in evaluation["methods"].items():
        print_line(f"{kind}: {method}")
    for note in evaluation["notes"]:
        print_line(f"note: {note}")
    print_line(f"{evaluation['seconds']:.1f} s")


def _spelled(figure: float | None) -> str:
    return "n/a" if figure is None else f"{figure:,}"
