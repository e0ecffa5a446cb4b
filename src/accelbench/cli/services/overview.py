"""`accelbench` alone: this machine, this database, and what to type next."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from accelbench import __version__
from accelbench.core.axes import AXES
from accelbench.core.devices import cards
from accelbench.core.errors import AccelbenchError
from accelbench.core.formatting import format_count
from accelbench.core.protocols import Device
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.rows import number
from accelbench.core.vocabulary import Status
from accelbench.present.terminal.hardware import size
from accelbench.present.terminal.terminal import complain, print_line

if TYPE_CHECKING:
    from accelbench.core.rows import ResultRow
    from accelbench.judge.overview import LastRun, StoreOverview

#: Commands that are shown, with what they answer; the first where nothing is measured yet.
_BEGIN = (
    ("accelbench run bert-tiny", "measure a model of the catalogue"),
    ("accelbench run mine.onnx", "measure a model of your own"),
    ("accelbench hardware", "what is here to measure on"),
    ("accelbench doctor", "what is missing, and how to get it"),
)
_GO_ON = (
    ("accelbench compare {model} --pivot", "its engines, precisions and batches in one table"),
    ("accelbench recommend {model}", "which hardware to take for it"),
    ("accelbench history", "what changed over time"),
    ("accelbench check", "whether anything became worse"),
    ("accelbench dashboard", "all of it in a browser"),
)
_OURS = "accelbench"
#: A longer command has a line of its own.
_LONG = 44
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
    commands = (*(_next(found) if found is not None and found.results else _BEGIN), _HELP)
    width = max(len(command) for command, _ in commands if len(command) <= _LONG)
    for command, answers in commands:
        if len(command) <= _LONG:
            print_line(f"  {command:<{width}}  {answers}")
        else:  # a command is copied whole
            print_line(f"  {command}")
            print_line(f"  {'':<{width}}  {answers}")


def _next(found: StoreOverview) -> list[tuple[str, str]]:
    again = next(filter(None, map(_measured_again, found.unsteady)), None)
    first = [(again, "measure again what is unsteady, in fresh processes")] if again else []
    newest = max(found.fastest, key=lambda row: str(row.get("started_at") or ""), default=None)
    model = shlex.quote(str(newest["model"])) if newest is not None else "MODEL"
    return first + [(command.format(model=model), answers) for command, answers in _GO_ON]


def _measured_again(row: ResultRow) -> str | None:
    """The command that measures a result's case in several launches, where words say all of it."""
    from accelbench.core.run_command import (
        batch_arguments,
        mode_arguments,
        precision_arguments,
        run_command,
        size_arguments,
    )
    from accelbench.judge.filters import in_catalogue
    from accelbench.models.find import find
    from accelbench.recommend.evidence.model_evidence import own_shapes

    model = str(row["model"])
    said = {"options": {}, "data_source": "synthetic", "weights": "random", "world_size": 1}
    if not in_catalogue(model) or any(row.get(n) not in (None, v) for n, v in said.items()):
        return None
    usual = own_shapes(find(model))
    sizes = {
        axis.column: int(size)
        for axis in AXES
        if (size := number(row, axis.column)) and size != usual.get(axis.column)
    }
    return run_command(
        model,
        str(row["hardware"]),
        ("--framework", str(row["runtime"])),
        precision_arguments(str(row["precision"])),
        batch_arguments(int(row["batch_size"] or 1)),
        mode_arguments(str(row["mode"])),
        size_arguments(sizes),
        ("--launches", str(FEWEST_LAUNCHES)),
    )


def _machine() -> str:
    from accelbench.hardware.cpu import CpuDetector
    from accelbench.hardware.machine import usable_cpus

    found = CpuDetector().detect()[0]
    cpus = format_count(usable_cpus(), "CPU")
    if not isinstance(found, Device):
        return cpus
    memory = [size(found.memory_bytes)] if found.memory_bytes else []
    return ", ".join([found.name, cpus, *memory])


def _engines() -> str:
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
    from accelbench.judge.overview import overview_of
    from accelbench.store.opening import open_store

    usual = open_store(None)
    if not usual.exists:
        print_line(f"Database: none at {usual.name} yet; a run makes it")
        return None
    return overview_of(filled(None))


def _print_store(found: StoreOverview) -> None:
    held = f"{format_count(found.results, 'result')} of {format_count(found.models, 'model')}"
    print_line(f"Database: {found.name}, {held} in {format_count(found.runs, 'run')}")
    if found.last is not None:
        print_line(f"Last run: {_last(found.last)}")
    from accelbench.present.document import Document
    from accelbench.present.terminal.documents import show
    from accelbench.present.terminal.store_status import fastest_by_task, unsteady_lines

    for line in unsteady_lines(found):
        print_line(line)
    if found.fastest:
        print_line()
        print_line("Fastest at the batch size that most devices ran, of the models measured last:")
        show(Document("", [fastest_by_task(found.fastest)]))


def _last(run: LastRun) -> str:
    total = sum(run.by_status.values())
    ok = run.by_status.get(Status.OK, 0)
    others = [
        f"{n} {s.value.replace('_', ' ')}" for s, n in run.by_status.items() if s != Status.OK
    ]
    became = ", ".join([f"{ok} of {total} ok", *others])
    return f"{run.run_id}, {became}"
