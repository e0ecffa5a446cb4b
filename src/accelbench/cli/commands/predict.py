"""`accelbench predict`: what nobody has measured, and how good such predictions are.

Predictions for `accelbench predict`, from the predictors of a database.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.run_spec_options import SIZES, with_numbered_sizes
from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    SpacedLists,
    parameters_of,
    refuse_beside,
)
from accelbench.cli.services.report_files import refuse_undrawable_file, write_picture
from accelbench.core.axes import numeric_axes
from accelbench.core.case import Shapes
from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_count, parse_integers, split_words
from accelbench.core.safe_text import in_quotes, visible
from accelbench.core.vocabulary import parse_mode
from accelbench.evidence.launches import COMPARABLE_SQL
from accelbench.exchange.prices import PRICES_HELP, load_prices
from accelbench.exchange.writing import refuse_suffix, refuse_taken
from accelbench.models.code_models.loading import code_word
from accelbench.models.code_models.models import name_of as code_name_of
from accelbench.models.file_models.models import name_of
from accelbench.models.find import every_model, find
from accelbench.predict.questions import (
    MemoryByDevice,
    PredictionQuestion,
    cases_of,
    is_too_large,
    memory_words,
)
from accelbench.present.terminal.terminal import BESIDE, deliver, json_text, print_json, print_line
from accelbench.present.terminal.watch import ProgressLine
from accelbench.run.plan.run_forecast import SecondsRange

if TYPE_CHECKING:
    from accelbench.core.protocols import Device
    from accelbench.exchange.prices import Prices
    from accelbench.predict.answers import PredictionAnswer
    from accelbench.predict.graph_file_models import FileModel, TableModels
    from accelbench.predict.measurement_plan import MeasurementCosts, MeasurementPlan
    from accelbench.predict.questions import PredictionQuestion
    from accelbench.predict.stored_predictors import Predictors
    from accelbench.predict.terms import TracedCase
    from accelbench.present.charts.chart import Picture
    from accelbench.store.database import Database


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
    mode: str = option("inference", "--mode"),
    matrix: bool = option(False, "--matrix", "--generate-matrix"),
    # -- what it rests on
    db: Path | None = option(None, "--db"),
    retrain: bool = option(False, "--retrain"),
    suggest_anchors: int | None = option(None, "--suggest-anchors", metavar="K", min=1),
    prices: Path | None = typer.Option(None, "--prices", help=PRICES_HELP),
    # -- language models served
    serving: bool = option(False, "--serving"),
    tables: Path | None = option(None, "--tables", metavar="DIR"),
    measured: list[Path] = option([], "--measured", metavar="FILE"),
    config: Path | None = option(None, "--config", metavar="FILE"),
    concurrency: list[str] = option([], "--concurrency", metavar="N,…"),
    rate: float | None = option(None, "--rate", min=0.001),
    tensor_parallel: int = option(1, "--tensor-parallel", min=1),
    pipeline_parallel: int = option(1, "--pipeline-parallel", min=1),
    data_parallel: int = option(1, "--data-parallel", min=1),
    expert_parallel: int = option(1, "--expert-parallel", min=1),
    prefill_workers: int | None = option(None, "--prefill-workers", min=1),
    decode_workers: int | None = option(None, "--decode-workers", min=1),
    prefill_tensor_parallel: int | None = option(None, "--prefill-tensor-parallel", min=1),
    # -- how good it is
    evaluate: bool = option(False, "--evaluate"),
    train: list[str] = option([], "--train", metavar="FILE"),
    test: Path | None = option(None, "--test", metavar="FILE"),
    graph_features: str | None = option(None, "--graph-features", metavar="FILE|PACKAGE"),
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
    if serving:
        refuse_beside(
            {
                "--matrix": matrix, "--suggest-anchors": suggest_anchors, "--plot": plot,
                "--evaluate": evaluate, "--train": train, "--batch-sizes": batch_sizes,
                "--prices": prices,
            },
            "--serving predicts servers: {} changes nothing of it.",
            "Leave out one or the other.",
        )  # fmt: skip
        from accelbench.cli.arguments.resolved_values import sizes_of
        from accelbench.judge.filters import hardware_words

        _predict_serving(
            _Server(
                mode, tensor_parallel, pipeline_parallel, data_parallel, expert_parallel,
                prefill_workers, decode_workers, prefill_tensor_parallel, rate, config,
            ),
            [*split_words(models or ()), *split_words(model_name)], sizes_of(sizes),
            hardware_words(hardware),
            split_words(framework), split_words(precision),
            parse_integers(split_words(concurrency), "--concurrency"),
            tables, measured, db, shown,
        )  # fmt: skip
        return
    refuse_beside(
        {
            "--tables": tables, "--measured": measured, "--concurrency": concurrency,
            "--rate": rate, "--config": config, "--prefill-workers": prefill_workers,
            "--decode-workers": decode_workers,
        },
        "{} describes a server.",
        "Add --serving.",
    )  # fmt: skip
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
        _evaluate_tables(split_words(train), test, graph_features, anchors, target, shown)
        return
    _refuse_of_tables(anchors, target)
    from accelbench.cli.arguments.resolved_values import sizes_of
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
        operators = _operators(graph_features, database, named, progress.say)
        files = files_of(
            named,
            operators,
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
        predicting = Predicting(
            database, train=retrain, hear=progress.say, files=list(files.values())
        )
    if evaluate:
        _evaluate_own(predicting, shown, progress)
    elif suggest_anchors:
        _suggest(predicting, question, suggest_anchors, progress, as_json=as_json)
    elif named or matrix:
        _predict(predicting, question, shown, progress, load_prices(prices), matrix=matrix)
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
        if self.plot is None:
            return
        picture = draw()
        if picture is None:
            raise UsageError("There is nothing to draw: nothing was predicted.")
        write_picture(self.plot, picture)
        print_line(f"Wrote {self.plot}", sys.stderr)


@dataclass(frozen=True)
class _Server:
    """How a server spreads a model, and how requests arrive."""

    mode: str
    tensor: int
    pipeline: int
    data: int
    experts: int
    prefill_workers: int | None
    decode_workers: int | None
    prefill_tensor: int | None
    rate: float | None
    config: Path | None

    @property
    def is_split(self) -> bool:
        given = (self.prefill_workers, self.decode_workers, self.prefill_tensor)
        return self.mode == "disagg" or any(value is not None for value in given)


def _predict_serving(
    server: _Server,
    models: Sequence[str],
    sizes: dict[str, tuple[int, ...]],
    hardware: Sequence[str],
    engines: Sequence[str],
    precisions: Sequence[str],
    users: Sequence[int],
    tables: Path | None,
    measured: Sequence[Path],
    db: Path | None,
    shown: _Shown,
) -> None:
    """Predict TTFT, TPOT and throughput of servers, one answer for each combination."""
    from itertools import product

    from accelbench.predict.serving.models import ServerLayout, ServingQuestion, check_question
    from accelbench.predict.serving.operators import system_of
    from accelbench.predict.serving.predictor import predict_servers

    for name, values in {"MODEL": models, "--hardware": hardware, "--framework": engines}.items():
        if not values:
            raise UsageError(f"--serving needs {name}.", f"Name {name} too.")
    if tables is None:
        raise UsageError(
            "--serving needs --tables.",
            "Fetch aiconfigurator's tables and name their folder.",
        )
    if server.mode not in ("inference", "agg", "disagg"):
        raise UsageError(
            f"{in_quotes(server.mode)} is not a mode of a server.", "Use agg or disagg."
        )
    split = server.is_split
    ranks = server.tensor * server.data
    if ranks % server.experts:
        raise UsageError(
            f"{ranks} GPUs are not divisible by --expert-parallel {server.experts}.",
            "Choose a divisor of tensor times data parallelism.",
        )
    layout = ServerLayout(
        server.tensor, server.pipeline, server.data, ranks // server.experts, server.experts
    )
    ahead = server.prefill_tensor or server.tensor
    questions = [
        ServingQuestion(
            model, system_of(system.removeprefix("cuda:")).name, engine.lower(), precision.lower(),
            prompt, new, float(count), "disagg" if split else "agg", layout,
            ServerLayout(ahead, 1, 1, ahead, 1) if split else ServerLayout(),
            server.decode_workers, server.prefill_workers,
            rate=server.rate, config=str(server.config or ""),
        )
        for model, system, engine, precision, prompt, new, count in product(
            models, hardware, engines, precisions or ["bf16"],
            sizes.get("prompt_tokens") or (1024,), sizes.get("new_tokens") or (1024,),
            users or (1,),
        )
    ]  # fmt: skip
    for question in questions:
        check_question(question)
    if not tables.is_dir():
        raise UsageError(f"There is no folder {tables}.", "Name the folder of the operator tables.")
    progress = ProgressLine(sys.stderr)
    with progress:
        answers = predict_servers(questions, tables, database_at(db), measured, progress.say)
    if shown.document([answer.to_dict() for answer in answers]):
        return
    from accelbench.present.terminal.predictions import show_servers

    show_servers(answers)


def _refuse_of_tables(anchors: int, target: str | None) -> None:
    """Refuse options of tables if none is given: they would change nothing."""
    for option, value in {"--anchors": anchors, "--target": target}.items():
        if value:
            raise UsageError(
                f"{option} is for --evaluate on tables.",
                "Give --train and --test, or leave it out.",
            )


def _operators(
    graph_features: str | None,
    database: Database | None,
    models: Sequence[str],
    hear: Callable[[str], None],
) -> TableModels:
    """Return the models of tables of operators; keep what is named beside the database."""
    from accelbench.predict.graph_file_models import (
        PACKAGES,
        TableModels,
        keep_operators,
        kept_operators,
        operator_models,
        trace_package,
    )

    if database is None:
        if graph_features in PACKAGES:
            raise UsageError(
                f"The models of {graph_features} are traced for the results of a database.",
                "Name it with --db.",
            )
        return TableModels(operator_models(Path(graph_features)) if graph_features else {})
    if graph_features in PACKAGES:
        trace_package(graph_features, database, models, hear)
    elif graph_features is not None:
        keep_operators(Path(graph_features), database.path)
    return kept_operators(database.path)


def _predict(
    predicting: Predicting,
    question: PredictionQuestion,
    shown: _Shown,
    progress: ProgressLine,
    prices: Prices | None,
    *,
    matrix: bool,
) -> None:
    from accelbench.present.charts.predicted import prediction_picture
    from accelbench.present.terminal.predictions import show_answer

    with progress:
        answer = predicting.answer(question, counts=not matrix)
        answer.price(prices)
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
    from accelbench.present.charts.predicted import evaluation_picture
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
    graph_features: str | None,
    anchors: int,
    target: str | None,
    shown: _Shown,
) -> None:
    if not train or test is None:
        raise UsageError("--evaluate needs --train and --test.", "Give a Parquet file for each.")
    from accelbench.predict.cases import LATENCY
    from accelbench.predict.evaluation import TableRequest, evaluate_tables
    from accelbench.present.charts.predicted import evaluation_picture
    from accelbench.present.terminal.predictions import show_notes, show_scores

    paths = tuple(Path(word) for word in train)
    operators = None if graph_features is None else Path(graph_features)
    progress = ProgressLine(sys.stderr)
    with progress:
        scores, cases = evaluate_tables(
            TableRequest(paths, test, operators, anchors, target or LATENCY), progress.say
        )
    learned = f"{test.name}, learned from {', '.join(path.name for path in paths)}."
    shown.picture(lambda: evaluation_picture([cases], learned))
    if shown.document(scores):
        return
    rows = {"overall": scores, **scores["per_hardware"], **scores["per_basis"]}
    show_scores(scores["target"], {name: row for name, row in rows.items() if row["n"]})
    show_notes(scores["notes"])
    print_line(f"{scores['seconds']:.1f} s")


#: Default batches of a matrix.
MATRIX_BATCHES = (1, 8, 32, 128)
_MOST_NAMED = 3


class Predicting:
    """Predictions of a database's predictors, or from peaks only if there is none."""

    def __init__(
        self,
        database: Database | None,
        *,
        train: bool = False,
        hear: Callable[[str], None] | None = None,
        files: Sequence[FileModel] = (),
    ) -> None:
        from accelbench.predict.cases import NAME_ONLY
        from accelbench.predict.stored_predictors import predictors_of, with_names
        from accelbench.predict.traces import Traces

        hear = hear or (lambda _: None)
        self.traces = Traces(own={entry.spec.id: entry for entry in files}, hear=hear)
        self.predictors: Predictors = predictors_of(database, self.traces, train=train, hear=hear)
        self.measured = self.predictors.stored.learnable
        if database is not None and any(entry.format == NAME_ONLY for entry in files):
            self.predictors = with_names(self.predictors, database)
            self.measured += self.predictors.stored.named
        self.memory = MemoryByDevice(_devices, database)

    def answer(self, question: PredictionQuestion, *, counts: bool = False) -> PredictionAnswer:
        from accelbench.predict.answers import answer
        from accelbench.predict.terms import operator_counts

        known, whole = self.predictors, [one for one in self.measured if not one.case.part]
        cases = cases_of(question, whole, self._device, known.calibrated)
        result = answer(cases.cases, known.of, self.measured, self.traces, known.calibrated)
        if counts:
            traced, _ = self.traces.of_cases(cases.cases)
            result.operators = operator_counts(traced)
        entries = (self.traces.entry(spec.id) for spec in question.models)
        files = [entry for entry in entries if entry is not None and entry.digest]
        result.files = [entry.to_dict() for entry in files]
        result.notes = [
            *_notes_of_files(files), *self.notes, *dict.fromkeys(cases.notes), *result.notes,
            *_too_large(result, self.memory),
        ]  # fmt: skip
        return result

    def plan(self, question: PredictionQuestion, number: int) -> MeasurementPlan:
        from accelbench.predict.case_predictor import CaseFeatures
        from accelbench.predict.cases import LATENCY
        from accelbench.predict.measurement_plan import plan

        cases = cases_of(
            question, self.predictors.stored.cases, self._device, self.predictors.calibrated
        )
        # A case without known operators cannot be judged.
        traced, _ = self.traces.of_cases(cases.cases)
        features = CaseFeatures.of(traced, LATENCY, calibrated=self.predictors.calibrated)
        return plan(features, self.predictors.of[LATENCY], number, self._costs(traced))

    def _costs(self, traced: Sequence[TracedCase]) -> MeasurementCosts:
        from accelbench.predict.measurement_plan import MeasurementCosts

        latency, memory = self.predictors.predict(traced)
        ends = zip(latency.low / 1e3, latency.value / 1e3, latency.high / 1e3, strict=True)
        return MeasurementCosts(
            [SecondsRange(*map(float, row)) for row in ends],
            [float(megabytes) * 2**20 for megabytes in memory.value],
            [
                self.memory(entry.case.configuration.hardware, entry.case.configuration.device)
                for entry in traced
            ],
            [self.traces.spec(entry.case.model).parameters for entry in traced],
        )

    def _device(self, platform: str) -> str | None:
        return device_here(platform) or next(
            (name for kind, name in reversed([*self.predictors.calibrated]) if kind == platform),
            None,
        )

    @property
    def notes(self) -> list[str]:
        return [*self.predictors.notes, *self.predictors.stored.notes]


