"""What the modules that build models of packages have in common.

Each is read as an owner's code is: an attribute of it is the name of a model, and gives a factory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench.catalog.code_models import loading
from accelbench.catalog.file_models.kinds import FileRefusedError
from accelbench.core.near import meant
from accelbench.core.visible import in_quotes

Factory = Callable[[], tuple[Any, tuple[Any, ...]]]
#: What is asked of a module that gives an owner's object, and is no model's name.
_ASKED = {
    loading.EXAMPLE, loading.LOSS, loading.LABELS, loading.SETUP, loading.TEARDOWN,
    loading.REFERENCE, "example_input_array",
}  # fmt: skip


def package(name: str) -> ModuleType:
    """A package, imported.

    Raises:
        FileRefusedError: it is not to be imported here.
    """
    try:
        return import_module(name)
    except Exception as error:
        words = " ".join(str(error).split())[:200].rstrip(".")
        advice = f"Import {name} in Python alone, and mend it."
        if "torchvision::" in words:
            # The index has builds for CUDA alone: beside another torch their library is not loaded.
            words = f"torchvision {version('torchvision')} is of another build than this torch"
            advice = (
                "Install it from where this torch came: for CPUs,"
                " pip install torchvision --index-url https://download.pytorch.org/whl/cpu"
            )
        raise FileRefusedError(f"{name} cannot be imported: {words}.", advice) from error


def refuse_others(name: str, known: Callable[[], Iterable[str]], whose: str) -> None:
    """Refuse what is no name of a model.

    Raises:
        AttributeError: it is none that a person would type.
        FileRefusedError: the package has no such model.
    """
    if name.startswith("_") or name in _ASKED:
        raise AttributeError(name)
    names = list(known())
    if name not in names:
        advice = meant(name, names, "It has")
        if len(advice) > 300:
            advice = f"It has {len(names):,} models, none of a name like that."
        raise FileRefusedError(f"{whose} has no model {in_quotes(name)}.", advice)


def sources_of(module: ModuleType, builder: Any) -> list[str]:
    """Files that tell one version of a model from another: the package's version, and its code."""
    folder = Path(str(module.__file__)).parent
    code = getattr(import_module(builder.__module__), "__file__", None)
    files = [folder / "version.py", *([Path(code)] if code else [])]
    return [str(path) for path in files if path.is_file()]
