"""Importing an owner's code and making its object, for looking at it and in workers.

A file runs like a script, its folder first on the search path, but under its own name:
`if __name__ == "__main__"` is not entered. Afterwards its folder is searched last, so that a file
named like a standard module shadows nothing.
"""

from __future__ import annotations

import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench.core.errors import CaseError
from accelbench.core.model import ModelCode
from accelbench.models.file_models.unchanged import digest_of

#: The object has it, or the file: what it is called with.
EXAMPLE = "example_inputs"
#: Lightning's modules have their example under this name.
_LIGHTNING = "example_input_array"
#: What a module is trained with, and what that takes beside the outputs.
LOSS, LABELS = "loss", "example_labels"
SETUP, TEARDOWN, REFERENCE = "setup", "teardown", "reference"


@dataclass(frozen=True)
class LoadedCode:
    """An owner's object, as its code made it."""

    subject: Any
    example: Any = None  # arguments of a call; None if nothing states them
    loss: Callable[..., Any] | None = None  # of a module that is trained
    labels: Any = None  # arguments of the loss after the outputs
    setup: Callable[[], Any] | None = None  # called once before the first call
    teardown: Callable[[], Any] | None = None  # called after the last call


def builder_of(code: ModelCode) -> str:
    """Return the builder of a model that is code: part of its identity, wherever its file lies."""
    return f"code:{code.attribute}"


def load(code: ModelCode) -> LoadedCode:
    """Make an object again; raise CaseError if its sources changed or its code fails."""
    refuse_changed(code)
    try:
        module = import_object_module(code)
        loaded = make_object(module, attribute_of(module, code.attribute), code.made_by)
        if not code.example_of:
            return loaded
        # Whatever example it has itself: its answers are compared with those to this one.
        attribute, made_by = code.example_of
        other = make_object(module, attribute_of(module, attribute), made_by)
        return replace(loaded, example=other.example)
    except CaseError:
        raise
    except Exception as error:
        raise CaseError(
            "code_failed",
            f"{code.module}:{code.attribute} fails: {failure(error, code.sources)}",
            "Run it in Python alone, and mend it.",
        ) from error


def refuse_changed(code: ModelCode) -> None:
    """Raise CaseError if the sources differ from those that were looked at."""
    try:
        digest = digest_of(map(Path, code.sources))
    except OSError as error:
        raise CaseError(
            "code_changed", f"{error.filename} cannot be read: {error.strerror}", "Run it again."
        ) from error
    if digest != code.digest:
        raise CaseError(
            "code_changed",
            f"{code.path or code.module} was changed after the run had looked at it",
            "Run it again, and leave its files as they are meanwhile.",
        )


def seed_all(seed: int) -> None:
    """Seed the generators that an owner may draw from."""
    random.seed(seed)
    for name, draws in (("numpy.random", "seed"), ("torch", "manual_seed")):
        module = sys.modules.get(name)
        if module is not None:
            getattr(module, draws)(seed % 2**32)


#: Modules that an object was taken from in this process: a second one is imported anew, as the
#: first was stepped, cast or trained.
_taken: set[str] = set()


def import_object_module(code: ModelCode) -> ModuleType:
    """Import and return the module that has the object."""
    with _searched_first(code.folder):
        if not code.path:
            if code.module in _taken and code.made_by == "itself":
                sys.modules.pop(code.module, None)
            _taken.add(code.module)
            return import_module(code.module)
        return _run(code.module, Path(code.path))


def _run(name: str, path: Path) -> ModuleType:
    there = sys.modules.get(name)
    if there is not None and getattr(there, "__file__", None) != str(path):
        name = f"accelbench_code_{name}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # as its name ends as Python's do
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # what pickles, compiles or inspects its classes looks there
    spec.loader.exec_module(module)
    return module


#: Whether an owner's code is being imported: what it would begin then would begin it anew.
_importing: list[str] = []


def is_importing() -> bool:
    """Return whether an owner's code is running to make its object."""
    return bool(_importing)


@contextmanager
def _searched_first(folder: str) -> Iterator[None]:
    kept = [place for place in sys.path if place != folder]
    sys.path[:] = [folder, *kept]
    _importing.append(folder)
    try:
        yield
    finally:
        _importing.pop()
        sys.path[:] = [*(place for place in sys.path if place != folder), folder]


def attribute_of(module: ModuleType, attribute: str) -> Any:
    """Return an attribute by its dotted name, or raise AttributeError."""
    found: Any = module
    for name in attribute.split("."):
        found = getattr(found, name)
    return found