def _too_large(result: PredictionAnswer, memory: MemoryByDevice) -> list[str]:
    least: dict[tuple[str, str, str], tuple[int, str]] = {}
    for figure in result.figures:
        room = memory(figure["hardware"], figure["device"])
        needed = (figure["memory_mb"] or 0.0) * 2**20
        if room is not None and is_too_large(needed, room):
            key = (figure["model"], figure["device"], figure["precision"])
            entry = (figure["batch_size"], memory_words(needed, room))
            least[key] = min(entry, least.get(key, entry))
    several = [
        f"{model} does not fit {device} from batch {batch:,} on in {precision}: predicted {how}"
        for (model, device, precision), (batch, how) in least.items()
    ]
    more = len(several) - _MOST_NAMED
    return several[:_MOST_NAMED] + ([f"{more:,} more do not fit either"] if more > 0 else [])


def database_at(path: Path | None) -> Database | None:
    """Return the database of a path, filled from its journals; None if the default is missing."""
    from accelbench.judge.stored_results import filled
    from accelbench.store.opening import open_store

    if path is None and not open_store(None).exists:
        return None
    return filled(path, lambda notice: print_line(notice, sys.stderr))


def device_here(platform: str) -> str | None:
    """Return the name of a platform's device on this machine, or None."""
    devices = (device for device in _devices(platform) if not device.emulated)
    return next((device.name for device in devices), None)


