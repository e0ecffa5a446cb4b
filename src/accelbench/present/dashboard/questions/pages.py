"""The pages of `recommend` and `predict`, and of the accuracy of predictions.

The command answers in a process of its own, one question after the other: a page shows what the
command prints, and no answer can end the dashboard. A page that waits reloads itself.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from accelbench.core import processes
from accelbench.core.errors import EXIT_CANNOT_TELL, EXIT_NO, EXIT_OK, AccelbenchError, UsageError
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes, visible_lines
from accelbench.judge.filters import in_catalogue
from accelbench.present.charts.chart import Picture
from accelbench.present.charts.predicted_measured import PREDICTED_MEASURED
from accelbench.present.charts.words import safe
from accelbench.present.dashboard.page_base import Site, SitePages
from accelbench.present.dashboard.page_query import PageQuery
from accelbench.present.dashboard.questions.forms import (
    FIGURES,
    PREDICT,
    RECOMMEND,
    QuestionForm,
    answer_sentences,
    answer_table,
    models_of,
)
from accelbench.present.dashboard.snapshots.cells import largest_models
from accelbench.present.dashboard.snapshots.snapshot import Snapshot
from accelbench.present.full_report.contents import CAPTION, HEADERS, score_rows
from accelbench.present.prediction_evidence import BATCH_SCALING, PredictionEvidence, evidence_in
from accelbench.store.files import temporary_folder

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
_ANSWERED = (EXIT_OK, EXIT_NO, EXIT_CANNOT_TELL)
#: The verdict by the exit code of the command.
_VERDICTS = {
    EXIT_NO: "The answer is no: nothing suits, or nothing keeps the limits.",
    EXIT_CANNOT_TELL: "Inconclusive: no measurement decides it.",
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
                    f" {counted(stored, 'configuration')} of it"
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
            with self.site.database.asking():
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
