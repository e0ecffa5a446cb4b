"""The options that a command declares, by the signature that typer reads as well."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

import typer


@dataclass(frozen=True)
class CommandOption:
    """Option or argument of a command.

    Attributes:
        parameter: of the command's function.
        option: its first name, with dashes; empty of an argument.
        kind: of one value.
        several: whether it takes a list.
        least, most: of a number.
        default: where nothing is given.
        hidden: whether its help leaves it out.
        help: what it says of itself.
    """

    parameter: str
    option: str
    kind: Literal["text", "number", "truth", "fraction", "path"]
    several: bool
    least: int | None
    most: int | None
    default: Any
    hidden: bool
    help: str

    @property
    def key(self) -> str:
        """What it is called in files."""
        return self.option.lstrip("-").replace("-", "_") or self.parameter


def options_of(app: typer.Typer) -> list[CommandOption]:
    """Those of an application's one command, in the order of its help.

    By the declarations, which are typer's interface: its own parsers change between versions.
    """
    (registered,) = app.registered_commands
    assert registered.callback is not None
    parameters = inspect.signature(registered.callback).parameters.values()
    return [_option(one) for one in parameters if hasattr(one.default, "param_decls")]


def _option(parameter: inspect.Parameter) -> CommandOption:
    declared: Any = parameter.default
    annotation = str(parameter.annotation)
    names = [name for name in declared.param_decls or () if name.startswith("--")]
    kinds: dict[str, Literal["number", "truth", "fraction", "path"]] = {
        "bool": "truth", "int": "number", "float": "fraction", "Path": "path",
    }  # fmt: skip
    word = annotation.removesuffix(" | None")
    return CommandOption(
        parameter=parameter.name,
        option=names[0].partition("/")[0] if names else "",
        kind=kinds.get(word, "text"),
        several="list[" in annotation,
        least=None if declared.min is None else int(declared.min),
        most=None if declared.max is None else int(declared.max),
        default=declared.default,
        hidden=bool(declared.hidden),
        help=str(declared.help or ""),
    )