def _devices(platform: str) -> list[Device]:
    from accelbench.core.protocols import Device
    from accelbench.hardware.detect import detect, list_platforms

    if platform not in list_platforms():
        return []
    return [entry for entry in detect(platform) if isinstance(entry, Device)]


def question_of(
    models: Sequence[str],
    batches: Sequence[int],
    sizes: dict[str, tuple[int, ...]],
    hardware: Sequence[str],
    runtimes: Sequence[str],
    precisions: Sequence[str],
    mode: str,
    files: Mapping[str, FileModel] = MappingProxyType({}),
) -> PredictionQuestion:
    """Return the question of a command line."""
    from accelbench.core.precision import parse_precision
    from accelbench.judge.filters import hardware_words

    named = dict.fromkeys(name if name in files else find(name).id for name in models)
    specs = tuple(files[name].spec if name in files else find(name) for name in named)
    return PredictionQuestion(
        models=specs if models else every_model(),
        batches=tuple(batches),
        sizes=_size_grid(sizes),
        hardware=hardware_words(hardware),
        runtimes=tuple(word.lower() for word in split_words(runtimes)),
        precisions=tuple(parse_precision(word) for word in split_words(precisions)),
        mode=parse_mode(mode),
        fixed_batches={
            name: entry.batch for name, entry in files.items() if entry.batch is not None
        },
    )


