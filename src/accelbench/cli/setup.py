"""`accelbench setup`: fetch what a runtime needs beside its Python packages."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from accelbench.cli.display.terminal import print_line, print_lines

if TYPE_CHECKING:
    from accelbench.runtimes.browser.pins import Package

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_CHROMIUM = "chromium"


@app.callback()
def setup() -> None:
    """Fetch what a runtime needs beside its Python packages."""


@app.command()
def browser(
    chromium: bool | None = typer.Option(
        None,
        "--with-chromium/--without-chromium",
        help="Fetch the Chromium too, whatever is installed, or in no case.",
        show_default="where no suitable browser is installed",
    ),
    program: Path | None = typer.Option(
        None, "--browser", metavar="PATH", help="The browser that is to be used: its program."
    ),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON document on standard output, progress on standard error."
    ),
) -> None:
    """Fetch onnxruntime-web, and a browser where none is installed.

    Both come through npm, in one version each and checked by its sum, into the cache
    ($ACCELBENCH_CACHE); what is there already is not fetched again. The browser is a headless
    Chromium for Linux on x86-64, with WebGPU in software.

    A Chrome, Edge or Chromium of your own serves as well, and has your GPU. WebNN, however, works
    in few installed browsers: for hardware webnn take --with-chromium.
    """
    from accelbench.cli.asked import use_browser
    from accelbench.cli.run import termination_as_interrupt
    from accelbench.core.errors import SurroundingsError
    from accelbench.runtimes.browser import assets, pins

    use_browser(program)
    _refuse_a_wrong_name()
    if chromium and not pins.chromium_runs_here():
        raise SurroundingsError(
            "The Chromium that can be fetched runs on Linux on x86-64 alone.", _other_browsers()
        )
    needed = all(one["fetched"] for one in _usable())
    packages = assets.wanted(needed if chromium is None else chromium)
    stream = sys.stderr if as_json else sys.stdout
    with termination_as_interrupt():
        done = [_had(package, stream) for package in packages]
    usable = _usable()
    if as_json:
        document = {"packages": done, "browsers": usable}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    for one in usable:
        print_lines((f"Pages can run in {one['name']}:", f"  {one['path']}"), stream)
    if not usable:
        print_lines(
            ("No browser is here that pages could run in.", *_other_browsers().splitlines()), stream
        )


def _refuse_a_wrong_name() -> None:
    """Before anything is fetched: with that browser, all of it would be in vain."""
    from accelbench.core.errors import SurroundingsError
    from accelbench.hardware.browsers import BROWSER_VARIABLE, NAME_ANOTHER, InstalledPrograms

    programs = InstalledPrograms()
    if vain := programs.named_in_vain():
        raise SurroundingsError(f"{vain[0].upper()}{vain[1:]}.", NAME_ANOTHER)
    found = programs.find()
    if os.environ.get(BROWSER_VARIABLE) and not any(one.engine == _CHROMIUM for one in found):
        raise SurroundingsError(
            f"Pages run in browsers of Chromium's kind alone, and {found[0].path} is none.",
            NAME_ANOTHER,
        )


def _usable() -> list[dict[str, Any]]:
    """Browsers that can be driven: the user's own, and the one that was fetched."""
    from accelbench.hardware.browsers import FETCHED, InstalledPrograms

    return [
        {"name": one.name, "path": one.path, "fetched": one.name == FETCHED}
        for one in InstalledPrograms().find()
        if one.engine == _CHROMIUM
    ]


def _had(package: Package, stream: IO[str]) -> dict[str, Any]:
    """Have a package here, and what there is to say of it."""
    from accelbench.runtimes.browser import assets

    folder = assets.folder_of(package)
    there = folder.is_dir()
    called = f"{package.name} {package.version} ({package.licence})"
    if there:
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
        "fetched": not there,
    }


def _other_browsers() -> str:
    from accelbench.hardware.browsers import BROWSER_VARIABLE

    return f"Install Chrome, Edge or Chromium, or name one: export {BROWSER_VARIABLE}=PATH"
