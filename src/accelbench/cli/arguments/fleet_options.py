"""Options of the commands that ask a fleet something."""

from __future__ import annotations

from typing import Any

import typer

#: Typed as what typer puts in their place.
ADDRESS: Any = typer.Option(
    None,
    "--address",
    metavar="HOST:PORT",
    help="The head of a fleet, or of any Ray cluster; auto on a node of one. The fleet that was"
    " started or joined here by default.",
)
TOKEN_FILE: Any = typer.Option(
    None, "--token-file", help="The file of its token; the one of the fleet here by default."
)
