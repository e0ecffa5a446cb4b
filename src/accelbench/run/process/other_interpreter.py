"""The interpreter of the other arm of a run, there while the run goes on.

A commit's files are checked out into a folder of their own, whose packages then come before those
that are installed from the repository here; everything else is this environment's.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError
from accelbench.run.plan.against import Against, AgainstKind, git
from accelbench.run.plan.arms import OtherArm
from accelbench.run.plan.request import Plan
from accelbench.run.plan.run_settings import DEFAULT_TIMEOUT
from accelbench.run.process.commit_models import Checkout, as_committed, shared_by_both
from accelbench.run.process.interpreter import INTRODUCTION_SECONDS, Interpreter, introduced
from accelbench.store.scratch import Scratch

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arm:
    """The same with its interpreter there, which has introduced itself.

    Attributes:
        plan: what is measured in it: of a commit with an owner's code as that commit has it.
        notes: what a reader should know of that.
    """

    other: OtherArm
    interpreter: Interpreter | None  # None: ours
    plan: Plan
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def conditions(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """What an arm's results say beside the usual: its commit, where commits are compared."""
        if self.other.against.kind is not AgainstKind.COMMIT:
            return {}
        git = ours.get("git") or {}
        changed = " with uncommitted changes" if git.get("dirty") else ""
        return {"commit": f"{git['commit']}{changed}" if git.get("commit") else None}


@contextmanager
def opened(
    other: OtherArm | None, environment: Mapping[str, Any], note: Callable[[str], None]
) -> Iterator[Arm | None]:
    """Keep the other arm's interpreter ready during a run; yield None if there is no other arm.

    Args:
        other: the arm.
        environment: this interpreter's.
        note: hears what is waited for.

    Raises:
        SurroundingsError: it cannot be started, does not go with this program, or has a model that
            is not measured: nothing has begun then.
    """
    if other is None:
        yield None
        return
    with interpreter_of(other.against) as (interpreter, checkout):
        if interpreter is None:
            yield Arm(other, None, other.plan, environment)
            return
        timeout = other.settings.timeout
        limit = INTRODUCTION_SECONDS if timeout == DEFAULT_TIMEOUT else timeout
        introduction = introduced(interpreter, other.against.name, note, limit)
        if checkout is None:
            plan, notes = other.plan, shared_by_both(other.plan)
        else:
            plan, notes = as_committed(other.plan, checkout)
        yield Arm(other, interpreter, plan, introduction["environment"], tuple(notes))


@contextmanager
def interpreter_of(against: Against) -> Iterator[tuple[Interpreter | None, Checkout | None]]:
    """The interpreter of the other arm, ours (None) for a setting, and a commit's files.

    What it needs goes with it.
    """
    if against.kind is AgainstKind.SETTING:
        yield None, None
    elif against.kind is AgainstKind.ENVIRONMENT:
        program = shlex.split(against.word)
        yield Interpreter(program, alone=len(program) > 1), None
    else:
        with _checked_out(against.word) as (folder, top):
            variables = {"PYTHONPATH": os.pathsep.join(_paths(folder, top))}
            working = _there(Path.cwd(), top, folder)
            yield (
                Interpreter([sys.executable], variables=variables, folder=working),
                Checkout(against.name, top, folder, variables, working),
            )


@contextmanager
def _checked_out(commit: str) -> Iterator[tuple[Path, Path]]:
    """A commit's files in a folder of their own, and the top of the repository here."""
    top = Path(git("rev-parse", "--show-toplevel"))
    scratch = Scratch()
    folder = scratch.folder / "commit"
    try:
        git("worktree", "prune")  # of a run that was killed
        git("worktree", "add", "--detach", "--quiet", str(folder), commit)
        yield folder, top
    finally:
        try:
            git("worktree", "remove", "--force", str(folder))
        except (SurroundingsError, processes.TimeoutExpired) as error:
            _log.debug("removing the commit's files: %s", error)
        scratch.close()


def _paths(folder: Path, top: Path) -> list[str]:
    """Where Python finds the commit's packages: as here, with the commit's folder in its place.

    Raises:
        SurroundingsError: nothing that is imported here is the repository's.
    """
    here = [Path(entry).resolve() for entry in sys.path if entry]
    ours = [path for path in here if path.is_relative_to(top.resolve()) and not _installed(path)]
    mapped = [folder / path.relative_to(top.resolve()) for path in ours]
    if not mapped:
        source = folder / "src"
        mapped = [source if source.is_dir() else folder]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [part for part in before if part and Path(part).resolve() not in ours]
    return [*dict.fromkeys(str(path) for path in mapped), *kept]


def _installed(path: Path) -> bool:
    """Whether this is an environment that lies within the repository: no commit has it."""
    return "site-packages" in path.parts or path.is_relative_to(Path(sys.prefix).resolve())


def _there(path: Path, top: Path, folder: Path) -> Path:
    """The same folder among the commit's files, or their top where it has none."""
    inside = folder / path.resolve().relative_to(top.resolve())
    return inside if inside.is_dir() else folder
