"""What is planned: a request, and the ordered list of cases that it becomes.

The other arm of a run: an environment, a commit, or a setting.

../other/.venv, /usr/bin/python3.12, "docker run … python"   an environment's Python
commit:main, commit:HEAD~1                                    a commit of this repository
threads=1, onnxruntime.optimization=basic                     a setting

What was asked for and changes nothing: said, where it would otherwise be passed over.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from accelbench.core import processes
from accelbench.core.axes import AXES, Axis, with_axes
from accelbench.core.case import Case, Option, Shapes
from accelbench.core.device_facts import DeviceFacts
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.free_dimensions import OPTION, format_sizes, parse_names, parse_sizes
from accelbench.core.model import FileFormat, ModelSpec
from accelbench.core.protocols import Device
from accelbench.core.run_options import RunSettings
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode, Outcome, Status
from accelbench.models.file_models.given_inputs import BATCH, IMAGE, SEQUENCE

#: How a step may be shared out, of all runtimes; auto takes the first that the runtime has and that
#: fits. fsdp2 is PyTorch's, which gathers blocks; fsdp JAX's, whose compiler gathers weights.
AUTO_STRATEGY = "auto"
STRATEGIES = ("ddp", "fsdp2", "fsdp", "tp")

DEFAULT_BATCH_SIZES = (1, 8, 32, 128)
#: In place of a platform's name: a selector names one, for each question of the request.
AUTO = "auto"

#: Estimated bytes of a case, None where nobody knows.
Estimate = Callable[[Case], int | None]

#: Bytes free for a model on a device, None where nobody knows.
Free = Callable[[Device], int | None]


@runtime_checkable
class TellsFree(Protocol):
    """An inventory of other machines, which says itself what is free on them."""

    def free(self, device: Device) -> int | None:
        """Return bytes free for a model on a device, None if nobody knows."""
        ...


@dataclass(frozen=True)
class Distribution:
    """That several processes train together, and what was said of how."""

    processes: int
    strategy: str = AUTO_STRATEGY
    accumulate: int | None = None  # micro-batches a step; None: as many as memory needs
    memory_bytes: int | None = None  # of each process; None: what is free
    baseline: bool = True  # measure one process as well
    nodes: int = 1  # machines that have as many of them each


@dataclass(frozen=True)
@with_axes(lambda axis: axis.option_key, ())
class Request:
    """What a command asked for, names already resolved; of each axis of sizes any number."""

    models: tuple[ModelSpec, ...]
    hardware: tuple[str, ...] = ()  # empty: everything present
    runtimes: tuple[str, ...] = ()  # empty: each platform's default
    batch_sizes: tuple[int, ...] = ()  # empty: the default ones, as far as memory allows
    sequence_lengths: tuple[int, ...] = ()
    image_sizes: tuple[int, ...] = ()
    prompt_tokens: tuple[int, ...] = ()
    new_tokens: tuple[int, ...] = ()  # 0: one forward pass instead of a whole request
    audio_seconds: tuple[int, ...] = ()
    denoising_steps: tuple[int, ...] = ()
    dim: tuple[str, ...] = ()  # combinations of sizes of files' free dimensions
    precisions: tuple[str, ...] = ("fp32",)
    modes: tuple[Mode, ...] = (Mode.INFERENCE,)
    options: Mapping[str, Option] = field(default_factory=dict)
    training_options: Mapping[str, Option] = field(default_factory=dict)  # where it is trained
    runtime_options: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)  # by runtime
    distribution: Distribution | None = None  # None: each step is one process's
    simulate: bool = False  # what was named and is not here gets figures from its document
    as_stored: bool = False  # its precisions are what files are stored in: none was named
    is_precision_free: bool = False  # none was named: an engine without fp32 takes its own

    @property
    def file_format(self) -> FileFormat | None:
        """What its models' engines must open; None if torch builds them."""
        return self.models[0].format if self.models else None


