"""An option for each axis of sizes, where a command asks for sizes as lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import typer

from accelbench.core.axes import AXES, Axis, numbered
from accelbench.core.free_dimensions import combinations
from accelbench.core.word_lists import numbers

#: The lists that were typed, by the fields of a request.
Sizes = Mapping[str, "list[str] | None"]
#: Stands in a command's parameters where its options of sizes stand in its help.
OPTIONS: Sizes = {}


def with_size_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each axis in place of its parameter `sizes`."""
    return _with_options_of(AXES, command)


def with_numbered_sizes(command: Callable[..., None]) -> Callable[..., None]:
    """The same, without those whose sizes are a file's own: of commands that measure nothing."""
    return _with_options_of(numbered(), command)


def _with_options_of(axes: Sequence[Axis], command: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(command)
    parameters = [
        option
        for parameter in signature.parameters.values()
        for option in (map(_option, axes) if parameter.name == "sizes" else (parameter,))
    ]

    @wraps(command)
    def wrapper(**typed: Any) -> None:
        command(sizes={axis.asked: typed.pop(axis.asked) for axis in axes}, **typed)

    hints = {name: hint for name, hint in command.__annotations__.items() if name != "sizes"}
    wrapper.__annotations__ = hints | {axis.asked: list[str] | None for axis in axes}
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def sizes_of(typed: Sizes) -> dict[str, Any]:
    """The sizes in those lists, as a request takes them.

    Raises:
        UsageError: one is no number, or too small or too large.
    """
    return {
        axis.asked: combinations(typed[axis.asked])
        if axis.text
        else numbers(typed[axis.asked], axis.option, least=axis.least)
        for axis in AXES
        if axis.asked in typed
    }


def _option(axis: Axis) -> inspect.Parameter:
    return inspect.Parameter(
        axis.asked,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=typer.Option(None, axis.option, help=axis.help),
        annotation=list[str] | None,
    )
