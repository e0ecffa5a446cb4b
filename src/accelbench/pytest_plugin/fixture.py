"""The fixture `accelbench`: `accelbench.benchmark` under a test's name, limits and baseline."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.benchmark import benchmark
from accelbench.api.live_objects import GIVEN
from accelbench.api.result import Result
from accelbench.core.errors import AccelbenchError, UsageError
from accelbench.core.formatting import suggest
from accelbench.core.result_statistics import FEWEST_LAUNCHES, ends_document
from accelbench.core.rows import Row
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.titles import format_title
from accelbench.judge.filters import catalogued, in_catalogue
from accelbench.pytest_plugin import NEW_BASELINE, CannotTellWarning
from accelbench.pytest_plugin.gate import (
    BaselineQuestion,
    GateAnswer,
    GateVerdict,
    can_create,
    cases_of,
    figures_or_why,
    of_baseline,
    of_limits,
    worst,
)
from accelbench.pytest_plugin.limits import NAMES, CaseFigures, limits_of
from accelbench.store.database import DEFAULT_NAME, ENVIRONMENT

_MARK = "accelbench"
#: What a test says of a baseline.
_BASELINE, _THRESHOLD, _ALLOW = "baseline", "threshold", "allow"
_OF_BENCHMARK = tuple(inspect.signature(benchmark).parameters)[2:]
#: What the fixture and the mark take by name.
ARGUMENTS = (*NAMES, _BASELINE, _THRESHOLD, _ALLOW, *_OF_BENCHMARK)
#: What separates words of the command line, which would not find such a name.
_SEPARATORS = re.compile(r"[\s,]+")


class BenchmarkFixture:
    """What a test calls to measure."""

    def __init__(self, item: pytest.Item, measured: list[dict[str, Any]]) -> None:
        self._item = item
        self._lines = measured  # of the phase that the test is in
        self._unnamed = 0
        self.called = False

    def __call__(self, model: Any, inputs: Any = None, **arguments: Any) -> Result:
        """Measure a model, and hold it to what is asked.

        Args:
            model: As `accelbench.benchmark` takes it.
            inputs: The same.
            arguments: `max_latency_ms`, `max_memory_mb` and `min_throughput`, each judged by its
                interval; `baseline`, `threshold` and `allow`, as `accelbench check` has them; and
                what `accelbench.benchmark` takes. Five launches, at the batch of the inputs, where
                nothing else is said.

        Returns:
            What was measured; its results are in the database when this returns.
        """
        __tracebackhide__ = True
        self.called = True
        try:
            result, verdicts = self._measured(model, inputs, arguments)
        except AccelbenchError as error:
            refusal = str(error)
        else:
            refusal = ""
        if refusal:
            pytest.fail(refusal, pytrace=False)
        answer = worst(verdicts)
        if answer is GateAnswer.FAILED:
            bad = [v.why for v in verdicts if v.answer is GateAnswer.FAILED]
            pytest.fail("\n".join(bad), pytrace=False)
        if answer is GateAnswer.CANNOT_TELL:
            text = "; ".join(v.why for v in verdicts if v.answer is GateAnswer.CANNOT_TELL)
            policy = self._setting("cant_tell") or "warn"
            if policy == "fail":
                pytest.fail(f"Can't tell: {text}", pytrace=False)
            if policy == "skip":
                pytest.skip(f"Can't tell: {text}")
            warnings.warn(CannotTellWarning(f"Can't tell: {text}"), stacklevel=2)
        return result

    def _measured(
        self, model: Any, inputs: Any, arguments: Mapping[str, Any]
    ) -> tuple[Result, list[GateVerdict]]:
        """The result, and every verdict on it."""
        asked = {**self._of_marks(), **_known(arguments)}
        limits, question, how = limits_of(asked), _question(asked), self._how(model, asked)
        database = how.get("db")
        creates = question is not None and self._creates(question, model, how)
        if question is not None and creates:
            how["label"] = question.word
        result = benchmark(model, inputs, **how)
        if not result.rows:
            raise UsageError(
                "Nothing was measured.", "Name a platform that is here: hardware='cpu'."
            )
        cases = [(rows, figures_or_why(rows)) for rows in cases_of(result.rows)]
        verdicts: list[GateVerdict] = []
        told: list[tuple[Sequence[Row], CaseFigures | None, list[GateVerdict]]] = []
        for rows, figures in cases:
            if isinstance(figures, str):
                own = [GateVerdict(GateAnswer.FAILED, "not measured", figures)]
                told.append((rows, None, own))
            else:
                own = of_limits(figures, limits)
                told.append((rows, figures, own))
            verdicts += own
        if question is not None and database and all(figures for _, figures, _ in told):
            models = sorted({str(row["model"]) for row in result.rows})
            if creates:
                against = GateVerdict(GateAnswer.PASSED, f"new baseline {question.word}")
            else:
                against = of_baseline(question, database, models, [result.run_id])
            verdicts.append(against)
            told = [(rows, figures, [*own, against]) for rows, figures, own in told]
        self._lines += [_line(self._item.nodeid, database, *case) for case in told]
        return result, verdicts

    def _creates(self, question: BaselineQuestion, model: Any, how: Mapping[str, Any]) -> bool:
        """Return whether what is measured becomes the baseline, as the option asks for."""
        if not self._item.config.getoption(NEW_BASELINE) or not how.get("db"):
            return False
        stored_as = how["name"] or catalogued(str(model))
        return can_create(str(question.word), how["db"], stored_as)

    def _how(self, model: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What `accelbench.benchmark` is called with: a test times what it hands over, in as many
        launches as show how launches differ, and keeps its results.
        """
        how = {name: value for name, value in asked.items() if name in _OF_BENCHMARK}
        how["name"] = self._name_of(model, how.get("name"))
        how.setdefault("batch_sizes", GIVEN)
        if how.get("isolate", True):
            how.setdefault("launches", FEWEST_LAUNCHES)
            how.setdefault("label", self._item.config.getoption("--accelbench-label"))
            how["db"] = _place(how.get("db")) or self._database()
        elif _BASELINE in asked:
            raise UsageError(
                "isolate=False keeps no results, of which none is compared with a baseline.",
                "Leave out one or the other.",
            )
        return how

    def _of_marks(self) -> dict[str, Any]:
        """The arguments of marks; of several the nearest to the test says most."""
        asked: dict[str, Any] = {}
        for mark in reversed(list(self._item.iter_markers(_MARK))):
            if mark.args:
                raise UsageError("The mark accelbench takes arguments by name.", "launches=10")
            asked |= _known(mark.kwargs)
        return asked

    def _name_of(self, model: Any, name: str | None) -> str | None:
        """What a model is called in results: by its test, but for those of the catalogue."""
        if name is not None or (isinstance(model, str) and in_catalogue(model)):
            return name
        self._unnamed += 1
        if self._unnamed > 1:
            raise UsageError(
                "A test that measures more than once says what it measures.",
                "Give each a name: accelbench(model, name='decoder').",
            )
        return _SEPARATORS.sub("_", self._item.nodeid)

    def _setting(self, name: str) -> str:
        """An option of the command line, else of the settings' file."""
        config = self._item.config
        option = config.getoption(f"--accelbench-{name.replace('_', '-')}")
        return str(option or config.getini(f"accelbench_{name}") or "")

    def _database(self) -> str:
        """Where results go: as typed from where pytest was started, as set from its root folder."""
        config = self._item.config
        here = config.invocation_params.dir
        setting = str(config.getini("accelbench_db") or "")
        return (
            _place(config.getoption("--accelbench-db"), here)
            or _place(setting, config.rootpath)
            or _place(os.environ.get(ENVIRONMENT), here)
            or str(here / DEFAULT_NAME)
        )


