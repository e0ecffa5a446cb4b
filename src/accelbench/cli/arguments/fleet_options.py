"""Options of the commands that ask a fleet something."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
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


def with_options_of(
    app: typer.Typer, without: frozenset[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options of an application's one command as well, but for some.

    Those that are left out have their defaults among what the command gets.
    """
    (registered,) = app.registered_commands
    assert registered.callback is not None
    theirs = inspect.signature(registered.callback).parameters
    hints = registered.callback.__annotations__
    defaults = defaults_of(app)

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p for name, p in theirs.items() if name != own[0].name and name not in without]
        left_out = {name: default for name, default in defaults.items() if name in without}

        @wraps(command)
        def wrapper(**typed: Any) -> None:
            command(**left_out, **typed)

        wrapper.__annotations__ = {
            **{p.name: hints[p.name] for p in taken},
            **{name: hint for name, hint in command.__annotations__.items() if name != "typed"},
        }
        wrapper.__signature__ = signature.replace(parameters=[own[0], *taken, *own[1:]])  # type: ignore[attr-defined]
        return wrapper

    return taking


def defaults_of(app: typer.Typer) -> dict[str, Any]:
    """What an application's one command gets where nothing is typed, but for its context."""
    (registered,) = app.registered_commands
    assert registered.callback is not None
    parameters = inspect.signature(registered.callback).parameters
    return {
        name: getattr(p.default, "default", p.default)
        for name, p in parameters.items()
        if p.default is not p.empty
    }


class NarrowedContext:
    """What of a command's parameters was typed, for those that another command has as well."""

    def __init__(self, ctx: typer.Context, names: Iterable[str]) -> None:
        self._ctx = ctx
        self._names = frozenset(names)

    def get_parameter_source(self, name: str) -> Any:
        """Where a parameter comes from; None of one that is not shared."""
        return self._ctx.get_parameter_source(name) if name in self._names else None
