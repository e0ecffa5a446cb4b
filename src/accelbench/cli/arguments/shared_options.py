"""Options that several commands have."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from accelbench.judge.filters import Filters

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

_FILTERS = {
    "models": MODELS,
    "hardware": HARDWARE,
    "framework": FRAMEWORK,
    "precision": PRECISION,
    "batch_sizes": BATCH_SIZES,
    "mode": MODE,
}
#: Stands in a command's parameters at the place of the options that `with_filters` adds.
FILTERS: Filters = {}


def help_of(command: str) -> dict[str, str]:
    """Return the texts that help.toml has for a command, or for all `commands`."""
    texts: dict[str, str] = _help_texts()[command]
    return texts


@cache
def _help_texts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))


def parameters_of(command: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return typer's Argument and Option with the help that help.toml has for a command."""
    helps = help_of(command)

    def declare(kind: Callable[..., Any], *names: Any, **more: Any) -> Any:
        flags = (name for name in names if isinstance(name, str) and name.startswith("--"))
        shown = next(flags, None) or str(more["metavar"])
        key = re.sub(r"\W+", "-", shown.partition("/")[0]).strip("-").lower()
        return kind(*names, help=helps[key], **more)

    return partial(declare, typer.Argument), partial(declare, typer.Option)


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that filter results in place of its parameter `filters`.

    The command gets the values of columns that count.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [
        inspect.Parameter(name, kind, default=option, annotation=list[str])
        for name, option in _FILTERS.items()
    ]

    def read(typed: dict[str, Any]) -> dict[str, Any]:
        from accelbench.judge.filters import filters_of

        return {"filters": filters_of(*(typed.pop(name) for name in _FILTERS)), **typed}

    return with_parameters(command, added, "filters", read)


def with_parameters(
    command: Callable[..., None],
    added: Sequence[inspect.Parameter],
    place: str,
    read: Callable[[dict[str, Any]], Mapping[str, Any]],
) -> Callable[..., None]:
    """Replace a parameter of a command by others; `read` makes its arguments of all values."""
    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += added if name == place else [parameter]

    @wraps(command)
    def wrapper(**typed: Any) -> None:
        command(**read(typed))

    hints = {name: hint for name, hint in command.__annotations__.items() if name != place}
    wrapper.__annotations__ = hints | {one.name: one.annotation for one in added}
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper
