"""`accelbench check`: the gate. Has anything become worse than the baseline, and is it known?

`check --noise`: what this machine's launches differ by where nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.resolved_values import platforms, precisions
from accelbench.cli.arguments.shared_options import (
    AS_JSON,
    DB,
    FILTERS,
    SpacedLists,
    allowed,
    parameters_of,
    refuse_beside,
    refuse_threshold,
    with_filters,
)
from accelbench.cli.services.against import exit_code
from accelbench.cli.services.measuring import measured
from accelbench.cli.services.opening import filled, typed_command
from accelbench.core.errors import EXIT_CANNOT_TELL, EXIT_OK, UsageError
from accelbench.core.facts import new_run_id
from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.nouns import words
from accelbench.core.run_options import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.engines.shared.names import runtimes_named
from accelbench.exchange.titles import title
from accelbench.judge.baselines import ALLOWED, COLUMNS, BaselineQuery, baseline_for, rows_of_runs
from accelbench.judge.filters import Filters, by_word, words_of
from accelbench.judge.older_runs import NOISE
from accelbench.judge.regressions import Check
from accelbench.judge.run_noise import NoiseFloor, floors
from accelbench.judge.suggestions import NothingMeasuredError
from accelbench.judge.verdicts import Judgement
from accelbench.models.find import find
from accelbench.present.terminal.terminal import print_document
from accelbench.run.conduct.lifecycle import PlannedRun
from accelbench.run.plan import expand
from accelbench.run.plan.request import Request
from accelbench.store.files import explained

if TYPE_CHECKING:
    from accelbench.core.protocols import Inventory, Runtime
    from accelbench.store.database import Database


_, option = parameters_of("check")
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(cls=SpacedLists)
@with_filters
def check(
    filters: Filters = FILTERS,
    baseline: str | None = option(None, "--baseline", "--compare-to"),
    threshold: float | None = option(None, "--threshold", "--regression-alert"),
    run: list[str] = option([], "--run"),
    machine: str | None = option(None, "--machine"),
    allow: list[str] = typer.Option(
        [], "--allow", help=f"Check although not alike: {', '.join(ALLOWED)}."
    ),
    rerun: bool = option(False, "--rerun"),
    noise: int | None = option(None, "--noise", metavar="LAUNCHES"),
    markdown: Path | None = option(None, "--markdown"),
    as_json: bool = AS_JSON,
    db: Path | None = DB,
) -> None:
    """Has anything become worse? Latency, throughput and memory against a baseline, each apart.

    Ends with 0 where nothing has, with 1 where something has, with 4 where it cannot be told.
    """
    refuse_threshold(threshold)
    allowing = allowed(words(allow), ALLOWED)
    if noise is not None:
        refuse_beside(
            {
                "--baseline": baseline,
                "--threshold": threshold,
                "--run": run,
                "--machine": machine,
                "--allow": allow,
                "--rerun": rerun,
                "--markdown": markdown,
            },
            "--noise measures one thing against itself, where {} would mean nothing.",
            "Leave out one or the other.",
        )
        from accelbench.store.opening import store_at

        database = store_at(db)
        raise typer.Exit(noise_floor(database, filters, noise, as_json))
    sought = BaselineQuery(filters, tuple(words(run)), machine, allowing)
    if baseline is None and rerun:
        raise UsageError(
            "--rerun is of a --baseline: the arms of one run were measured in turns.",
            "Leave it out, or measure more --launches.",
        )
    database = filled(db)
    if baseline is None:
        from accelbench.judge.baselines import check_of_arms

        arms, about = check_of_arms(database, sought, COLUMNS, threshold)
        _say(arms, about, markdown, as_json)
        raise typer.Exit(exit_code(arms))
    reference = baseline_for(database, baseline, sought)
    checked = reference.check(threshold)
    if rerun:
        from accelbench.cli.services.measuring import rerun_of

        checked, reference = rerun_of(database, checked, reference, threshold)
    _say(checked, reference.about(threshold), markdown, as_json)
    raise typer.Exit(exit_code(checked))


def _say(checked: Check, about: Mapping[str, Any], markdown: Path | None, as_json: bool) -> None:
    from accelbench.present.check import presented
    from accelbench.present.markdown import as_markdown
    from accelbench.present.terminal.documents import present

    document = presented(checked, about)
    if markdown is not None:
        _append(markdown.expanduser(), f"{as_markdown(document, level=3)}\n")
    present(document, None, as_json)


def _append(path: Path, text: str) -> None:
    """Add to what is there: a step of CI has one summary file for all that it says."""
    with explained("Writing the summary", path, "--markdown"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)


_DEFAULT_MODEL = "bert-tiny"


def noise_floor(database: Database, filters: Filters, launches: int, as_json: bool) -> int:
    """Measure the same `launches` times a side, print the differences, and return the exit code."""
    if launches < FEWEST_LAUNCHES:
        raise UsageError(f"{launches} launches a side say little.", "Take five or more.")
    run = _measured(database, filters, 2 * launches)
    noise_floors = floors(rows_of_runs(database, [run]))
    if not noise_floors:
        raise NothingMeasuredError(f"No launch of run {run} came to a figure.")
    if as_json:
        document = {
            "run_id": run,
            "launches": launches,
            "floors": [_told(floor) for floor in noise_floors],
        }
        print_document(document)
    else:
        from accelbench.present.terminal.documents import show
        from accelbench.present.terminal.hardware import noise_document

        show(noise_document(noise_floors))
    steady = all(floor.against_itself.answer is Judgement.STEADY for floor in noise_floors)
    return EXIT_OK if steady else EXIT_CANNOT_TELL


def _measured(database: Database, filters: Filters, launches: int) -> str:
    request = Request(
        models=tuple(find(name) for name in _models(filters)),
        hardware=platforms(words_of(filters, "hardware") or ("cpu",)),
        runtimes=runtimes_named(words_of(filters, "runtime")),
        precisions=precisions(tuple(by_word("precision", words_of(filters, "precision")))),
        batch_sizes=tuple(map(int, filters.get("batch_size", (1,)))),
        modes=tuple(Mode(mode) for mode in words_of(filters, "mode") or (Mode.INFERENCE,)),
    )
    settings = RunSettings(run_id=new_run_id(), launches=launches)
    about = {"command": typed_command(), "label": NOISE}

    def planner(inventory: Inventory, runtimes: Mapping[str, Runtime]) -> list[PlannedRun]:
        plan = expand.plan_for(request, inventory, runtimes)
        return [PlannedRun(plan, settings, runtimes, about)]

    (run,) = measured(database, planner)
    return run


def _models(filters: Filters) -> Sequence[str]:
    """Named ones by the catalogue's names: beside each stands the word that was typed."""
    return tuple(
        dict.fromkeys(find(name).id for name in words_of(filters, "model") or (_DEFAULT_MODEL,))
    )


def _told(floor: NoiseFloor) -> dict[str, Any]:
    return {
        "what": title(floor.row),
        "metric": floor.metric.name,
        "noise": floor.noise,
        "values": list(floor.values),
        "against_itself": floor.against_itself.answer.value,
        "launches_for_the_least_change": floor.launches_for_the_least,
        "finds": [
            {"launches": k, "has_to_exceed": least, "found": shown}
            for k, least, shown in floor.finds()
        ],
    }
