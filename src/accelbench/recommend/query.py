"""A question with its model and task, before any result is read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from accelbench.core.axes import COLUMN_ORDER, Part, axes_of, size_columns
from accelbench.core.errors import UsageError
from accelbench.core.model import ModelSpec
from accelbench.core.precision import PRECISIONS, has_quantised_name, parse_precision, spellings
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import FAMILIES, Mode, parse_mode
from accelbench.models.find import find_exact
from accelbench.recommend import validation
from accelbench.recommend.config import ModelSize


@dataclass(frozen=True)
class Task:
    """A task, and factors for the weights of its mode."""

    mode: str
    matters: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


TASKS: Mapping[str, Task] = {
    "classification": Task(Mode.INFERENCE.value),
    "generation": Task(
        Mode.INFERENCE.value, {"latency": 2.0}, "each token is waited for: latency counts twice"
    ),
    "embedding": Task(
        Mode.INFERENCE.value, {"throughput": 2.0}, "many items at once: throughput counts twice"
    ),
    "speech_recognition": Task(
        Mode.INFERENCE.value, {"latency": 2.0}, "speech goes on meanwhile: latency counts twice"
    ),
    "fine_tuning": Task(
        Mode.TRAINING.value, {"memory": 2.0}, "it has to fit where it is tuned: memory counts twice"
    ),
    "training": Task(Mode.TRAINING.value),
}  # fmt: skip


def task_named(name: str) -> Task:
    """Return the task of a name; dashes and case do not matter. Refuse unknown tasks."""
    return TASKS[task_key(name)]


def task_key(name: str) -> str:
    """Return a task's name as it is in the table; refuse unknown tasks."""
    key = (
        validation.word("task_type", name, TASKS)
        .strip()
        .lower()
        .replace("-", "_")
        .replace(" ", "_")
    )
    if key not in TASKS:
        raise UsageError(f"There is no task {in_quotes(name)}.", f"Tasks: {', '.join(TASKS)}.")
    return key


#: Columns of the store → fields of shapes.
SIZES = {axis.column: axis.field for axis in axes_of(*COLUMN_ORDER) if not axis.text}
#: Tokens of a request, which training does not have.
GENERATING = size_columns(Part.REQUEST)


class StoredModel(TypedDict, total=False):
    """What the results of a model record of it; empty if it has none."""

    family: str | None
    parameters: int | None


@dataclass(frozen=True)
class Query:
    """A question with every word looked up."""

    model: str
    family: str
    batch: int
    mode: str
    size: ModelSize
    spec: ModelSpec | None = None
    stored: tuple[str, ...] = ()
    precision: str | None = None  # by our name if there is one; None means any
    precisions: tuple[str, ...] = ()  # its spellings in stores; any if empty
    task: str | None = None
    #: the named sizes, by the store's columns
    shapes: Mapping[str, int] = field(default_factory=dict)
    distributed: validation.Distributed | None = None

    @property
    def names(self) -> tuple[str, ...]:
        ids = (self.spec.id if self.spec else "", self.model, *self.stored)
        # A question about a family names no model, and every result has one.
        return tuple(dict.fromkeys(name for name in ids if name)) or ("",)

    def takes(self, stored: str | None) -> bool:
        return not self.precisions or stored in self.precisions

    def to_dict(self) -> dict[str, object]:
        return {
            "model": self.model,
            "family": self.family,
            "batch_size": self.batch,
            "mode": self.mode,
            "task": self.task,
            "precision": self.precision,
            "shapes": dict(self.shapes),
            "model_size": self.size.name,
            "model_size_source": self.size.source,
            "parameters": self.size.parameters,
        }


@dataclass(frozen=True)
class RawQuery:
    """A question as it was asked."""

    family: str | None
    model: str
    batch: int
    mode: str
    task: str | None = None
    distributed: Mapping[str, object] | None = None
    precision: str | None = None
    shapes: Mapping[str, int] | None = None
    parameters: int | None = None

    def __post_init__(self) -> None:
        validation.word("model_name", self.model, advice='Use "bert-tiny", or leave it out.')

    @property
    def names(self) -> tuple[str, ...]:
        spec = spec_of(self.model) if self.model else None
        return tuple(dict.fromkeys((*([spec.id] if spec else []), self.model)))

    def understood(
        self,
        names: tuple[str, ...],
        stored: StoredModel,
        size: Callable[..., ModelSize],
        stored_precisions: Container[str] = (),
        table: ModelSpec | None = None,
    ) -> Query:
        """Return the question with every word looked up; refuse unknown words.

        `table` is the model of a table of operators, which precedes the catalogue's.
        `names` and `stored` are the names and facts of the model in the database. `size` returns
        the size by name, catalogue model and number of weights.
        """
        if isinstance(self.batch, int) and self.batch < 1 and self.batch is not False:
            raise UsageError(f"A batch of {in_quotes(self.batch)} holds no item.", "Use 1 or more.")
        batch = validation.whole("batch_size", self.batch)
        spec = table or (spec_of(self.model) if self.model else None)
        given_family = None if self.family in (None, "") else family_named(self.family)
        if spec is not None and given_family is not None:
            _refuse_other_family(spec, given_family)
        measured_as = stored.get("family")  # an owner's model may have none of ours
        known_family = measured_as if measured_as in FAMILIES else None
        family = given_family or (spec.family.value if spec else "") or known_family
        if not family and not names:  # its own results need no family
            raise UsageError(
                f"The family of {self.model or 'no model'} is not known.",
                f"Say it: one of {', '.join(FAMILIES)}.",
            )
        task = None if self.task is None else task_key(self.task)
        mode = task_named(task).mode if task else mode_named(self.mode)
        weights = self.parameters
        if weights is not None:
            weights = round(validation.amount("parameters", weights, "Use a number of weights."))
        return Query(
            model=self.model,
            family=family_named(family) if family else "",
            batch=batch,
            mode=mode,
            size=size(self.model, spec, weights or stored.get("parameters")),
            spec=spec,
            stored=names,
            precision=precision_named(self.precision, mode, stored_precisions),
            precisions=spellings_named(self.precision, mode),
            task=task,
            shapes=shapes_named(self.shapes),
            distributed=validation.distributed(self.distributed),
        )


def _refuse_other_family(spec: ModelSpec, family: str) -> None:
    """Refuse a family that is neither that of a model nor one of its inputs'."""
    if family not in (spec.family.value, *spec.modalities):
        raise UsageError(
            f"{spec.id} is of the family {spec.family.value}, not of {family}.",
            "Leave the family out: it is known from the model.",
        )


def spec_of(name: str) -> ModelSpec | None:
    """Return the catalogue's model of a name, or None."""
    return find_exact(name)


def family_named(word: str | None) -> str:
    """Return one of the five families; dashes and case do not matter. Refuse others."""
    text = validation.word("model_family", word, FAMILIES).strip().lower()
    text = text.replace("-", "_").replace(" ", "_")
    if text not in FAMILIES:
        raise UsageError(
            f"There is no model family {in_quotes(word)}.", f"Families: {', '.join(FAMILIES)}."
        )
    return text


def mode_named(word: str | None) -> str:
    """Return inference or training; refuse anything else."""
    return parse_mode(validation.word("mode", word, Mode)).value


def spellings_named(word: str | None, mode: str) -> tuple[str, ...]:
    """Return the spellings of a precision in stores; none for any precision."""
    if word is None:
        return ()
    training = mode == Mode.TRAINING
    return tuple(name.removeprefix("amp-") if training else name for name in spellings(word))


def precision_named(
    word: str | None, mode: str = Mode.INFERENCE.value, stored: Container[str] = ()
) -> str | None:
    """Return a precision by our name, or in its stored spelling; None means any.

    Training in half precision is always autocast, and is stored without that prefix.
    """
    if word is None:
        return None
    text = validation.word("precision", word, PRECISIONS).strip()
    try:
        precision = parse_precision(text)
    except UsageError:
        theirs = next((name for name in spellings(text) if name in stored), None)
        if theirs is None and not has_quantised_name(text):
            raise
        return theirs or text.lower()  # w8a16
    return precision.removeprefix("amp-") if mode == Mode.TRAINING else precision


def shapes_named(given: Mapping[str, int] | None) -> dict[str, int]:
    """Return sizes by the columns of the store; the names of shapes are accepted too."""
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(
            f"shapes takes a mapping, not {in_quotes(given)}.", 'Use {"image_size": 224}.'
        )
    aliases = {short: long for long, short in SIZES.items()}
    shapes = {}
    for name, value in (given or {}).items():
        column = aliases.get(name, name)
        if column not in SIZES:
            raise UsageError(f"There is no size {in_quotes(name)}.", f"Sizes: {', '.join(SIZES)}.")
        shapes[column] = validation.whole(column, value)
    return shapes
