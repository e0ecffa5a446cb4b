"""List options of the command line: spaces separate where that is unambiguous."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand


class SpacedLists(TyperCommand):
    """Lets `--batch-sizes 1 4 8` mean `--batch-sizes 1,4,8`.

    Positional arguments come first, so what follows a list option, up to the
    next option, is its list. The options it holds for are those declared with
    `list[str]`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        lists = {
            name
            for parameter in self.params
            if getattr(parameter, "multiple", False)
            for name in parameter.opts
        }
        return super().parse_args(ctx, joined(args, lists))


def joined(arguments: list[str], lists: Iterable[str]) -> list[str]:
    """The same arguments with the values after a list option joined by commas."""
    names = set(lists)
    result: list[str] = []
    values: list[str] | None = None
    for i, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *_flush(values), *arguments[i:]]
        is_option = argument.startswith("-") and argument != "-"
        if is_option:
            result += _flush(values)
            values = [] if argument in names else None
            result.append(argument)
        elif values is not None:
            values.append(argument)
        else:
            result.append(argument)
    return [*result, *_flush(values)]


def _flush(values: list[str] | None) -> list[str]:
    return [",".join(values)] if values else []
