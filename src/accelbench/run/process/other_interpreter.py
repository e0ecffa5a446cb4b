"""The interpreter of the other arm of a run: another environment's, or this one with a commit's
files.

A commit's files are checked out into a folder, whose packages come before those installed from the
repository here. A user's models are the commit's too: code imports from beside itself first, so one
file in both arms would import from here in both, and a slower change would not be seen. In another
environment that is so; a note names what comes from beside the file. Each interpreter introduces
itself first: conductor and workers must have the same protocol and rules of measuring.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelbench import __version__
from accelbench.core import processes
from accelbench.core.case import PROTOCOL_VERSION
from accelbench.core.errors import SurroundingsError
from accelbench.core.formatting import join_first
from accelbench.core.model import ModelCode, ModelFile, ModelSpec
from accelbench.core.run_options import DEFAULT_TIMEOUT
from accelbench.models.code_models.models import Elsewhere, looked_at_elsewhere
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.unchanged import digest_of, files_of
from accelbench.run.plan.request import Against, AgainstKind, OtherArm, Plan, git
from accelbench.run.process.wire import WIRE_VERSION
from accelbench.store.files import Scratch

#: An environment on a cold disk imports for a while before it can answer.
INTRODUCTION_SECONDS = 120.0


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter and how to start it."""

    program: Sequence[str]  # what starts it, to which a module's name is added
    #: it is started by a command of its own, such as a container's: its processes have numbers
    #: that mean nothing here, and each worker is started afresh.
    alone: bool = False
    #: what its environment has beside ours.
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # where it runs; here where not given

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        return {**ours, **self.variables}


