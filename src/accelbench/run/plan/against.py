"""What a run is held against, arm beside arm: an environment, a commit, or a setting.

What `--against` names is one of three, told apart by how it is written:

    ../other/.venv, /usr/bin/python3.12, "docker run … python"   an environment's Python
    commit:main, commit:HEAD~1                                    a commit of this repository
    threads=1, onnxruntime.optimization=basic                     a setting

A commit's files are checked out into a folder of their own, whose packages then come before those
that are installed from the repository here; everything else is this environment's.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.visible import in_quotes
from accelbench.run.process.interpreter import Interpreter
from accelbench.store.scratch import Scratch

_log = logging.getLogger(__name__)

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
            f"--against {in_quotes(word)} names nothing that a run can be held against.", FORMS
        )
    return Against(AgainstKind.ENVIRONMENT, word, shlex.join(program))


def _program(word: str, path: Path) -> list[str] | None:
    """What starts the interpreter that a word names."""
    if path.is_dir():
        found = (path / name for name in _PYTHONS)
        # Not resolved: a link's own folder is what makes it an environment's.
        return next(([str(one.absolute())] for one in found if one.exists()), None)
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


@contextmanager
def interpreter_of(against: Against) -> Iterator[Interpreter | None]:
    """The interpreter of the other arm, ours (None) for a setting; what it needs goes with it."""
    if against.kind is AgainstKind.SETTING:
        yield None
    elif against.kind is AgainstKind.ENVIRONMENT:
        program = shlex.split(against.word)
        yield Interpreter(program, alone=len(program) > 1)
    else:
        with _checked_out(against.word) as (folder, top):
            yield Interpreter(
                [sys.executable],
                variables={"PYTHONPATH": os.pathsep.join(_paths(folder, top))},
                folder=_there(Path.cwd(), top, folder),
            )


@contextmanager
def _checked_out(commit: str) -> Iterator[tuple[Path, Path]]:
    """A commit's files in a folder of their own, and the top of the repository here."""
    top = Path(_git("rev-parse", "--show-toplevel"))
    scratch = Scratch()
    folder = scratch.folder / "commit"
    try:
        _git("worktree", "prune")  # of a run that was killed
        _git("worktree", "add", "--detach", "--quiet", str(folder), commit)
        yield folder, top
    finally:
        try:
            _git("worktree", "remove", "--force", str(folder))
        except (SurroundingsError, processes.TimeoutExpired) as error:
            _log.debug("removing the commit's files: %s", error)
        scratch.close()


def _paths(folder: Path, top: Path) -> list[str]:
    """Where Python finds the commit's packages: as here, with the commit's folder in its place.

    Raises:
        SurroundingsError: nothing that is imported here is the repository's.
    """
    here = [Path(one).resolve() for one in sys.path if one]
    ours = [path for path in here if path.is_relative_to(top.resolve()) and not _installed(path)]
    mapped = [folder / path.relative_to(top.resolve()) for path in ours]
    if not mapped:
        source = folder / "src"
        mapped = [source if source.is_dir() else folder]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [one for one in before if one and Path(one).resolve() not in ours]
    return [*dict.fromkeys(str(path) for path in mapped), *kept]


def _installed(path: Path) -> bool:
    """Whether this is an environment that lies within the repository: no commit has it."""
    return "site-packages" in path.parts or path.is_relative_to(Path(sys.prefix).resolve())


def _there(path: Path, top: Path, folder: Path) -> Path:
    """The same folder among the commit's files, or their top where it has none."""
    inside = folder / path.resolve().relative_to(top.resolve())
    return inside if inside.is_dir() else folder


def _hash(revision: str) -> str:
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except SurroundingsError as error:
        here = _repository()
        said = (
            f"{here} has no commit {in_quotes(revision)}." if here else f"{Path.cwd()} is in no git"
        )
        raise UsageError(said if here else f"{said} repository.", FORMS) from error


def _repository() -> str:
    try:
        return _git("rev-parse", "--show-toplevel")
    except SurroundingsError:
        return ""


def _git(*words: str) -> str:
    try:
        ended = processes.run(["git", *words], _GIT_SECONDS)
    except OSError as error:
        raise SurroundingsError("There is no git here.", "Install it.") from error
    if ended.returncode:
        raise SurroundingsError(f"git {words[0]}: {ended.last_line or 'it failed'}.")
    return ended.stdout.strip()
