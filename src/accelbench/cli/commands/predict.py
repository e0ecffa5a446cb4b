"""`accelbench predict`: what nobody has measured, and how good such predictions are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from accelbench.cli.arguments.declared_options import SIZES, with_numbered_sizes
from accelbench.cli.arguments.lists import SpacedLists, refuse_beside
from accelbench.cli.arguments.shared_options import AS_JSON, parameters_of
from accelbench.cli.services.report_files import refuse_undrawable_file, write_picture
from accelbench.core.errors import UsageError
from accelbench.core.nouns import words
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.present.terminal.terminal import BESIDE, deliver, json_text, print_json, print_line
from accelbench.present.terminal.watch import ProgressLine

if TYPE_CHECKING:
    from accelbench.cli.services.predicting import Predicting
    from accelbench.predict.questions import PredictionQuestion
    from accelbench.present.charts.chart import Picture

argument, option = parameters_of("predict")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_OWN_ABOUT = "Each model of the database, predicted from the others."


@app.command(cls=SpacedLists)
@with_numbered_sizes
def predict(
    models: list[str] = argument(None, metavar="MODEL|FILE", show_default=False),
    # -- the question
    hardware: list[str] = option([], "--hardware"),
    framework: list[str] = option([], "--framework", "--runtime"),
    batch_sizes: list[str] = option([], "--batch-sizes", "--batch-size"),
    sizes: dict[str, list[str] | None] = SIZES,
    precision: list[str] = option([], "--precision"),
    mode: str = typer.Option("inference", "--mode", help="inference or training."),
    matrix: bool = option(False, "--matrix", "--generate-matrix"),
    # -- what it rests on
    db: Path | None = option(None, "--db"),
    retrain: bool = option(False, "--retrain"),
    suggest_anchors: int | None = option(None, "--suggest-anchors", metavar="K", min=1),
    # -- how good it is
    evaluate: bool = option(False, "--evaluate"),
    train: list[str] = option([], "--train", metavar="FILE"),
    test: Path | None = option(None, "--test", metavar="FILE"),
    graph_features: Path | None = option(None, "--graph-features", metavar="FILE"),
    anchors: int = option(0, "--anchors", metavar="K"),
    target: str | None = option(None, "--target"),
    # -- what is shown
    plot: Path | None = option(None, "--plot", metavar="FILE"),
    output: Path | None = option(None, "--output", "--output-file", "-o"),
    as_json: bool = AS_JSON,
    beside: Path | None = typer.Option(None, BESIDE, hidden=True),
    model_name: list[str] = typer.Option([], "--model", hidden=True),
) -> None:
    """Predict latency, throughput and memory of what nobody has measured.

    Predictions are learned from the database's measurements, and from vendors' peaks where there
    are none. Each has an interval that nine of ten are meant to lie in, and says what it rests on.

    With --evaluate, mdape and mape are the median and mean error in percent, within25 the share
    that is off by less than 25 %, coverage90 the share inside the 90 % interval.
    """
    refuse_suffix(output, (".json",))
    refuse_taken(output)
    refuse_undrawable_file(plot, "predict --plot")
    shown = _Shown(output, plot, as_json, beside)
    if evaluate or train or test is not None:
        refuse_beside(
            {
                "MODEL": [*(models or ()), *model_name],
                "--matrix": matrix,
                "--suggest-anchors": suggest_anchors,
                "--hardware": hardware,
                "--framework": framework,
                "--batch-sizes": batch_sizes,
                "--precision": precision,
            },
            "--evaluate is of every measured case: {} changes nothing of it.",
            "Leave out one or the other.",
        )
    if train or test is not None:
        _evaluate_tables(words(train), test, graph_features, anchors, target, shown)
        return
    _refuse_of_tables(graph_features, anchors, target)
    from accelbench.cli.arguments.run_words import sizes_of
    from accelbench.cli.services.predicting import (
        MATRIX_BATCHES,
        batches_of,
        database_at,
        files_of,
        not_predicted,
        question_of,
    )
    from accelbench.cli.services.predicting import Predicting as Service
    from accelbench.judge.filters import model_words

    named = [*model_words(models), *model_words(model_name)]
    if not (named or matrix or evaluate or retrain or suggest_anchors):
        raise UsageError("No model is named.", "Name one, or take --matrix for all of them.")
    if plot and (suggest_anchors or not (named or matrix or evaluate)):
        raise UsageError(
            "--plot draws predictions, or how good they are.",
            "Name a model, or take --matrix or --evaluate.",
        )
    progress = ProgressLine(sys.stderr)
    with progress:
        # What is wrong with other words is said before files are read, which takes seconds.
        asked_sizes, database = sizes_of(sizes), database_at(db)
        batches_of(batch_sizes, ())
        files = files_of(
            named,
            asked_sizes,
            progress.say,
            lambda models: question_of(
                models, (), asked_sizes, hardware, framework, precision, mode
            ),
            partial(not_predicted, database),
        )
        if files and suggest_anchors:
            raise UsageError(
                "What to measure first is suggested of models that `accelbench run` measures.",
                "Leave the files out.",
            )
        fixed = [entry.batch for entry in files.values() if entry.batch is not None]
        usual = MATRIX_BATCHES if matrix else tuple(dict.fromkeys(fixed)) or (1,)
        question = question_of(
            named, batches_of(batch_sizes, usual), asked_sizes, hardware, framework, precision,
            mode, files,
        )  # fmt: skip
        predicting = Service(database, train=retrain, hear=progress.say, files=list(files.values()))
    if evaluate:
        _evaluate_own(predicting, shown, progress)
    elif suggest_anchors:
        _suggest(predicting, question, suggest_anchors, progress, as_json=as_json)
    elif named or matrix:
        _predict(predicting, question, shown, progress, matrix=matrix)
    else:
        print_line(f"Learned from {predicting.predictors.stored.said}.")


@dataclass(frozen=True)
class _Shown:
    """Where an answer goes: to a file, as a picture, as JSON, or as text for people."""

    output: Path | None
    plot: Path | None
    as_json: bool
    beside: Path | None = None

    def document(self, content: object) -> bool:
        """Whether it went out as JSON, to a file or to standard output."""
        if self.beside is not None:
            deliver(json_text(content), self.beside)
        if self.output is not None:
            deliver(json_text(content), self.output)
        elif self.as_json:
            print_json(content)
        return self.output is not None or self.as_json

    def picture(self, draw: Callable[[], Picture | None]) -> None:
        """Draw and write it, where a file is named for it."""
        if self.plot is None:
            return
        picture = draw()
        if picture is None:
            raise UsageError("There is nothing to draw: nothing was predicted.")
        write_picture(self.plot, picture)
        print_line(f"Wrote {self.plot}", sys.stderr)


def _refuse_of_tables(graph_features: Path | None, anchors: int, target: str | None) -> None:
    """Refuse options of tables where none is given: nothing would heed them."""
    given = {"--graph-features": graph_features, "--anchors": anchors, "--target": target}
    for option, value in given.items():
        if value:
            raise UsageError(
                f"{option} is for --evaluate on tables.",
                "Give --train and --test, or leave it out.",
            )


def _predict(
    predicting: Predicting,
    question: PredictionQuestion,
    shown: _Shown,
    progress: ProgressLine,
    *,
    matrix: bool,
) -> None:
    from accelbench.present.charts.predicted import prediction_picture
    from accelbench.present.terminal.predictions import show_answer

    with progress:
        answer = predicting.answer(question, counts=not matrix)
    if not answer.figures:
        why = "; ".join(note.rstrip(".") for note in answer.notes)
        raise UsageError(f"Nothing of that is predicted{': ' if why else ''}{why}.")
    shown.picture(lambda: prediction_picture(answer))
    if shown.document(answer.to_dict()):
        return
    if not matrix:
        show_answer(answer)
    elif shown.plot is None:
        print_json(answer.to_dict())


def _suggest(
    predicting: Predicting,
    question: PredictionQuestion,
    number: int,
    progress: ProgressLine,
    *,
    as_json: bool,
) -> None:
    from accelbench.present.terminal.predictions import show_plan

    with progress:
        plan = predicting.plan(question, number)
    if as_json:
        commands = [
            {"command": entry.command, "deviation_after": entry.deviation,
             "seconds": entry.seconds.middle}
            for entry in plan.measurements
        ]  # fmt: skip
        print_json(
            {
                "deviation_before": plan.before,
                "measurements": commands,
                "seconds": plan.seconds.middle,
                "seconds_low": plan.seconds.low,
                "seconds_high": plan.seconds.high,
                "left_out": {"slow": [*plan.slow], "too_large": [*plan.too_large]},
            }
        )
    else:
        show_plan(plan)


def _evaluate_own(predicting: Predicting, shown: _Shown, progress: ProgressLine) -> None:
    from accelbench.predict.evaluation import own_cases, own_scores
    from accelbench.present.charts.predicted_measured import evaluation_picture
    from accelbench.present.terminal.predictions import show_notes, show_scores

    with progress:
        cases = own_cases(predicting.predictors.of)
    scores = own_scores(cases)
    shown.picture(lambda: evaluation_picture([*cases.values()], _OWN_ABOUT))
    if shown.document(scores):
        return
    for target, entry in scores.items():
        if not entry["n"]:
            print_line(f"{target}: nothing was measured")
            continue
        show_scores(target, {"every unseen model": entry, **entry["per_engine"]})
    show_notes(predicting.notes)


def _evaluate_tables(
    train: Sequence[str],
    test: Path | None,
    graph_features: Path | None,
    anchors: int,
    target: str | None,
    shown: _Shown,
) -> None:
    if not train or test is None:
        raise UsageError("--evaluate needs --train and --test.", "Give a Parquet file for each.")
    from accelbench.predict.cases import LATENCY
    from accelbench.predict.evaluation import TableRequest, evaluate_tables
    from accelbench.present.charts.predicted_measured import evaluation_picture
    from accelbench.present.terminal.predictions import show_notes, show_scores

    paths = tuple(Path(word) for word in train)
    progress = ProgressLine(sys.stderr)
    with progress:
        scores, cases = evaluate_tables(
            TableRequest(paths, test, graph_features, anchors, target or LATENCY), progress.say
        )
    learned = f"{test.name}, learned from {', '.join(path.name for path in paths)}."
    shown.picture(lambda: evaluation_picture([cases], learned))
    if shown.document(scores):
        return
    rows = {"overall": scores, **scores["per_hardware"], **scores["per_basis"]}
    show_scores(scores["target"], {name: row for name, row in rows.items() if row["n"]})
    show_notes(scores["notes"])
    print_line(f"{scores['seconds']:.1f} s")
