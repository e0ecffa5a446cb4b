"""What stands in a cell of a table of recommendations, and its heading."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from accelbench.core.case import engine_options
from accelbench.core.devices import fingerprint_label, short_of
from accelbench.core.formatting import NOT_KNOWN, format_value
from accelbench.core.result_statistics import Statistic, interval_text, read_spread, statistic_name
from accelbench.core.vocabulary import Provenance
from accelbench.judge.costs import money
from accelbench.present.document import TonedText
from accelbench.present.terminal.console import console
from accelbench.present.texts import phrase
from accelbench.recommend.evidence.cells import ITEMS, counted, is_imported, threads_said
from accelbench.recommend.ranking import percent

Answer = Mapping[str, Any]

#: Columns of a terminal below which engines have their short names.
_NARROW = 100
#: The heading of times that are of several figures.
MIXED = "ms"


def time_head(several: Iterable[Answer]) -> str:
    """The heading of times, with their figure; each time has its own where they differ."""
    known = {statistic for answer in several if (statistic := statistic_said(answer))}
    return f"{known.pop()} ms" if len(known) == 1 else MIXED


def statistic_said(candidate: Answer) -> str:
    """Which figure of its steps a time is; "" where there is none."""
    known = _figures(candidate) or candidate
    # A prediction is of no samples.
    statistic = None if _is_predicted(known) else known.get("figure")
    return statistic_name(Statistic(statistic)) if statistic else ""


def a_million(sign: str) -> str:
    """The heading of costs, in two lines where a currency has letters for a sign."""
    if len(sign) == 1:
        return f"{sign}/million"
    return TonedText(sign.strip(), further=("/million",))


def where(name: str | None, candidate: Answer) -> str:
    """A platform, with the device that its figure is of."""
    device = candidate.get("device")
    if name is None or not device or device in name:
        return name or "none"
    return f"{name} ({device})"


def way(candidate: Answer, apart: Container[str] | None = None) -> str:
    """The engine and its precision; of PyTorch, which also runs as it is, whether it compiled.

    Beside them stand the options and threads by which other ways there were measured too.

    Args:
        candidate: an answer's candidate, or an option under limits.
        apart: the settings that tell ways apart; those of the answer's own without it.
    """
    known = candidate.get("told_apart_by") or () if apart is None else apart
    is_compiled = candidate.get("compiled") and (
        candidate.get("runtime") == "pytorch" or "compiled" in known
    )
    parts = (
        _engine(candidate.get("runtime")),
        "compiled" if is_compiled else None,
        candidate.get("precision"),
    )
    options = candidate.get("options") or {}
    more = [f"{name}={value}" for name, value in sorted(engine_options(options).items())]
    words = [*parts, *(more if "options" in known else ())]
    words += [threads_said(candidate)] if "threads" in known else []
    if "device_fingerprint" in known and candidate.get("device_fingerprint"):
        words.append(f"({fingerprint_label(candidate)})")
    if "machine" in known and candidate.get("machine"):
        words.append(f"on {str(candidate['machine']).partition(' (')[0]}")
    return " ".join(str(part) for part in words if part)


def _engine(runtime: str | None) -> str | None:
    narrow = console().width < _NARROW
    return short_of(runtime) if runtime and narrow else runtime


#: Stands before each value that is predicted.
MARK = "~"


def figures(candidate: Answer, several: bool = False) -> tuple[str, str, str]:
    """Return latency, its interval and throughput; a prediction is marked, a rule has none."""
    known = _figures(candidate)
    about = MARK if _is_predicted(known) else ""
    time, rate = (
        f"{about}{format_value(known[name])}" if known.get(name) is not None else ""
        for name in ("latency", "throughput")
    )
    return (
        f"{time} {statistic_said(candidate)}".rstrip() if several else time,
        within(candidate),
        rate,
    )


def within(candidate: Answer) -> str:
    """Return the interval of a measured time, or the 90 % interval of a prediction.

    A single value has none: that it is judged as if it might be 3 % off was not measured.
    """
    known = _figures(candidate)
    if known.get("latency") is None:
        return ""
    if not _is_predicted(known):
        spread = read_spread(known.get("latency_interval"))
        return spread.text(known["latency"], format_value) if spread else ""
    low, high = known.get("latency_low"), known.get("latency_high")
    return interval_text(low, known["latency"], high, format_value)


def why_unclear(first: Answer) -> str:
    """Return why the first of several candidates does not clearly win."""
    reasons = {
        "rule": phrase("recommend.unclear-rules"),
        "predicted": phrase("recommend.unclear-predicted"),
    }
    return reasons.get(first["basis"], phrase("recommend.unclear-measured"))


def units_of(several: Iterable[Answer]) -> set[str]:
    """What throughputs count."""
    known = (_figures(answer) for answer in several)
    units = {
        str(prediction.get("throughput_unit") or ITEMS)
        for prediction in known
        if prediction.get("throughput") is not None
    }
    # Images of one source are samples of another.
    return units if len({counted(unit) for unit in units}) > 1 or len(units) < 2 else {ITEMS}


def rate_head(units: set[str]) -> str:
    """The heading of throughputs: if they count different things, a column says which."""
    return f"{next(iter(units), 'items')}/s" if len(units) < 2 else "a second"


def figure_columns(several: Sequence[Answer]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headings of latency, where it lies, throughput and what that counts, and the cells."""
    units, time = units_of(several), time_head(several)
    cells: list[tuple[str, ...]] = []
    for answer in several:
        unit = str(_figures(answer).get("throughput_unit") or "items")
        is_named = len(units) > 1 and _figures(answer).get("throughput") is not None
        cells.append((*figures(answer, time == MIXED), unit if is_named else ""))
    return (time, "within", rate_head(units), "counts"), cells