def apart(request: Request, precisions_named: bool) -> tuple[Request, ...]:
    """Return a request as several, each of models that the same engines open.

    A file is measured in what it is stored in where no precision is named; in fp32 where an engine
    has that for fp16 alone.
    """
    asked = {name for text in request.dim for name in parse_sizes(text)}
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[ModelSpec]] = {}
    for model in request.models:
        file = model.file
        renamed = {} if file is None else file.renamed
        others = tuple(sorted((name, renamed[name]) for name in asked & renamed.keys()))
        key = (model.format or "", "" if file is None else file.precision, others)
        groups.setdefault(key, []).append(model)
    return tuple(
        replace(
            _rename_sizes(request, dict(others)),
            models=tuple(models),
            precisions=(stored,) if stored and not precisions_named else request.precisions,
            as_stored=bool(stored) and not precisions_named,
            is_precision_free=not (models[0].file or precisions_named),
        )
        for (_, stored, others), models in groups.items()
    )


#: Of sizes that have an option of their own the field of a request.
_SIZE_FIELDS = {BATCH: "batch_sizes", SEQUENCE: "sequence_lengths", IMAGE: "image_sizes"}


def _rename_sizes(request: Request, renamed: Mapping[str, str]) -> Request:
    """Return a request whose sizes are called as inputs here call them, not as a file does."""
    if not renamed:
        return request
    asked = [parse_sizes(text) for text in request.dim]
    fields: dict[str, Any] = {}
    for name, own in renamed.items():
        field_ = _SIZE_FIELDS.get(own)
        if field_ is None:
            continue
        sizes = tuple(sorted({combination[name] for combination in asked}))
        if getattr(request, field_) or fields.get(field_, sizes) != sizes:
            option = f"--{field_.replace('_', '-')}"
            raise UsageError(
                f"{OPTION} {name} and another option give one size: {name} of the file is"
                f" {own} here.",
                f"Give it once, with {OPTION} {name} or {option}.",
            )
        fields[field_] = sizes
    rest = (
        format_sizes(
            {
                renamed.get(name, name): size
                for name, size in combination.items()
                if renamed.get(name) not in _SIZE_FIELDS
            }
        )
        for combination in asked
    )
    return replace(request, dim=tuple(filter(None, dict.fromkeys(rest))), **fields)


@dataclass(frozen=True)
class Refusal:
    """Why a case will not be tried."""

    status: Status
    reason: str
    message: str
    advice: str

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.status, self.reason, self.message, self.advice)


@dataclass(frozen=True)
class Planned:
    """A case, the device it will run on, and why it will not be tried, if so.

    One with a roofline is of a device that is not here: it is calculated, never measured.
    """

    case: Case
    device: Device | None
    refusal: Refusal | None = None
    roofline: DeviceFacts | None = None
    as_stored: bool = False  # its precision is what its file is stored in: none was named

    @property
    def key(self) -> tuple[str, str]:
        """What a case is told apart by: "cuda" and "cuda:0" may be one device, asked for twice."""
        device = str(self.device) if self.device else self.case.target.hardware_label
        return self.case.case_id, device

    def launches(self, wanted: int) -> int:
        """How many of the launches it is in: what is calculated comes out the same each time."""
        return wanted if self.roofline is None else min(wanted, 1)


@dataclass(frozen=True)
class Plan:
    """The ordered list of cases a command expands to, with what a reader should know."""

    cases: tuple[Planned, ...]
    notes: tuple[str, ...] = ()

    def results(self, launches: int) -> int:
        return sum(planned.launches(launches) for planned in self.cases)

    def measurements(self, launches: int) -> int:
        """How many of them are measured; the others are only calculated."""
        return launches * sum(planned.roofline is None for planned in self.cases)

    def groups(self) -> Iterator[list[Planned]]:
        """Cases that one worker can measure in turn: the same in all but the batch size.

        Batches then ascend within a worker: after a larger case, what the engine's
        allocator keeps would be counted to a smaller one.
        """

        for _, group in groupby(self.cases, _but_for_the_batch):
            yield list(group)


def _but_for_the_batch(planned: Planned) -> tuple[str, ...]:
    case = planned.case
    options = ",".join(f"{k}={v}" for k, v in sorted(case.options.items()))
    shapes = replace(case.shapes, batch=0)
    parts = (case.model.id, case.target, case.precision, case.mode, case.scenario)
    return tuple(map(str, (*parts, case.world_size, options, shapes)))


def grouped(cases: Iterable[Planned]) -> list[Planned]:
    """Cases of several requests so that those of one group follow each other, batches ascending."""
    groups: dict[tuple[str, ...], list[Planned]] = {}
    for planned in cases:
        groups.setdefault(_but_for_the_batch(planned), []).append(planned)
    return [
        planned
        for group in groups.values()
        for planned in sorted(group, key=lambda one: one.case.shapes.batch)
    ]


