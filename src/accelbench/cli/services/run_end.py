"""How `accelbench run` ends: what it leaves, what it says was not measured, its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, NoReturn

import typer

from accelbench.cli.display.terminal import complain
from accelbench.cli.services import running
from accelbench.cli.services.against import exit_code
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_NO, EXIT_OK
from accelbench.run.plan.targets import NAMED, MissingTarget, lacking, nothing_measured
from accelbench.store.journal import SUFFIX

if TYPE_CHECKING:
    from accelbench.cli.services.running import OutputPlaces
    from accelbench.run.conduct.lifecycle import RunResult

#: What a shell reports for a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130


def finish(
    ended: RunResult,
    places: OutputPlaces,
    stream: IO[str],
    as_json: bool,
    quiet: bool,
    compare: bool,
    threshold: float | None,
    passed_over: Sequence[str] = (),
) -> NoReturn:
    """Deliver what was measured, and end the program. Raises typer.Exit.

    What was `passed_over`, of a models file, was asked for and gave no result.
    """
    lacks = () if ended.interrupted else _lacks(ended, places)
    held = running.deliver(ended, places, stream, as_json, quiet, compare, lacks, threshold)
    if ended.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    nothing = nothing_measured(ended.rows)
    if not nothing or ended.tally.all_fine:  # else every line above says that it failed
        for line in [str(target) for target in lacks] or ([nothing] if nothing else []):
            complain(line)
    for text in passed_over:
        complain(f"Not measured: {text}")
    unmeasured = bool(lacks or nothing or passed_over)
    judged = exit_code(held) if held is not None and threshold is not None else None
    raise typer.Exit(_exit_code(ended, unmeasured, judged))


def _lacks(ended: RunResult, places: OutputPlaces) -> list[MissingTarget]:
    started = running.started_of(places.journals() / f"{ended.run_id}{SUFFIX}")
    return lacking(started.get(NAMED) or {}, ended.rows)


def _exit_code(ended: RunResult, unmeasured: bool, judged: int | None) -> int:
    """Return the exit code of a run: of several that apply, the first one here.

    Args:
        unmeasured: whether something that was named was not measured.
        judged: the code of a comparison with a threshold; None without one.
    """
    if judged is not None and not unmeasured:
        return judged
    if ended.nothing_could_start:
        return EXIT_ENVIRONMENT
    if not ended.tally.all_fine:
        return EXIT_NO  # a case that failed is an answer, even if others were not measured
    return EXIT_ENVIRONMENT if unmeasured else EXIT_OK
