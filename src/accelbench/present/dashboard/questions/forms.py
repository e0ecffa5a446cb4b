"""The forms of `recommend` and `predict`, and their documents as tables. Pure.

A visitor's values are joined to their options (`--hardware=cpu`), so none is taken for an option;
names of models are looked up first, so none is taken for a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelbench.core.figures import kind_of_unit
from accelbench.core.nouns import counted
from accelbench.exchange.prices import USUAL_CURRENCY, sign_of
from accelbench.judge.costs import money
from accelbench.judge.filters import model_words
from accelbench.present.dashboard.page_query import one_of
from accelbench.present.dashboard.words import number

#: The longest value of a field.
_LONGEST = 200


@dataclass(frozen=True)
class FormField:
    """A field of a form."""

    option: str  # of the command, without its dashes; "" for the models
    label: str
    help: str = ""  # the meaning of an empty field
    choices: Sequence[str] = ()  # empty: any text
    number: bool = False
    priced: bool = False  # whether it needs prices
    suggested: str = ""  # a list of names: models, hardware, runtimes or precisions

    @property
    def name(self) -> str:
        """The name in an address."""
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
    """A command as a form."""

    command: str
    title: str  # of its page
    about: str  # its answer, in a sentence
    fields: Sequence[FormField]
    groups: Mapping[str, Sequence[FormField]] = field(default_factory=dict)  # more, by heading

    @property
    def every(self) -> Sequence[FormField]:
        return (*self.fields, *(one for group in self.groups.values() for one in group))

    def values(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """Return the values of an address by field, without empty ones."""
        known = {one.name: parameters.get(one.name, "").strip() for one in self.every}
        return {name: value[:_LONGEST] for name, value in known.items() if value}

    def words(self, values: Mapping[str, str]) -> list[str]:
        """Return the words of the command; unknown choices are refused."""
        options = []
        for one in self.every:
            value = values.get(one.name)
            if value is not None and one.option:
                if one.choices:
                    one_of(one.label.lower(), value, one.choices)
                options.append(f"--{one.option}={value}")
        models = models_of(values)
        return [self.command, *options, *(["--", *models] if models else [])]

    def line(self, values: Mapping[str, str], database: str, prices: str = "") -> str:
        """Return the command line."""
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
    """Return the models that are named."""
    named = values.get("model", "").strip(" ,")
    return list(model_words([named], files_here=False)) if named else []


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


Document = Mapping[str, Any]
_HEADERS = (
    *("Model", "Hardware", "Device", "Engine", "Precision", "Batch", "Latency, ms", "Statistic"),
    *("From", "To", "Throughput", "Unit", "Memory, MB", "Cost of a million", "Rests on"),
    *("Off, held out", "Score"),
)
#: Numeric columns.
FIGURES = frozenset(
    (
        *("Batch", "Latency, ms", "From", "To", "Throughput", "Memory, MB", "Cost of a million"),
        *("Off, held out", "Score"),
    )
)
#: More answers have no sentences: the table is shorter.
_MOST_SENTENCES = 6


@dataclass(frozen=True)
class AnswerRow:
    """A row of an answer: its cells by header, and the provenance of its values."""

    cells: Mapping[str, str]
    kind: str


@dataclass(frozen=True)
class AnswerTable:
    """The table of an answer, without empty columns."""

    headers: Sequence[str]
    rows: Sequence[AnswerRow]


def answer_table(document: Document) -> AnswerTable:
    """Return the table of an answer, in its order."""
    rows = [*_rows(document)]
    headers = [name for name in _HEADERS if any(row.cells.get(name) for row in rows)]
    return AnswerTable(headers, rows)


def answer_sentences(document: Document) -> list[str]:
    """Return the command's sentences, and what costs least if there are prices.

    The first line of an explanation is the command's own sentence.
    """
    answers = document.get("recommendations", ())
    if len(answers) > _MOST_SENTENCES:
        return []
    lines = [
        line
        for answer in answers
        for line in (str(answer.get("explanation") or "").partition("\n")[0], _cheapest(answer))
    ]
    return list(dict.fromkeys(filter(None, lines)))


def _cheapest(answer: Document) -> str:
    # Rates of different items have no common cost.
    scores = {name: one for name, one in answer.get("all_scores", {}).items() if one["compatible"]}
    priced = {
        name: one
        for name, one in scores.items()
        if one["basis"] == "measured" and one.get("cost_per_million")
    }
    units = {
        kind_of_unit(str((one.get("predictions") or {}).get("throughput_unit") or ""))
        for one in priced.values()
    }
    if len(units) != 1:
        return ""
    name, least = min(priced.items(), key=lambda named: float(named[1]["cost_per_million"]))
    device = f"{name} ({least['device']})" if least.get("device") else name
    return (
        f"Lowest cost of a million items: {_cost({**least, 'currency': answer.get('currency')})},"
        f" {device}; {len(priced)} of {counted(len(scores), 'candidate')}"
        f" {'has' if len(priced) == 1 else 'have'} a price and a measured result."
    )


def _rows(document: Document) -> Iterator[AnswerRow]:
    for figures in document.get("predictions", ()):
        ends = {f"latency_{end}": figures[f"latency_{end}_ms"] for end in ("low", "high")}
        yield _row(figures, {**figures, **ends, "figure": "mean"}, "predicted")
    for place in document.get("ranking", ()):
        yield _row({"currency": document.get("currency"), **place}, place)
    for answer in document.get("recommendations", ()):
        question = answer.get("question", {})
        common = {"currency": answer.get("currency")}
        for option in answer.get("fits", ()):
            yield _row({"model": answer["model"], **common, **option}, option)
        common |= {name: question.get(name) for name in ("model", "batch_size")}
        for name, score in answer.get("all_scores", {}).items():
            if score["compatible"]:
                yield _row({**common, "hardware": name, **score}, score.get("predictions") or {})


def _row(about: Document, figures: Document, predicted: str = "") -> AnswerRow:
    kinds = (predicted, figures.get("provenance"), about.get("provenance"), about.get("basis"))
    kind = next((str(name) for name in kinds if name), "")
    latency = figures.get("latency", figures.get("latency_ms"))
    error, rate = figures.get("held_out_error"), figures.get("throughput")
    unit = str(figures.get("throughput_unit") or "") if rate else ""
    either = {**figures, **{name: value for name, value in about.items() if value is not None}}
    batch = either.get("batch_size")
    cells = {
        "Model": either.get("model"),
        "Hardware": either.get("hardware"),
        "Device": either.get("device"),
        "Engine": either.get("runtime"),
        "Precision": either.get("precision"),
        "Batch": f"{batch:,}" if batch else "",
        "Latency, ms": _number(latency),
        "Statistic": figures.get("figure") if latency is not None else "",
        "From": _number(figures.get("latency_low")),
        "To": _number(figures.get("latency_high")),
        "Throughput": _number(rate),
        "Unit": f"{unit}/s" if unit and not unit.endswith("/s") else unit,
        "Memory, MB": _number(figures.get("memory_peak_mb", figures.get("memory_mb"))),
        "Cost of a million": _cost(about),
        "Rests on": _basis(about, kind, predicted),
        "Off, held out": "" if error is None else f"{error:,.0%}",
        "Score": _number(about.get("score")),
    }
    return AnswerRow({name: str(text) for name, text in cells.items() if text}, kind)


def _basis(about: Document, kind: str, predicted: str) -> str:
    basis = str(about.get("basis") or "")
    names = ", ".join(about.get("sources") or ())
    others = f"measured by others: {names}" if names else "measured by others"
    if basis == "measured" and kind == "imported":
        basis = others
    elif not predicted and "imported" in (about.get("rests_on") or ()) and basis != "predicted":
        basis = f"{basis}, from figures {others}"
    if basis == "rule":
        basis = f"{basis}: {about['performance_rating']}"
    return f"{basis}; figures {kind}" if kind == "predicted" != predicted else basis


def _cost(about: Document) -> str:
    cost = about.get("cost_per_million")
    sign = sign_of(str(about.get("currency") or USUAL_CURRENCY))
    return "" if cost is None else f"{sign}{money(float(cost))}"


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
