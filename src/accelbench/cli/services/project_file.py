"""accelbench.toml: what the commands of a project take if nothing is typed.

    database = "results/bench.duckdb"    # every command; paths are taken from the file's folder
    prices = "prices.json"               # every command
    hardware = ["cpu", "cuda"]           # of run, as any other option of it
    launches = 5

    [check]                              # of another command
    threshold = 0.05

What is typed goes first, then a plan file, then the environment's variables, then this file. It is
looked for in the working folder and above it, up to the root of the git repository or the home
folder; outside of both in the working folder only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import typer

    from accelbench.core.run_options import RunField
    from accelbench.exchange.imports.records import Record

FILE = "accelbench.toml"
#: Of every command: what stands for the option is an environment's variable, as without the file.
_EVERYWHERE = {"database": "ACCELBENCH_DB", "prices": "ACCELBENCH_PRICES"}
#: Options of a single time, or with a key of their own.
_NEVER = frozenset({"db", "prices", "resume", "dry_run", "save_plan", "plan_schema", "json"})


def project_file() -> Path | None:
    """Return the file of the project around the working folder; None if there is none."""
    try:
        here, home = Path.cwd(), Path.home()
    except (OSError, RuntimeError):  # a folder that was removed, a user without a home
        return None
    folders = []
    for folder in (here, *here.parents):
        folders.append(folder)
        if folder == home or (folder / ".git").exists():
            break
    else:
        folders = folders[:1]
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


@contextmanager
def project_defaults(commands: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Apply what the file says for every command while one runs."""
    file = project_file()
    before = {variable: os.environ.get(variable) for variable in _EVERYWHERE.values()}
    try:
        if file is not None:
            whole = _read(file)
            _refuse_unknown(whole, commands)
            for key, variable in _EVERYWHERE.items():
                if key in whole.values and not os.environ.get(variable):
                    os.environ[variable] = _path(whole, key)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def defaults_of(command: str, app: typer.Typer) -> dict[str, Any]:
    """Return the defaults that the file has for a command, by its parameters."""
    file = project_file()
    if file is None or len(app.registered_commands) != 1:
        return {}
    from accelbench.cli.arguments.run_spec_options import options_of

    whole, options = _read(file), {o.key: o for o in options_of(app) if _may_default(o)}
    values: dict[str, Any] = {}
    if command == "run":
        own = {name: name.replace("-", "_") for name in whole.values}
        values |= {
            options[key].name: _value(whole, name, options[key])
            for name, key in own.items()
            if key in options
        }
    if isinstance(whole.values.get(command), Mapping):
        table = whole.child(command)
        for name in table.values:
            option = options.get(name.replace("-", "_"))
            if option is None:
                _refuse(table, name, f"`accelbench {command}` has no such option", options, command)
            values[option.name] = _value(table, name, option, command)
    return values


def project_note(command: str, app: typer.Typer) -> list[str]:
    """Return a sentence on what a command takes from the file; nothing if it takes nothing."""
    file = project_file()
    if file is None:
        return []
    from accelbench.cli.arguments.run_spec_options import options_of

    names = {option.name: option.key for option in options_of(app)}
    whole = _read(file)
    everywhere = [
        key
        for key, variable in _EVERYWHERE.items()
        if key in whole.values and os.environ.get(variable) == _path(whole, key)
    ]
    keys = [*everywhere, *(names[parameter] for parameter in defaults_of(command, app))]
    return [f"Where nothing else is said, {file} does: {', '.join(keys)}."] if keys else []


def _read(file: Path) -> Record:
    from accelbench.exchange.plan_reading import read_toml

    return read_toml(file)


def _may_default(option: RunField) -> bool:
    return bool(option.option) and not option.hidden and option.key not in _NEVER


def _refuse_unknown(whole: Record, commands: Mapping[str, tuple[str, str]]) -> None:
    from accelbench.cli.arguments.run_spec_options import options_of

    app_of_run = import_module(commands["run"][0]).app
    of_run = [option.key for option in options_of(app_of_run) if _may_default(option)]
    for name, value in whole.values.items():
        if name in commands and isinstance(value, Mapping):
            continue
        if name not in _EVERYWHERE and name.replace("-", "_") not in of_run:
            _refuse(whole, name, "there is no such key", [*_EVERYWHERE, *of_run, *commands])


def _refuse(part: Record, name: str, why: str, known: Any, path: str = "") -> NoReturn:
    from accelbench.core.formatting import suggest
    from accelbench.exchange.imports.records import MalformedError

    line = (part.lines or {}).get(name)
    where = f"{path}.{name}".lstrip(".")
    raise MalformedError(part.file, line, where, why, suggest(name, known))


def _path(whole: Record, key: str) -> str:
    return str(whole.file.parent / Path(whole.text(key)).expanduser())


def _value(part: Record, name: str, option: RunField, path: str = "") -> Any:
    from accelbench.exchange.plan_document import PlanEntry, convert_texts, read_texts

    entry = PlanEntry(part.file, path, lines=part.lines or {})
    texts = read_texts(entry, name, part.values[name], option, single=True)
    return convert_texts(option, texts, part.file.parent)
