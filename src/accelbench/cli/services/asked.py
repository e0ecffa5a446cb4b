"""What an `accelbench run` command line asks for, and its plan file for `--save-plan`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from accelbench.catalog.file_models.given_inputs import OPTION
from accelbench.catalog.file_models.models import path_of
from accelbench.catalog.find import called
from accelbench.catalog.selection import notes_on
from accelbench.cli.arguments import run_arguments
from accelbench.cli.arguments.plan_keys import DIMENSIONS, CommandOption, plan_keys, settled
from accelbench.cli.arguments.run_words import (
    Typed,
    in_one_spelling,
    means_training,
    refuse_contradictions,
    refuse_simulating_all,
    request_of,
    settings_of,
)
from accelbench.cli.display.terminal import print_line
from accelbench.cli.services.plan_files import (
    MODELS,
    PlannedBlocks,
    blocks_of,
    plan_files_among,
    read_plans,
    run_values,
    typed_block,
)
from accelbench.core.errors import UsageError
from accelbench.core.free_dimensions import combinations
from accelbench.core.model import ModelSpec
from accelbench.core.nouns import words
from accelbench.core.run_spec import RunSettings
from accelbench.core.vocabulary import Mode
from accelbench.exchange.plans.document import PlanKey, PlanKeys, PlanSection, write_plan
from accelbench.run.plan.request import Request, apart

#: What a run of several processes measures if no mode is named.
TRAINING_NOTE = (
    "--distributed without --mode measures training. Add --mode inference for inference."
)


@dataclass(frozen=True)
class AskedRun:
    """What is asked for.

    Attributes:
        requests: what is measured, as it was written.
        typed: by the command's parameters, what holds for the whole run.
        settings: how the run goes about its cases.
        names: of models by id, as they were written.
        precisions: those that were named.
        passed_over: what of a models file is wrong, and was not named.
        plans: what plan files say; empty without any.
        keys: of plan files.
        given: parameters that were typed on the command line.
        further_notes: what is to be said beside the notes of the plan and the models.
    """

    requests: tuple[Request, ...]
    typed: Typed
    settings: RunSettings
    names: Mapping[str, str] = field(default_factory=dict)
    precisions: tuple[str, ...] = ()
    passed_over: list[str] = field(default_factory=list)
    plans: PlannedBlocks = field(default_factory=PlannedBlocks)
    keys: PlanKeys = field(default_factory=lambda: PlanKeys(()))
    given: frozenset[str] = frozenset()
    further_notes: Sequence[str] = ()

    @property
    def limit(self) -> int | None:
        """The most cases that are run."""
        limit: int | None = self.typed.get("limit")
        return limit

    @property
    def label(self) -> str | None:
        """The label of the run."""
        return run_arguments.label(self.typed.get("label"))

    @property
    def parts(self) -> tuple[Request, ...]:
        """The requests as they are planned: apart where not the same engines open their models."""
        if not self.plans.blocks:
            return tuple(
                part for one in self.requests for part in apart(one, bool(self.precisions))
            )
        blocks = zip(self.requests, self.plans.blocks, strict=True)
        return tuple(
            part for one, block in blocks for part in apart(one, bool(block.get("precision")))
        )

    @property
    def notes(self) -> list[str]:
        """What is said before a run: of its plan files, and what model files are fed with."""
        models = {model.id: model for request in self.requests for model in request.models}
        modes = {mode for request in self.requests for mode in request.modes}
        return [
            *self.plans.notes,
            *([TRAINING_NOTE] if means_training(self.typed) and Mode.TRAINING in modes else []),
            *(note for model in models.values() for note in notes_on(model)),
            *self.further_notes,
        ]


def asked_run(
    ctx: Any, typed: Mapping[str, Any], options: Sequence[CommandOption]
) -> AskedRun | None:
    """What the words of a command line ask for; None where they go on with a run."""
    given = {
        option.parameter: option.option or "a model"
        for option in options
        if (source := ctx.get_parameter_source(option.parameter)) and source.name == "COMMANDLINE"
    }
    typed, settled = in_one_spelling(typed, frozenset(given))
    if typed["resume"] is not None:
        refuse_contradictions(given, typed)
        return None
    keys = plan_keys(options)
    files, names = plan_files_among(typed["models"])
    typed["models"] = names
    if not files:
        refuse_contradictions(given, typed)
        if typed["save_plan"] is not None:
            _refuse_inputs(typed, "A plan file cannot hold what inputs hold", "--save-plan")
        return _of_words(typed, keys, settled)
    named = "What inputs hold is said of models on the command line"
    _refuse_inputs(typed, f"{named}, not of those of {files[0]}", str(files[0]))
    documents = read_plans(files, keys)
    planned = {
        name: value for name, value in run_values(documents, keys).items() if name not in settled
    }
    typed |= planned
    given |= {name: name.replace("_", "-") for name, value in planned.items() if value}
    refuse_contradictions(given, typed)
    _refuse_selection(keys, settled, files[0])
    narrowing = {
        **({MODELS: names} if names else {}),
        **{
            key.name: combinations(typed[key.parameter])
            if key.name == DIMENSIONS
            else _texts(typed[key.parameter])
            for key in keys
            if key.parameter in settled and key.section is PlanSection.MATRIX
        },
    }
    plans = blocks_of(documents, keys, narrowing)
    requests: list[Request] = []
    for block in plans.blocks:
        own = typed_block(typed, block, keys, Path())
        refuse_simulating_all(own["simulate"], own["hardware"])
        requests.append(request_of(own, tuple(plans.models[id_] for id_ in block[MODELS])))
    precisions = [name for block in plans.blocks for name in block.get("precision", ())]
    if any("both" in document.matrix.values.get("framework", ()) for document in documents):
        typed["framework"] = ["both"]  # what the number of launches goes by
    return AskedRun(
        tuple(requests),
        typed,
        settings_of(typed),
        plans.names,
        tuple(dict.fromkeys(precisions)),
        plans.passed_over,
        plans,
        keys,
        settled,
    )


def _of_words(typed: dict[str, Any], keys: PlanKeys, given: frozenset[str]) -> AskedRun:
    """What is asked for without a plan file."""
    names, passed_over = typed["models"], list[str]()
    refuse_simulating_all(typed["simulate"], typed["hardware"])
    chosen = run_arguments.models_for(
        names=names,
        set_name=typed["set_name"],
        categories=words(typed["category"]),
        specific=words(typed["specific"]),
        every=typed["every"],
        hardware_named="hardware" in given,  # a project's default asks for nothing by itself
        models_file=typed["models_file"],
        pass_over=lambda error: passed_over.append(str(error)),
        inputs=typed["inputs"],
        input_file=typed["input_file"],
        reference=typed["reference"],
    )
    precisions = run_arguments.precisions(words(typed["precision"])) if typed["precision"] else ()
    return AskedRun(
        (request_of(typed, chosen),),
        typed,
        settings_of(typed),
        called(names, chosen),
        precisions,
        passed_over,
        keys=keys,
        given=given,
    )


def _refuse_inputs(typed: Mapping[str, Any], why: str, beside: str) -> None:
    """Refuse what is said of inputs where it would not be heeded."""
    options = {"inputs": OPTION, "input_file": "--input-file"}
    for parameter, option in options.items():
        if typed[parameter]:
            raise UsageError(f"{why}.", f"Leave out {option}, or {beside}.")


def _refuse_selection(keys: PlanKeys, given: frozenset[str], file: Path) -> None:
    for key in keys.of(PlanSection.SELECTION):
        if key.name != MODELS and key.parameter in given:
            raise UsageError(
                f"{file} says which models are measured: --{key.name.replace('_', '-')} cannot be"
                " given beside it.",
                "Name models of it to measure those alone, or leave the option out.",
            )


def _texts(value: Any) -> Sequence[str]:
    """What was typed, as a plan file would have it."""
    if isinstance(value, (list, tuple)):
        return [str(part) for part in value] if _is_settings(value) else words(value)
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _is_settings(value: Sequence[Any]) -> bool:
    return any("=" in str(part) for part in value)


#: Options of the command line alone that change what is measured.
_TO_BE_TYPED = ("browser", "trust_remote_code", "against", "threshold")


def save(
    file: Path,
    asked: AskedRun,
    options: Iterable[CommandOption],
    stream: IO[str],
    quiet: bool,
) -> None:
    """Write the plan, and say what it cannot hold."""
    usual = {option.parameter: option.default for option in options}
    folder = file.expanduser().absolute().parent
    write_plan(file.expanduser(), _document(asked, usual, folder))
    if quiet:
        return
    print_line(f"Plan: {file}", stream)
    missing = [
        f"--{name.replace('_', '-')}" for name in _TO_BE_TYPED if asked.typed[name] != usual[name]
    ]
    if missing:
        text = " and ".join(missing)
        print_line(f"Note: a plan file cannot hold {text}: give it beside the file.", stream)


def _document(asked: AskedRun, usual: Mapping[str, Any], folder: Path) -> dict[str, Any]:
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
    if asked.settings.launches != 1:
        run["launches"] = asked.settings.launches
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
    full = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - links stay as they are named
    return str(full.relative_to(folder)) if full.is_relative_to(folder) else str(full)
