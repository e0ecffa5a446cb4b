"""The other arm of a run: an environment, a commit, or a setting.

../other/.venv, /usr/bin/python3.12, "docker run … python"   an environment's Python
commit:main, commit:HEAD~1                                    a commit of this repository
threads=1, onnxruntime.optimization=basic                     a setting
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from accelbench.core import processes
from accelbench.core.case import Option
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.run_options import RunSettings
from accelbench.core.visible import in_quotes
from accelbench.run.plan.request import Plan, Request

FORMS = (
    "Name an environment (a virtual environment's folder, a Python, or a command that starts one),"
    " commit:REVISION, or NAME=VALUE such as threads=1 or onnxruntime.optimization=basic."
)
_COMMIT = "commit:"
_SETTING = re.compile(r"(threads|compile|[a-z]+\.[a-z_]+)=(.+)")
_PYTHONS = ("bin/python", "Scripts/python.exe")
_GIT_SECONDS = 300.0


class AgainstKind(StrEnum):
    """What the other arm differs in."""

    ENVIRONMENT = "environment"
    COMMIT = "commit"
    SETTING = "setting"


@dataclass(frozen=True)
class Against:
    """The other arm, as it was named.

    Attributes:
        kind: which of the three.
        name: what its results are called.
        word: an interpreter's command line, a commit's full hash, or NAME=VALUE.
    """

    kind: AgainstKind
    name: str
    word: str

    @property
    def setting(self) -> tuple[str, str]:
        """The name and the value."""
        name, _, value = self.word.partition("=")
        return name, value


def meant(word: str) -> Against:
    """What a word names.

    Raises:
        UsageError: it names none of the three, or two of them.
    """
    path = Path(word).expanduser()
    setting = _SETTING.fullmatch(word) is not None
    commit = word.startswith(_COMMIT)
    if (setting or commit) and path.exists():
        raise UsageError(f"{in_quotes(word)} is a path and may mean something else as well.", FORMS)
    if commit:
        return Against(AgainstKind.COMMIT, word, _hash(word.removeprefix(_COMMIT)))
    if setting:
        return Against(AgainstKind.SETTING, word, word)
    program = _program(word, path)
    if program is None:
        raise UsageError(
            f"--against {in_quotes(word)} names nothing that a run can be compared with.", FORMS
        )
    return Against(AgainstKind.ENVIRONMENT, word, shlex.join(program))


def _program(word: str, path: Path) -> list[str] | None:
    """What starts the interpreter that a word names."""
    if path.is_dir():
        paths = (path / name for name in _PYTHONS)
        # Not resolved: a link's own folder is what makes it an environment's.
        return next(([str(python.absolute())] for python in paths if python.exists()), None)
    if path.is_file() and os.access(path, os.X_OK):
        return [str(path.absolute())]
    try:
        parts = shlex.split(word)
    except ValueError:
        return None
    found_at = shutil.which(parts[0]) if parts else None
    if found_at is None or (len(parts) == 1 and "python" not in Path(found_at).name):
        return None
    return [found_at, *parts[1:]]


def _hash(revision: str) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except SurroundingsError as error:
        here = _repository()
        message = (
            f"{here} has no commit {in_quotes(revision)}." if here else f"{Path.cwd()} is in no git"
        )
        raise UsageError(message if here else f"{message} repository.", FORMS) from error


def _repository() -> str:
    try:
        return git("rev-parse", "--show-toplevel")
    except SurroundingsError:
        return ""


def git(*words: str) -> str:
    """What git says.

    Raises:
        SurroundingsError: there is no git, or it failed.
    """
    try:
        ended = processes.run(["git", *words], _GIT_SECONDS)
    except OSError as error:
        raise SurroundingsError("There is no git here.", "Install it.") from error
    if ended.returncode:
        raise SurroundingsError(f"git {words[0]}: {ended.last_line or 'it failed'}.")
    return ended.stdout.strip()


@dataclass(frozen=True)
class OtherArm:
    """The arm that a run is compared with, as it is planned."""

    against: Against
    plan: Plan
    settings: RunSettings


def asked_otherwise(
    request: Request, settings: RunSettings, name: str, value: Option | Mapping[str, Option]
) -> tuple[Request, RunSettings]:
    """The request and the settings of an arm that differs in one setting.

    Args:
        request: of this arm.
        settings: of this arm.
        name: "threads", "compile", or a runtime's name.
        value: of that setting; of a runtime its options.
    """
    if isinstance(value, Mapping):
        before = request.runtime_options
        own = {**before, name: {**before.get(name, {}), **value}}
        return replace(request, runtime_options=own), settings
    options = {**request.options, name: value}
    if name == "compile" and not value:
        del options["compile"]
    if name == "threads":
        settings = settings.with_values(threads=int(value))
    return replace(request, options=options), settings
