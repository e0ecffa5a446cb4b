"""Answers of `accelbench recommend`, with what is measured to find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import EXIT_INCONCLUSIVE, EXIT_NO, EXIT_OK, UsageError
from accelbench.core.precision import UNVERIFIED
from accelbench.evidence.launches import COMPARABLE_SQL
from accelbench.judge.filters import catalogued, in_catalogue
from accelbench.present.document import Document
from accelbench.recommend.query import family_named
from accelbench.recommend.selector import HardwareSelector

if TYPE_CHECKING:
    from accelbench.exchange.prices import Prices
    from accelbench.recommend.constraints.best_under import Limits
    from accelbench.store.database import Database


#: The word for the hardware of this machine on a command line.
HERE = "here"


#: Options that a search under limits refuses.
_NOT_UNDER_LIMITS = {"deployment": "--deployment", "distributed_config": "--gpu-count"}


@dataclass(frozen=True)
class Recommendations:
    """Answers as data and as a document."""

    data: dict[str, Any]
    exit_code: int
    document: Callable[[bool], Document]  # explained, or in short


class Recommender:
    """Asks the selector; with `verify` a named database may be missing, because results follow."""

    def __init__(
        self,
        db: Path | None,
        config: Path | None,
        matrix_file: Path | None,
        question: Mapping[str, Any],
        batches: Sequence[int],
        prices: Prices | None = None,
        *,
        machine: str | None = None,
        verify: bool = False,
        hear: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._hear = hear
        self._verify, self._machine = verify, machine
        self._db, self._batches, self._prices = db, tuple(batches), prices
        self._about = (config, matrix_file)
        self._question = dict(question)
        _refuse_other_mode(question)
        if "model_family" in question:
            family_named(question["model_family"])  # refuse it before the store is opened

    @cached_property
    def selector(self) -> HardwareSelector:
        """The selector over the named store; a missing one is refused unless `verify` makes it."""
        from accelbench.cli.services.opening import filled
        from accelbench.store.opening import open_store

        named = self._db if self._db is None or not self._db.expanduser().is_dir() else None
        if named is not None and (open_store(named).exists or not self._verify):
            filled(named)
        return HardwareSelector(
            self._db, *self._about, self._prices, machine=self._machine, hear=self._hear
        )

    def _look_again(self) -> None:
        vars(self).pop("selector", None)

    @cached_property
    def question(self) -> dict[str, Any]:
        options = dict(self._question)
        hardware = options.get("available_hardware", ())
        if [name.lower() for name in hardware] == ["all"]:
            options["available_hardware"] = self.selector.hardware_types
        elif HERE in [name.lower() for name in hardware]:
            others = [name for name in hardware if name.lower() != HERE]
            options["available_hardware"] = [*self._here(), *others]
        return options

    def selection_map(self) -> dict[str, Any]:
        return self.selector.create_hardware_selection_map(self.question.get("available_hardware"))

    def answers(self, named: Sequence[str], verify: bool) -> Recommendations:
        models, runs = self._meant(named), list[str]()
        replies = [self._answer(name, batch) for name in models for batch in self._batches or (1,)]
        if verify:
            from accelbench.cli.services.searching import measured_again

            runs = measured_again(self.database, replies)
            if runs:
                self._look_again()
                replies = [
                    self._answer(n, batch) for n in models for batch in self._batches or (1,)
                ]
        now = self._measured_now(runs, replies)
        firsts = [reply["primary_recommendation"] for reply in replies]

        def document(explain: bool) -> Document:
            from accelbench.present.terminal.recommend import (
                answer_section,
                answers_section,
                measured_notes,
            )

            if len(replies) == 1 or explain:
                sections = [answer_section(reply, explain) for reply in replies]
            else:
                sections = [answers_section(replies)]
            return Document("", [*sections, measured_notes(now)])

        data = {"recommendations": replies, **({"measured_now": now} if verify else {})}
        return Recommendations(data, EXIT_NO if None in firsts else EXIT_OK, document)

    def ranking(self, task: str) -> Recommendations:
        self._refuse_empty()
        more = {k: v for k, v in self.question.items() if k not in ("mode", "task_type")}
        batch = self._only_batch("a ranking")
        ranked = self.selector.rank_models(task, batch_size=batch, **more)
        unknown = self.selector.of_no_known_family(task)
        about = {"task": task, "batch_size": batch, "hardware": more.get("available_hardware")}

        def document(explain: bool) -> Document:
            from accelbench.present.terminal.recommend import ranking_document

            return ranking_document(ranked, task, batch, explain, unknown)

        data = {**about, "ranking": ranked, "of_no_known_family": unknown}
        return Recommendations(data, EXIT_OK if ranked else EXIT_INCONCLUSIVE, document)

    def under(
        self, named: Sequence[str], limits: Limits, verify: bool, budget: float | None = None
    ) -> Recommendations:
        for name, option in _NOT_UNDER_LIMITS.items():
            if name in self._question:
                raise UsageError(f"{option} and a limit are not asked together.", "Leave one out.")
        models = self._meant(named)
        answers = [self._under(name, limits) for name in models]
        now: list[dict[str, Any]] = []
        if verify:
            searched, runs = self._searched(answers, limits, budget)
            self._look_again()
            answers = [self._under(name, limits) for name in models]
            answers = [
                {**answer, "searched": ways} for answer, ways in zip(answers, searched, strict=True)
            ]
            now = self._measured_now(runs, answers)

        def document(explain: bool) -> Document:
            from accelbench.present.terminal.recommend import limits_section, measured_notes

            sections = [limits_section(answer, explain) for answer in answers]
            # A search reports its batches itself.
            searched = any(model_answer.get("searched") for model_answer in answers)
            return Document(
                "", [*sections, measured_notes([] if searched and not explain else now)]
            )

        data = {"recommendations": answers, **({"measured_now": now} if verify else {})}
        return Recommendations(data, _said_of(answers), document)

    def _searched(
        self, answers: Sequence[Mapping[str, Any]], limits: Limits, budget: float | None
    ) -> tuple[list[list[dict[str, Any]]], list[str]]:
        """Measure for each answer; return the searched ways, if any, and the runs."""
        from accelbench.cli.services.searching import USUAL_SECONDS, BatchSearch, measured_options
        from accelbench.judge.suggestions import NothingMeasuredError

        shapes = self.question.get("shapes") or {}
        for why in (why for answer in answers for why in answer["unfillable"]):
            raise NothingMeasuredError(
                f"No measurement can show that it is kept: {why}.", "Leave that limit out."
            )
        if not any(answer["to_search"] for answer in answers):
            return [[] for _ in answers], measured_options(self.database, answers, shapes)
        search = BatchSearch(self.database, limits, self._batches, budget or USUAL_SECONDS)
        if "available_hardware" in self.question:
            return [search.through(answer["to_search"], shapes) for answer in answers], search.runs
        here = {word.partition(":")[0] for word in self._here()}
        ways = [
            search.through(
                [way for way in answer["to_search"] if way["hardware"].partition(":")[0] in here],
                shapes,
            )
            for answer in answers
        ]
        return ways, search.runs

    def _measured_now(
        self, runs: Sequence[str], answers: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        if not runs:
            return []
        from accelbench.cli.services.measuring import rows_of, told

        return told(rows_of(self.database, runs), answers)

    @property
    def database(self) -> Database:
        """The database in which results can be stored."""

        from accelbench.store.opening import open_store

        named = open_store(self._db)
        folder = self._db.expanduser() if self._db is not None else None
        if folder is None or not folder.is_dir() or named.exists or not any(folder.iterdir()):
            return named
        known = self.selector.database
        if known is not None and known.path.parent == folder.resolve():
            return known
        raise UsageError(
            f"What is measured cannot be stored in {self._db}, a folder of other files.",
            "Name a database with --db.",
        )

    def _answer(self, name: str, batch: int) -> dict[str, Any]:
        answer = self.selector.select_hardware(model_name=name, batch_size=batch, **self.question)
        return {**answer, "measurable_here": self._measurable(answer)}

    def _measurable(self, answer: Mapping[str, Any]) -> list[str]:
        is_here, scores = self.selector.is_here, answer["all_scores"]
        unclear = answer["no_clear_winner_between"]
        # Another device of the platform would not decide which of these is faster.
        ties = [name for name in unclear if is_here(name, scores[name].get("device"))]
        gaps = [gap["hardware"] for gap in answer["missing"] if gap["hardware"] not in unclear]
        return [*ties, *filter(is_here, gaps)]

    def _under(self, name: str, limits: Limits) -> dict[str, Any]:
        question = dict(self.question)
        task = question.pop("task_type", None)
        if task is not None:
            from accelbench.recommend.query import task_named

            question["mode"] = task_named(task).mode
        answer = self.selector.best_under(
            limits, model_name=name, batch_sizes=self._batches, **question
        )
        is_here = self.selector.is_here
        cases = [
            {**case, "measurable_here": is_here(case["hardware"], case["device"])}
            for case in answer["to_verify"]
        ]
        return {**answer, "to_verify": cases}

    def _meant(self, named: Sequence[str]) -> list[str]:
        if not named:
            return self._refuse_empty()
        database = self.selector.database
        stored = set() if database is None else set(_models_in(database))
        # A stored name precedes the catalogue's aliases.
        tables = self.selector.model_of_tables
        names = list(dict.fromkeys(n if n in stored or tables(n) else catalogued(n) for n in named))
        if "model_family" in self._question:
            return names
        for name in names:
            if not in_catalogue(name) and self.selector.model_of_tables(name) is None:
                self._refuse_unknown(name)
        return names

    def _refuse_unknown(self, name: str) -> None:
        from accelbench.judge.suggestions import refuse_unknown

        database = self.selector.database
        try:
            if database is None:
                from accelbench.models.find import find

                find(name)
            else:
                refuse_unknown(database, {"model": (name,)})
        except UsageError as error:
            error.advice = f"{error.advice} Of a model of your own say --model-family.".strip()
            raise

    def _refuse_empty(self) -> list[str]:
        from accelbench.cli.services.opening import filled_if_any
        from accelbench.judge.suggestions import none_found, nothing

        database = self.selector.database
        family = self._question.get("model_family")
        filters = {} if family is None else {"family": (family_named(family),)}
        if database is None:
            if self._db is None:
                filled_if_any(None, filters)  # refuses
            raise nothing(f"{self._db} has no results", filters)
        names = _models_in(database, *filters.get("family", ()))
        if not names:
            raise none_found(database, filters)
        return names

    def _only_batch(self, what: str) -> int:
        if len(self._batches) > 1:
            raise UsageError(f"{what.capitalize()} is of one batch size.", "Name one.")
        return self._batches[0] if self._batches else 1

    def _here(self) -> list[str]:
        from accelbench.hardware.detect import detect_all
        from accelbench.recommend.selector import LocalSelector

        browsers = self._question.get("deployment") == "browser"
        return LocalSelector(self.selector, detect_all(), self.selector.database).words(
            browsers=browsers
        )


def _said_of(answers: Sequence[Mapping[str, Any]]) -> int:
    without = [answer for answer in answers if not answer["best"]]
    if not without:
        return EXIT_OK
    return EXIT_INCONCLUSIVE if all(map(_nobody_knows, without)) else EXIT_NO


def _nobody_knows(answer: Mapping[str, Any]) -> bool:
    options = answer["does_not_fit"]
    return not options or any(all(_is_gap(why) for why in each["why"]) for each in options)


def _is_gap(why: str) -> bool:
    return why.endswith(("was not measured", "no price is known", UNVERIFIED))


def _models_in(database: Database, family: str | None = None) -> list[str]:
    where, values = ("", []) if family is None else (" AND family = ?", [family])
    _, rows = database.query(
        "SELECT DISTINCT model FROM benchmark_results"  # noqa: S608 — our words
        f" WHERE {COMPARABLE_SQL} AND model IS NOT NULL AND status = 'ok'{where} ORDER BY 1",
        values,
    )
    return [str(name) for (name,) in rows]


def _refuse_other_mode(question: Mapping[str, Any]) -> None:
    from accelbench.recommend.query import task_named

    task, mode = question.get("task_type"), question.get("mode")
    if task is None or mode is None or task_named(task).mode == mode.lower():
        return
    raise UsageError(
        f"--task {task} is {task_named(task).mode}, and --mode {mode} is not.", "Leave one out."
    )
