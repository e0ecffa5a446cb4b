"""What lies beside a model or its weights and says how it is fed, and how it numbers classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.catalog.hubcache import cached_folder
from accelbench.core import jsonc
from accelbench.core.errors import CaseError
from accelbench.core.job_settings import JobSettings
from accelbench.core.model import ModelSpec
from accelbench.core.visible import in_quotes

#: One class a line, in the order of the model's: where that of the classes' names is another.
CLASSES = "classes.txt"


def folders_beside(model: ModelSpec, settings: JobSettings) -> list[Path]:
    """The folders in which a model's publishers or its owner say how it is fed, the nearest first.

    Args:
        model: whose.
        settings: of the job; weights that it names are of no model that its owner brought.
    """
    if model.file is not None:
        return [Path(model.file.path).parent]
    if model.code is not None:
        return [Path(model.code.path).parent] if model.code.path else []
    found = [model.folder] if model.folder else []
    if settings.weights == "hub":
        cached = (cached_folder(hub_id) for hub_id in model.hub_ids)
        return [*map(Path, found), *(folder for folder in cached if folder is not None)]
    if settings.weights != "random":
        found.append(settings.weights)
    return [Path(folder).expanduser() for folder in found]


def read_beside(folders: Sequence[Path], name: str) -> Mapping[str, Any]:
    """A JSON object beside a model; empty where there is none that can be read."""
    for folder in folders:
        path = folder / name
        if path.is_file():
            try:
                read = jsonc.read(path, infinite=True)
            except (OSError, ValueError):
                return {}
            return read if isinstance(read, Mapping) else {}
    return {}


def numbered(
    root: Path, names: Sequence[str], model: ModelSpec, folders: Sequence[Path]
) -> tuple[Mapping[str, int], int | None, str]:
    """A number for each class; how many classes a model must have; what says the order.

    Args:
        root: a folder that may have classes.txt.
        names: of the classes, sorted.
        model: that tells them apart.
        folders: beside it.

    Raises:
        CaseError: classes.txt lacks one.
    """
    path = root / CLASSES
    if path.is_file():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        order = [line.strip() for line in lines if line.strip()]
        unknown = [name for name in names if name not in order]
        if unknown:
            raise CaseError(
                "data_mismatch",
                f"{path.name} has no line for the class {in_quotes(unknown[0])}.",
                "Write a line a class, in the order of the model's classes.",
            )
        return {name: order.index(name) for name in names}, len(order), path.name
    known = model.config.get("label2id")
    if known is None and model.is_own:
        known = read_beside(folders, "config.json").get("label2id")
    if isinstance(known, Mapping) and all(isinstance(known.get(name), int) for name in names):
        return {name: int(known[name]) for name in names}, None, "label2id of its config.json"
    by_name = f"the order of their names ({CLASSES} says another)"
    return {name: number for number, name in enumerate(names)}, len(names), by_name