def united(requests: Sequence[Request]) -> Request:
    """One that asks for everything that any of several does, for what is said of all of them."""
    first, *others = requests
    for request in others:
        sizes: dict[str, Any] = {
            axis.option_key: (*getattr(first, axis.option_key), *getattr(request, axis.option_key))
            for axis in AXES
        }
        first = replace(
            first,
            training_options={**first.training_options, **request.training_options},
            runtime_options={**first.runtime_options, **request.runtime_options},
            **sizes,
        )
    return first


def joined(plans: Iterable[Plan]) -> Plan:
    """Plans one after the other: what is in several of them is measured, and said, once."""
    several = list(plans)
    cases: dict[tuple[str, str], Planned] = {}
    for planned in (case for plan in several for case in plan.cases):
        cases.setdefault(planned.key, planned)
    notes = dict.fromkeys(note for plan in several for note in plan.notes)
    return Plan(tuple(cases.values()), tuple(notes))


FORMS = (
    "Name an environment (a virtual environment's folder, a Python, or a command that starts one),"
    " commit:REVISION, or NAME=VALUE such as threads=1 or onnxruntime.optimization=basic."
)
_COMMIT = "commit:"
_SETTING = re.compile(r"(threads|compile|[a-z]+\.[a-z_]+)=(.+)")
_PYTHONS = ("bin/python", "Scripts/python.exe")
_GIT_SECONDS = 300.0


class AgainstKind(StrEnum):
    """What the other arm differs in."""

    ENVIRONMENT = "environment"
    COMMIT = "commit"
    SETTING = "setting"


@dataclass(frozen=True)
class Against:
    """The other arm, by an interpreter's command line, a commit's full hash, or NAME=VALUE."""

    kind: AgainstKind
    name: str
    word: str

    @property
    def setting(self) -> tuple[str, str]:
        name, _, value = self.word.partition("=")
        return name, value


def meant(word: str) -> Against:
    """What a word names."""
    path = Path(word).expanduser()
    setting = _SETTING.fullmatch(word) is not None
    commit = word.startswith(_COMMIT)
    if (setting or commit) and path.exists():
        raise UsageError(f"{in_quotes(word)} is a path and may mean something else as well.", FORMS)
    if commit:
        return Against(AgainstKind.COMMIT, word, _hash(word.removeprefix(_COMMIT)))
    if setting:
        return Against(AgainstKind.SETTING, word, word)
    program = _program(word, path)
    if program is None:
        raise UsageError(
            f"--against {in_quotes(word)} names nothing that a run can be compared with.", FORMS
        )
    return Against(AgainstKind.ENVIRONMENT, word, shlex.join(program))


def _program(word: str, path: Path) -> list[str] | None:
    """What starts the interpreter that a word names."""
    if path.is_dir():
        paths = (path / name for name in _PYTHONS)
        # Not resolved: a link's own folder is what makes it an environment's.
        return next(([str(python.absolute())] for python in paths if python.exists()), None)
    if path.is_file() and os.access(path, os.X_OK):
        return [str(path.absolute())]
    try:
        parts = shlex.split(word)
    except ValueError:
        return None
    found_at = shutil.which(parts[0]) if parts else None
    if found_at is None or (len(parts) == 1 and "python" not in Path(found_at).name):
        return None
    return [found_at, *parts[1:]]


def _hash(revision: str) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except SurroundingsError as error:
        here = _repository()
        message = (
            f"{here} has no commit {in_quotes(revision)}." if here else f"{Path.cwd()} is in no git"
        )
        raise UsageError(message if here else f"{message} repository.", FORMS) from error


def _repository() -> str:
    try:
        return git("rev-parse", "--show-toplevel")
    except SurroundingsError:
        return ""


def git(*words: str) -> str:
    """Return what git prints, or raise SurroundingsError."""
    try:
        ended = processes.run(["git", *words], _GIT_SECONDS)
    except OSError as error:
        raise SurroundingsError("There is no git here.", "Install it.") from error
    if ended.returncode:
        raise SurroundingsError(f"git {words[0]}: {ended.last_line or 'it failed'}.")
    return ended.stdout.strip()


@dataclass(frozen=True)
class OtherArm:
    """The arm that a run is compared with, as it is planned."""

    against: Against
    plan: Plan
    settings: RunSettings


