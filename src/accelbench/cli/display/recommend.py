"""Recommendations in a terminal, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from accelbench.analysis.cost_words import money
from accelbench.cli.display.columns import table, text
from accelbench.cli.display.console import console as made_for
from accelbench.cli.display.words import figure
from accelbench.core.nouns import counted
from accelbench.exchange.prices import USUAL_CURRENCY, sign_of
from accelbench.select.words import browsers_left_out

Answer = Mapping[str, Any]

#: Models of a ranking that are shown.
_MOST_RANKED = 20
_ORDER = (
    "Each on the hardware that is first for it. What counts the same stands together, what most"
    " models count first: measured before estimated, and among them the most a second. What only a"
    " rule speaks for comes last."
)
#: What most questions mean is not said.
_USUAL = {"mode": "inference"}


def show_answer(answer: Answer, explain: bool, console: Console | None = None) -> None:
    """One answer: what to take, every candidate with what is known of it, and what is missing."""
    console = console or made_for()
    console.print(text(_heading(answer)), style="bold")
    scores = answer["all_scores"]
    able = [name for name, one in scores.items() if one["compatible"]]
    if able:
        sign = sign_of(answer.get("currency", USUAL_CURRENCY))
        console.print(_candidates({name: scores[name] for name in able}, sign))
    lines = answer["explanation"].splitlines() if explain else _briefly(answer)
    for line in (*lines, *_together(answer)):
        console.print(text(line))
    console.print()


def show_answers(answers: Sequence[Answer], console: Console | None = None) -> None:
    """Answers side by side: a line each."""
    console = console or made_for()
    batches = {one["question"]["batch_size"] for one in answers}
    units = _units(map(_best, answers))
    rows = [
        (
            _model_of(one),
            str(one["question"]["batch_size"]) if len(batches) > 1 else "",
            _first(one),
            *_figures(_best(one)),
            _counts(_best(one), units),
            _error(_best(one)),
            _in_a_word(_best(one)),
            ", ".join(one["fallback_options"][:2]),
        )
        for one in answers
    ]
    heads = ("model", "batch", "take", "ms", _rate(units), "counts", "error", "by", "else")
    if len(batches) == 1:
        console.print(text(f"At batch {batches.pop()}"), style="bold")
    console.print(table(heads, rows, right=(1, 3, 4, 6)))
    if any(one["no_clear_winner_between"] for one in answers):
        console.print(text("~ no clear winner: others may be as good; --explain says which."))
    if any(_is_alone(one) for one in answers):
        console.print(text("* has a figure alone: nothing shows that it is the best."))
    missing = [one for one in answers if one["missing"] and not _is_measured(_best(one))]
    if missing:
        console.print(
            text(f"{len(missing)} of {len(answers)} rest on no measurement of what they name.")
        )
        first = next((r for r in (_to_measure(one["missing"]) for one in missing) if r), None)
        if first:
            console.print(text(f"To measure: {first}"))
    moments = [str(one["data_date"]) for one in answers if one["data_date"]]
    if moments:
        console.print(text(f"Data of what is named up to {_moment(max(moments))}."))


def show_ranking(
    ranked: Sequence[Answer],
    task: str,
    batch: int,
    explain: bool,
    unknown: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Models in order for a task; of the unknown nobody says what they are for."""
    console = console or made_for()
    for line in _unknown(unknown, task):
        console.print(text(line))
    if not ranked:
        which = "that says what it is for " if unknown else ""
        console.print(text(f"No model with results {which}is for {task}."))
        return
    console.print(text(f"For {task} at batch {batch}"), style="bold")
    shown = ranked if explain else ranked[:_MOST_RANKED]
    units = _units({"predictions": one} for one in shown)
    rows = [
        (
            str(place),
            one["model"],
            where(one["hardware"], one),
            *_figures({"predictions": one}),
            _counts({"predictions": one}, units),
            _in_a_word(one),
        )
        for place, one in enumerate(shown, 1)
    ]
    heads = ("", "model", "on", "ms", _rate(units), "counts", "by")
    console.print(table(heads, rows, right=(0, 3, 4)))
    if len(shown) < len(ranked):
        console.print(text(f"and {len(ranked) - len(shown)} more: --explain shows all."))
    if explain:
        console.print(text(_ORDER))


