"""`accelbench check`: the gate. Has anything become worse than the baseline, and is it known?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

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
from accelbench.cli.services.opening import filled
from accelbench.core.errors import UsageError
from accelbench.core.formatting import split_words
from accelbench.judge.baselines import ALLOWED, COLUMNS, BaselineQuery, baseline_for
from accelbench.judge.filters import Filters
from accelbench.judge.regressions import Check
from accelbench.store.files import explain_os_errors

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
    from accelbench.cli.services.noise import noise_floor

    refuse_threshold(threshold)
    allowing = allowed(split_words(allow), ALLOWED)
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
        from accelbench.store.opening import open_store

        database = open_store(db)
        raise typer.Exit(noise_floor(database, filters, noise, as_json))
    sought = BaselineQuery(filters, tuple(split_words(run)), machine, allowing)
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
    with explain_os_errors("Writing the summary", path, "--markdown"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