def make_object(module: ModuleType, attribute: Any, made_by: str) -> LoadedCode:
    """Make the object of an attribute, with its example, loss, labels, setup and teardown."""
    given: Sequence[Any] = ()
    subject = attribute
    if made_by == "class":
        subject = attribute()
    elif made_by == "factory":
        _importing.append("")
        try:
            result = attribute()
        finally:
            _importing.pop()
        given = result if isinstance(result, tuple) else (result,)
        subject = given[0]

    def own(name: str, place: int | None = None) -> Any:
        if place is not None and len(given) > place:
            return given[place]
        for holder in (subject, attribute, module):
            value = getattr(holder, name, None)
            if value is not None:
                return value
        return None

    example = own(EXAMPLE, 1)
    if example is None:
        example = own(_LIGHTNING)
    loss = own(LOSS, 2)
    return LoadedCode(
        subject,
        example() if callable(example) and not is_array(example) else example,
        loss if callable(loss) else None,
        own(LABELS, 3),
        _called(own(SETUP)),
        _called(own(TEARDOWN)),
    )


def _called(what: Any) -> Callable[[], Any] | None:
    return what if callable(what) else None


def is_array(value: Any) -> bool:
    """Return whether a value is a tensor or an array of any library."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def failure(error: BaseException, sources: Sequence[str]) -> str:
    """Describe an error of an owner's code, and the line of theirs that raised it."""
    words = " ".join(str(error).split())[:300]
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in sources:
            place = f" ({Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename in sources:
        place = f" ({Path(str(error.filename)).name}, line {error.lineno})"
        return f"{type(error).__name__}: {error.msg}{place}"
    return text + place


def own_sources(code_file: str, folder: str) -> list[str]:
    """Return the owner's files that this process has imported, the object's own first.

    These are the files of its repository, or below its folder if it is in none, because a benchmark
    lies in a folder next to what it measures. Extensions built there count, installed packages do
    not: their version identifies them.
    """
    first = str(Path(code_file).resolve()) if code_file else ""
    found = {str(path) for path in imported_below(project_of(folder))}
    return [first, *sorted(found - {first})] if first else sorted(found)


def imported_below(top: Path) -> list[Path]:
    """Return the owner's files below a folder that this process has imported."""
    found = set()
    for module in list(sys.modules.values()):
        with suppress(Exception):  # a module's attributes may do anything
            file = getattr(module, "__file__", None)
            if module.__name__.partition(".")[0] in (_OURS, "__main__"):  # whoever looks
                continue
            if file and str(file).endswith(_IMPORTED) and Path(file).is_absolute():
                path = Path(file).resolve()
                if path.is_relative_to(top) and is_owners(path):
                    found.add(path)
    return sorted(found)


def project_of(folder: str) -> Path:
    """Return the repository of a folder, or the folder itself."""
    whole = Path(folder).resolve()
    places = (whole, *whole.parents)
    return next((place for place in places if (place / ".git").exists()), whole)


def is_owners(file: Path) -> bool:
    """Return whether a file exists and is neither installed nor part of Python."""
    if _INSTALLED.intersection(file.parts) or not file.is_file():
        return False
    return not file.is_relative_to(sysconfig.get_paths()["stdlib"])


_INSTALLED = {"site-packages", "dist-packages"}
_IMPORTED = (".py", *EXTENSION_SUFFIXES)
_OURS = __name__.partition(".")[0]


#: Of files that are run as Python.
SUFFIX = ".py"
#: The file that is written to make a live object again: no file of its owner's.
LIVE_OBJECT = "live_object.py"
_ATTRIBUTE = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")
_NAME = re.compile(r"^[^=/\\:]+$")


@dataclass(frozen=True)
class CodeWord:
    """The place of an attribute."""

    name: str  # given by its owner; "" if none
    place: str  # path of a file or name of a module, as written
    attribute: str  # "" if none is named

    @property
    def is_file(self) -> bool:
        return self.place.lower().endswith(SUFFIX)

    @property
    def path(self) -> Path:
        return Path(self.place).expanduser()

    def __str__(self) -> str:
        return f"{self.place}:{self.attribute}" if self.attribute else self.place


def code_word(word: str) -> CodeWord | None:
    """Return the code that a word names, or None if it names none.

    A module counts if it can be found as `python -m` finds it. Other words with a colon may have
    another meaning.
    """
    name, given, rest = word.partition("=")
    if not given or not _NAME.match(name) or not rest:
        name, rest = "", word
    place, _, attribute = rest.rpartition(":")
    if rest.lower().endswith(SUFFIX):
        return CodeWord(name.strip(), rest, "")
    if not place or not _ATTRIBUTE.match(attribute):
        return None
    found = CodeWord(name.strip(), place, attribute)
    return found if found.is_file or _is_module(place) else None


def _is_module(name: str) -> bool:
    if not _ATTRIBUTE.match(name):
        return False
    top = name.partition(".")[0]
    try:
        return PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None
    except (ImportError, ValueError):
        return False
