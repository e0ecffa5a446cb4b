"""`recommend` and `predict` as forms, and how good predictions are.

The command itself answers in a process of its own, one question after the other: a page says what
the command says, and no answer can bring the dashboard down. A page that waits comes again by
itself.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core import processes
from accelbench.core.errors import EXIT_CANNOT_TELL, EXIT_NO, EXIT_OK, AccelbenchError, UsageError
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes, visible_lines
from accelbench.query.filters import in_catalogue
from accelbench.report.charts.chart import Picture
from accelbench.report.charts.predicted_measured import PREDICTED_MEASURED
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.questions.forms import (
    FIGURES,
    PREDICT,
    RECOMMEND,
    AnswerTable,
    QuestionForm,
    answer_sentences,
    answer_table,
    models_of,
)
from accelbench.report.dashboard.site import Site, SitePages
from accelbench.report.dashboard.snapshots.snapshot import Snapshot
from accelbench.report.full_report.contents import CAPTION, HEADERS, score_rows
from accelbench.report.prediction_evidence import BATCH_SCALING, PredictionEvidence, evidence_in
from accelbench.store.scratch import temporary_folder

T = TypeVar("T")
#: Questions that may wait, and answers that are kept.
_MOST_WAITING, _KEPT = 4, 64


class BusyError(AccelbenchError):
    """Other questions are being worked on."""


class StoppedError(AccelbenchError):
    """Somebody stopped the work on a question."""


class QuestionJob(Generic[T]):
    """A question, and how far the work on it is. `make` tells `hear` of the job what it does."""

    def __init__(self, make: Callable[[QuestionJob[T]], T]) -> None:
        self._make = make
        self._answer = Future[T]()
        self._lock = threading.Lock()
        self._stopped = False
        self._asked, self._ended = time.monotonic(), 0.0
        self._begun = False
        self.stage = ""

    @property
    def waits(self) -> bool:
        """Whether others are worked on before it."""
        return not self._begun

    @property
    def seconds(self) -> float:
        """Since it was asked, until it was answered."""
        return (self._ended or time.monotonic()) - self._asked

    @property
    def done(self) -> bool:
        """Whether there is an answer, or why there is none."""
        return self._answer.done()

    @property
    def is_lost(self) -> bool:
        """Whether it came to nothing for a reason that may be gone by now."""
        error = self._answer.exception() if self.done else None
        return error is not None and not isinstance(error, UsageError)

    def result(self, seconds: float | None = None) -> T:
        """The answer.

        Raises:
            TimeoutError: It is not there yet.
        """
        return self._answer.result(seconds)

    def hear(self, words: str) -> None:
        """Be told what is being done.

        Raises:
            StoppedError: It is not to be gone on with.
        """
        self.stage = words
        self._refuse_stopped()

    def stop(self) -> None:
        """End the work on it, or never begin."""
        self._stopped = True
        if self.waits:
            self._settle(None, _stopped())

    def work(self) -> None:
        """Answer it, in the thread that calls."""
        self._begun = True
        answer, trouble = None, None
        try:
            self._refuse_stopped()
            answer = self._make(self)
        except BaseException as error:
            trouble = error
        self._settle(answer, trouble)

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise _stopped()

    def _settle(self, answer: T | None, trouble: BaseException | None) -> None:
        """Only the first counts: what was stopped while it waited is not answered after all."""
        with self._lock:
            if self._answer.done():
                return
            self._ended = time.monotonic()
            if trouble is not None:
                self._answer.set_exception(trouble)
            else:
                self._answer.set_result(answer)  # type: ignore[arg-type]  # None where T has it


def _stopped() -> StoppedError:
    return StoppedError("It was stopped.", "Ask again to begin anew.")


class QuestionJobs(Generic[T]):
    """What was asked, by what it was asked as.

    A thread of its own works on a question, and the process that it starts dies with it: nobody
    waits for either where the dashboard ends.
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, QuestionJob[T]] = OrderedDict()
        self._lock, self._turn = threading.Lock(), threading.Lock()

    def of(self, key: Hashable, make: Callable[[QuestionJob[T]], T]) -> QuestionJob[T]:
        """The work on a question, which may be on its way; a slip is remembered as one.

        Raises:
            BusyError: Too many others are waiting.
        """
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
        """End the work on a question; None where there is none to end."""
        with self._lock:
            job = self._jobs.get(key)
        if job is None or job.done:
            return None
        job.stop()
        return job

    def _work(self, job: QuestionJob[T]) -> None:
        with self._turn:
            job.work()


#: How long a command may take, a page waits for it, and whoever wants the document alone.
_LIMIT_SECONDS, _MOMENT_SECONDS, _WAIT_SECONDS = 120.0, 1.0, 240.0
#: Of an address, that what it asks is not to be worked on any longer.
STOP = "stop"
#: One thread of numpy's: it fits predictors as fast by one, and with two busy cores and two
#: threads, which wait for each other, five times as slowly. The command measures nothing here.
_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
#: Names that a field offers.
_MOST_OFFERED = 400
#: Rows of an answer that are seen at once; the rest is folded below them.
_MOST_ROWS = 12
_ANSWERED = (EXIT_OK, EXIT_NO, EXIT_CANNOT_TELL)
#: What an answer is to a question, by the exit code of its command.
_VERDICTS = {
    EXIT_NO: "The answer is no: nothing suits, or nothing keeps the limits.",
    EXIT_CANNOT_TELL: "It cannot be told: nothing that would say it was measured.",
}


