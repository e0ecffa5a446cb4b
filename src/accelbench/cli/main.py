"""The program `accelbench`: dispatches to commands and turns errors into sentences.

A command's module is imported only if it is called, so that `--help` stays fast.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

from accelbench import __version__
from accelbench.cli.arguments.shared_options import (
    NamedCommands,
    command_for_option,
    command_for_script,
    help_of,
)
from accelbench.cli.services.project_file import defaults_of, project_defaults
from accelbench.core.errors import (
    EXIT_ENVIRONMENT,
    EXIT_NO,
    EXIT_PIPE_CLOSED,
    AccelbenchError,
    UsageError,
)
from accelbench.core.safe_text import in_quotes
from accelbench.present.terminal.terminal import complain, guarded, log_everything, print_traceback

#: command → (module with an `app`, what it does); the order is that of the help page.
COMMANDS = {
    name: (f"accelbench.cli.commands.{name}", text) for name, text in help_of("commands").items()
}


#: What the parser of the command line refuses by; whose click it is depends on typer's version.
_SLIP: Any = typer.BadParameter.__bases__[0]
#: What it quotes of a command line, as Python spells it; without a backslash it is as typed.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


@contextmanager
def _visible_slips() -> Iterator[None]:
    """What the parser refuses is quoted in the same way as by errors of our own."""
    try:
        yield
    except _SLIP as error:
        option = str(getattr(error, "option_name", ""))
        if (command := command_for_option(option)) is not None:
            raise UsageError(
                f"{option} is an option of a script, and not of this command.", f"Use: {command}"
            ) from None
        message = str(getattr(error, "message", ""))
        error.message = _QUOTED.sub(_as_typed, message)
        raise


def _as_typed(match: re.Match[str]) -> str:
    return in_quotes(literal_eval(match[0])) if "\\" in match[0] else match[0]


#: The documents' spellings of an option that every command spells as its value here.
_SPELLINGS = {"--db-path": "--db", "--database-path": "--db"}


def _in_our_spelling(words: Sequence[str]) -> Iterator[str]:
    end = words.index("--") if "--" in words else len(words)
    for word in words[:end]:
        name, equals, value = word.partition("=")
        yield f"{_SPELLINGS.get(name, name)}{equals}{value}"
    yield from words[end:]


#: Commands of `accelbench db` that are looked for without it.
_OF_DB = ("import", "export", "merge", "sql")


class LazyGroup(NamedCommands):
    """Lists commands from the table and imports a command's module when it is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def find_group(self, word: str) -> str:
        return "db" if word in _OF_DB else ""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A card for the help page: name and one line, nothing imported."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with _visible_slips():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with _visible_slips():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = str(args[0])
        if (known := command_for_script(word, args[1:])) is not None:
            raise UsageError(f"{in_quotes(word)} is a script, and not a command.", f"Use: {known}")
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        app_of_it = import_module(COMMANDS[name][0]).app
        real = typer.main.get_command(app_of_it)
        real.name = name
        ctx.default_map = {name: defaults_of(name, app_of_it)}
        return name, real, list(_in_our_spelling(rest))


app = typer.Typer(
    cls=LazyGroup,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(flag: bool) -> None:
    if flag:
        sys.stdout.write(f"accelbench {__version__}\n")
        raise typer.Exit


@app.callback(
    epilog="--debug, anywhere on the line, logs every detection and fallback and shows tracebacks."
)
def root(
    ctx: typer.Context,
    version: bool = typer.Option(  # noqa: ARG001
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Benchmark machine-learning models across hardware and runtimes, with evidence."""
    if ctx.invoked_subcommand is None:
        from accelbench.cli.services.overview import show_overview

        show_overview()


def main() -> None:
    """Run the command line; whatever a name in what it prints is, a terminal does not obey it."""
    with guarded():
        _end()


def _end() -> None:
    """Run it; the only place where errors become exit codes."""
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    # Rows by the hundred thousand live until a command ends: looking for circles among them each
    # 700 objects took an eighth of a history of ten million results, and freed nothing.
    gc.set_threshold(50_000, 20, 50)
    if debug:
        log_everything()
        logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        try:
            _refuse_empty(arguments)
            with project_defaults(COMMANDS):
                app(args=arguments, prog_name="accelbench")
        finally:
            sys.stdout.flush()  # what is left meets a closed pipe here, not when all is over
    except AccelbenchError as error:
        if debug:
            print_traceback()
        from accelbench.core.plugins import has_warned

        if not has_warned(str(error)):
            complain(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _end_with_the_reader()
    except SystemExit as end:
        if end.code == EXIT_NO and _of_closed_pipe(end):
            _end_with_the_reader()
        raise
    except Exception as error:
        if debug:
            print_traceback()
        kind = type(error).__name__
        complain(f"unexpected {kind}: {error}. Run again with --debug and report what it shows.")
        sys.exit(EXIT_ENVIRONMENT)


def _refuse_empty(arguments: Sequence[str]) -> None:
    for option, value in pairwise([*arguments, "-"]):
        name, equals, own_value = option.partition("=")
        if name.startswith("--") and not (own_value if equals else value).strip():
            raise UsageError(
                f"What follows {name} is empty.", "Give it a value, or leave the option out."
            )


def _of_closed_pipe(end: BaseException) -> bool:
    """Whether a library ended the program because its reader was gone: with 1, the answer no."""
    cause: BaseException | None = end
    while cause is not None and not isinstance(cause, BrokenPipeError):
        cause = cause.__context__
    return cause is not None


def _end_with_the_reader() -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(EXIT_PIPE_CLOSED)


if __name__ == "__main__":
    main()
