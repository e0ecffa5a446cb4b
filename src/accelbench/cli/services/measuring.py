"""Runs that `check` and `recommend` start to support an answer.

`check --rerun` measures suspects in as many launches as the noise requires, in turns with each
other, so that a slow moment of the machine affects all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from accelbench.cli.services.opening import typed_command
from accelbench.core.errors import UsageError
from accelbench.core.result_statistics import FEWEST_LAUNCHES, Statistic, step_of
from accelbench.core.unusable_reasons import reason_unusable, why_unusable
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import RunMeasurement, merge_groups
from accelbench.judge.baselines import rows_of_runs
from accelbench.judge.filters import catalogued, marks
from accelbench.judge.older_runs import RERUN_OF
from accelbench.judge.regressions import BAD, Check, CheckedQuestion, Outcome
from accelbench.measure.launch_verdicts import geometric_mean
from accelbench.present.terminal.watch import watch_for
from accelbench.recommend.answers import IN_THE_ANSWER
from accelbench.recommend.config import plain_name
from accelbench.recommend.evidence.cells import rounded
from accelbench.run.conduct import lifecycle
from accelbench.run.execute import Planner, StoredResults, execute
from accelbench.run.plan import run_forecast

if TYPE_CHECKING:
    from accelbench.core.protocols import Inventory
    from accelbench.judge.baselines import Baseline
    from accelbench.run.conduct.lifecycle import PlannedRun
    from accelbench.run.process.worker_client import Observer
    from accelbench.store.database import Database


def measured(database: Database, planner: Planner) -> list[str]:
    """Run what is planned, shown on standard error; the runs' ids, results being stored."""
    shown = cache(lambda: watch_for(sys.stderr, quiet=False))  # one for all of them

    def observe(spec: PlannedRun, inventory: Inventory, here: Mapping[str, Any]) -> Observer:
        del inventory, here
        plan, settings = spec.plan, spec.settings
        watch, total = shown(), plan.measurements(settings.launches)
        watch.started(settings.run_id, total, run_forecast.seconds(plan, settings))
        return watch

    made = execute(planner, StoredResults(database), observe)
    return [executed_run.spec.settings.run_id for executed_run in made]


_SUSPECT = (*BAD, Outcome.CANNOT_TELL)


def rerun_of(
    database: Database, check: Check, baseline: Baseline, threshold: float | None
) -> tuple[Check, Baseline]:
    """Measure suspects again, and judge those by what that gives; the rest stays as it was."""
    suspects = [
        question
        for question in check.questions
        if question.outcome in _SUSPECT and _may_help(question)
    ]
    if not suspects:
        return check, baseline
    runs = _measured(database, suspects, _launches(suspects))
    again = replace(baseline, now=rows_of_runs(database, runs)).check(threshold)
    second = {
        str(question.row["case_id"]): question for question in again.questions if question.figures
    }
    questions = tuple(
        second.get(str(question.row["case_id"]), question) if question in suspects else question
        for question in check.questions
    )
    return replace(check, questions=questions), replace(baseline, runs=(*baseline.runs, *runs))


def _may_help(question: CheckedQuestion) -> bool:
    if question.before is None:
        return False
    return question.outcome is not Outcome.CANNOT_TELL or any(
        figure.required is not None for figure in question.figures
    )


def _launches(questions: Sequence[CheckedQuestion]) -> int:
    wanted = [figure.required or 0 for question in questions for figure in question.figures]
    return max([FEWEST_LAUNCHES, *wanted])


def _measured(database: Database, questions: Sequence[CheckedQuestion], launches: int) -> list[str]:
    by_run: dict[str, set[str]] = {}
    for question in questions:
        by_run.setdefault(str(question.row["run_id"]), set()).add(str(question.row["case_id"]))
    return measured(
        database,
        lambda hardware, _: (
            lifecycle.again(
                _begun(database, run),
                cases,
                launches,
                {"command": typed_command(), "label": f"{RERUN_OF}{run}"},
                hardware,
            )
            for run, cases in by_run.items()
        ),
    )


def _begun(database: Database, run: str) -> dict[str, Any]:
    _, rows = database.query(
        "SELECT body::VARCHAR FROM fact WHERE kind = 'run_started' AND run_id = ? ORDER BY line",
        [run],
    )
    body: dict[str, Any] = json.loads(str(rows[0][0])) if rows else {}
    if "plan" not in body:
        raise UsageError(f"Run {run} was not measured here: it cannot be measured again.")
    _, rows = database.query(
        "SELECT body->'plan' FROM fact WHERE kind = 'run_extended' AND run_id = ? ORDER BY line",
        [run],
    )
    body["plan"] = [*body["plan"], *(case for (more,) in rows for case in json.loads(str(more)))]
    return body


Row = Mapping[str, Any]
Words = Mapping[str, Any]

