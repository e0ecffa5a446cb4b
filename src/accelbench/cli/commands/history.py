"""`accelbench history`: what happened to a question's figures over time, and since which commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    DB,
    FILTERS,
    MACHINE,
    SpacedLists,
    with_filters,
)
from accelbench.cli.services.opening import collected_later, filled
from accelbench.core.errors import UsageError
from accelbench.core.formatting import split_words
from accelbench.core.safe_text import in_quotes
from accelbench.exchange.titles import format_title
from accelbench.judge.filters import Filters
from accelbench.judge.history import Series, answer_counts, same_jobs
from accelbench.judge.run_names import measured_series, only_runs
from accelbench.judge.stored_results import on_one_machine
from accelbench.judge.suggestions import NothingMeasuredError, command_again
from accelbench.judge.verdicts import METRICS, Judgement
from accelbench.measure.launch_verdicts import LEAST_EFFECT
from accelbench.present.series import Unseen, about_series, series_in
from accelbench.present.terminal.words import other_machines

if TYPE_CHECKING:
    from accelbench.judge.machines import Machine
    from accelbench.store.database import Database

Row = Mapping[str, Any]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

#: Series of which nobody can tell that are shown unasked.
_FEW = 10
_METRICS = {metric.name: metric for metric in METRICS}


@app.command(cls=SpacedLists)
@with_filters
def history(
    filters: Filters = FILTERS,
    metric: str = typer.Option("latency", "--metric", help=f"{', '.join(_METRICS)}."),
    threshold: float = typer.Option(
        LEAST_EFFECT, "--threshold", help="Changes below this share are not told: 0.03 for 3 %."
    ),
    run: list[str] = typer.Option(
        [], "--run", help="Show only what these runs measured, by id or label, or `last`."
    ),
    machine: str | None = MACHINE,
    every: bool = typer.Option(False, "--all", help="Show series in which nothing happened, too."),
    as_json: bool = AS_JSON,
    db: Path | None = DB,
) -> None:
    """Show steps, spikes and drift in what was measured over time, and between which commits."""
    if metric not in _METRICS:
        raise UsageError(
            f"No metric is called {in_quotes(metric)}.", f"Known: {', '.join(_METRICS)}."
        )
    if not 0 < threshold < 10:
        raise UsageError(f"{threshold:g} is no threshold.", "0.03 stands for 3 %.")
    database = filled(db)
    with database.keep_open():
        runs = tuple(map(str, only_runs(database, split_words(run)).get("run_id", ())))
        if runs:
            filters |= measured_series(database, runs)
        where, values, here, others = on_one_machine(database, filters, machine, runs)
        with collected_later():
            all_series, unseen = series_in(database, _METRICS[metric], where, values, threshold)
            lacking = _named(database, unseen)
        undated = 0 if all_series else _without_moment(database, where, values)
        again = "" if all_series else command_again(database, filters)
    names = [str(other) for other in others]
    if not all_series and not lacking:
        raise _no_history(here, undated, names, again)
    if not all_series:
        raise _no_figure(here, metric, lacking, names)
    counts = answer_counts(all_series) | ({f"no {metric}": len(lacking)} if lacking else {})
    from accelbench.present.terminal.documents import present
    from accelbench.present.terminal.history import history_document

    with collected_later():
        shown = all_series if every else worth_showing(all_series)
        notes = [*without_figure(metric, lacking), *other_machines(names)]

        def data() -> dict[str, Any]:
            about = {
                "metric": metric,
                "machine": str(here),
                "other_machines": names,
                "threshold": threshold,
            }
            return about | _data(all_series, lacking, counts, with_points=every)

        left = len(all_series) - len(shown)
        present(history_document(shown, counts, left, str(here), notes, data), None, as_json)


def _data(
    all_series: Sequence[Series],
    lacking: Sequence[tuple[Row, Unseen]],
    counts: Mapping[str, int],
    *,
    with_points: bool,
) -> dict[str, Any]:
    from accelbench.present.terminal.history import document

    same = same_jobs(all_series)
    return {
        "series": [
            document(
                series,
                points=with_points or series.is_eventful,
                same=same.get(str(series.row.get("series_key")), ()),
            )
            for series in all_series
        ],
        "answers": counts,
        "without_figure": [
            {
                "what": format_title(row),
                "series_key": gap.series_key,
                "device_name": row.get("device_name"),
                "runs": gap.runs,
                "newest": {
                    "started_at": gap.newest.moment,
                    "run_id": gap.newest.run_id,
                    "why": gap.newest.why,
                },
                "metrics": list(gap.metrics),
            }
            for row, gap in lacking
        ],
        "without_change": sum(series.answer is Judgement.STEADY for series in all_series),
    }


def worth_showing(all_series: Sequence[Series]) -> list[Series]:
    """Those in which something happened; of what has no answer, a few."""
    open_ = [
        series_
        for series_ in all_series
        if not series_.is_eventful and series_.answer is not Judgement.STEADY
    ]
    return [series_ for series_ in all_series if series_.is_eventful] + (
        open_ if len(open_) <= _FEW else []
    )


def _without_moment(database: Database, where: str, values: Sequence[Any]) -> int:
    _, ((count,),) = database.query(
        f"SELECT count(*) FROM benchmark_results WHERE {where} AND started_at IS NULL",  # noqa: S608
        values,
    )
    return count if isinstance(count, int) else 0


def _no_history(
    here: Machine, undated: int, others: Sequence[str], again: str
) -> NothingMeasuredError:
    command = f", by `{again}`" if again else ""
    measure = f"A point is a run: measure the same again{command}, for example each night."
    if undated:
        results = "result has" if undated == 1 else "results have"
        measure = (
            f"{undated:,} {results} no moment, and so no place in a history: import each release"
            " into a new database, by `accelbench db import … --measured-at 2026-08-08`."
        )
    return NothingMeasuredError(
        f"Nothing on {here} was measured twice and more.",
        " ".join([measure, *other_machines(others)]),
    )


def _no_figure(
    here: Machine, metric: str, lacking: Sequence[tuple[Row, Unseen]], others: Sequence[str]
) -> NothingMeasuredError:
    return NothingMeasuredError(
        f"Nothing on {here} has a history by {metric}.",
        " ".join([*without_figure(metric, lacking), *other_machines(others)]),
    )


def without_figure(metric: str, lacking: Sequence[tuple[Row, Unseen]]) -> list[str]:
    """Of series that ran twice and more and have no such figure: why, and what they have."""
    lines = [
        f"{format_title(row)} has no {metric} in {_runs(gap)}{_instead(gap)}"
        for row, gap in lacking
    ]
    more = [f"{len(lines) - _FEW} more have no {metric}, see --json."] if len(lines) > _FEW else []
    return [f"{sentence}." for sentence in lines[:_FEW]] + more


def _runs(gap: Unseen) -> str:
    return f"{gap.runs} runs, the newest of {gap.newest.moment[:16]}"


def _instead(gap: Unseen) -> str:
    if gap.metrics:
        return f"; {' and '.join(f'--metric {name}' for name in gap.metrics)} shows it"
    return f": {gap.newest.why}"


def _named(database: Database, unseen: Sequence[Unseen]) -> list[tuple[Row, Unseen]]:
    about = about_series(database, {gap.series_key: gap.newest.run_id for gap in unseen})
    return [(about[gap.series_key], gap) for gap in unseen if gap.series_key in about]
