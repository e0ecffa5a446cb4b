"""Handing a live object to fresh processes: as files that make it again, and code that reads them.

Weights go as they are, classes and functions by where they are imported from. What was defined in
the script that runs is imported from its file, as `multiprocessing` does.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes

#: What makes the object again: run in each worker, as any code of its owner's.
_SOURCE = '''"""Makes an object that accelbench.benchmark() was given. Of sources {sources}."""

import hashlib
import importlib.util
import pickle
import sys
from pathlib import Path

SCRIPT = {script!r}
DIGEST = {digest!r}
sys.path += [place for place in {path!r} if place not in sys.path]
_modules = {{}}


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        if module != "__main__":
            return super().find_class(module, name)
        if SCRIPT not in _modules:
            spec = importlib.util.spec_from_file_location("accelbench_script", SCRIPT)
            made = importlib.util.module_from_spec(spec)
            sys.modules["accelbench_script"] = made
            spec.loader.exec_module(made)
            _modules[SCRIPT] = made
        found = _modules[SCRIPT]
        for part in name.split("."):
            found = getattr(found, part)
        return found


def make():
    data = Path(__file__).with_name("object.pickle").read_bytes()
    if hashlib.sha256(data).hexdigest() != DIGEST:
        raise ValueError("object.pickle was changed")
    import io

    return Reader(io.BytesIO(data)).load()
'''


def written(subject: Any, inputs: Any, folder: Path) -> str:
    """Write what makes an object again into a folder, and give the word that names it.

    Args:
        subject: a torch module, or anything that can be called.
        inputs: what it is called with; None where it says so itself.
        folder: empty; the run's own.

    Raises:
        UsageError: it cannot be made again in another process; the sentence says the way out.
    """
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
    source = _SOURCE.format(
        sources=total.hexdigest()[:16],
        script=str(Path(script).absolute()) if script else "",
        digest=digest,
        path=[str(Path(place or ".").absolute()) for place in sys.path],
    )
    (folder / "live_object.py").write_text(source, encoding="utf-8")
    return f"{folder / 'live_object.py'}:make"


def _refuse_local(subject: Any) -> None:
    """Refuse a closure or a lambda, which no import finds."""
    name = getattr(subject, "__qualname__", "")
    if inspect.isfunction(subject) and ("<locals>" in name or "<lambda>" in name):
        raise _cannot(subject, "it was defined within a function or as a lambda")


def _cannot(subject: Any, why: str) -> UsageError:
    return UsageError(
        f"{in_quotes(name_of(subject))} cannot be handed to a fresh process: {why}.",
        "Define it at the top of a file, and give that object, or 'file.py:function'.",
    )


def name_of(subject: Any) -> str:
    """What an object is called in results."""
    named = getattr(subject, "__qualname__", None) or type(subject).__qualname__
    return str(named)


def _sources(subject: Any) -> list[str]:
    """The files of an owner's classes and functions that an object is of."""
    parts: Iterable[Any] = (subject,)
    if hasattr(subject, "modules"):
        parts = subject.modules()
    found = set()
    for part in parts:
        with suppress(TypeError, OSError):
            owner = part if inspect.isroutine(part) or inspect.isclass(part) else type(part)
            file = inspect.getsourcefile(owner)
            if file and "site-packages" not in file and Path(file).is_file():
                found.add(file)
    return sorted(found)
