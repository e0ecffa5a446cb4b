"""The forms of `recommend` and `predict`: options of the command, and words of them. Pure.

A visitor's words become options with their values joined on (`--hardware=cpu`), so none of them is
taken for an option itself; names of models are looked up before, so none of them is a file's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.core.errors import UsageError
from accelbench.core.visible import in_quotes
from accelbench.report.charts.phrases import safe

#: Letters of one field that count.
_LONGEST = 200


@dataclass(frozen=True)
class FormField:
    """One field of a form.

    Attributes:
        option: of the command, without its dashes; "" for the models.
        label: beside it.
        help: what is meant where it is empty.
        choices: of a list; any text where there are none.
        number: whether it takes a number.
        suggested: which list of names is offered: models, hardware, runtimes or precisions.
    """

    option: str
    label: str
    help: str = ""
    choices: Sequence[str] = ()
    number: bool = False
    suggested: str = ""

    @property
    def name(self) -> str:
        """In an address."""
        return self.option or "model"


_MODEL = FormField(
    "", "Model", "a name, an alias or a hub id; several with commas", (), suggested="models"
)
_HARDWARE = FormField("hardware", "Hardware", "any", suggested="hardware")
_MODES = ("inference", "training")


def _limit(option: str, label: str) -> FormField:
    return FormField(option, label, "no limit", number=True)


@dataclass(frozen=True)
class QuestionForm:
    """A command as a form.

    Attributes:
        command: its name.
        title: of its page.
        about: what it answers, in a sentence.
        fields: what is asked.
        limits: what has to be kept, apart from the rest.
    """

    command: str
    title: str
    about: str
    fields: Sequence[FormField]
    limits: Sequence[FormField] = ()

    @property
    def every(self) -> Sequence[FormField]:
        return (*self.fields, *self.limits)

    def values(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """What an address says of its fields; what is empty is left out."""
        known = {field.name: parameters.get(field.name, "").strip() for field in self.every}
        return {name: value[:_LONGEST] for name, value in known.items() if value}

    def words(self, values: Mapping[str, str]) -> list[str]:
        """As the command takes it, its own name first.

        Raises:
            UsageError: A choice is none.
        """
        options = []
        for field in self.every:
            value = values.get(field.name)
            if value is None or not field.option:
                continue
            if field.choices and value not in field.choices:
                raise UsageError(
                    f"There is no {field.label.lower()} {in_quotes(safe(value))}.",
                    f"It is one of {', '.join(field.choices)}.",
                )
            options.append(f"--{field.option}={value}")
        models = models_of(values)
        return [self.command, *options, *(["--", *models] if models else [])]

    def line(self, values: Mapping[str, str], database: str) -> str:
        """The same as somebody types it."""
        options = [
            word
            for field in self.every
            if field.option and field.name in values
            for word in (f"--{field.option}", values[field.name])
        ]
        return shlex.join(
            ["accelbench", self.command, *models_of(values), *options, "--db", database]
        )


def models_of(values: Mapping[str, str]) -> list[str]:
    """The models that are named."""
    return [name for name in values.get("model", "").replace(",", " ").split() if name]


RECOMMEND = QuestionForm(
    "recommend",
    "Recommend",
    "Which hardware for a model: measured before estimated before ruled, each named.",
    (
        _MODEL,
        FormField("batch-size", "Batch size", "1", number=True),
        FormField("mode", "Mode", "inference", _MODES),
        FormField(
            "task",
            "Task",
            "any",
            ("classification", "generation", "embedding", "speech_recognition", "fine_tuning",
             "training"),
        ),
        _HARDWARE,
        FormField("precision", "Precision", "any", suggested="precisions"),
        FormField("deployment", "Deployment", "browser, mobile, edge …; anywhere"),
    ),
    (
        _limit("max-latency-ms", "Latency of a step, ms, at most"),
        _limit("min-throughput", "Items a second, at least"),
        _limit("memory-mb", "Memory, MB, at most"),
        _limit("max-error", "Error of the outputs, at most"),
        _limit("max-power", "Power, W, at most"),
        _limit("max-energy", "Energy of an item, J, at most"),
    ),
)  # fmt: skip
PREDICT = QuestionForm(
    "predict",
    "Predict",
    "Latency, throughput and memory of what was not measured, each with its interval.",
    (
        _MODEL,
        FormField(
            "hardware", "Hardware", "what was measured; H100, cuda, cpu …", suggested="hardware"
        ),
        FormField("framework", "Engine", "those that were measured", suggested="runtimes"),
        FormField("batch-sizes", "Batch sizes", "1; several with commas, or 1..64"),
        FormField("precision", "Precision", "those that were measured", suggested="precisions"),
        FormField("mode", "Mode", "inference", _MODES),
    ),
)
