"""`accelbench run --save-plan`: what was asked for as a plan file that gives the same cases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from accelbench.catalog.file_models.models import path_of
from accelbench.cli.arguments.command_options import CommandOption
from accelbench.cli.arguments.plan_keys import DIMENSIONS, settled
from accelbench.cli.display.terminal import print_line
from accelbench.cli.services.asked import AskedRun
from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import combinations
from accelbench.core.model import ModelSpec
from accelbench.core.word_lists import words
from accelbench.exchange.plans.keys import PlanKey, PlanSection
from accelbench.exchange.plans.writing import write_plan
from accelbench.run.plan.run_settings import RunSettings

#: Options of the command line alone that change what is measured.
_TO_BE_TYPED = ("browser", "trust_remote_code", "against", "threshold")


def save(
    file: Path,
    asked: AskedRun,
    settings: RunSettings,
    options: Iterable[CommandOption],
    stream: IO[str],
    quiet: bool,
) -> None:
    """Write the plan, and say what it cannot hold.

    Args:
        file: what is written; its suffix says how.
        asked: what was asked for.
        settings: how the run would go about it.
        options: of the command.
        stream: where the path is said.
        quiet: whether nothing is said.
    """
    usual = {option.parameter: option.default for option in options}
    folder = file.expanduser().absolute().parent
    write_plan(file.expanduser(), _document(asked, settings, usual, folder))
    if quiet:
        return
    print_line(f"Plan: {file}", stream)
    missing = [
        f"--{name.replace('_', '-')}" for name in _TO_BE_TYPED if asked.typed[name] != usual[name]
    ]
    if missing:
        text = " and ".join(missing)
        print_line(f"Note: a plan file cannot hold {text}: give it beside the file.", stream)


def _document(
    asked: AskedRun, settings: RunSettings, usual: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    document: dict[str, Any] = {}
    plans = asked.plans.files
    if len(plans) == 1:
        told = {"name": plans[0].name, "description": plans[0].description}
        document |= {name: text for name, text in told.items() if text}
    blocks = _blocks(asked, folder)
    files = {
        str(path): path
        for path in (
            asked.typed["models_file"],
            *(plan.file.parent / plan.selection.values["models_file"][0] for plan in plans
              if "models_file" in plan.selection.values),
        )
        if path is not None
    }  # fmt: skip
    for path in files.values():
        document["models_file"] = _told_path(Path(path), folder)
    if len(blocks) == 1:
        document["models"] = blocks[0].pop("models")
        document |= {"matrix": blocks[0]} if blocks[0] else {}
    else:
        document["include"] = blocks
    run = {
        key.name: _plain(key, asked.typed[key.parameter], folder)
        for key in asked.keys.of(PlanSection.RUN)
        if asked.typed[key.parameter] != usual[key.parameter]
    }
    if settings.launches != 1:
        run["launches"] = settings.launches
    return {**document, **({"run": run} if run else {})}


def _blocks(asked: AskedRun, folder: Path) -> list[dict[str, Any]]:
    """Each request as a plan has it: keys with one value or several."""
    made = []
    typed_blocks: list[Mapping[str, tuple[str, ...]]] = list(asked.plans.blocks) or [{}]
    for request, block in zip(asked.requests, typed_blocks, strict=True):
        own: dict[str, Any] = {
            "models": [_model(asked.names.get(m.id, m.id), m, folder) for m in request.models]
        }
        for key in asked.keys.of(PlanSection.MATRIX):
            texts = block.get(key.name) or _typed(key, asked.typed[key.parameter])
            if texts:
                values = [_value(key, text) for text in texts]
                own[key.name] = values[0] if len(values) == 1 else values
        made.append(own)
    return made


def _model(word: str, model: ModelSpec, folder: Path) -> str:
    """A model as a plan names it: a file from the plan's folder."""
    if model.code is not None and not model.code.package:
        raise UsageError(
            f"A plan file cannot name code, which would run as soon as it is read: {model.id}.",
            "Leave out --save-plan.",
        )
    if model.file is None:
        return word
    name, _ = path_of(word)
    told = _told_path(Path(model.file.path), folder)
    return f"{name}={told}" if name else told


def _typed(key: PlanKey, value: Any) -> tuple[str, ...]:
    """What was typed of a key of the matrix; several settings of a runtime are one value."""
    if value is None or value is False or value == []:
        return ()
    if key.name == "option":
        return (",".join(value),)
    if key.name == DIMENSIONS:
        return combinations(value)
    texts = words(value) if isinstance(value, (list, tuple)) else (str(value).lower(),)
    return settled(key, texts)


def _value(key: PlanKey, text: str) -> Any:
    if key.kind == "truth":
        return text == "true"
    return int(text) if key.kind == "number" else text


def _plain(key: PlanKey, value: Any, folder: Path) -> Any:
    if key.path and str(value) not in key.words:
        return _told_path(Path(value), folder)
    return value if isinstance(value, (bool, int, float)) else str(value)


def _told_path(path: Path, folder: Path) -> str:
    """From the plan's folder where it is within, else in full."""
    full = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - links stay as they are named
    return str(full.relative_to(folder)) if full.is_relative_to(folder) else str(full)