def memory(candidate: Answer) -> str:
    """Return megabytes at the peak, as measured or predicted."""
    known = _figures(candidate)
    if (took := known.get("memory_peak_mb")) is not None:
        return format_value(took)
    predicted = known.get("memory_mb")
    return "" if predicted is None else f"{MARK}{format_value(predicted)}"


def share(candidate: Answer, name: str) -> str:
    """Return a probability in percent; "" if there is none."""
    known = candidate.get(name)
    return "" if known is None else percent(known)


def fits(candidate: Answer) -> str:
    """Return the probability that a predicted configuration fits its device's memory."""
    if not memory(candidate).startswith(MARK):
        return ""
    return share(candidate, "fits_probability") or NOT_KNOWN


def error(candidate: Answer) -> str:
    """How far its outputs are from fp32's, as verified; empty where nobody compared them."""
    known = _figures(candidate).get("verification_error")
    return "" if known is None else f"{known:.2g}"


def cost(candidate: Answer) -> str:
    """Return the cost of a million items with its interval."""
    known = candidate.get("cost_per_million")
    if known is None:
        return ""
    ends = [candidate.get(f"cost_per_million_{end}") for end in ("low", "high")]
    band = "" if None in ends else f" ({money(float(ends[0] or 0))} … {money(float(ends[1] or 0))})"
    return f"{money(known)}{band}"


#: What a prediction rests on in a word or two, as columns have room for.
_SHORT = {
    "the model here, at other sizes": "the model",
    "the model in another configuration": "the model elsewhere",
    "models of its family in this configuration": "its family",
    "other models in this configuration": "other models",
    "other configurations": "other engines",
    "vendor peaks alone": "peaks",
    "measured peaks alone": "measured peaks",
    "peaks of a typical device": "typical peaks",
}


def basis(candidate: Answer) -> str:
    """Return how a value is known and whether its device is not here; a rule with its rating."""
    known = _rung(candidate)
    predicted = str(_figures(candidate).get("basis") or "")
    of = f": {_SHORT.get(predicted, predicted)}" if known == "predicted" and predicted else ""
    of += f": {candidate['performance_rating']}" if known == "rule" else ""
    return f"{known}{of}{', not here' if candidate.get('present') is False else ''}"


def in_a_word(candidate: Answer) -> str:
    """Return measured, imported, predicted or rule."""
    return _rung(candidate)


def _rung(candidate: Answer) -> str:
    known = str(candidate.get("basis") or "")
    return "imported" if known == "measured" and is_imported(candidate) else known


def is_measured(candidate: Answer) -> bool:
    """Whether it is a figure of the very question."""
    return bool(candidate.get("basis") == "measured")


def _is_predicted(figures: Answer) -> bool:
    return bool(figures.get("provenance") == Provenance.PREDICTED)


def _figures(candidate: Answer) -> Answer:
    figures: Answer = candidate.get("predictions") or {}
    return figures