def asked_otherwise(
    request: Request, settings: RunSettings, name: str, value: Option | Mapping[str, Option]
) -> tuple[Request, RunSettings]:
    """Return request and settings of an arm that differs in one value, or a runtime's options."""
    if isinstance(value, Mapping):
        before = request.runtime_options
        own = {**before, name: {**before.get(name, {}), **value}}
        return replace(request, runtime_options=own), settings
    options = {**request.options, name: value}
    if name == "compile" and not value:
        del options["compile"]
    if name == "threads":
        settings = settings.with_values(threads=int(value))
    return replace(request, options=options), settings


#: The command's parameters that are options for training.
_OF_TRAINING = frozenset({"optimizer", "checkpointing", "pure"})


@dataclass(frozen=True)
class UnusedOption:
    """An option that no case took up; it was typed if one of `parameters` was."""

    parameters: frozenset[str]
    note: str


def find_unused(request: Request, cases: Sequence[Case]) -> list[UnusedOption]:
    """Return the sizes and options that no case took up.

    A size that only some models of a set have is no mistake. One that none has may well be: its
    results would answer another question.
    """
    found = []
    for axis in AXES:
        names = _unused_dimensions(request, cases) if axis.text else []
        if not axis.text and _is_unused(axis, request, cases):
            names = [""]
        for name in names:
            option = f"{axis.option} {name}".strip()
            note = f"{option} changes nothing: no model of this run {axis.usage}."
            found.append(UnusedOption(frozenset({axis.option_key}), note))
    if request.training_options and not any(case.mode is Mode.TRAINING for case in cases):
        note = (
            "The options for training change nothing: nothing is trained without --mode training."
        )
        found.append(UnusedOption(_OF_TRAINING, note))
    measured = {case.target.runtime for case in cases}
    return found + [
        UnusedOption(
            frozenset({"runtime_options"}),
            f"The options for {name} change nothing: it is no runtime of this run.",
        )
        for name in request.runtime_options
        if name not in measured
    ]


def unused(request: Request, cases: Sequence[Case]) -> list[str]:
    """Return a sentence for each option that no case took up."""
    return [option.note for option in find_unused(request, cases)]


def find_unused_sources(cases: Sequence[Case], weights: str) -> list[UnusedOption]:
    """Return the options about weights and code that no model of the cases reads."""
    models = {case.model.id: case.model for case in cases}.values()
    loading = [model for model in models if not model.is_user_model]
    found = []
    if not loading:
        note = "--weights changes nothing: every model of this run has weights of its own."
        found.append(UnusedOption(frozenset({"weights"}), note))
    if all(model.weights_setting(weights) == "random" for model in loading):
        note = "--trust-remote-code changes nothing: no weights are loaded in this run."
        found.append(UnusedOption(frozenset({"trust_remote_code"}), note))
    if all(model.code is None for model in models):
        note = "--reference changes nothing: no model of this run is code."
        found.append(UnusedOption(frozenset({"reference"}), note))
    return found


def refuse_unused(
    request: Request, cases: Sequence[Case], typed: AbstractSet[str], weights: str = "random"
) -> None:
    """Refuse an option that was typed and that no case took up."""
    unused_options = find_unused(request, cases) + find_unused_sources(cases, weights)
    for option in unused_options if cases else ():
        if option.parameters & typed:
            raise UsageError(option.note, "Leave it out, or name what it is for.")


def _is_unused(axis: Axis, request: Request, cases: Sequence[Case]) -> bool:
    sizes = set(getattr(request, axis.option_key)) - {0}
    taken = (sizes_taken(axis, case.shapes) for case in cases)
    return bool(sizes) and not any(map(sizes.intersection, taken))


def _unused_dimensions(request: Request, cases: Sequence[Case]) -> list[str]:
    asked = dict.fromkeys(name for text in request.dim for name in parse_names(text))
    taken = {name for case in cases for name in parse_names(case.shapes.dims)}
    return [name for name in asked if name not in taken]


def sizes_taken(axis: Axis, shapes: Shapes) -> set[Any]:
    """What a case made of a size; a length of text becomes a prompt where a model writes."""
    if axis.text:
        return set((getattr(shapes, axis.field) or "").split(","))
    read = {shapes.prompt_tokens} if axis.field == "sequence" else set()
    return {getattr(shapes, axis.field), *read}
