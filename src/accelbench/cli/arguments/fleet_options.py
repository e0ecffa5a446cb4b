"""Options of the commands that ask a fleet something."""

from __future__ import annotations

import inspect
from collections.abc import Callable
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

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = [p for name, p in theirs.items() if name != own[0].name and name not in without]
        left_out = {
            name: getattr(p.default, "default", p.default)
            for name, p in theirs.items()
            if name in without
        }

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
