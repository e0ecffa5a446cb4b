"""The documents of `recommend --json` and `predict --json` as a table of figures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.analysis.cost_words import money
from accelbench.core.nouns import counted
from accelbench.core.rates import kind_of_unit
from accelbench.exchange.prices import USUAL_CURRENCY, sign_of
from accelbench.report.dashboard.words import number

Document = Mapping[str, Any]
_HEADERS = (
    *("Model", "Hardware", "Device", "Engine", "Precision", "Batch", "Latency, ms", "Statistic"),
    *("From", "To", "Throughput", "Unit", "Memory, MB", "Cost of a million", "Rests on"),
    *("Off, held out", "Score"),
)
#: Columns of figures.
FIGURES = frozenset(
    (
        "Batch",
        "Latency, ms",
        "From",
        "To",
        "Throughput",
        "Memory, MB",
        "Cost of a million",
        "Off, held out",
        "Score",
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
        yield _predicted(figures)
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


def _row(about: Document, figures: Document) -> AnswerRow:
    latency = figures.get("latency", figures.get("latency_ms"))
    memory = figures.get("memory_peak_mb", figures.get("memory_mb"))
    kind = str(figures.get("provenance") or about.get("provenance") or about.get("basis") or "")
    basis = str(about.get("basis") or "")
    if basis == "measured" and kind == "imported":
        basis = _of_others(about)
    elif "imported" in (about.get("rests_on") or ()) and basis != "predicted":
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
                "Rests on": f"{rated}; figures {kind}" if kind == "predicted" else rated,
                "Off, held out": _off(figures),
                "Score": _figure(about.get("score")),
            }
        ),
        kind,
    )


def _cost(about: Document) -> str:
    """With its currency, as the command has it; "" where there is no price."""
    cost = about.get("cost_per_million")
    sign = sign_of(str(about.get("currency") or USUAL_CURRENCY))
    return "" if cost is None else f"{sign}{money(float(cost))}"


def _of_others(about: Document) -> str:
    """Who measured it, in the words of the other pages."""
    names = ", ".join(about.get("sources") or ())
    return f"measured by others: {names}" if names else "measured by others"


def _predicted(figures: Document) -> AnswerRow:
    return AnswerRow(
        _said(
            {
                **_place(figures, figures),
                "Latency, ms": _figure(figures["latency_ms"]),
                "Statistic": "mean",
                "From": _figure(figures["latency_low_ms"]),
                "To": _figure(figures["latency_high_ms"]),
                "Throughput": _figure(figures["throughput"]),
                "Unit": _rate(figures),
                "Memory, MB": _figure(figures["memory_mb"]),
                "Rests on": str(figures["basis"]),
                "Off, held out": _off(figures),
            }
        ),
        "predicted",
    )


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
    """By how much such figures were off in the median; "" of what nobody held out."""
    error = figures.get("held_out_error")
    return "" if error is None else f"{error:,.0%}"


def _rate(figures: Document) -> str:
    unit = str(figures.get("throughput_unit") or "") if figures.get("throughput") else ""
    return unit if not unit or unit.endswith("/s") else f"{unit}/s"


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _said(cells: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in cells.items() if text}