def _unknown(names: Sequence[str], task: str) -> Iterator[str]:
    if names:
        listed = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        yield (
            f"{counted(len(names), 'model')} of no known family may be for {task} too, and"
            f" {'is' if len(names) == 1 else 'are'} left out: {listed}"
        )


def _heading(answer: Answer) -> str:
    question = answer["question"]
    model = question["model"] or f"any model of the family {question['family']}"
    what = [f"{model} at batch {question['batch_size']}"]
    what += [question[n] for n in ("precision", "mode") if question[n] not in (None, _USUAL.get(n))]
    told = question["task"] not in (None, question["mode"])
    what += [f"for {question['task']}"] if told else []
    said = ", ".join(what)
    unclear = answer["no_clear_winner_between"]
    if answer["primary_recommendation"] is None:
        return f"{said}: nothing suits"
    if unclear:
        *most, last = unclear
        return f"{said}: no clear winner between {', '.join(most)} and {last}"
    return f"{said}: take {answer['primary_recommendation']}"


def _candidates(scores: Mapping[str, Any], sign: str) -> Table:
    units = _units(scores.values())
    rows = [
        (
            where(name, one),
            _way(one),
            *_figures(one),
            _counts(one, units),
            _memory(one),
            _error(one),
            _cost(one),
            _basis(one),
            figure(one["score"]),
        )
        for name, one in scores.items()
    ]
    priced = _a_million(sign)
    heads = (
        *("hardware", "engine", "ms", _rate(units), "counts", "MB", "error"),
        *(priced, "by", "score"),
    )
    return table(heads, rows, right=(2, 3, 5, 6, 7, 9))


def _a_million(sign: str) -> str:
    """The heading of costs, in two lines where a currency has letters for a sign."""
    return f"{sign}/million" if len(sign) == 1 else f"{sign.strip()}\n/million"


def where(name: str | None, one: Answer) -> str:
    """A platform, with the device that its figure is of."""
    device = one.get("device")
    if name is None or not device or device in name:
        return name or "none"
    return f"{name} ({device})"


def _way(one: Answer) -> str:
    return " ".join(str(one[n]) for n in ("runtime", "precision") if one.get(n))


def _figures(one: Answer) -> tuple[str, str]:
    """Latency and throughput; an estimate is marked as such, and what is ruled has none."""
    known = one.get("predictions") or {}
    about = "" if _is_measured(one) or known.get("basis") == "measured" else "≈"
    return tuple(  # type: ignore[return-value]  # two
        f"{about}{figure(known[name])}" if known.get(name) is not None else ""
        for name in ("latency", "throughput")
    )


def _units(several: Iterable[Answer]) -> set[str]:
    """What throughputs count."""
    known = (one.get("predictions") or {} for one in several)
    return {
        str(one.get("throughput_unit") or "items")
        for one in known
        if one.get("throughput") is not None
    }


def _rate(units: set[str]) -> str:
    """The heading of throughputs: where they count different things, a column says which."""
    return f"{next(iter(units), 'items')}/s" if len(units) < 2 else "a second"


def _counts(one: Answer, units: set[str]) -> str:
    known = one.get("predictions") or {}
    several = len(units) > 1 and known.get("throughput") is not None
    return str(known.get("throughput_unit") or "items") if several else ""


def _memory(one: Answer) -> str:
    known = (one.get("predictions") or {}).get("memory_peak_mb")
    return "" if known is None else figure(known)


def _error(one: Answer) -> str:
    """How far its outputs are from fp32's, as verified; empty where nobody compared them."""
    known = (one.get("predictions") or {}).get("verification_error")
    return "" if known is None else f"{known:.2g}"


