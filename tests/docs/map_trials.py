"""Each command of the map, run where what it needs has been prepared."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from map_commands import told, told_as_documented, told_quickly
from map_cover import MEASURED, RUNS
from map_folder import LOOKING, furnish
from map_running import Done, in_process, on_its_own, served

Manner = Callable[..., Done]


def manner_of(command: str) -> Manner:
    """How a command is run: in this process where that shows as much."""
    if command in RUNS and command not in MEASURED:
        return on_its_own
    return served if told(command)[0] == "dashboard" else in_process


@dataclass(frozen=True)
class Tried:
    """A command as it was run, and where."""

    words: tuple[str, ...]
    folder: Path
    done: Done


class Trials:
    """What commands came to; those with the same words, small and short as they are, run once."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        self._tried: dict[tuple[Manner, tuple[str, ...]], Tried] = {}

    def of(self, command: str, run: Manner) -> Tried:
        """A command's trial, in this manner."""
        return self._trial(told(command) if run is on_its_own else told_quickly(command), run)

    def as_documented(self, command: str) -> Tried:
        """A command's trial with the documents' own models and counts."""
        return self._trial(told_as_documented(command), on_its_own)

    def _trial(self, words: tuple[str, ...], run: Manner) -> Tried:
        if (run, words) not in self._tried:
            if run is in_process:
                self._request.getfixturevalue("engine")
            folder = self._furnished(words)
            self._tried[run, words] = Tried(words, folder, run(folder, *words))
        return self._tried[run, words]

    def _furnished(self, words: tuple[str, ...]) -> Path:
        folder = self._folders.mktemp("map")
        furnish(folder)
        if words[0] in LOOKING:
            shutil.copytree(self._request.getfixturevalue("prepared"), folder, dirs_exist_ok=True)
        if words[:2] == ("db", "status"):  # looks at a database, so there has to be one
            database = ("--db", words[-1]) if len(words) > 2 else ()
            assert in_process(folder, "db", "init", *database).returncode == 0
        if "--overwrite" in words:
            assert in_process(folder, *(w for w in words if w != "--overwrite")).returncode == 0
        return folder
