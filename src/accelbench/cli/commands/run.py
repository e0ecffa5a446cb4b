"""`accelbench run`: measure models on hardware, and store every sample."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from typing import Any

import typer

from accelbench.cli.arguments.run_spec_options import RunCommand, typed_options, with_run_options
from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_OK
from accelbench.present.terminal.terminal import complain

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_plan_schema(flag: bool) -> None:
    if flag:
        from accelbench.exchange.plan_document import plan_schema

        sys.stdout.write(json.dumps(plan_schema(), indent=2) + "\n")
        raise typer.Exit


@app.command(cls=RunCommand)
@with_run_options(print_schema=_print_plan_schema)
def run(ctx: typer.Context, **typed: Any) -> None:
    """Measure models on hardware; store every sample.

    Results go into the database as they come, and a run that is cut off goes on
    with --resume. Lists take commas, spaces or repetition.

    Exits with 0 if all went well; with 1 if a case failed; with 3 if a named platform, engine
    or precision gave no result, or nothing was measured at all.
    """
    from accelbench.cli.arguments import resolved_values
    from accelbench.cli.arguments.resolved_values import refuse_no_meeting
    from accelbench.cli.arguments.shared_options import refuse_threshold
    from accelbench.cli.services import running
    from accelbench.cli.services.before_run import picked_models, show_plan
    from accelbench.cli.services.project_file import project_note
    from accelbench.cli.services.run_request import asked_run
    from accelbench.cli.services.run_request import save as save_asked
    from accelbench.core.formatting import parse_duration
    from accelbench.core.processes import limit_seconds

    refuse_threshold(typed["threshold"])
    with termination_as_interrupt():
        typed["models"] = typed["models"] or picked_models(typed, ctx) or typed["models"]
    with limit_seconds(parse_duration(typed["timeout"], "--timeout")):
        asked = asked_run(typed, typed_options(ctx))
    spec = asked.spec
    if spec.resume is None and spec.save_plan is None:
        refuse_no_meeting(spec)
    resolved_values.use_browser(spec.browser)
    stream = sys.stderr if spec.as_json else sys.stdout
    guide_folder = resolved_values.guide_folder(typed["framework"], typed["model_id"])
    places = replace(
        running.places_of(spec), csv_dir=guide_folder if spec.output_dir is None else None
    )
    with termination_as_interrupt():
        if spec.resume is not None:
            ended = running.resume_run(spec.resume, places, stream, spec.quiet)
            running.finish(ended, places, stream, spec)
        if spec.node_rank:
            from accelbench.cli.services.fleet_running import take_part

            raise typer.Exit(take_part(asked, stream))
        asked = replace(asked, further_notes=project_note("run", app))
        if spec.save_plan is not None:
            save_asked(spec.save_plan, asked, stream, spec.quiet)
            if not spec.dry_run:
                raise typer.Exit(EXIT_OK)
        if spec.dry_run:
            code = show_plan(asked, places, stream=sys.stdout, as_json=spec.as_json)
            for text in asked.passed_over:
                complain(f"Left out: {text}")
            raise typer.Exit(EXIT_ENVIRONMENT if asked.passed_over else code)
        ended = running.new_run(asked, places, stream, spec.quiet)
        running.finish(ended, places, stream, spec, asked.passed_over)


class termination_as_interrupt:  # noqa: N801 - reads as the statement it is
    """SIGTERM ends a run as cleanly as Ctrl-C does; outside the conductor both just end it."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGTERM, self._interrupt)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)
        if kind is KeyboardInterrupt:
            # Said here, because typer's own exit code for it has changed from 1 to 130.
            from accelbench.cli.services.running import EXIT_INTERRUPTED

            complain("interrupted.")
            raise typer.Exit(EXIT_INTERRUPTED) from None

    @staticmethod
    def _interrupt(*_: object) -> None:
        raise KeyboardInterrupt