def _place(word: Any, folder: Path | None = None) -> str:
    """A database or a lake, wherever a test goes meanwhile; a URL stays as it is."""
    text = os.fspath(word) if word else ""
    if not text or "://" in text:
        return text
    return str((folder or Path.cwd()) / Path(text).expanduser())


def _known(arguments: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name not in ARGUMENTS:
            raise UsageError(
                f"accelbench has no argument {in_quotes(name)}.", suggest(name, ARGUMENTS)
            )
    return dict(arguments)


def _question(asked: Mapping[str, Any]) -> BaselineQuestion | None:
    """What is asked about a baseline, if anything is."""
    word = asked.get(_BASELINE)
    if word is None:
        return None
    allow = asked.get(_ALLOW, BaselineQuestion.allow)
    names = (allow,) if isinstance(allow, str) else tuple(allow)
    return BaselineQuestion(os.fspath(word), asked.get(_THRESHOLD), names)


def _line(
    test: str,
    database: str | None,
    rows: Sequence[Row],
    figures: CaseFigures | None,
    verdicts: Sequence[GateVerdict],
) -> dict[str, Any]:
    """A case in plain values, for the end of the run."""
    row = rows[0]
    line: dict[str, Any] = {
        "test": test,
        "model": str(row.get("model")),
        "what": format_title(row),
        "run_id": str(row.get("run_id")),
        "database": database,
        "started_at": str(row.get("started_at")),
        "launches": len(rows),
        "answer": worst(verdicts).value,
        "verdicts": [verdict.words for verdict in verdicts],
    }
    if figures is None:
        return line
    for name in ("latency", "rate", "memory"):
        bounds = getattr(figures, name)
        line[name] = None if bounds is None else [bounds.low, bounds.middle, bounds.high]
    spread = figures.latency_spread
    line["latency_spread"] = spread and {**ends_document(spread), "count": spread.count}
    return {**line, "statistic": str(figures.statistic), "unit": f"{figures.unit}/s"}
