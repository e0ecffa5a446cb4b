"""`accelbench doctor`: what works, what is missing, what clashes, and what mends it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from accelbench.cli.arguments.shared_options import AS_JSON, DB
from accelbench.core.errors import EXIT_ENVIRONMENT

if TYPE_CHECKING:
    from accelbench.hardware.doctor.checks import Examined
    from accelbench.hardware.doctor.world import World

_FETCH_A_BROWSER = "accelbench setup browser --with-chromium"

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def doctor(
    as_json: bool = AS_JSON,
    timeout: float = typer.Option(60.0, "--timeout", min=1.0, help="Seconds an engine may take."),
    db: Path | None = DB,
) -> None:
    """Say what works, what is missing, which versions clash, and what mends it.

    Engines are imported in processes of their own. Exit code 0 where nothing that is
    installed is broken or clashes; what is missing is optional.
    """
    from accelbench.hardware.doctor.checks import examine, is_healthy

    findings = [*examine(world(db, timeout)), *_project()]
    if as_json:
        sys.stdout.write(json.dumps(document(findings), indent=2) + "\n")
    else:
        from accelbench.present.terminal.documents import show
        from accelbench.present.terminal.hardware import doctor_document

        show(doctor_document(findings))
    if not is_healthy(findings):
        raise typer.Exit(EXIT_ENVIRONMENT)


def _project() -> Examined:
    from accelbench.cli.services.project_file import FILE, project_file
    from accelbench.hardware.doctor.world import Finding, Health

    file = project_file()
    if file is None:
        return []
    text = f"{file} says what commands take where nothing is typed"
    return [("project", Finding(FILE, Health.OK, text))]


def world(db: Path | None, timeout: float) -> World:
    """This machine, with what other rooms know of it."""
    from accelbench.engines.artifacts.cache import SIZE_VARIABLE, Cache
    from accelbench.engines.browser.assets import chromium_runs_here
    from accelbench.hardware.doctor.world import Folder, World
    from accelbench.store.database import default_path
    from accelbench.store.files import FOLDER_VARIABLE

    remedy = f"export {FOLDER_VARIABLE}=FOLDER for another place, {SIZE_VARIABLE}=5 for less of it"
    cache = Cache()
    folder = Folder("artefact cache", cache.folder, cache.cap, remedy)
    return World(
        store=default_path(db),
        cache=folder,
        engine_seconds=timeout,
        browser_remedy=_FETCH_A_BROWSER if chromium_runs_here() else "",
    )


def document(findings: Examined) -> dict[str, Any]:
    """Everything as plain JSON values."""
    from accelbench.hardware.doctor.checks import is_healthy
    from accelbench.hardware.doctor.world import Health

    return {
        "ok": is_healthy(findings),
        "counts": {h.value: sum(finding.health is h for _, finding in findings) for h in Health},
        "checks": [
            {
                "group": group,
                "name": finding.name,
                "status": finding.health.value,
                "message": finding.said,
                "remedy": finding.remedy or None,
                "details": dict(finding.details),
            }
            for group, finding in findings
        ],
    }
