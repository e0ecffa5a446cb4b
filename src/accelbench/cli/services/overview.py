"""`accelbench` alone: this machine, this database, and what to type next."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from accelbench import __version__
from accelbench.cli.display.hardware import size
from accelbench.cli.display.terminal import complain, print_line
from accelbench.core.cards import cards
from accelbench.core.errors import AccelbenchError
from accelbench.core.nouns import counted
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Status

if TYPE_CHECKING:
    from accelbench.query.overview import LastRun, StoreOverview

#: Commands that are shown, with what they answer; the first where nothing is measured yet.
_BEGIN = (
    ("accelbench run bert-tiny", "measure a model of the catalogue"),
    ("accelbench run mine.onnx", "measure a model of your own"),
    ("accelbench hardware", "what is here to measure on"),
    ("accelbench doctor", "what is missing, and how to get it"),
)
_GO_ON = (
    ("accelbench compare", "results beside each other"),
    ("accelbench recommend MODEL", "which hardware to take for a model"),
    ("accelbench check", "whether anything became worse"),
    ("accelbench dashboard", "all of it in a browser"),
)
_OURS = "accelbench"
_HELP = ("accelbench --help", "every command")


def show_overview() -> None:
    """Print it; a database that cannot be read is said, and the rest is shown all the same."""
    print_line(f"accelbench {__version__} on {_machine()}")
    print_line(f"Engines: {_engines()}")
    try:
        found = _store()
    except AccelbenchError as error:
        complain(str(error))
        found = None
    if found is not None:
        _print_store(found)
    print_line()
    commands = (*(_GO_ON if found is not None and found.results else _BEGIN), _HELP)
    width = max(len(command) for command, _ in commands)
    for command, answers in commands:
        print_line(f"  {command:<{width}}  {answers}")


def _machine() -> str:
    from accelbench.hardware.cpu import CpuDetector
    from accelbench.hardware.machine import usable_cpus

    found = CpuDetector().detect()[0]
    cpus = counted(usable_cpus(), "CPU")
    if not isinstance(found, Device):
        return cpus
    memory = [size(found.memory_bytes)] if found.memory_bytes else []
    return ", ".join([found.name, cpus, *memory])


def _engines() -> str:
    """What is installed, with versions; what is not is one command away."""
    installed = []
    for card in cards().values():
        for package in card.engine_packages[:1] or (card.package,):
            if package == _OURS:  # of a page, a callable, a script
                continue
            try:
                installed.append(f"{card.title or card.name} {version(package).partition('+')[0]}")
            except PackageNotFoundError:
                continue
    none = "none is installed: accelbench setup torch installs PyTorch"
    return " · ".join(installed) or none


def _store() -> StoreOverview | None:
    from accelbench.cli.services.opening import filled
    from accelbench.query.overview import overview_of
    from accelbench.store.lake import store_at

    usual = store_at(None)
    if not usual.there:
        print_line(f"Database: none at {usual.name} yet; a run makes it")
        return None
    return overview_of(filled(None))


def _print_store(found: StoreOverview) -> None:
    held = f"{counted(found.results, 'result')} of {counted(found.models, 'model')}"
    print_line(f"Database: {found.name}, {held} in {counted(found.runs, 'run')}")
    if found.last is not None:
        print_line(f"Last run: {_last(found.last)}")
    if not found.fastest:
        return
    from accelbench.cli.display.summary import print_summary

    print_line()
    print_line("Fastest at the smallest batch, of the models measured last:")
    print_summary(found.fastest, sys.stdout)


def _last(run: LastRun) -> str:
    total = sum(run.by_status.values())
    ok = run.by_status.get(Status.OK, 0)
    others = [
        f"{n} {s.value.replace('_', ' ')}" for s, n in run.by_status.items() if s != Status.OK
    ]
    became = ", ".join([f"{ok} of {total} ok", *others])
    return f"{run.run_id}, {became}"
