"""Recommendations, also under limits, their predictions and task rankings as documents."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from accelbench.core.axes import size_labels
from accelbench.core.formatting import format_count, format_value
from accelbench.core.result_statistics import Statistic, interval_text, statistic_name
from accelbench.core.unusable_reasons import failed_launches_text
from accelbench.exchange.prices import DEFAULT_CURRENCY, currency_sign
from accelbench.present.document import Document, DocumentSection, Notes, Table, columns
from accelbench.present.terminal.recommend_cells import (
    MARK,
    MIXED,
    a_million,
    basis,
    cost,
    error,
    figure_columns,
    fits,
    in_a_word,
    is_measured,
    memory,
    share,
    statistic_said,
    time_head,
    way,
    where,
    why_unclear,
)
from accelbench.present.texts import phrase
from accelbench.recommend.answers import (
    IN_THE_ANSWER,
    browsers_left_out,
    mixed_figures,
)
from accelbench.recommend.constraints.limits import spelled
from accelbench.recommend.evidence.candidates import sentences_of as set_aside
from accelbench.recommend.evidence.cells import (
    BY_FASTEST,
    differing,
    is_imported,
    of_machines,
    of_others,
    rounded,
)
from accelbench.recommend.evidence.model_evidence import FEW, sentences_of
from accelbench.recommend.ranking import percent

Answer = Mapping[str, Any]

#: Configurations of an answer that are shown, unless all are asked for.
_MOST_SHOWN = 10
_ELSEWHERE = phrase("recommend.measure-on-machine-with")
#: What most questions mean is not said.
_USUAL = {"mode": "inference"}


def answer_section(answer: Answer, explain: bool) -> DocumentSection:
    """Return an answer: what to take, the configurations in order, and gaps."""
    able = {name: score for name, score in answer["all_scores"].items() if score["compatible"]}
    lines = answer["explanation"].splitlines() if explain else _briefly(answer)
    notes = Notes([*lines, *_together(answer)])
    if not able:
        return DocumentSection(_heading(answer), [notes])
    figured = answer["configurations"]
    shown = figured if explain else figured[:_MOST_SHOWN]
    ruled = [
        {**score, "hardware": name} for name, score in able.items() if score["basis"] == "rule"
    ]
    about = (
        [f"and {len(figured) - len(shown)} more: --explain shows all."]
        if figured[len(shown) :]
        else []
    )
    about += filter(None, [of_others(shown)])
    if any(entry["basis"] == "predicted" for entry in shown):
        about.append(phrase("recommend.predicted-legend", mark=MARK))
    sign = currency_sign(answer.get("currency", DEFAULT_CURRENCY))
    table = _configurations([*shown, *ruled], len(shown), sign)
    return DocumentSection(_heading(answer), [table, Notes(about), notes])


def answers_section(answers: Sequence[Answer]) -> DocumentSection:
    """Return several answers, a row each."""
    batches = {answer["question"]["batch_size"] for answer in answers}
    best = list(map(_best, answers))
    heads, cells = figure_columns(best)
    rows = [
        (
            _model_of(answer),
            ", ".join(size_labels(answer["sizes"])),
            str(answer["question"]["batch_size"]) if len(batches) > 1 else "",
            _first(answer),
            *of_it,
            error(first),
            in_a_word(first),
            ", ".join(answer["fallback_options"][:2]),
        )
        for answer, first, of_it in zip(answers, best, cells, strict=True)
    ]
    heads = ("model", "sizes", "batch", "take", *heads, "error", "by", "else")
    title = f"At batch {batches.pop()}" if len(batches) == 1 else ""
    table = Table(columns(heads, (2, 4, 5, 6, 8)), rows, intervals={1: 0, 5: 4})
    return DocumentSection(title, [table, Notes(list(_answers_notes(answers)))])


def _answers_notes(answers: Sequence[Answer]) -> Iterator[str]:
    if any(answer["no_clear_winner_between"] for answer in answers):
        yield phrase("recommend.unclear-legend")
    if any(_is_alone(answer) for answer in answers):
        yield phrase("recommend.alone-legend")
    if whose := of_others(map(_best, answers)):
        yield whose
    if machines := _machines_of(answers):
        yield of_machines(machines, BY_FASTEST)
    missing = [answer for answer in answers if answer["missing"] and not is_measured(_best(answer))]
    if missing:
        yield phrase("recommend.without-measurement", missing=len(missing), answers=len(answers))
        advice = list(filter(None, map(_to_measure, missing)))
        yield from sorted(advice, key=lambda sentence: sentence.startswith(_ELSEWHERE))[:1]
    aside = [
        answer
        for answer in answers
        if answer["measured_otherwise"] and not is_measured(_best(answer))
    ]
    if aside:
        yield phrase("recommend.measured-otherwise", aside=len(aside))
    moments = [str(answer["data_date"]) for answer in answers if answer["data_date"]]
    if moments:
        yield phrase("recommend.newest-data", moment=_moment(max(moments)))


def _heading(answer: Answer) -> str:
    question = answer["question"]
    model = question["model"] or phrase("recommend.any-model-family", family=question["family"])
    what = [f"{model} at batch {question['batch_size']}", *size_labels(answer["sizes"])]
    what += [question[n] for n in ("precision", "mode") if question[n] not in (None, _USUAL.get(n))]
    has_task = question["task"] not in (None, question["mode"])
    what += [f"for {question['task']}"] if has_task else []
    subject = ", ".join(what)
    unclear = answer["no_clear_winner_between"]
    if answer["primary_recommendation"] is None:
        return f"{subject}: nothing suits"
    basis = str(_best(answer).get("basis"))
    if unclear:
        *most, last = unclear
        ground = phrase("recommend.tied-by-rules") if basis == "rule" else ""
        between = f"{', '.join(most)} and {last}{ground}"
        return phrase("recommend.no-clear-winner", subject=subject, between=between)
    alone = ", by rule alone" if basis == "rule" else ""
    return f"{subject}: take {answer['primary_recommendation']}{alone}{_sure(answer)}"


def _sure(answer: Answer) -> str:
    """Return how sure the first configuration is, as part of a heading.

    One that is compared with none is not the best of anything: it fits, or it does not.
    """
    best = _best(answer)
    known = best.get("probability")
    if known is None:
        return ""
    compared = [e for e in answer["configurations"] if e.get("probability") is not None]
    if len(compared) > 1:
        return f", best with {percent(known)}"
    fits_it = best.get("fits_probability")
    fitting = "" if fits_it in (None, 1.0) else f"; it fits with {percent(fits_it)}"
    return phrase("recommend.only-one", fitting=fitting)


def _configurations(entries: Sequence[Answer], figured: int, sign: str) -> Table:
    heads, cells = figure_columns(entries)
    elsewhere = [entry.get("present") is False for entry in entries]
    rows = [
        (
            str(entry["rank"]) if place < figured else "",
            where(entry["hardware"], entry),
            way(entry),
            *of_it,
            memory(entry),
            fits(entry),
            share(entry, "probability") if place < figured else "",
            error(entry),
            cost(entry),
            basis(entry),
        )
        for place, (entry, of_it) in enumerate(zip(entries, cells, strict=True))
    ]
    heads = ("", "hardware", "engine", *heads, "MB", "fits", "best", "error", a_million(sign),
             "basis")  # fmt: skip
    ends = [n for n, (here, after) in enumerate(pairwise(elsewhere)) if here != after]
    ends += [figured - 1] if 0 < figured < len(entries) else []
    numeric = (0, 3, 4, 5, 7, 8, 9, 10)
    return Table(columns(heads, numeric), rows, sorted(set(ends)), intervals={4: 3})


def _best(answer: Answer) -> Answer:
    best: Answer = answer["all_scores"].get(answer["primary_recommendation"], {})
    return best


def _first(answer: Answer) -> str:
    first = answer["primary_recommendation"] or "nothing"
    if _is_alone(answer):
        return f"*{first}"
    return f"~{first}" if answer["no_clear_winner_between"] else first


def _machines_of(answers: Sequence[Answer]) -> dict[str, list[str]]:
    by_machine: dict[str, list[str]] = {}
    for answer in answers:
        for machine, names in answer["machines"].items():
            known = by_machine.setdefault(machine, [])
            known += [name for name in names if name not in known]
    return by_machine


def _is_alone(answer: Answer) -> bool:
    return len(answer["compared"]) == 1 and bool(answer["fallback_options"])


def _model_of(answer: Answer) -> str:
    question = answer["question"]
    return f"{question['model']}{' train' if question['mode'] == 'training' else ''}"


def _briefly(answer: Answer) -> Iterator[str]:
    scores = answer["all_scores"]
    for name, candidate in scores.items():
        if not candidate["compatible"]:
            yield f"{name} is out: {candidate['reason']}."
    yield from _left_out(answer)
    if answer["browsers_left_out"]:
        yield browsers_left_out(answer["browsers_left_out"])
    yield from answer["remarks"]
    yield from _whose(answer)
    yield from sentences_of(answer["measured_otherwise"], FEW)
    yield from set_aside(answer["set_aside"], FEW)
    if mixed := mixed_figures(
        {n: statistic for n, score in scores.items() if (statistic := statistic_said(score))}
    ):
        yield mixed
    yield from _unclear(answer)
    if _is_alone(answer):
        yield phrase("recommend.alone")
    if measure := _to_measure(answer):
        yield measure
    elif answer["missing"] and not any(gap["command"] for gap in answer["missing"]):
        yield phrase("recommend.no-command", reason=answer["missing"][0]["reason"])
    yield from answer.get("cost_notes", ())
    if answer["data_date"]:
        yield phrase(
            "recommend.data-date",
            moment=_moment(answer["data_date"]),
            matrix_source=answer["matrix_source"],
        )


def _whose(answer: Answer) -> Iterator[str]:
    for name, candidate in answer["all_scores"].items():
        if failed := failed_launches_text([candidate.get("predictions") or {}]):
            yield phrase("recommend.launches-failed", name=name, failed=failed)
    if answer["machines"]:
        yield of_machines(answer["machines"], BY_FASTEST)


def _left_out(answer: Answer) -> Iterator[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for entry in answer["left_out"]:
        by_reason.setdefault((entry["precision"], entry["reason"]), []).append(entry["hardware"])
    for (precision, reason), names in by_reason.items():
        yield phrase(
            "recommend.precision-left-out",
            precision=precision,
            names=", ".join(names),
            reason=reason,
        )


def _unclear(answer: Answer) -> Iterator[str]:
    unclear = answer["no_clear_winner_between"]
    absent = [name for name in unclear if name not in answer["measurable_here"]]
    if absent:
        names = ", ".join(where(name, answer["all_scores"][name]) for name in absent)
        yield phrase(
            "recommend.verify-elsewhere", why_unclear=why_unclear(_best(answer)), names=names
        )
    elif unclear:
        yield phrase("recommend.verify-here", why_unclear=why_unclear(_best(answer)))


def _to_measure(answer: Answer) -> str | None:
    """Return the one measurement that most likely changes the answer, as a command."""
    measure = answer["decisive_measurement"]
    if measure is None:
        return None
    likely = measure["changes_with"]
    sure = "" if likely is None else f" (changes the answer with {percent(likely)})"
    if measure["hardware"] in answer["measurable_here"]:
        return f"To measure{sure}: {measure['command']}"
    on = measure["device"] or measure["hardware"]
    return f"{_ELSEWHERE} {on}{sure}: {measure['command']}"


def _moment(moment: str) -> str:
    return moment[:16].replace("T", " ")


def _together(answer: Answer) -> Iterator[str]:
    spread = answer.get("distributed")
    if not spread:
        return
    fits = {True: "fits", False: "does not fit", None: phrase("recommend.may-fit")}[spread["fits"]]
    yield phrase(
        "recommend.distributed",
        gpu_count=spread["gpu_count"],
        strategy=spread["strategy"],
        fits=fits,
        reason=spread["reason"],
        speed=spread["speed"],
    )


#: Models of a ranking that are shown.
_MOST_RANKED = 20
_ORDER = phrase("recommend.ranking-order")


def ranking_document(
    ranked: Sequence[Answer], task: str, batch: int, explain: bool, unknown: Sequence[str] = ()
) -> Document:
    """Return models in order for a task; `unknown` are those of no known family."""
    left_out = Notes(list(_unknown(unknown, task)))
    if not ranked:
        which = phrase("recommend.of-known-task") if unknown else ""
        return Document(
            "", [left_out, Notes([phrase("recommend.no-model-results", which=which, task=task)])]
        )
    shown = ranked if explain else ranked[:_MOST_RANKED]
    heads, cells = figure_columns([{"predictions": entry} for entry in shown])
    rows = [
        (
            str(place),
            entry["model"],
            ", ".join(size_labels(entry["sizes"])),
            where(entry["hardware"], entry),
            *of_it,
            in_a_word(entry),
        )
        for place, (entry, of_it) in enumerate(zip(shown, cells, strict=True), 1)
    ]
    heads = ("", "model", "sizes", "on", *heads, "by")
    table = Table(columns(heads, (0, 4, 5, 6)), rows, intervals={2: 1, 5: 4})
    notes = [whose] if (whose := of_others(shown)) else []
    if len(shown) < len(ranked):
        notes.append(f"and {len(ranked) - len(shown)} more: --explain shows all.")
    notes += [_ORDER] if explain else []
    section = DocumentSection(
        phrase("recommend.ranking-title", task=task, batch=batch), [table, Notes(notes)]
    )
    return Document("", [left_out, section] if left_out.sentences else [section])


def _unknown(names: Sequence[str], task: str) -> Iterator[str]:
    if names:
        listed = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        yield phrase("recommend.unknown-families", count=len(names), task=task, listed=listed)


Measured = Mapping[str, Any]


def measured_notes(measured: Sequence[Measured]) -> Notes:
    """Return what was just measured, and whether it is in the answers."""
    return Notes(list(map(_sentence, measured)))


def _sentence(result: Measured) -> str:
    where = f"{result['hardware']} ({result['device']})" if result["device"] else result["hardware"]
    way = " ".join(str(result[name]) for name in ("runtime", "precision") if result[name])
    time = (
        ""
        if result["latency"] is None
        else f", {statistic_name(Statistic(result['figure']))} {rounded(result['latency'])} ms"
    )
    outcome = result["outcome"]
    verdict = (
        outcome if outcome == IN_THE_ANSWER else phrase("recommend.outside-answer", outcome=outcome)
    )
    return phrase(
        "recommend.measured-now",
        where=where,
        way=way,
        batch_size=result["batch_size"],
        time=time,
        verdict=verdict,
    )


Option = Mapping[str, Any]
#: Of an engine at a place, in a precision, the settings that tell its ways apart.
_Ways = Mapping[tuple[Any, ...], Container[str]]

#: Options that do not fit, and that are named; all of them are in the JSON document.
_NAMED = 6
_COMPARED = {"latency_ms": "latency", "throughput": "throughput", "memory_mb": "memory"}


def limits_section(answer: Mapping[str, Any], explain: bool) -> DocumentSection:
    """Return what to take, what else nothing beats in every respect, and what does not fit."""
    best, front = answer["best"], answer["pareto"]
    ways = _told_apart([*answer["fits"], *answer["does_not_fit"]])
    shown = answer["fits"] if explain else front
    blocks: list[Table | Notes] = []
    notes: list[str] = []
    if best:
        rows = [best, *(option for option in shown if option != best)]
        sign = currency_sign(answer.get("currency", DEFAULT_CURRENCY))
        blocks.append(_table(rows, front, sign, ways))
        notes += filter(None, (_star(answer), of_others(rows)))
    notes.append(answer["explanation"])
    notes += [f"  {line}" for line in (_further(answer) if explain else ())]
    notes += answer.get("cost_notes", ())
    notes += [f"  {_searched(search)}" for search in answer.get("searched", ())]
    misfits = answer["does_not_fit"]
    notes += [
        f"  {where(case['hardware'], case)} {_engine(case, ways)},"
        f" batch {case['batch_size']}: {'; '.join(case['why'])}"
        for case in (misfits if explain else misfits[:_NAMED])
    ]
    if len(misfits) > _NAMED and not explain:
        notes.append(f"  and {len(misfits) - _NAMED} more: --explain")
    unmeasured = [case for case in answer["to_verify"] if not _is_known(case, answer)]
    if "searched" not in answer and (advice := _measure_unmeasured(unmeasured)):
        notes.append(advice)
    return DocumentSection(_heading_under_limits(answer), [*blocks, Notes(notes)])


def _further(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from sentences_of(answer["measured_otherwise"][FEW:])
    yield from set_aside(answer["set_aside"][FEW:], memory_mb=answer["limits"].get("memory_mb"))


def _heading_under_limits(answer: Mapping[str, Any]) -> str:
    limits = ", ".join(
        f"--{name.replace('_', '-')} {spelled(value)}" for name, value in answer["limits"].items()
    )
    sizes = "".join(f", {label}" for label in size_labels(answer["sizes"]))
    return f"{answer['model']} ({answer['mode']}{sizes}) under {limits}"


def _searched(search: Mapping[str, Any]) -> str:
    named = [str(search[n]) for n in ("hardware", "runtime", "precision") if search[n]]
    options = [f"{name}={value}" for name, value in sorted(search["options"].items())]
    way = " ".join([*named, *options])
    batches, largest = search["tried"], search["largest_batch"]
    if not batches:
        return f"{way}: not searched, {search['ended'].rstrip('.')}"
    settled = search["ended"] == "settled"
    if largest is None:
        fits = "no batch fits" if settled else phrase("recommend.no-batch-fits")
    elif search.get("largest_tried") == largest:
        fits = phrase("recommend.largest-batch-fits", largest=largest)
    else:
        fits = phrase(
            "recommend.largest-batch",
            largest=largest,
            words="that fits" if settled else "known to fit",
        )
    missed = [b["batch_size"] for b in batches if b["fits"] is False]
    larger = [batch for batch in missed if largest is None or batch > largest]
    beyond = f", {min(larger)} does not" if larger else ""
    smaller = ", ".join(str(batch) for batch in missed if batch not in larger)
    below = phrase("recommend.smaller-missed", smaller=smaller) if smaller else ""
    open_end = "" if settled else f"; {search['ended']}"
    odd = "".join(f"; batch {b['batch_size']}: {_odd(b)}" for b in batches if b.get("why"))
    measured = format_count(len(batches), "batch", "batches")
    return f"{way}: {fits}{beyond}{below} ({measured} measured{open_end}){odd}"


def _odd(batch: Mapping[str, Any]) -> str:
    why = str(batch["why"])
    return why if batch["fits"] is None else phrase("recommend.fits-without-time", why=why)


def _measure_unmeasured(cases: Sequence[Mapping[str, Any]]) -> str | None:
    able = [case for case in cases if case["command"]]
    here = next((case for case in able if case["measurable_here"]), None)
    if here is not None:
        return phrase("recommend.measure-or-verify", command=here["command"])
    if not able:
        return None
    first = able[0]
    return phrase(
        "recommend.measure-on", where=where(first["hardware"], first), command=first["command"]
    )


def _star(answer: Mapping[str, Any]) -> str:
    if len(answer["fits"]) == 1:
        return "* nothing else fits."
    *most, last = (_COMPARED[name] for name in answer["pareto_by"])
    return phrase("recommend.front-legend", most=", ".join(most), last=last)


def _table(rows: Sequence[Option], front: Sequence[Option], sign: str, ways: _Ways) -> Table:
    (rate, rates), time = _rates(rows), time_head(rows)
    heads = ("hardware", "engine", "batch", time, "within", rate, "MB", "fits", "best", "error",
             "W", "J/item", a_million(sign), "basis", "")  # fmt: skip
    measures = ("error", "power_watts", "energy_per_item_joules")
    cells = [
        (
            where(option["hardware"], option),
            _engine(option, ways),
            str(option["batch_size"]),
            _time(option, time),
            _band(option),
            items,
            _memory(option),
            share(option, "fits_probability"),
            share(option, "probability"),
            *(_figure(option, name) for name in measures),
            cost(option),
            "imported" if is_imported(option) else option["basis"],
            "*" if option in front else "",
        )
        for option, items in zip(rows, rates, strict=True)
    ]
    return Table(columns(heads, range(2, 13)), cells, intervals={4: 3})


def _band(option: Option) -> str:
    low, middle, high = (option[f"latency_{end}"] for end in ("low", "ms", "high"))
    return "" if low == high else interval_text(low, middle, high, format_value)


def _figure(option: Option, name: str) -> str:
    value = option.get(name)
    if value is None:
        return ""
    timed = name in ("latency_ms", "throughput")
    return f"{MARK if timed and option['basis'] != 'measured' else ''}{format_value(value)}"


def _time(option: Option, head: str) -> str:
    time = _figure(option, "latency_ms")
    return (
        f"{time} {statistic_name(Statistic(option['figure']))}" if head == MIXED and time else time
    )


def _memory(option: Option) -> str:
    value = option["memory_mb"]
    if value is None:
        return ""
    return f"{'' if option['memory_basis'] == 'measured' else MARK}{format_value(value)}"


def _rates(rows: Sequence[Option]) -> tuple[str, list[str]]:
    units = [f"{option['throughput_unit']}/s" for option in rows]
    rates = [_figure(option, "throughput") for option in rows]
    if len(set(units)) == 1:
        return units[0], rates
    return "rate", [f"{rate} {unit}" for rate, unit in zip(rates, units, strict=True)]


def _told_apart(every: Sequence[Option]) -> _Ways:
    several: dict[tuple[Any, ...], list[Option]] = {}
    for option in every:
        several.setdefault(_named(option), []).append(option)
    return {name: {"options", *differing(rows)} for name, rows in several.items()}


def _named(option: Option) -> tuple[Any, ...]:
    return tuple(option[name] for name in ("hardware", "device", "runtime", "precision"))


def _engine(option: Option, ways: _Ways) -> str:
    return way(option, ways[_named(option)])


def _is_known(case: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether a case was measured and fits, so that measuring would only confirm it."""
    same = ("hardware", "device", "runtime", "precision", "batch_size", "options")
    by_memory = "memory_mb" in answer["limits"]
    return any(
        option["basis"] == "measured"
        and not (by_memory and option["memory_basis"] != "measured")
        and all(option[name] == case[name] for name in same)
        for option in answer["fits"]
    )