def _notes_of_files(files: Sequence[FileModel]) -> list[str]:
    from accelbench.predict.graph_file_models import OPERATORS

    graphs = [entry for entry in files if entry.passes and entry.format != OPERATORS]
    notes = [
        f"{entry.spec.id} stores its weights in {entry.precision}: figures are those of its"
        " operators in the precision that is named"
        for entry in graphs
        if entry.precision != "float"
    ]
    if graphs:
        notes.append(
            "the operators of a file are read from its graph: whether an engine takes the file"
            " is not tried"
        )
    return notes


def files_of(
    models: Sequence[str],
    tables: TableModels,
    sizes: dict[str, tuple[int, ...]],
    hear: Callable[[str], None],
    check: Callable[[list[str]], object] = lambda _: None,
    stored: Callable[[str], FileModel | UsageError | None] = lambda _: None,
) -> dict[str, FileModel]:
    """Return the models of tables and of files, by name; `check` sees the other names first."""
    from accelbench.predict.graph_file_models import file_model, names_a_file

    files = {name: model for name in models if (model := tables.find(name))}
    of_files: list[str] = []
    for name in dict.fromkeys(models):
        if name in files:
            continue
        try:
            find(name)
        except UsageError:
            known = stored(name)
            if isinstance(known, UsageError):
                raise known from None
            if known is not None:
                files[name] = known
                continue
            if not names_a_file(name):
                raise
            of_files.append(name)
    check([name for name in models if name not in of_files and name not in files])
    for name in of_files:
        hear(f"Reading the operators of {name} …")
        files[name] = file_model(name, _size_grid(sizes))
    return files


