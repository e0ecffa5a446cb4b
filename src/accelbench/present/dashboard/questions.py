"""The pages of `recommend` and `predict`, and of the accuracy of predictions.

The command answers in a process of its own, one question after the other: a page shows what the
command prints, and no answer can end the dashboard. A page that waits reloads itself.

A visitor's values are joined to their options (`--hardware=cpu`), so none is taken for an option;
names of models are looked up first, so none is taken for a file.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core import processes
from accelbench.core.errors import EXIT_INCONCLUSIVE, EXIT_NO, EXIT_OK, AccelbenchError, UsageError
from accelbench.core.formatting import format_count, format_value
from accelbench.core.result_statistics import unit_kind
from accelbench.core.safe_text import in_quotes, visible_lines
from accelbench.exchange.prices import DEFAULT_CURRENCY, currency_sign
from accelbench.judge.costs import money
from accelbench.judge.filters import in_catalogue, model_words
from accelbench.present.charts.chart import Picture
from accelbench.present.charts.predicted import PREDICTED_MEASURED
from accelbench.present.charts.words import safe
from accelbench.present.dashboard.cells import largest_models
from accelbench.present.dashboard.page_base import Site, SitePages
from accelbench.present.dashboard.page_query import PageQuery, one_of
from accelbench.present.dashboard.snapshot import Snapshot
from accelbench.present.prediction_evidence import BATCH_SCALING, PredictionEvidence, evidence_in
from accelbench.present.report_parts import CAPTION, HEADERS, score_rows
from accelbench.present.texts import catalogue
from accelbench.store.files import create_temporary_folder

#: The longest value of a field.
_LONGEST = 200


@dataclass(frozen=True)
class FormField:
    """A field of a form."""

    option: str  # of the command, without its dashes; "" for the models
    label: str
    help: str = ""  # the meaning of an empty field
    choices: Sequence[str] = ()  # empty: any text
    number: bool = False
    priced: bool = False  # whether it needs prices
    suggested: str = ""  # a list of names: models, hardware, runtimes or precisions

    @property
    def name(self) -> str:
        """The name in an address."""
        return self.option or "model"


@dataclass(frozen=True)
class QuestionForm:
    """A command as a form."""

    command: str
    title: str  # of its page
    about: str  # its answer, in a sentence
    fields: Sequence[FormField]
    groups: Mapping[str, Sequence[FormField]]  # more, by heading

    @property
    def every(self) -> Sequence[FormField]:
        return (*self.fields, *(one for group in self.groups.values() for one in group))

    def values(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Return the values of an address by field, without empty ones."""
        known = {one.name: parameters.get(one.name, "").strip() for one in self.every}
        return {name: value[:_LONGEST] for name, value in known.items() if value}

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Return the words of the command; unknown choices are refused."""
        options = []
        for one in self.every:
            value = values.get(one.name)
            if value is not None and one.option:
                if one.choices:
                    one_of(one.label.lower(), value, one.choices)
                options.append(f"--{one.option}={value}")
        models = models_of(values)
        return [self.command, *options, *(["--", *models] if models else [])]

    def line(self, values: Mapping[str, str], database: str, prices: str = "") -> str:
        """Return the command line."""
        options = [
            word
            for one in self.every
            if one.option and one.name in values
            for word in (f"--{one.option}", values[one.name])
        ]
        options += ["--prices", prices] if prices and self is RECOMMEND else []
        return shlex.join(
            ["accelbench", self.command, *models_of(values), *options, "--db", database]
        )


def models_of(values: Mapping[str, str]) -> list[str]:
    """Return the models that are named."""
    named = values.get("model", "").strip(" ,")
    return list(model_words([named], files_here=False)) if named else []


def _form(command: str) -> QuestionForm:
    form = catalogue("question_forms")[command]
    groups = {
        heading: [FormField(**one) for one in group] for heading, group in form["groups"].items()
    }
    fields = [FormField(**one) for one in form["fields"]]
    return QuestionForm(command, form["title"], form["about"], fields, groups)


RECOMMEND, PREDICT = _form("recommend"), _form("predict")


Document = Mapping[str, Any]
_HEADERS = (
    *("Model", "Hardware", "Device", "Engine", "Precision", "Batch", "Latency, ms", "Statistic"),
    *("From", "To", "Throughput", "Unit", "Memory, MB", "Cost of a million", "Rests on"),
    *("Best with", "Fits with", "Off, held out"),
)
#: Numeric columns.
FIGURES = frozenset(
    (
        *("Batch", "Latency, ms", "From", "To", "Throughput", "Memory, MB", "Cost of a million"),
        *("Best with", "Fits with", "Off, held out"),
    )
)
#: More answers have no sentences: the table is shorter.
_MOST_SENTENCES = 6


@dataclass(frozen=True)
class AnswerRow:
    """A row of an answer: its cells by header, and the provenance of its values."""

    cells: Mapping[str, str]
    kind: str


@dataclass(frozen=True)
class AnswerTable:
    """The table of an answer, without empty columns."""

    headers: Sequence[str]
    rows: Sequence[AnswerRow]


def answer_table(document: Document) -> AnswerTable:
    """Return the table of an answer, in its order."""
    rows = [*_rows(document)]
    headers = [name for name in _HEADERS if any(row.cells.get(name) for row in rows)]
    return AnswerTable(headers, rows)


def answer_sentences(document: Document) -> list[str]:
    """Return the command's sentences, and what costs least if there are prices.

    The first line of an explanation is the command's own sentence.
    """
    answers = document.get("recommendations", ())
    if len(answers) > _MOST_SENTENCES:
        return []
    lines = [
        line
        for answer in answers
        for line in (str(answer.get("explanation") or "").partition("\n")[0], _cheapest(answer))
    ]
    return list(dict.fromkeys(filter(None, lines)))


def _cheapest(answer: Document) -> str:
    # Rates of different items have no common cost.
    scores = {name: one for name, one in answer.get("all_scores", {}).items() if one["compatible"]}
    priced = {
        name: one
        for name, one in scores.items()
        if one["basis"] == "measured" and one.get("cost_per_million")
    }
    units = {
        unit_kind(str((one.get("predictions") or {}).get("throughput_unit") or ""))
        for one in priced.values()
    }
    if len(units) != 1:
        return ""
    name, least = min(priced.items(), key=lambda named: float(named[1]["cost_per_million"]))
    device = f"{name} ({least['device']})" if least.get("device") else name
    return (
        f"Lowest cost of a million items: {_cost({**least, 'currency': answer.get('currency')})},"
        f" {device}; {len(priced)} of {format_count(len(scores), 'candidate')}"
        f" {'has' if len(priced) == 1 else 'have'} a price and a measured result."
    )


def _rows(document: Document) -> Iterator[AnswerRow]:
    for figures in document.get("predictions", ()):
        ends = {f"latency_{end}": figures[f"latency_{end}_ms"] for end in ("low", "high")}
        yield _row(figures, {**figures, **ends, "figure": "mean"}, "predicted")
    for place in document.get("ranking", ()):
        yield _row({"currency": document.get("currency"), **place}, place)
    for answer in document.get("recommendations", ()):
        question = answer.get("question", {})
        common = {"currency": answer.get("currency")}
        for option in answer.get("fits", ()):
            yield _row({"model": answer["model"], **common, **option}, option)
        common |= {name: question.get(name) for name in ("model", "batch_size")}
        for entry in answer.get("configurations", ()):
            yield _row({**common, **entry}, entry["predictions"])
        for name, score in answer.get("all_scores", {}).items():
            if score["basis"] == "rule":
                yield _row({**common, "hardware": name, **score}, {})


def _row(about: Document, figures: Document, predicted: str = "") -> AnswerRow:
    kinds = (predicted, figures.get("provenance"), about.get("provenance"), about.get("basis"))
    kind = next((str(name) for name in kinds if name), "")
    latency = figures.get("latency", figures.get("latency_ms"))
    error, rate = figures.get("held_out_error"), figures.get("throughput")
    unit = str(figures.get("throughput_unit") or "") if rate else ""
    either = {**figures, **{name: value for name, value in about.items() if value is not None}}
    batch = either.get("batch_size")
    cells = {
        "Model": either.get("model"),
        "Hardware": either.get("hardware"),
        "Device": either.get("device"),
        "Engine": either.get("runtime"),
        "Precision": either.get("precision"),
        "Batch": f"{batch:,}" if batch else "",
        "Latency, ms": _number(latency),
        "Statistic": figures.get("figure") if latency is not None else "",
        "From": _number(figures.get("latency_low")),
        "To": _number(figures.get("latency_high")),
        "Throughput": _number(rate),
        "Unit": f"{unit}/s" if unit and not unit.endswith("/s") else unit,
        "Memory, MB": _number(figures.get("memory_peak_mb", figures.get("memory_mb"))),
        "Cost of a million": _cost(about),
        "Rests on": _basis(about, kind, predicted),
        "Off, held out": "" if error is None else f"{error:,.0%}",
        "Best with": _share(about.get("probability")),
        "Fits with": _share(about.get("fits_probability")),
    }
    return AnswerRow({name: str(text) for name, text in cells.items() if text}, kind)


def _basis(about: Document, kind: str, predicted: str) -> str:
    basis = str(about.get("basis") or "")
    names = ", ".join(about.get("sources") or ())
    others = f"measured by others: {names}" if names else "measured by others"
    if basis == "measured" and kind == "imported":
        basis = others
    elif not predicted and "imported" in (about.get("rests_on") or ()) and basis != "predicted":
        basis = f"{basis}, from figures {others}"
    if basis == "rule":
        basis = f"{basis}: {about['performance_rating']}"
    return basis


def _cost(about: Document) -> str:
    cost = about.get("cost_per_million")
    sign = currency_sign(str(about.get("currency") or DEFAULT_CURRENCY))
    return "" if cost is None else f"{sign}{money(float(cost))}"


def _share(value: float | None) -> str:
    from accelbench.recommend.ranking import percent

    return "" if value is None else percent(value)


def _number(value: float | None) -> str:
    return "" if value is None else format_value(value)


T = TypeVar("T")
#: Questions that may wait, and answers that are kept.
_MOST_WAITING, _KEPT = 4, 64


class BusyError(AccelbenchError):
    """Other questions are being worked on."""


class StoppedError(AccelbenchError):
    """A visitor stopped the work on a question."""


class QuestionJob(Generic[T]):
    """A question, and the progress of the work on it. `make` reports its stages to `hear`."""

    def __init__(self, make: Callable[[QuestionJob[T]], T]) -> None:
        self._make = make
        self._answer = Future[T]()
        self._is_stopped = False
        self._asked_at, self._ended_at = time.monotonic(), 0.0
        self.stage = ""

    @property
    def waits(self) -> bool:
        """Whether other questions are answered before it."""
        return not self._answer.running() and not self.done

    @property
    def seconds(self) -> float:
        """The seconds from the question to the answer."""
        return (self._ended_at or time.monotonic()) - self._asked_at

    @property
    def done(self) -> bool:
        """Whether there is an answer, or a reason why there is none."""
        return self._answer.done()

    @property
    def is_lost(self) -> bool:
        """Whether it failed for a reason that may be gone by now."""
        if not self.done or self._answer.cancelled():
            return self.done
        error = self._answer.exception()
        return error is not None and not isinstance(error, UsageError)

    def result(self, seconds: float | None = None) -> T:
        """Return the answer; TimeoutError if it is not there yet, StoppedError if it never is."""
        try:
            return self._answer.result(seconds)
        except CancelledError:
            raise _stopped() from None

    def hear(self, words: str) -> None:
        """Take the name of a stage; StoppedError if the work is to end."""
        self.stage = words
        if self._is_stopped:
            raise _stopped()

    def stop(self) -> None:
        """End the work, or never begin."""
        self._is_stopped = True
        if self._answer.cancel():
            self._ended_at = time.monotonic()

    def work(self) -> None:
        """Answer the question in the calling thread, unless it was stopped."""
        if not self._answer.set_running_or_notify_cancel():
            return
        try:
            answer = self._make(self)
        except BaseException as error:
            self._ended_at = time.monotonic()
            self._answer.set_exception(error)
        else:
            self._ended_at = time.monotonic()
            self._answer.set_result(answer)


def _stopped() -> StoppedError:
    return StoppedError("It was stopped.", "Ask again to begin anew.")


class QuestionJobs(Generic[T]):
    """The work on questions, one at a time.

    Its threads are daemons, and the process that one starts dies with it: an ending dashboard waits
    for neither.
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, QuestionJob[T]] = OrderedDict()
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def of(self, key: Hashable, make: Callable[[QuestionJob[T]], T]) -> QuestionJob[T]:
        """Return the work on a question; a UsageError is kept. BusyError if too many wait."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not job.is_lost:
                return job
            if sum(not other.done for other in self._jobs.values()) >= _MOST_WAITING:
                raise BusyError("Other questions are being worked on.", "Ask again in a minute.")
            job = self._jobs[key] = QuestionJob(make)
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)
        threading.Thread(target=self._work, args=(job,), daemon=True).start()
        return job

    def stopped(self, key: Hashable) -> QuestionJob[T] | None:
        """End the work on a question; None if there is none to end."""
        with self._lock:
            job = self._jobs.get(key)
        if job is None or job.done:
            return None
        job.stop()
        return job

    def _work(self, job: QuestionJob[T]) -> None:
        with self._turn:
            job.work()


#: How long a command may take, a page waits for it, and a request for the document waits.
_LIMIT_SECONDS, _MOMENT_SECONDS, _WAIT_SECONDS = 120.0, 1.0, 240.0
#: The name in an address that ends the work on its question.
STOP = "stop"
#: One thread of numpy's: it fits predictors as fast by one, and with two busy cores and two
#: threads, which wait for each other, five times as slowly. The command measures nothing here.
_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
#: Names that a field offers.
_MOST_OFFERED = 400
#: Rows of an answer that are seen at once; the rest is folded below them.
_MOST_ROWS = 12
_ANSWERED = (EXIT_OK, EXIT_NO, EXIT_INCONCLUSIVE)
#: The verdict by the exit code of the command.
_VERDICTS = {
    EXIT_NO: "The answer is no: nothing suits, or nothing keeps the limits.",
    EXIT_INCONCLUSIVE: "Inconclusive: no measurement decides it.",
}


@dataclass(frozen=True)
class CommandAnswer:
    """The answer of a command."""

    document: str  # the printed JSON
    text: str  # the text of a terminal
    code: int  # the exit code


class QuestionPages(SitePages):
    """The pages of `recommend` and `predict`, and of the accuracy of predictions."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._jobs = QuestionJobs[CommandAnswer]()

    def recommend(self, request: Request) -> Response:
        """Recommend hardware for a model."""
        return self._page(request, RECOMMEND)

    def predict(self, request: Request) -> Response:
        """Predict a configuration that was not measured."""
        return self._page(request, PREDICT)

    def document(self, request: Request) -> Response:
        """Return the document that the command prints with `--json`."""
        form = PREDICT if request.url.path.startswith("/predict") else RECOMMEND
        snapshot = self.site.snapshot()
        job = self._job(snapshot, form, form.values(dict(request.query_params)))
        try:
            answer = job.result(_WAIT_SECONDS)
        except StoppedError as error:
            raise BusyError(error.message, error.advice) from None
        except TimeoutError:
            raise BusyError("Other questions are being worked on.", "Ask again.") from None
        return Response(answer.document, 200, None, "application/json")

    def _page(self, request: Request, form: QuestionForm) -> Response:
        snapshot = self.site.snapshot()
        values = form.values(dict(request.query_params))
        answer, trouble, working, stopped = None, "", None, None
        if values and STOP in request.query_params:
            stopped = self._jobs.stopped(self._key(snapshot, form, values))
        elif values:
            try:
                working = self._job(snapshot, form, values)
                answer, working = working.result(_MOMENT_SECONDS), None
            except TimeoutError:
                pass
            except AccelbenchError as error:
                trouble, working = str(error), None
        document = json.loads(answer.document) if answer else {}
        return self.site.page(
            request,
            "question.html",
            None,
            400 if trouble else 202 if working else 200,
            snapshot=snapshot,
            form=form,
            values=values,
            answer=answer,
            verdict=_VERDICTS.get(answer.code, "") if answer else "",
            sentences=answer_sentences(document),
            table=answer_table(document),
            lines=[line.rstrip() for line in answer.text.splitlines()] if answer else [],
            trouble_said=trouble,
            working=working,
            stopped=stopped,
            stop=STOP,
            most_seconds=int(_LIMIT_SECONDS),
            priced=bool(self._prices),
            line=form.line(values, self.site.database.name, self._prices),
            figures=FIGURES,
            most_rows=_MOST_ROWS,
            banded=FIGURES - {"Batch", "Score"},
            offered=self._offered(snapshot),
            address=str(request.url.query),
        )

    @property
    def _prices(self) -> str:
        known = self.site.keeper.prices
        return "" if known is None else str(known.path)

    def _key(
        self, snapshot: Snapshot, form: QuestionForm, values: Mapping[str, str]
    ) -> tuple[str, ...]:
        return (snapshot.at, *form.words(values))

    def _job(
        self, snapshot: Snapshot, form: QuestionForm, values: Mapping[str, str]
    ) -> QuestionJob[CommandAnswer]:
        self._refuse_unknown(snapshot, form, values)
        words = form.words(values)
        return self._jobs.of(
            self._key(snapshot, form, values), lambda job: self._asked(words, job.hear)
        )

    def _asked(self, words: Sequence[str], hear: Callable[[str], None]) -> CommandAnswer:
        """Run a command once for its JSON document and its text."""
        command, *rest = words
        named = [command, f"--db={self.site.database.name}"]
        if self._prices and command == RECOMMEND.command:
            named.append(f"--prices={self._prices}")
        with create_temporary_folder() as folder:
            document = folder / "answer.json"
            end = _ended([*named, f"--document={document}", *rest], hear)
            if not document.is_file():
                raise UsageError("The command came to no answer.")
            text = document.read_text(encoding="utf-8")
        return CommandAnswer(text, visible_lines(end.stdout), end.returncode)

    def _refuse_unknown(
        self, snapshot: Snapshot, form: QuestionForm, values: Mapping[str, str]
    ) -> None:
        """Refuse names that the command may take for files."""
        models = models_of(values)
        if form is PREDICT and not models:
            raise UsageError("No model is named.", "Name one.")
        if form is RECOMMEND and not models and "task" not in values:
            raise UsageError("Neither a model nor a task is named.", "Name one.")
        for name in models:
            stored = snapshot.count("SELECT count(*) FROM cell WHERE model = ?", [name])
            if in_catalogue(name):
                continue
            if form is PREDICT and stored:
                raise UsageError(
                    f"{in_quotes(safe(name))} is not predicted: its operators are not known;"
                    f" {format_count(stored, 'configuration')} of it"
                    f" {'is' if stored == 1 else 'are'} measured here.",
                    "Models of the catalogue are predicted, and files on a command line.",
                )
            if not stored:
                raise UsageError(
                    f"{in_quotes(safe(name))} is not a model of the catalogue"
                    f"{'' if form is PREDICT else ' and has no results'}.",
                    "`accelbench models` lists what there is.",
                )

    def _offered(self, snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
        known = snapshot.known
        models = largest_models(snapshot, PageQuery(), _MOST_OFFERED)
        offered = {"models": [name for name, _ in models], "hardware": known["hardware"]}
        return {**offered, "runtimes": known["runtime"], "precisions": known["precision"]}

    def predictions(self, request: Request) -> Response:
        """Show predictions against measurements, and batch scaling."""
        snapshot = self.site.snapshot()
        evidence = self._evidence(snapshot)
        drawn = self._pictures(snapshot)
        return self.site.page(
            request,
            "predictions.html",
            snapshot=snapshot,
            evidence=evidence,
            drawn=[(name, picture) for name, picture in drawn.items() if picture is not None],
            headers_of_scores=HEADERS,
            scores=score_rows(evidence.cases),
            caption=CAPTION,
        )

    def picture(self, request: Request) -> Response:
        """Return a picture of predictions as a file."""
        snapshot, name = self.site.snapshot(), str(request.path_params["name"])
        made = self._pictures(snapshot).get(name)
        why = "There is no such picture of predictions."
        return self._picture_file(request, snapshot, name, (), made, why)

    def _evidence(self, snapshot: Snapshot) -> PredictionEvidence:
        def judged() -> PredictionEvidence:
            with self.site.database.keep_open():
                return evidence_in(self.site.database)

        return self._once(snapshot, ("evidence",), judged)

    def _pictures(self, snapshot: Snapshot) -> dict[str, Picture | None]:
        evidence = self._evidence(snapshot)
        scored, scaled = PREDICTED_MEASURED.name, BATCH_SCALING.name
        return {scored: evidence.picture, scaled: evidence.scaling_picture}


def _ended(words: Sequence[str], hear: Callable[[str], None]) -> processes.ProcessEnd:
    """Run a command to its end; UsageError if it refused the question."""
    try:
        end = processes.run_python(
            "accelbench", words, _LIMIT_SECONDS, on_line=hear, environment={**os.environ, **_ALONE}
        )
    except processes.TimeoutExpired:
        raise AccelbenchError(
            f"No answer in {_LIMIT_SECONDS:.0f} seconds.",
            "Ask on a command line, which waits as long as it takes.",
        ) from None
    if end.returncode in _ANSWERED and end.stdout:
        return end
    lines = [line for line in end.stderr.splitlines() if line.startswith("accelbench: ")]
    said = (lines[-1] if lines else end.last_line).removeprefix("accelbench: ")
    raise UsageError(safe(said, 600) or "The command came to no answer.")
