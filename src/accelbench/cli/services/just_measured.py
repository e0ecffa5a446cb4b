"""What `recommend --verify` has just measured, and whether the answer rests on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.core.figures import Statistic, step_of
from accelbench.core.launch_failures import of_whole_runs, why_unusable
from accelbench.core.worth import (
    answered,
    counting_launches,
    reason_unusable,
    usable,
    usable_launches,
)
from accelbench.measure.launches import typical
from accelbench.query.filters import catalogued
from accelbench.select.answer.remarks import IN_THE_ANSWER
from accelbench.select.evidence.units import rounded
from accelbench.select.query.model_names import plain_name

if TYPE_CHECKING:
    from accelbench.store.database import Database

Row = Mapping[str, Any]
Words = Mapping[str, Any]

#: What tells the figures of a run apart.
_WAY = ("model", "hardware", "device_name", "runtime", "precision", "batch_size")


def rows_of(database: Database, runs: Sequence[str]) -> list[Row]:
    """The results of runs."""
    marks = ", ".join("?" for _ in runs)
    return list(database.results(f"run_id IN ({marks})", runs)) if runs else []


def step(row: Row) -> tuple[float, Statistic] | None:
    """The time of a step as an answer has it: the mean, or else the median."""
    for statistic in (Statistic.MEAN, Statistic.MEDIAN):
        if (known := step_of(row, statistic)) is not None:
            return known, statistic
    return None


def why_no_time(row: Row) -> str:
    """Why nothing is judged by the time of a result; "" where it may be."""
    if not usable(row):
        return f"its times are not usable, {reason_unusable(row)}"
    return "" if step(row) else "the time of its step is not known"


def why_failed(row: Row) -> str:
    """What became of what has no figure."""
    message = row.get("message") or row.get("reason") or row.get("status")
    return str(message).rstrip(".") if row.get("status") != "ok" else "its outputs are wrong"


def told(rows: Iterable[Row], answers: Sequence[Words]) -> list[dict[str, Any]]:
    """Each thing that was measured, and why it is not in the answer, where it is not.

    Args:
        rows: results of the runs that were made for it.
        answers: the answers that came after them.
    """
    ways: dict[tuple[Any, ...], list[Row]] = {}
    for row in of_whole_runs(rows):
        ways.setdefault(tuple(row.get(name) for name in _WAY), []).append(row)
    figures = [figure for answer in answers for figure in _figures(answer)]
    return [_told(way, launches, figures) for way, launches in ways.items()]


def _told(
    way: tuple[Any, ...], launches: Sequence[Row], figures: Sequence[Words]
) -> dict[str, Any]:
    good = [row for row in launches if answered(row)]
    steps = [known for row in counting_launches(good) if (known := step(row))]
    alike = [ms for ms, kind in steps if kind is steps[0][1]]
    runs = {row["run_id"] for row in launches}
    names = ("model", "hardware", "device", "runtime", "precision", "batch_size")
    case = dict(zip(names, way, strict=True))
    question = {**case, "model": _model(case["model"])}
    return {
        **case,
        "run_id": max(runs),
        "launches": len(launches),
        "latency": typical(alike) if alike else None,
        "figure": str(steps[0][1]) if alike else None,
        "outcome": _outcome(question, runs, launches, good, figures),
    }


def _outcome(
    case: Words,
    runs: set[str],
    launches: Sequence[Row],
    good: Sequence[Row],
    figures: Sequence[Words],
) -> str:
    if not good:
        return why_failed(launches[0])
    if not usable_launches(good):
        return f"its times are not usable, {why_unusable(good)}"
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
    """The model by the catalogue's name: a question may have it as a source spells it."""
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
