"""The forms of `recommend` and `predict`, and their documents as tables of figures. Pure.

A visitor's words become options with their values joined on (`--hardware=cpu`), so none of them is
taken for an option itself; names of models are looked up before, so none of them is a file's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelbench.analysis.costs import money
from accelbench.core.errors import UsageError
from accelbench.core.figures import kind_of_unit
from accelbench.core.nouns import counted
from accelbench.core.visible import in_quotes
from accelbench.exchange.prices import USUAL_CURRENCY, sign_of
from accelbench.query.filters import model_words
from accelbench.report.charts.words import safe
from accelbench.report.dashboard.words import number

#: Letters of one field that count.
_LONGEST = 200


@dataclass(frozen=True)
class FormField:
    """One field of a form."""

    option: str  # of the command, without its dashes; "" for the models
    label: str  # beside it
    help: str = ""  # what is meant where it is empty
    choices: Sequence[str] = ()  # of a list; any text where there are none
    number: bool = False  # whether it takes a number
    priced: bool = False  # whether it needs prices, which the dashboard may not have been given
    suggested: str = ""  # which list of names is offered: models, hardware, runtimes or precisions

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
    """A command as a form."""

    command: str  # its name
    title: str  # of its page
    about: str  # what it answers, in a sentence
    fields: Sequence[FormField]  # what is asked
    #: more fields, apart from the rest, each group by its heading
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
        """The same as somebody types it."""
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
#: Columns of figures.
FIGURES = frozenset(
    (
        *("Batch", "Latency, ms", "From", "To", "Throughput", "Memory, MB", "Cost of a million"),
        *("Off, held out", "Score"),
    )
)
#: Answers of which each has its sentence above the table; of more, the table says it shorter.
_MOST_SENTENCES = 6


@dataclass(frozen=True)
class AnswerRow:
    """One line of an answer: its cells by header, and the kind of its figures."""

    cells: Mapping[str, str]
    kind: str


@dataclass(frozen=True)
class AnswerTable:
    """What an answer has figures of; columns without any are left out."""

    headers: Sequence[str]
    rows: Sequence[AnswerRow]


def answer_table(document: Document) -> AnswerTable:
    """The figures of an answer, in its order."""
    rows = [*_rows(document)]
    headers = [name for name in _HEADERS if any(row.cells.get(name) for row in rows)]
    return AnswerTable(headers, rows)


def answer_sentences(document: Document) -> list[str]:
    """What an answer comes to: what to take, and what costs least where prices were given.

    The first line of an explanation is the command's own sentence; only `predict` has none.
    """
    answers = document.get("recommendations", ())
    if len(answers) > _MOST_SENTENCES:
        return []
    said = [
        line
        for answer in answers
        for line in (str(answer.get("explanation") or "").partition("\n")[0], _cheapest(answer))
    ]
    return list(dict.fromkeys(line for line in said if line))


def _cheapest(answer: Document) -> str:
    """The lowest cost that rests on a measurement; "" of rates of different things."""
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
    if not priced or len(units) > 1:
        return ""
    name, least = min(priced.items(), key=lambda named: float(named[1]["cost_per_million"]))
    where = f"{name} ({least['device']})" if least.get("device") else name
    cost = _cost({**least, "currency": answer.get("currency")})
    return (
        f"Lowest cost of a million items: {cost}, {where}; {len(priced)} of"
        f" {counted(len(scores), 'candidate')} {'has' if len(priced) == 1 else 'have'}"
        " a price and a measured figure."
    )


def _rows(document: Document) -> Iterator[AnswerRow]:
    for figures in document.get("predictions", ()):
        ends = {end: figures[f"latency_{end}_ms"] for end in ("low", "high")}
        told = {f"latency_{end}": value for end, value in ends.items()}
        yield _row(figures, {**figures, **told, "figure": "mean"}, "predicted")
    for place in document.get("ranking", ()):
        yield _row({"currency": document.get("currency"), **place}, place)
    for answer in document.get("recommendations", ()):
        currency = answer.get("currency")
        for option in answer.get("fits", ()):
            yield _row({"model": answer["model"], "currency": currency, **option}, option)
        question = answer.get("question", {})
        for name, score in answer.get("all_scores", {}).items():
            if score["compatible"]:
                about = {"model": question.get("model"), "batch_size": question.get("batch_size")}
                about["currency"] = currency
                yield _row({**about, "hardware": name, **score}, score.get("predictions") or {})


def _row(about: Document, figures: Document, kind: str = "") -> AnswerRow:
    latency = figures.get("latency", figures.get("latency_ms"))
    memory = figures.get("memory_peak_mb", figures.get("memory_mb"))
    names = (figures.get("provenance"), about.get("provenance"), about.get("basis"))
    told, basis = kind, str(about.get("basis") or "")
    kind = kind or next((str(name) for name in names if name), "")
    if basis == "measured" and kind == "imported":
        basis = _of_others(about)
    elif not told and "imported" in (about.get("rests_on") or ()) and basis != "predicted":
        basis = f"{basis}, from figures {_of_others(about)}"
    rated = f"{basis}: {about['performance_rating']}" if basis == "rule" else basis
    return AnswerRow(
        _said(
            {
                **_place(about, figures),
                "Latency, ms": _figure(latency),
                "Statistic": str(figures.get("figure") or "") if latency is not None else "",
                "From": _figure(figures.get("latency_low")),
                "To": _figure(figures.get("latency_high")),
                "Throughput": _figure(figures.get("throughput")),
                "Unit": _rate(figures),
                "Memory, MB": _figure(memory),
                "Cost of a million": _cost(about),
                "Rests on": f"{rated}; figures {kind}" if kind == "predicted" != told else rated,
                "Off, held out": _off(figures),
                "Score": _figure(about.get("score")),
            }
        ),
        kind,
    )


def _cost(about: Document) -> str:
    cost = about.get("cost_per_million")
    sign = sign_of(str(about.get("currency") or USUAL_CURRENCY))
    return "" if cost is None else f"{sign}{money(float(cost))}"


def _of_others(about: Document) -> str:
    """Who measured it, in the words of the other pages."""
    names = ", ".join(about.get("sources") or ())
    return f"measured by others: {names}" if names else "measured by others"


def _place(about: Document, figures: Document) -> dict[str, str]:
    either = {**figures, **{name: value for name, value in about.items() if value is not None}}
    batch = either.get("batch_size")
    return {
        "Model": str(either.get("model") or ""),
        "Hardware": str(either.get("hardware") or ""),
        "Device": str(either.get("device") or ""),
        "Engine": str(either.get("runtime") or ""),
        "Precision": str(either.get("precision") or ""),
        "Batch": f"{batch:,}" if batch else "",
    }


def _off(figures: Document) -> str:
    error = figures.get("held_out_error")
    return "" if error is None else f"{error:,.0%}"


def _rate(figures: Document) -> str:
    unit = str(figures.get("throughput_unit") or "") if figures.get("throughput") else ""
    return unit if not unit or unit.endswith("/s") else f"{unit}/s"


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _said(cells: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in cells.items() if text}