def _size_grid(sizes: dict[str, tuple[int, ...]]) -> tuple[Shapes, ...]:
    grid = [Shapes(1)]
    for axis in numeric_axes():
        named = sizes.get(axis.option_key) or ()
        if named:
            wanted: list[dict[str, Any]] = [{axis.field: size} for size in named]
            grid = [replace(shapes, **size) for shapes in grid for size in wanted]
    return tuple(grid)


def batches_of(values: Sequence[str], usual: Sequence[int]) -> tuple[int, ...]:
    """Return the batch sizes of a list option; `1..256` are the powers of two up to 256."""
    batches: list[int] = []
    for word in split_words(values):
        first, dots, last = word.partition("..")
        if not dots:
            batches += parse_integers([word], "--batch-sizes")
            continue
        (low,), (high,) = (
            parse_integers([first], "--batch-sizes"),
            parse_integers([last], "--batch-sizes"),
        )
        if low > high:
            raise UsageError(f"The range of batch sizes {word} ends before it begins.")
        while low < high:
            batches.append(low)
            low *= 2
        batches.append(high)
    return tuple(dict.fromkeys(batches)) or tuple(usual)


def not_predicted(database: Database | None, word: str) -> FileModel | UsageError | None:
    """Return the model of a name that results have, or why a measured one is not predicted.

    Returns:
        None for other words.
    """
    from accelbench.predict.stored_cases import measured_name

    code = code_word(word)
    if Path(word).exists() and code is None:
        return None
    if database is not None and (model := measured_name(database, word)):
        return model
    names = {word, name_of(Path(word)), "" if code is None else code_name_of(code)} - {""}
    stored = _results_of(database, names)
    why = (
        "its file is not here, and of its operators nothing is stored"
        if code is None
        else "operators are read from files and configs, and this is code"
    )
    if not stored:
        measure = f"Measure it: accelbench run {visible(word)}"
        if code is None:
            return None  # the search for a model or file refuses it
        return UsageError(f"{in_quotes(word)} is not predicted: {why}.", measure)
    name, results = stored
    return UsageError(
        f"{in_quotes(word)} is not predicted: {why}; {format_count(results, 'result')} of it"
        f" {'is' if results == 1 else 'are'} stored.",
        f"They are what answers: accelbench recommend {visible(name)}, or accelbench compare",
    )


def _results_of(database: Database | None, names: set[str]) -> tuple[str, int] | None:
    if database is None:
        return None
    marks = ", ".join("?" * len(names))
    _, rows = database.query(
        f"SELECT model, count(*) FROM benchmark_results WHERE model IN ({marks})"  # noqa: S608
        f" AND {COMPARABLE_SQL} AND status = 'ok' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
        sorted(names),
    )
    return next(((str(name), int(str(number))) for name, number in rows), None)