#: What tells the figures of a run apart.
_WAY = ("model", "hardware", "device_name", "runtime", "precision", "batch_size")


def rows_of(database: Database, runs: Sequence[str]) -> list[Row]:
    """The results of runs."""
    return launches_of(database.results(f"run_id IN ({marks(runs)})", runs)) if runs else []


def step(row: Row) -> tuple[float, Statistic] | None:
    """The time of a step as an answer has it: the mean, or else the median."""
    for statistic in (Statistic.MEAN, Statistic.MEDIAN):
        if (known := step_of(row, statistic)) is not None:
            return known, statistic
    return None


def why_no_time(row: Row) -> str:
    """Why nothing is judged by the time of a result; "" where it may be."""
    if not row["times_usable"]:
        return f"its times are not usable, {reason_unusable(row)}"
    return "" if step(row) else "the time of its step is not known"


def why_failed(row: Row) -> str:
    """What became of what has no figure."""
    message = row.get("message") or row.get("reason") or row.get("status")
    return str(message).rstrip(".") if row.get("status") != "ok" else "its outputs are wrong"


def told(rows: Iterable[Row], answers: Sequence[Words]) -> list[dict[str, Any]]:
    """Each thing that was measured, and why it is not in the answer, where it is not."""
    ways: dict[tuple[Any, ...], list[Row]] = {}
    for row in launches_of(rows):
        ways.setdefault(tuple(row.get(name) for name in _WAY), []).append(row)
    figures = [figure for answer in answers for figure in _figures(answer)]
    good = merge_groups([[row for row in of if row["answered"]] for of in ways.values()])
    return [
        _told(way, launches, one, figures)
        for (way, launches), one in zip(ways.items(), good, strict=True)
    ]


def _told(
    way: tuple[Any, ...], launches: Sequence[Row], good: RunMeasurement, figures: Sequence[Words]
) -> dict[str, Any]:
    steps = [known for row in good.rows if (known := step(row))]
    alike = [ms for ms, kind in steps if kind is steps[0][1]]
    runs = {row["run_id"] for row in launches}
    names = ("model", "hardware", "device", "runtime", "precision", "batch_size")
    case = dict(zip(names, way, strict=True))
    question = {**case, "model": _model(case["model"])}
    return {
        **case,
        "run_id": max(runs),
        "launches": len(launches),
        "latency": geometric_mean(alike) if alike else None,
        "figure": str(steps[0][1]) if alike else None,
        "outcome": _outcome(question, runs, launches, good, figures),
    }


def _outcome(
    case: Words,
    runs: set[str],
    launches: Sequence[Row],
    good: RunMeasurement,
    figures: Sequence[Words],
) -> str:
    if not good.launches:
        return why_failed(launches[0])
    if not good.is_usable:
        return f"its times are not usable, {why_unusable(good.launches)}"
    names = ("model", "device", "runtime", "precision", "batch_size")
    if any(
        words["run_id"] in runs and all(words[n] == case[n] for n in names) for words in figures
    ):
        return IN_THE_ANSWER
    same = [
        words
        for words in figures
        if words["platform"] == case["hardware"]
        and all(words[name] == case[name] for name in ("model", "batch_size"))
    ]
    for figure in same:
        if figure["why"] and all(figure[name] == case[name] for name in ("runtime", "precision")):
            return str(figure["why"])
    if same and same[0]["latency"] is not None:
        figure = same[0]
        where = " ".join(str(figure[n]) for n in ("device", "runtime", "precision") if figure[n])
        time = f"{rounded(figure['latency'])} ms"
        return f"{case['hardware']} stands there by {where}, {time}, faster or better known"
    return "nothing of the question that is asked"


def _model(name: str) -> str:
    return plain_name(catalogued(name))


def _figures(answer: Words) -> Iterable[dict[str, Any]]:
    """What an answer has figures of, and what it leaves out."""
    if "all_scores" in answer:
        question = answer["question"]
        about = {"model": _model(question["model"]), "batch_size": question["batch_size"]}
        for name, score in answer["all_scores"].items():
            if score["basis"] == "measured":
                yield _figure(name, score, score["predictions"]["latency"], about)
        for entry in answer["left_out"]:
            yield _figure(entry["hardware"], entry, None, {**about, "why": entry["reason"]})
        return
    for option in (*answer["fits"], *answer["does_not_fit"]):
        if option["basis"] == "measured":
            about = {"model": _model(answer["model"]), "batch_size": option["batch_size"]}
            yield _figure(option["hardware"], option, option["latency_ms"], about)


def _figure(name: str, entry: Words, latency: float | None, about: Words) -> dict[str, Any]:
    names = ("device", "runtime", "precision", "run_id")
    return {
        "platform": name.partition(":")[0],
        "latency": latency,
        "why": "",
        **{each: entry.get(each) for each in names},
        **about,
    }
