"""`accelbench setup`: the packages of extras, and what the browser needs beside packages."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from accelbench.cli.arguments.shared_options import parameters_of
from accelbench.present.terminal.terminal import print_line, print_lines

if TYPE_CHECKING:
    from accelbench.engines.browser.assets import Package
    from accelbench.hardware.installing import Extras

_CHROMIUM, _BROWSER = "chromium", "browser"


class _Names(TyperGroup):
    """`setup browser` is a command with options of its own; every other first word is an extra."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = _BROWSER if args[:1] == [_BROWSER] and not _names_more(args[1:]) else _EXTRAS
        rest = args[1:] if name == _BROWSER else args
        return name, self.get_command(ctx, name), rest

    def list_commands(self, ctx: Any) -> list[str]:
        return [_BROWSER]


#: The command that nobody types: it takes the names.
_EXTRAS = "extras"


def _names_more(words: list[str]) -> bool:
    return bool(words) and not words[0].startswith("-")


_, option = parameters_of("setup")
app = typer.Typer(
    cls=_Names,
    subcommand_metavar="NAME...",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(
    epilog="--json: one JSON document. --reinstall: packages that are there already as well."
    " --extra-index-url URL: an index beside those of pip's or uv's configuration."
    " setup browser --help: what the browser is fetched with."
)
def setup() -> None:
    """Install the packages of extras into accelbench's own environment, by pip or uv.

    accelbench setup onnx openvino

    NAME is torch, data, frames, lake, cuda, rocm, energy, int8, onnx, openvino, jax, litert, ncnn,
    executorch, qnn, browser, predict, charts, dashboard, fleet, tensorboard, mlflow, wandb, timm,
    torchvision, or all (of them but ncnn, executorch, rocm, qnn, mlflow, wandb, timm and
    torchvision). accelbench itself is not installed again, wherever it came from; versions are
    those that it was made for. The engines ncnn and executorch are packages of their own, which a
    checkout of accelbench has.
    """


@app.command(_EXTRAS, hidden=True)
def extras(
    names: list[str] = typer.Argument(..., metavar="NAME...", help="Extras, or their engines."),
    index: list[str] = option([], "--extra-index-url", metavar="URL"),
    reinstall: bool = option(False, "--reinstall"),
    as_json: bool = option(False, "--json"),
) -> None:
    """Install the packages of extras."""
    from accelbench.core.formatting import split_words
    from accelbench.hardware.installing import installed_extras

    known = installed_extras()
    meant = list(dict.fromkeys(known.resolve_extra(word) for word in split_words(names)))
    stream = sys.stderr if as_json else sys.stdout
    document = _installed(known, meant, stream, index=index, reinstall=reinstall)
    if _BROWSER in meant:
        document |= _fetched(None, stream)
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _installed(
    known: Extras,
    names: list[str],
    stream: IO[str],
    *,
    index: list[str] | None = None,
    reinstall: bool = False,
) -> dict[str, Any]:
    from accelbench.cli.commands.run import termination_as_interrupt
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.installing import (
        as_arguments,
        current_environment,
        find_missing,
        install,
        refuse_clashes,
        requirements_of,
        version_of,
    )

    wanted = requirements_of(known, names)
    needed, notes = find_missing(wanted, version_of)
    before = {requirement.about.name: version_of(requirement.about.name) for requirement in wanted}
    environment, again = current_environment(), reinstall and bool(wanted)
    print_lines(notes, stream)
    if needed or again:
        refuse_clashes(needed, version_of)
        taken = [requirement for requirement in wanted if again or requirement in needed]
        environment.refuse()
        packages = ", ".join(requirement.about.name for requirement in taken)
        print_line(
            f"Installing {packages} into {environment.folder} by {environment.installer} …", stream
        )
        stream.flush()
        with termination_as_interrupt():
            install(
                environment,
                as_arguments(taken),
                known.other_bounds(taken),
                lambda line: print_line(f"  {line}", stream),
                index=index or (),
                reinstall=reinstall,
            )
        still, _ = find_missing(wanted, version_of)
        if still:
            raise SurroundingsError(
                f"{environment.installer} ended well, and {still[0].text} is still not in"
                f" {environment.folder}.",
                "Its configuration may name another place: look at PIP_TARGET, PIP_PREFIX and"
                " PIP_USER.",
            )
    for name in names:
        listed = (
            f"{requirement.about.name} {version_of(requirement.about.name)}"
            for requirement in known.wanted[name]
            if version_of(requirement.about.name)
        )
        print_line(f"Extra {name}: {', '.join(listed) or 'nothing to install'}", stream)
    return {
        "environment": str(environment.folder),
        "installer": environment.installer if needed or again else None,
        "extras": names,
        "installed": [
            {"package": name, "version": version_of(name), "before": old}
            for name, old in before.items()
            if version_of(name) != old
        ],
    }


@app.command()
def browser(
    chromium: bool | None = option(
        None,
        "--with-chromium/--without-chromium",
        show_default="where no suitable browser is installed",
    ),
    program: Path | None = option(None, "--browser", metavar="PATH"),
    as_json: bool = option(False, "--json"),
) -> None:
    """Fetch onnxruntime-web, and a browser where none is installed.

    Packages of the extra browser that are missing are installed before.
    Both come through npm, in one version each and checked by its sum, into the cache
    ($ACCELBENCH_CACHE); what is there already is not fetched again. The browser is a headless
    Chromium for Linux on x86-64, with WebGPU in software.

    A Chrome, Edge or Chromium of your own serves as well, and has your GPU. WebNN, however, works
    in few installed browsers: for hardware webnn take --with-chromium.
    """
    from accelbench.cli.arguments.resolved_values import use_browser

    use_browser(program)
    stream = sys.stderr if as_json else sys.stdout
    document = _fetched(chromium, stream)
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _fetched(chromium: bool | None, stream: IO[str]) -> dict[str, Any]:
    from accelbench.cli.commands.run import termination_as_interrupt
    from accelbench.core.errors import SurroundingsError
    from accelbench.engines.browser import assets
    from accelbench.hardware.installing import (
        find_missing,
        installed_extras,
        requirements_of,
        version_of,
    )

    _refuse_a_wrong_name()
    if chromium and not assets.chromium_runs_here():
        raise SurroundingsError(
            "The Chromium that can be fetched runs on Linux on x86-64 alone.", _other_browsers()
        )
    known = installed_extras()
    document: dict[str, Any] = {}
    if find_missing(requirements_of(known, [_BROWSER]), version_of)[0]:
        document = _installed(known, [_BROWSER], stream)
    needed = all(candidate["fetched"] for candidate in _usable())
    packages = assets.wanted(needed if chromium is None else chromium)
    with termination_as_interrupt():
        done = [_had(package, stream) for package in packages]
    usable = _usable()
    for program in usable:
        print_lines((f"Pages can run in {program['name']}:", f"  {program['path']}"), stream)
    if not usable:
        print_lines(
            ("No browser is here that pages could run in.", *_other_browsers().splitlines()), stream
        )
    return {**document, "packages": done, "browsers": usable}


def _refuse_a_wrong_name() -> None:
    """Before anything is fetched: with that browser, all of it would be in vain."""
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.browsers import BROWSER_VARIABLE, NAME_ANOTHER, InstalledPrograms

    programs = InstalledPrograms()
    if vain := programs.explain_missing():
        raise SurroundingsError(f"{vain[0].upper()}{vain[1:]}.", NAME_ANOTHER)
    browsers = programs.find()
    if os.environ.get(BROWSER_VARIABLE) and not any(
        program.engine == _CHROMIUM for program in browsers
    ):
        raise SurroundingsError(
            f"Pages run in browsers of Chromium's kind alone, and {browsers[0].path} is none.",
            NAME_ANOTHER,
        )


def _usable() -> list[dict[str, Any]]:
    from accelbench.hardware.browsers import FETCHED, InstalledPrograms

    return [
        {"name": program.name, "path": program.path, "fetched": program.name == FETCHED}
        for program in InstalledPrograms().find()
        if program.engine == _CHROMIUM
    ]


def _had(package: Package, stream: IO[str]) -> dict[str, Any]:
    from accelbench.engines.browser import assets

    folder = assets.folder_of(package)
    exists = folder.is_dir()
    called = f"{package.name} {package.version} ({package.licence})"
    if exists:
        print_lines((called, f"  is there already: {folder}"), stream)
    else:
        print_line(f"Fetching {called} …", stream)
        stream.flush()
        assets.fetch(package)
        print_line(f"  It lies in {folder}", stream)
    stream.flush()
    return {
        "name": package.name,
        "version": package.version,
        "licence": package.licence,
        "folder": str(folder),
        "fetched": not exists,
    }


def _other_browsers() -> str:
    from accelbench.hardware.browsers import BROWSER_VARIABLE

    return f"Install Chrome, Edge or Chromium, or name one: export {BROWSER_VARIABLE}=PATH"
