"""Options that several commands have.

Parsing of list options, names of commands and scripts, and thresholds.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial, wraps
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from accelbench.core.errors import UsageError
from accelbench.core.formatting import suggest
from accelbench.core.safe_text import in_quotes

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


#: Options whose values may be names of models, or words that are both.
_OF_MODELS = ("--model", "--specific-models", "--category", "--family", "--run")


class SpacedLists(TyperCommand):
    """Lets `--batch-sizes 1 4 8` mean `--batch-sizes 1,4,8`.

    What follows a list option is its list, up to the next option or to a word
    that can only be a model: `--framework pytorch,jax model.py:make`. The
    options it holds for are those declared with `list[str]`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        lists = {
            name
            for parameter in self.params
            if getattr(parameter, "multiple", False)
            for name in parameter.opts
        }
        takes_models = any(parameter.name == "models" for parameter in self.params)
        ends = _is_model if takes_models else None
        return super().parse_args(ctx, joined(args, lists, ends))


def joined(
    arguments: list[str], lists: Iterable[str], ends: Callable[[str], bool] | None = None
) -> list[str]:
    """Join the values after a list option by commas, up to a word that `ends` the list."""
    names = set(lists)
    result: list[str] = []
    values: list[str] | None = None
    of_models = False
    for i, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *_flush(values), *arguments[i:]]
        is_option = argument.startswith("-") and argument != "-"
        if is_option:
            result += _flush(values)
            values = [] if argument in names else None
            of_models = argument.startswith(_OF_MODELS)
            result.append(argument)
        elif values and ends is not None and not of_models and ends(argument):
            result += [*_flush(values), argument]
            values = None
        elif values is not None:
            values.append(argument)
        else:
            result.append(argument)
    return [*result, *_flush(values)]


def _is_model(word: str) -> bool:
    from accelbench.models.selection import is_model_word

    return is_model_word(word)


def _flush(values: list[str] | None) -> list[str]:
    return [",".join(values)] if values else []


class NamedCommands(TyperGroup):
    """Refuses a name that no command has as every other name is refused."""

    def find_group(self, word: str) -> str:
        return ""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = str(args[0])
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            names = self.list_commands(ctx)
            if group := self.find_group(word):
                raise UsageError(
                    f"There is no command {in_quotes(word)}.",
                    f"Did you mean {ctx.command_path} {group} {word}?",
                )
            raise UsageError(
                f"There is no command {in_quotes(word)}.",
                f"{suggest(word, names, 'Commands', similarity=0.6)} {ctx.command_path} --help",
            )
        return super().resolve_command(ctx, args)


def allowed(names: Sequence[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the values of --allow; refuse one that is not known."""
    for name in names:
        if name not in known:
            raise UsageError(
                f"Nothing to allow is named {in_quotes(name)}.", f"Known: {', '.join(known)}."
            )
    return tuple(names)


def refuse_threshold(threshold: float | None) -> None:
    """What is no share of a change."""
    if threshold is not None and not 0 < threshold < 10:
        raise UsageError(f"{threshold:g} is no threshold.", "0.1 stands for 10 %.")


def refuse_beside(given: Mapping[str, object], sentence: str, remedy: str) -> None:
    """Refuse options of which any has a value."""
    options = ", ".join(option for option, value in given.items() if value)
    if options:
        raise UsageError(sentence.format(options), remedy)


def command_for_script(word: str, more: Iterable[str] = ()) -> str | None:
    """Return the command that does a script's work; None if no document names the script."""
    name = PurePosixPath(word.lower().replace("\\", "/")).name.removesuffix(".py")
    command = help_of("scripts").get(name.replace("-", "_"))
    if command is None:
        return None
    by_option = (known for option in more if (known := command_for_option(option)))
    return f"accelbench {next(by_option, command).removeprefix('accelbench ')}"


def command_for_option(option: str) -> str | None:
    """Return the command that does what an option of a script did; None if it is not known."""
    command = help_of("script-options").get(option.partition("=")[0])
    return None if command is None else f"accelbench {command}"
