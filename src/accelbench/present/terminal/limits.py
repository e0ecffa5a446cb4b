"""The best configurations under limits as a document."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from accelbench.core.axes import size_labels
from accelbench.core.figures import Statistic, name_of
from accelbench.core.nouns import counted
from accelbench.exchange.prices import USUAL_CURRENCY, sign_of
from accelbench.present.document import DocumentSection, Notes, Table, columns
from accelbench.present.terminal.recommend_cells import (
    MIXED,
    a_million,
    in_a_word,
    time_head,
    way,
    where,
)
from accelbench.present.terminal.words import figure
from accelbench.present.texts import phrase
from accelbench.recommend.constraints.limits import spelled
from accelbench.recommend.evidence.candidates import sentences_of as set_aside
from accelbench.recommend.evidence.cells import differing, is_imported, of_others
from accelbench.recommend.evidence.model_evidence import FEW, sentences_of

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
        sign = sign_of(answer.get("currency", USUAL_CURRENCY))
        blocks.append(_table(rows, front, sign, ways))
        notes += filter(None, (_star(answer), of_others(rows)))
    notes.append(answer["explanation"])
    notes += [f"  {line}" for line in (_further(answer) if explain else ())]
    notes += answer.get("cost_notes", ())
    notes += [f"  {_searched(search)}" for search in answer.get("searched", ())]
    misfits = answer["does_not_fit"]
    notes += [
        f"  {_way(case, ways)}, batch {case['batch_size']}: {'; '.join(case['why'])}"
        for case in (misfits if explain else misfits[:_NAMED])
    ]
    if len(misfits) > _NAMED and not explain:
        notes.append(f"  and {len(misfits) - _NAMED} more: --explain")
    unmeasured = [case for case in answer["to_verify"] if not _is_known(case, answer)]
    if "searched" not in answer and (advice := _to_measure(unmeasured)):
        notes.append(advice)
    return DocumentSection(_heading(answer), [*blocks, Notes(notes)])


def _further(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from sentences_of(answer["measured_otherwise"][FEW:])
    yield from set_aside(answer["set_aside"][FEW:], memory_mb=answer["limits"].get("memory_mb"))


def _heading(answer: Mapping[str, Any]) -> str:
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
    measured = counted(len(batches), "batch", "batches")
    return f"{way}: {fits}{beyond}{below} ({measured} measured{open_end}){odd}"


def _odd(batch: Mapping[str, Any]) -> str:
    why = str(batch["why"])
    return why if batch["fits"] is None else phrase("recommend.fits-without-time", why=why)


def _to_measure(cases: Sequence[Mapping[str, Any]]) -> str | None:
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
    heads = ("hardware", "engine", "batch", time, rate, "MB", "error", "W", "J/item",
             a_million(sign), "by", "")  # fmt: skip
    measures = ("error", "power_watts", "energy_per_item_joules", "cost_per_million")
    cells = [
        (
            where(option["hardware"], option),
            _engine(option, ways),
            str(option["batch_size"]),
            _time(option, time),
            items,
            _memory(option),
            *(_figure(option, name) for name in measures),
            by,
            "*" if option in front else "",
        )
        for option, items, by in zip(rows, rates, _by(rows), strict=True)
    ]
    return Table(columns(heads, range(2, 10)), cells)


def _figure(option: Option, name: str) -> str:
    value = option.get(name)
    if value is None:
        return ""
    timed = name in ("latency_ms", "throughput", "cost_per_million")
    return f"{'≈' if timed and option['basis'] != 'measured' else ''}{figure(value)}"


def _time(option: Option, head: str) -> str:
    time = _figure(option, "latency_ms")
    return f"{time} {name_of(Statistic(option['figure']))}" if head == MIXED and time else time


def _memory(option: Option) -> str:
    value = option["memory_mb"]
    if value is None:
        return ""
    return f"{'' if option['memory_basis'] == 'measured' else '≈'}{figure(value)}"


def _by(rows: Sequence[Option]) -> list[str]:
    if not any(map(is_imported, rows)):
        return ["" for _ in rows]
    return [in_a_word(option) for option in rows]


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


def _way(option: Option, ways: _Ways) -> str:
    return f"{where(option['hardware'], option)} {_engine(option, ways)}"


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