@dataclass(frozen=True)
class CommandAnswer:
    """What a command answered."""

    document: str  # as JSON, as it was printed
    text: str  # as a terminal shows it
    code: int  # its exit code

    @property
    def table(self) -> AnswerTable:
        """Its figures."""
        return answer_table(json.loads(self.document))

    @property
    def sentences(self) -> list[str]:
        """What it comes to, in the command's sentences."""
        return answer_sentences(json.loads(self.document))

    @property
    def lines(self) -> list[str]:
        """Its words, line by line."""
        return [line.rstrip() for line in self.text.splitlines()]

    @property
    def verdict(self) -> str:
        """What it comes to, where that is no or can't tell."""
        return _VERDICTS.get(self.code, "")


class QuestionPages(SitePages):
    """`recommend` and `predict`, and how good predictions are."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        #: One at a time: whoever asks meanwhile has the same.
        self._judging = threading.Lock()
        self._jobs = QuestionJobs[CommandAnswer]()

    def recommend(self, request: Request) -> Response:
        """Which hardware for a model."""
        return self._page(request, RECOMMEND)

    def predict(self, request: Request) -> Response:
        """What nobody has measured."""
        return self._page(request, PREDICT)

    def document(self, request: Request) -> Response:
        """The document that the command prints with `--json`."""
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
                job = self._job(snapshot, form, values)
                answer, working = self._soon(job)
            except AccelbenchError as error:
                trouble = str(error)
        return self.site.page(
            request,
            "question.html",
            None,
            400 if trouble else 202 if working else 200,
            snapshot=snapshot,
            form=form,
            values=values,
            answer=answer,
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

    def _soon(
        self, job: QuestionJob[CommandAnswer]
    ) -> tuple[CommandAnswer | None, QuestionJob[CommandAnswer] | None]:
        try:
            return job.result(_MOMENT_SECONDS), None
        except TimeoutError:
            return None, job

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
        """What a command answers, as JSON and as people read it: it is asked once for both."""
        command, *rest = words
        named = [command, f"--db={self.site.database.name}"]
        if self._prices and command == RECOMMEND.command:
            named.append(f"--prices={self._prices}")
        with temporary_folder() as folder:
            document = folder / "answer.json"
            end = _ended([*named, f"--document={document}", *rest], hear)
            if not document.is_file():
                raise UsageError("The command came to no answer.")
            text = document.read_text(encoding="utf-8")
        return CommandAnswer(text, visible_lines(end.stdout), end.returncode)

    def _refuse_unknown(
        self, snapshot: Snapshot, form: QuestionForm, values: Mapping[str, str]
    ) -> None:
        """Names that are no model's, which the command may take for a file's."""
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
                    f" {counted(stored, 'configuration')} of it"
                    f" {'is' if stored == 1 else 'are'} measured here.",
                    "Only models of the catalogue are predicted, and on a command line files.",
                )
            if not stored:
                raise UsageError(
                    f"{in_quotes(safe(name))} is no model of the catalogue"
                    f"{'' if form is PREDICT else ' and has no results'}.",
                    "`accelbench models` lists what there is.",
                )

    def _offered(self, snapshot: Snapshot) -> dict[str, list[str]]:
        columns = {"models": "model", "hardware": "hardware", "runtimes": "runtime"}
        columns |= {"precisions": "precision"}
        return {
            name: [
                str(row["value"])
                for row in snapshot.ask(
                    f"SELECT {column} AS value, count(*) AS n FROM cell"  # noqa: S608
                    f" WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
                    f" LIMIT {_MOST_OFFERED}"
                )
            ]
            for name, column in columns.items()
        }

    def predictions(self, request: Request) -> Response:
        """Predicted against measured, and batch scaling, or why there is neither."""
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
        """One of its pictures as a file."""
        snapshot, name = self.site.snapshot(), str(request.path_params["name"])
        made = self._pictures(snapshot).get(name)
        why = "There is no such picture of predictions."
        return self._picture_file(request, snapshot, name, (), made, why)

    def _evidence(self, snapshot: Snapshot) -> PredictionEvidence:
        def judged() -> PredictionEvidence:
            with self.site.database.asking():
                return evidence_in(self.site.database)

        with self._judging:
            return self._once(snapshot, ("evidence",), judged)

    def _pictures(self, snapshot: Snapshot) -> dict[str, Picture | None]:
        evidence = self._evidence(snapshot)
        scored, scaled = PREDICTED_MEASURED.name, BATCH_SCALING.name
        return self._once(
            snapshot,
            ("prediction pictures",),
            lambda: {scored: evidence.picture, scaled: evidence.scaling_picture},
        )


def _ended(words: Sequence[str], hear: Callable[[str], None]) -> processes.ProcessEnd:
    """A command that answered.

    Raises:
        UsageError: It refused the question.
        StoppedError: `hear` has ended it.
        AccelbenchError: It could not answer, or took too long.
    """
    try:
        end = processes.run_python(
            "accelbench", words, _LIMIT_SECONDS, hear=hear, environment={**os.environ, **_ALONE}
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
