"""Options that several commands have."""

from __future__ import annotations

import typer

MODELS = typer.Argument(None, help="Filter by model.", show_default=False)
HARDWARE = typer.Option([], "--hardware", help="Filter by platform.")
FRAMEWORK = typer.Option([], "--framework", "--runtime", help="Filter by engine.")
PRECISION = typer.Option([], "--precision", help="Filter by precision.")
BATCH_SIZES = typer.Option([], "--batch-sizes", "--batch-size", help="Filter by batch size.")
MODE = typer.Option([], "--mode", help="Filter by mode: inference or training.")
RUN = typer.Option([], "--run", help="Filter by run: an id, a label, or `last`.")
MACHINE = typer.Option(
    None, "--machine", help="A host name, id or source; else that of the newest result."
)
AS_JSON = typer.Option(False, "--json", help="Print one JSON document.")
DB = typer.Option(None, "--db", help="The database; else $ACCELBENCH_DB, else ./accelbench.duckdb.")