def _cost(one: Answer) -> str:
    known = one.get("cost_per_million")
    return "" if known is None else money(known)


def _basis(one: Answer) -> str:
    basis = str(one.get("basis") or "")
    rating = f": {one['performance_rating']}" if basis == "rule" and "score" in one else ""
    return f"{basis}{rating}{', not here' if one.get('present') is False else ''}"


def _in_a_word(one: Answer) -> str:
    """Measured, estimated or ruled, where there is no room for more."""
    basis = str(one.get("basis") or "")
    return basis if basis in ("measured", "rule", "") else "estimated"


def _is_measured(one: Answer) -> bool:
    return bool(one.get("basis") == "measured")


def _best(answer: Answer) -> Answer:
    found: Answer = answer["all_scores"].get(answer["primary_recommendation"], {})
    return found


def _first(answer: Answer) -> str:
    first = answer["primary_recommendation"] or "nothing"
    if _is_alone(answer):
        return f"* {first}"
    return f"~ {first}" if answer["no_clear_winner_between"] else first


def _is_alone(answer: Answer) -> bool:
    """Whether what is first has the only figure, beside others without one."""
    return len(answer["compared"]) == 1 and bool(answer["fallback_options"])


def _model_of(answer: Answer) -> str:
    question = answer["question"]
    return f"{question['model']}{' train' if question['mode'] == 'training' else ''}"


def _briefly(answer: Answer) -> Iterator[str]:
    """What there is to know below the table; all of it is in the explanation."""
    scores = answer["all_scores"]
    for name, one in scores.items():
        if not one["compatible"]:
            yield f"{name} is out: {one['reason']}."
    yield from _left_out(answer)
    if answer["browsers_left_out"]:
        yield browsers_left_out(answer["browsers_left_out"])
    if answer["no_clear_winner_between"]:
        yield "They differ by less than is known of them: --verify measures them in turns."
    if _is_alone(answer):
        yield "No other has a figure: nothing shows that it is the best of them."
    if any("≈" in "".join(_figures(one)) for one in scores.values()):
        yield "≈ estimated, not measured: --explain says from what, and how far it may be off."
    missing = answer["missing"]
    if missing:
        names = ", ".join(one["hardware"] for one in missing)
        yield f"Not measured: {names}."
        command = _to_measure(missing)
        yield (
            f"To measure: {command}"
            if command
            else f"No command measures it as it stands: {missing[0]['reason']}."
        )
    yield from answer.get("cost_notes", ())
    if answer["data_date"]:
        yield f"Data of {_moment(answer['data_date'])}; compatibility by {answer['matrix_source']}."
    else:
        yield f"Compatibility by {answer['matrix_source']}."


def _left_out(answer: Answer) -> Iterator[str]:
    """What does not count for its precision; what several are left out for is said once."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for one in answer["left_out"]:
        by_reason.setdefault((one["precision"], one["reason"]), []).append(one["hardware"])
    for (precision, reason), names in by_reason.items():
        yield (
            f"{precision} of {', '.join(names)} does not count: {reason}."
            f" --precision {precision} counts it."
        )


def _to_measure(missing: Sequence[Answer]) -> str | None:
    """The first command that fills a gap, if any does."""
    return next((str(one["command"]) for one in missing if one["command"]), None)


def _moment(moment: str) -> str:
    """Date and time to the minute."""
    return moment[:16].replace("T", " ")


def _together(answer: Answer) -> Iterator[str]:
    """What is said of several devices."""
    spread = answer.get("distributed")
    if not spread:
        return
    fits = {True: "fits", False: "does not fit", None: "may or may not fit"}[spread["fits"]]
    yield (
        f"On {spread['gpu_count']} devices: {spread['strategy']}, which {fits}:"
        f" {spread['reason']}. Speed {spread['speed']}."
    )