def introduced(
    interpreter: Interpreter,
    called: str,
    note: Callable[[str], None] = lambda _: None,
    limit: float = INTRODUCTION_SECONDS,
) -> dict[str, Any]:
    """Return the versions and the environment that an interpreter reports of itself.

    Raises SurroundingsError if it does not start, does not answer in time, or does not fit.
    """
    program = [*interpreter.program, "-P", "-m", "accelbench.run.process.introduction"]
    install = f"Install accelbench {__version__} there."
    try:
        ended = processes.run(
            program,
            limit,
            environment=interpreter.environment(os.environ),
            folder=interpreter.folder,
            on_wait=lambda: note(
                f"Waiting for {called} to report its versions, as a Python with accelbench does;"
                f" for {limit:g} s at most (--timeout)."
            ),
        )
    except OSError as error:
        raise SurroundingsError(f"{called} starts no Python: {error}.", install) from error
    except processes.TimeoutExpired as error:
        raise SurroundingsError(
            f"{called} did not report its versions within {limit:g} s, as a Python with accelbench"
            " does.",
            "Name a Python, an environment or a command that starts one, or raise --timeout.",
        ) from error
    try:
        introduction: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
        theirs = introduction["wire"], introduction["rules"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        last = ended.last_line or "it said nothing"
        raise SurroundingsError(
            f"{called} has no accelbench that goes with this one: {last}.", install
        ) from error
    if theirs != (WIRE_VERSION, PROTOCOL_VERSION):
        raise SurroundingsError(
            f"{called} has accelbench {introduction.get('accelbench')}, whose workers speak"
            f" protocol {theirs[0]} and measure by rules {theirs[1]}; this one has"
            f" {WIRE_VERSION} and {PROTOCOL_VERSION}.",
            install,
        )
    return introduction


@dataclass(frozen=True)
class Checkout:
    """The files of a commit."""

    name: str  # what the user named it
    top: Path  # of the repository here
    folder: Path  # where its files are, for as long as the run goes on
    variables: Mapping[str, str]  # what the environment of its processes has beside ours
    working: Path  # the folder that they run in

    def there(self, path: str | Path) -> Path | None:
        """Return a path of the repository among the commit's files; None for other paths."""
        # A link is the commit's as well, and may lead elsewhere there.
        whole = Path(path).parent.resolve() / Path(path).name
        top = self.top.resolve()
        return self.folder / whole.relative_to(top) if whole.is_relative_to(top) else None


def as_committed(plan: Plan, checkout: Checkout) -> tuple[Plan, list[str]]:
    """Return a plan with the commit's models, and notes.

    Raises SurroundingsError if the commit has a model that is not measured, or another file.
    """
    models: dict[str, ModelSpec] = {}
    notes: list[str] = []
    for planned in plan.cases:
        model = planned.case.model
        if model.id not in models:
            models[model.id], said = _committed(model, checkout)
            notes += said
    cases = tuple(
        replace(planned, case=replace(planned.case, model=models[planned.case.model.id]))
        for planned in plan.cases
    )
    return replace(plan, cases=cases), notes


def shared_by_both(plan: Plan) -> list[str]:
    """Return notes about a user's code in another environment that both arms import from here."""
    models = {planned.case.model.id: planned.case.model for planned in plan.cases}
    notes = []
    for model in models.values():
        code = model.code
        if code is None or code.package:
            continue
        # What of its repository lies elsewhere is found by what either has installed.
        folder, own = Path(code.folder).resolve(), Path(code.path).resolve()
        beside = [path for path in map(Path, code.sources) if path.is_relative_to(folder)]
        names = sorted({path.relative_to(folder).parts[0] for path in beside if path != own})
        if names:
            notes.append(
                f"{model.id} imports {', '.join(names)} from beside it in both arms, and not from"
                " either environment."
            )
    return notes


def _committed(model: ModelSpec, checkout: Checkout) -> tuple[ModelSpec, list[str]]:
    if model.file is not None:
        _refuse_another_file(model, model.file, checkout)
        return model, []
    if model.code is None or model.code.package:
        return model, []
    return _code(model, model.code, checkout)


def _refuse_another_file(model: ModelSpec, file: ModelFile, checkout: Checkout) -> None:
    """Raise SurroundingsError if the commit has another graph: it would be measured under this
    name."""
    pairs = [(path, checkout.there(path)) for path in files_of(file)]
    # What git ignores, as weights of gigabytes, no commit has.
    both = [(path, there) for path, there in pairs if there is not None and there.is_file()]
    if all(digest_of([path]) == digest_of([there]) for path, there in both):
        return
    raise SurroundingsError(
        f"{model.id} is another file in {checkout.name}, and a file that is measured is the same in"
        " both arms.",
        f"Measure each by itself: accelbench run {model.id} on either commit, then accelbench"
        " check --baseline.",
    )


def _code(model: ModelSpec, code: ModelCode, checkout: Checkout) -> tuple[ModelSpec, list[str]]:
    folder = checkout.there(code.folder)
    path = checkout.there(code.path) if code.path else None
    notes = []
    if folder is None:
        folder, path = Path(code.folder), Path(code.path) if code.path else None
        notes.append(
            f"{model.id} lies outside the repository: both arms run the same file, and what it"
            f" imports from the repository is of {checkout.name} in the other."
        )
    elif path is not None and not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(code.path, path)
        notes.append(
            f"{checkout.name} has no {Path(code.path).name}: that of here is run there, with what"
            " it imports from the commit."
        )
    try:
        found, of_here = looked_at_elsewhere(
            model,
            Elsewhere(
                str(path or ""),
                str(folder),
                {**os.environ, **checkout.variables},
                checkout.working,
                checkout.top,
            ),
        )
    except FileRefusedError as error:
        raise SurroundingsError(
            f"{model.id} is not measured in {checkout.name}: {error.within}", error.advice
        ) from error
    notes += _of_here(model, of_here, checkout)
    assert found.code is not None
    if found.code.digest == code.digest and found.code.folder != code.folder:
        notes.append(
            f"{model.id} and what it imports from its repository are the same in {checkout.name}"
            " as here; what it imports or reads only as it runs was not compared."
        )
    return found, notes


def _of_here(model: ModelSpec, files: Sequence[Path], checkout: Checkout) -> list[str]:
    """Return notes about files that the commit's arm imports from here.

    Raises SurroundingsError if the commit has them too: theirs would not be measured.
    """
    there = [path for path in files if (other := checkout.there(path)) and other.is_file()]
    if there:
        raise SurroundingsError(
            f"{model.id} is not measured in {checkout.name}: it imports"
            f" {_named(there, checkout)} from here, and not from the commit.",
            "An editable installation may lead there: install it without -e, or measure each commit"
            " by itself, then accelbench check --baseline.",
        )
    if not files:
        return []
    named = _named(files, checkout)
    return [f"{model.id} imports {named} from here in both arms: {checkout.name} has no such file."]


def _named(files: Sequence[Path], checkout: Checkout) -> str:
    return join_first([str(path.relative_to(checkout.top.resolve())) for path in files])


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arm:
    """The other arm with its interpreter, which has introduced itself."""

    other: OtherArm
    interpreter: Interpreter | None  # None: ours
    plan: Plan  # what is measured in it: of a commit with an owner's code as that commit has it
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader should know of that

    def conditions(self, ours: Mapping[str, Any]) -> dict[str, Any]:
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

    Raises SurroundingsError if it does not start or does not fit, before anything is measured.
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
    """Yield the interpreter of the other arm and a commit's files; None for this interpreter."""
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
    """Return Python's search path with the commit's folder in place of the repository's."""
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
    """Return whether a path is an environment within the repository, which no commit has."""
    return "site-packages" in path.parts or path.is_relative_to(Path(sys.prefix).resolve())


def _there(path: Path, top: Path, folder: Path) -> Path:
    inside = folder / path.resolve().relative_to(top.resolve())
    return inside if inside.is_dir() else folder
