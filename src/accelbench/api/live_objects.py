"""Handing a live object to fresh processes: files that make it again, and the code that reads them.

Weights go as they are, classes and functions by where they are imported from. Definitions of the
running script are imported from its file, as `multiprocessing` does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.safe_text import in_quotes
from accelbench.models.code_models.example import batch_of
from accelbench.models.code_models.loading import EXAMPLE, LIVE_OBJECT, SUFFIX, is_owners

#: What makes the object again: run in each worker, as any code of its owner's.
_SOURCE = Path(__file__).with_name("live_object_template.py.txt").read_text(encoding="utf-8")


def written(subject: Any, inputs: Any, folder: Path) -> str:
    """Write what makes an object again into a folder, and give the word that names it."""
    script = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    made = (subject,) if inputs is None else (subject, inputs)
    _refuse_local(subject)
    try:
        data = pickle.dumps(made)
    except Exception as error:
        raise _cannot(subject, " ".join(str(error).split())[:200]) from error
    files = _sources(subject)
    if b"__main__" in data and not (script and Path(script).is_file()):
        raise _cannot(subject, "it was defined in a session, not in a file")
    digest = hashlib.sha256(data).hexdigest()
    total = hashlib.sha256()
    for file in files:
        total.update(Path(file).read_bytes())
    (folder / "object.pickle").write_bytes(data)
    path = [str(Path(place or ".").absolute()) for place in sys.path]
    named = {"__main__": str(Path(script).absolute())} if script else {}
    places = {"path": path, "files": named | _files_alone(data, path)}
    # Beside the source, whose digest tells versions of the object apart, wherever they lie.
    (folder / "places.json").write_text(json.dumps(places), encoding="utf-8")
    source = _SOURCE.format(sources=total.hexdigest()[:16], digest=digest)
    (folder / LIVE_OBJECT).write_text(source, encoding="utf-8")
    return f"{folder / LIVE_OBJECT}:make"


def _files_alone(data: bytes, path: list[str]) -> dict[str, str]:
    """The files of modules in a pickle that no search path leads to.

    pytest's --import-mode=importlib, for one, imports tests from their files alone.
    """
    files = {}
    for name, module in list(sys.modules.items()):
        file = Path(str(getattr(module, "__file__", None) or ""))
        plain = file.suffix == ".py" and file.name != "__init__.py"
        if not plain or name == "__main__" or name.encode() not in data:
            continue
        found = _found_on(path, name)
        if "site-packages" not in file.parts and (
            found is None or Path(found).resolve() != file.resolve()
        ):
            files[name] = str(file.absolute())
    return files


def _found_on(path: list[str], name: str) -> str | None:
    """The file that a search path leads to by a module's name."""
    origin, places, packages = None, path, ""
    for part in name.split("."):
        packages = f"{packages}.{part}".lstrip(".")
        with suppress(ImportError, ValueError):
            spec = PathFinder.find_spec(packages, places)
            if spec is not None:
                origin, places = spec.origin, list(spec.submodule_search_locations or ())
                continue
        return None
    return origin


def _refuse_local(subject: Any) -> None:
    name = getattr(subject, "__qualname__", "")
    if inspect.isfunction(subject) and ("<locals>" in name or "<lambda>" in name):
        raise _cannot(subject, "it was defined within a function or as a lambda")


def _cannot(subject: Any, why: str) -> UsageError:
    return UsageError(
        f"{in_quotes(name_of(subject))} cannot be handed to a fresh process: {why}.",
        "Define it at the top of a file, and give that object, or 'file.py:function'; or measure it"
        " in this process, with less certainty: isolate=False.",
    )


def name_of(subject: Any) -> str:
    """What an object is called in results."""
    named = getattr(subject, "__qualname__", None) or type(subject).__qualname__
    return str(named)


def _sources(subject: Any) -> list[str]:
    """The files of an owner's classes and functions that an object is of, and what those import."""
    parts: Iterable[Any] = (subject,)
    if hasattr(subject, "modules"):
        parts = subject.modules()
    found: set[str] = set()
    for part in parts:
        with suppress(TypeError, OSError):
            owner = part if inspect.isroutine(part) or inspect.isclass(part) else type(part)
            file = inspect.getsourcefile(owner)
            if file and is_owners(Path(file)):
                _add_imports(file, sys.modules.get(owner.__module__), found)
    return sorted(found)


def _add_imports(file: str, module: ModuleType | None, found: set[str]) -> None:
    """A module's file, and those of its owner's modules beside it that it imports.

    What is installed tells its version by other means.
    """
    if file in found:
        return
    found.add(file)
    if module is None:
        return
    root = _root_of(module, Path(file))
    for name in _imports(Path(file), str(getattr(module, "__package__", None) or "")):
        other = sys.modules.get(name)
        beside = str(getattr(other, "__file__", None) or "")
        if not beside.endswith(SUFFIX) or not is_owners(Path(beside)):
            continue
        if Path(beside).resolve().is_relative_to(root):
            _add_imports(beside, other, found)


def _root_of(module: ModuleType, file: Path) -> Path:
    package = str(getattr(module, "__package__", None) or "")
    return file.resolve().parents[package.count(".") if package else 0]


def _imports(file: Path, package: str) -> Iterator[str]:
    with suppress(SyntaxError, ValueError, OSError, RecursionError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
                # What is imported from a package may be a module of it.
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            for name in names:
                parts = name.split(".")
                yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


#: As many items as the inputs have.
GIVEN = "given"


def batches_meant(
    batch_sizes: Sequence[int] | str | None, spec: ModelSpec, model: Any, inputs: Any
) -> tuple[int, ...]:
    """Items in a step; () leaves them to the plan."""
    if not isinstance(batch_sizes, str):
        return tuple(batch_sizes or ())
    example = None if isinstance(model, str) else inputs
    if example is None:
        example = getattr(model, EXAMPLE, None)
    return (spec.fixed_batch or batch_of(example) or 1,)
