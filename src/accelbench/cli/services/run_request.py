"""What an `accelbench run` command line asks for, and its plan file for `--save-plan`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from accelbench.cli.arguments import resolved_values
from accelbench.cli.arguments.resolved_values import (
    WITH_RESUME,
    Typed,
    in_one_spelling,
    means_training,
    refuse_contradictions,
    refuse_simulating_all,
    request_of,
    spec_of,
    with_block,
)
from accelbench.cli.arguments.run_spec_options import defaults
from accelbench.cli.services.plan_files import (
    MODELS,
    PlannedBlocks,
    block_values,
    blocks_of,
    plan_files_among,
    read_plans,
    run_values,
    settled,
)
from accelbench.core.errors import UsageError
from accelbench.core.formatting import format_duration
from accelbench.core.model import ModelSpec
from accelbench.core.run_options import PlanSection, RunField, RunSpec, plan_fields
from accelbench.core.vocabulary import Mode
from accelbench.exchange.plan_document import write_plan
from accelbench.models.file_models.given_inputs import OPTION
from accelbench.models.file_models.models import path_of
from accelbench.models.find import names_used
from accelbench.models.selection import notes_on
from accelbench.present.terminal.terminal import print_line
from accelbench.run.plan.request import Request, apart

#: What a run of several processes measures if no mode is named.
TRAINING_NOTE = (
    "--distributed without --mode measures training. Add --mode inference for inference."
)


@dataclass(frozen=True)
class AskedRun:
    """A RunSpec with the names in it resolved."""

    spec: RunSpec  # the settings
    requests: tuple[Request, ...] = ()  # what is measured; none if a run is resumed
    names: Mapping[str, str] = field(default_factory=dict)  # of models by id, as they were written
    precisions: tuple[str, ...] = ()  # those that were named
    #: what of a models file is wrong, and was not named
    passed_over: list[str] = field(default_factory=list)
    #: what plan files contain; empty without any
    plans: PlannedBlocks = field(default_factory=PlannedBlocks)
    given: frozenset[str] = frozenset()  # parameters that were typed on the command line
    further_notes: Sequence[str] = ()  # notes in addition to those of the plan and the models

    @property
    def parts(self) -> tuple[Request, ...]:
        """The requests as they are planned: separate if different engines open their models."""
        named = [bool(block.get("precision")) for block in self.plans.blocks]
        named = named or [bool(self.precisions)] * len(self.requests)
        pairs = zip(self.requests, named, strict=True)
        return tuple(part for one, is_named in pairs for part in apart(one, is_named))

    @property
    def notes(self) -> list[str]:
        """Notes before a run: of its plan files, and what model files are fed with."""
        models = {model.id: model for request in self.requests for model in request.models}
        modes = {mode for request in self.requests for mode in request.modes}
        return [
            *self.plans.notes,
            *([TRAINING_NOTE] if means_training(self.spec) and Mode.TRAINING in modes else []),
            *(note for model in models.values() for note in notes_on(model)),
            *self.further_notes,
        ]


def asked_run(typed: Typed, given: Mapping[str, str]) -> AskedRun:
    """Return what a command line asks for."""
    typed, named = in_one_spelling(typed, frozenset(given))
    if typed["resume"] is not None:
        refuse_contradictions(given, typed)
        # Defaults of the project do not apply: a file that they name may be gone.
        kept = {name: typed[name] for name in (*WITH_RESUME, "browser") if name in typed}
        return AskedRun(spec_of(defaults() | kept), given=named)
    files, names = plan_files_among(typed["models"])
    typed["models"] = names
    if not files:
        refuse_contradictions(given, typed)
        if typed["save_plan"] is not None:
            _refuse_inputs(typed, "A plan file cannot hold what inputs hold", "--save-plan")
        return _without_plan(spec_of(typed), named)
    why = "What inputs hold is said of models on the command line"
    _refuse_inputs(typed, f"{why}, not of those of {files[0]}", str(files[0]))
    documents = read_plans(files)
    planned = {name: value for name, value in run_values(documents).items() if name not in named}
    typed |= planned
    refuse_contradictions(
        {**given, **{name: name.replace("_", "-") for name, value in planned.items() if value}},
        typed,
    )
    _refuse_selection(named, files[0])
    spec = spec_of(typed)
    narrowing = {
        **({MODELS: names} if names else {}),
        **{
            known.key: spec.runtime_options
            if known.name == "runtime_options"
            else _texts(known, _value(spec, known))
            for known in plan_fields(PlanSection.MATRIX)
            if known.name in named
        },
    }
    plans = blocks_of(documents, narrowing)
    requests: list[Request] = []
    for block in plans.blocks:
        own = with_block(spec, block_values(block))
        refuse_simulating_all(own)
        requests.append(request_of(own, tuple(plans.models[id_] for id_ in block[MODELS])))
    if any("both" in document.matrix.values.get("framework", ()) for document in documents):
        # The number of launches goes by it.
        launches = resolved_values.launches(typed["launches"], ["both"])
        spec = spec.with_values(launches=launches)
    precisions = [name for block in plans.blocks for name in block.get("precision", ())]
    return AskedRun(
        spec,
        tuple(requests),
        plans.names,
        tuple(dict.fromkeys(precisions)),
        plans.passed_over,
        plans,
        named,
    )


def _without_plan(spec: RunSpec, given: frozenset[str]) -> AskedRun:
    passed_over: list[str] = []
    refuse_simulating_all(spec)
    chosen = resolved_values.models_for(
        names=spec.models,
        set_name=spec.set_name,
        categories=spec.category,
        specific=spec.specific,
        every=spec.every,
        hardware_named="hardware" in given,  # a project's default asks for nothing by itself
        models_file=spec.models_file,
        pass_over=lambda error: passed_over.append(str(error)),
        inputs=spec.inputs,
        input_file=spec.input_file,
        reference=spec.reference,
    )
    precisions = resolved_values.precisions(spec.precision) if spec.precision else ()
    return AskedRun(
        spec,
        (request_of(spec, chosen),),
        names_used(spec.models, chosen),
        precisions,
        passed_over,
        given=given,
    )


def _refuse_inputs(typed: Typed, why: str, beside: str) -> None:
    for parameter, option in {"inputs": OPTION, "input_file": "--input-file"}.items():
        if typed[parameter]:
            raise UsageError(f"{why}.", f"Leave out {option}, or {beside}.")


def _refuse_selection(given: frozenset[str], file: Path) -> None:
    for known in plan_fields(PlanSection.SELECTION):
        if known.key != MODELS and known.name in given:
            raise UsageError(
                f"{file} says which models are measured: {known.option} cannot be given beside it.",
                "Name models of it to measure those alone, or leave the option out.",
            )


def _value(spec: RunSpec, known: RunField) -> Any:
    return spec.sizes.get(known.name) if known.axis else getattr(spec, known.name)


def _texts(known: RunField, value: Any) -> tuple[str, ...]:
    """Return the value of a field as a plan file has it; nothing for a default."""
    if value is None or value is False or value == ():
        return ()
    if known.key == "option":
        return (",".join(value),)
    texts = value if isinstance(value, tuple) else (value,)
    return tuple(str(text).lower() if text is True else str(text) for text in texts)


#: Options of the command line only that change what is measured.
_TO_BE_TYPED = ("browser", "trust_remote_code", "against", "threshold")


def save(file: Path, asked: AskedRun, stream: IO[str], quiet: bool) -> None:
    """Write the plan, and note what it cannot hold."""
    folder = file.expanduser().absolute().parent
    write_plan(file.expanduser(), _document(asked, folder))
    if quiet:
        return
    print_line(f"Plan: {file}", stream)
    usual = RunSpec()
    changed = [name for name in _TO_BE_TYPED if getattr(asked.spec, name) != getattr(usual, name)]
    if changed:
        text = " and ".join(f"--{name.replace('_', '-')}" for name in changed)
        print_line(f"Note: a plan file cannot hold {text}: give it beside the file.", stream)


def _document(asked: AskedRun, folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = {}
    plans = asked.plans.files
    if len(plans) == 1:
        told = {"name": plans[0].name, "description": plans[0].description}
        document |= {name: text for name, text in told.items() if text}
    blocks = _blocks(asked, folder)
    files = [asked.spec.models_file] if asked.spec.models_file else []
    files += [
        plan.file.parent / plan.selection.values["models_file"][0]
        for plan in plans
        if "models_file" in plan.selection.values
    ]
    for path in files:
        document["models_file"] = _told_path(path, folder)
    if len(blocks) == 1:
        document["models"] = blocks[0].pop("models")
        document |= {"matrix": blocks[0]} if blocks[0] else {}
    else:
        document["include"] = blocks
    usual = RunSpec()
    run = {
        known.key: _plain(known, value, folder)
        for known in plan_fields(PlanSection.RUN)
        if (value := getattr(asked.spec, known.name)) != getattr(usual, known.name)
    }
    if run.get("verify") in ("only", "off"):
        del run["verify"]  # verify_only and benchmark_only have it
    return {**document, **({"run": run} if run else {})}


def _blocks(asked: AskedRun, folder: Path) -> list[dict[str, Any]]:
    """Return each request as a plan has it: keys with one value or several."""
    made = []
    typed_blocks: list[Mapping[str, tuple[str, ...]]] = list(asked.plans.blocks) or [{}]
    for request, block in zip(asked.requests, typed_blocks, strict=True):
        own: dict[str, Any] = {
            "models": [_model(asked.names.get(m.id, m.id), m, folder) for m in request.models]
        }
        for known in plan_fields(PlanSection.MATRIX):
            texts = block.get(known.key)
            if not texts and (texts := _texts(known, _value(asked.spec, known))):
                texts = settled(known, texts)
            if texts:
                values = [_parsed(known, text) for text in texts]
                own[known.key] = values[0] if len(values) == 1 else values
        made.append(own)
    return made


def _model(word: str, model: ModelSpec, folder: Path) -> str:
    """Return a model as a plan names it: a file from the plan's folder."""
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


def _parsed(known: RunField, text: str) -> Any:
    if known.kind == "truth":
        return text == "true"
    return int(text) if known.kind == "number" else text


def _plain(known: RunField, value: Any, folder: Path) -> Any:
    if known.kind == "duration":
        return format_duration(value)
    if known.is_path and str(value) not in known.words:
        return _told_path(Path(value), folder)
    return value if isinstance(value, (bool, int, float)) else str(value)


def _told_path(path: Path, folder: Path) -> str:
    full = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - links stay as they are named
    return str(full.relative_to(folder)) if full.is_relative_to(folder) else str(full)
