"""The forms of `recommend` and `predict`: options of the command, and words of them. Pure.

A visitor's words become options with their values joined on (`--hardware=cpu`), so none of them is
taken for an option itself; names of models are looked up before, so none of them is a file's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        priced: whether it needs prices, which the dashboard may not have been given.
        suggested: which list of names is offered: models, hardware, runtimes or precisions.
    """

    option: str
    label: str
    help: str = ""
    choices: Sequence[str] = ()
    number: bool = False
    priced: bool = False
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
_USUAL = "the model's own"


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
        groups: more fields, apart from the rest, each group by its heading.
    """

    command: str
    title: str
    about: str
    fields: Sequence[FormField]
    groups: Mapping[str, Sequence[FormField]] = field(default_factory=dict)

    @property
    def every(self) -> Sequence[FormField]:
        return (*self.fields, *(one for group in self.groups.values() for one in group))

    def values(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """What an address says of its fields; what is empty is left out."""
        known = {one.name: parameters.get(one.name, "").strip() for one in self.every}
        return {name: value[:_LONGEST] for name, value in known.items() if value}

    def words(self, values: Mapping[str, str]) -> list[str]:
        """As the command takes it, its own name first.

        Raises:
            UsageError: A choice is none.
        """
        options = []
        for one in self.every:
            value = values.get(one.name)
            if value is None or not one.option:
                continue
            if one.choices and value not in one.choices:
                raise UsageError(
                    f"There is no {one.label.lower()} {in_quotes(safe(value))}.",
                    f"It is one of {', '.join(one.choices)}.",
                )
            options.append(f"--{one.option}={value}")
        models = models_of(values)
        return [self.command, *options, *(["--", *models] if models else [])]

    def line(self, values: Mapping[str, str], database: str, prices: str = "") -> str:
        """The same as somebody types it.

        Args:
            values: of the fields.
            database: what the dashboard shows.
            prices: the file of prices that it was started with.
        """
        options = [
            word
            for one in self.every
            if one.option and one.name in values
            for word in (f"--{one.option}", values[one.name])
        ]
        options += ["--prices", prices] if prices and self is RECOMMEND else []
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
        FormField("machine", "Machine or source", "any; a host name, an id or a source"),
    ),
    {
        "Limits that have to be kept": (
            _limit("max-latency-ms", "Latency of a step, ms, at most"),
            _limit("min-throughput", "Items a second, at least"),
            _limit("memory-mb", "Memory, MB, at most"),
            _limit("max-error", "Error of the outputs, at most"),
            FormField(
                "max-cost", "Cost of a million items, at most", "no limit", number=True, priced=True
            ),
            _limit("max-power", "Power, W, at most"),
            _limit("max-energy", "Energy of an item, J, at most"),
        ),
        "Sizes, and several devices": (
            FormField("sequence-length", "Tokens in one item", "as measured", number=True),
            FormField("image-size", "Side of an image, pixels", "as measured", number=True),
            FormField("gpu-count", "Devices together", "1", number=True),
            FormField("max-memory-gb", "Memory of each, GB", "no limit", number=True),
            FormField(
                "model-family",
                "Family of an unknown model",
                "known by itself",
                ("embedding", "text_generation", "vision", "audio", "multimodal"),
            ),
        ),
    },
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
    {
        "Sizes of one item": (
            FormField("sequence-lengths", "Tokens", _USUAL),
            FormField("image-sizes", "Side of an image, pixels", _USUAL),
            FormField("prompt-tokens", "Tokens read before it writes", _USUAL),
            FormField("new-tokens", "Tokens that it writes", f"{_USUAL}; 0: one forward pass"),
            FormField("audio-seconds", "Seconds of sound", _USUAL),
            FormField("denoising-steps", "Passes of a denoiser", _USUAL),
        )
    },
)
