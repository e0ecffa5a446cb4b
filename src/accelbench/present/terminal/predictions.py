"""Predictions, plans and scores of predictors as people read them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.core.axes import AXES
from accelbench.core.devices import short_of
from accelbench.core.formatting import NO_DATA, format_value
from accelbench.core.result_statistics import ends_text
from accelbench.core.safe_text import visible
from accelbench.exchange.prices import currency_sign
from accelbench.predict.cases import option_words
from accelbench.present.document import Document, Notes, Table, TonedText, columns
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.recommend_cells import a_million, cost
from accelbench.present.terminal.terminal import print_line
from accelbench.present.terminal.words import duration
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.answers import Knee, PredictedFigures, PredictionAnswer
    from accelbench.predict.measurement_plan import MeasurementPlan
    from accelbench.predict.serving.predictor import ServingPrediction

_log = logging.getLogger(__name__)
#: Terminals in which headings stand in two lines, and which of them do.
_NARROW = 90
_IN_TWO = ("first token ms", "next ms", "peak MB", "measured ms")
SCORES = ("n", "mdape", "mape", "within25", "coverage90", "bias")


def show_answer(answer: PredictionAnswer) -> None:
    """Print every prediction with its interval and basis, next to what was measured."""
    from accelbench.predict.answers import devices_told
    from accelbench.present.terminal.console import console

    several = len({entry["model"] for entry in answer.figures}) > 1
    alike = _alike(answer.figures)
    measured = any(entry["measured_latency_ms"] for entry in answer.figures)
    parts = any(entry["ttft_ms"] for entry in answer.figures)
    words = [*(["model"] if several else []), "where"]
    units = {entry["throughput_unit"] for entry in answer.figures}
    unit = units.pop() if len(units) == 1 else ""
    narrow = console().width <= _NARROW
    heads = ["batch", "ms", "90 % interval", unit or "items/s"]
    heads += ["first token ms", "next ms"] if parts else []
    heads += ["peak MB", *(["measured ms"] if measured else [])]
    heads += [a_million(currency_sign(answer.currency))] if answer.currency else []
    rows = []
    for entry in answer.figures:
        cells = [visible(entry["model"])] if several else []
        cells += [_place(entry, alike, short=narrow), f"{entry['batch_size']:,}"]
        cells += [
            format_value(entry["latency_ms"]),
            ends_text(entry["latency_low_ms"], entry["latency_high_ms"], format_value, " … "),
            _rate(entry, unit),
        ]
        cells += [format_value(entry["ttft_ms"]), format_value(entry["tpot_ms"])] if parts else []
        cells.append(format_value(entry["memory_mb"]))
        if measured:
            cells.append(format_value(entry["measured_latency_ms"]))
        if answer.currency:
            cells.append(cost(entry))
        rows.append([*cells, entry["basis"]])
    first = len(words)
    numbers = range(first, first + len(heads))
    interval = first + heads.index("90 % interval")
    shown = [*words, *(map(_in_lines, heads) if narrow else heads), "rests on"]
    table = Table(columns(shown, numbers), rows, intervals={interval: interval - 1})
    sized = len({(knee["model"], *knee["sizes"].items()) for knee in answer.knees}) > len(
        {knee["model"] for knee in answer.knees}
    )
    notes = [_knee(knee, alike, several=several, sized=sized) for knee in answer.knees]
    notes += map(_file, answer.files)
    if devices := devices_told(answer.figures):
        notes.append(f"On {devices}.")
    notes.append(phrase("predict.predicted-not-measured", learned_said=answer.learned_said))
    notes.append(phrase("predict.memory-interval"))
    notes += [f"note: {note}" for note in answer.brief_notes]
    show(Document("", [table, Notes(notes)]))
    for note in answer.peak_notes:
        _log.debug("%s", note)


def _rate(entry: PredictedFigures, unit: str) -> str:
    rate = format_value(entry["throughput"])
    return rate if unit else f"{rate} {entry['throughput_unit'].removesuffix('/s')}"


def _in_lines(heading: str) -> str:
    if heading.endswith("/s"):
        return TonedText(heading.removesuffix("/s"), further=("/s",))
    first, _, rest = heading.partition(" ")
    return TonedText(first, further=(rest,)) if heading in _IN_TWO else heading


def _file(entry: Mapping[str, Any]) -> str:
    return phrase(
        "predict.model-file",
        model=visible(entry["model"]),
        format=entry["format"],
        parameters=entry["parameters"],
        sha256=entry["sha256"][:12],
    )


def show_notes(notes: Iterable[str]) -> None:
    """Notes, a line each."""
    for note in notes:
        print_line(f"note: {visible(note)}")


def show_plan(plan: MeasurementPlan) -> None:
    """The measurements to make first, as commands."""
    if plan.measurements:
        print_line(phrase("predict.plan", before=plan.before))
    else:
        print_line(phrase("predict.plan-empty"))
    for number, entry in enumerate(plan.measurements, start=1):
        print_line(f"{number:>3}. {entry.command}    # then about {entry.deviation:.1f} %")
    if plan.measurements:
        taken = plan.seconds
        print_line(
            f"Together about {duration(taken.middle)} ({duration(taken.low)} to"
            f" {duration(taken.high)}), as predicted."
        )
    if plan.left_out:
        print_line(plan.left_out)


def show_scores(title: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the scores of an evaluation, a row a group."""
    cells = [
        (
            name,
            *(NO_DATA if (value := row.get(score)) is None else f"{value:,}" for score in SCORES),
        )
        for name, row in rows.items()
    ]
    show(Document("", [Table(columns((title, *SCORES), range(1, len(SCORES) + 1)), cells)]))


def _alike(entries: Sequence[PredictedFigures]) -> frozenset[str]:
    devices: dict[str, set[str]] = {}
    for entry in entries:
        devices.setdefault(entry["hardware"], set()).add(entry["device"])
    return frozenset(platform for platform, names in devices.items() if len(names) > 1)


def _place(entry: PredictedFigures, alike: frozenset[str], *, short: bool) -> str:
    parts = [entry["device"]] if entry["hardware"] in alike else []
    runtime = short_of(entry["runtime"]) if short else entry["runtime"]
    parts += [f"{runtime}/{entry['hardware']}", entry["precision"]]
    parts += ["compiled"] if entry["compiled"] else []
    parts += option_words(entry["options"])
    parts += _sizes(entry["sizes"])
    return visible(" · ".join(parts))


def _sizes(sizes: Mapping[str, int]) -> list[str]:
    labels = {axis.column: axis.label for axis in AXES}
    return [labels[name].format(size) for name, size in sizes.items()]


def _knee(knee: Knee, alike: frozenset[str], *, several: bool, sized: bool) -> str:
    where = f"{knee['runtime']}/{knee['hardware']} {knee['precision']}"
    where = f"{knee['device']} · {where}" if knee["hardware"] in alike else where
    where = " · ".join([where, *_sizes(knee["sizes"])]) if sized else where
    model = f"{knee['model']} · " if several else ""
    if knee["batch_size"] is None:
        return phrase("predict.no-knee", model=model, where=where)
    return phrase("predict.knee", model=model, where=where, batch_size=knee["batch_size"])


def show_servers(answers: Sequence[ServingPrediction]) -> None:
    """Print predicted servers with their bands, whether they fit, and what they rest on."""
    heads = ["server", "users", "TTFT ms", "90 % band", "TPOT ms", "90 % band", "tokens/s",
             "per GPU", "fits"]  # fmt: skip
    rows = []
    for answer in answers:
        entry = answer.to_dict()
        server = f"{entry['model']} {entry['framework']}/{entry['system']} {entry['precision']}"
        rows.append([
            visible(f"{server} tp{entry['tensor_parallel']}"), format_value(entry["concurrency"]),
            format_value(entry["ttft_ms"]),
            ends_text(entry["ttft_low_ms"], entry["ttft_high_ms"], format_value, " … "),
            format_value(entry["tpot_ms"]),
            ends_text(entry["tpot_low_ms"], entry["tpot_high_ms"], format_value, " … "),
            format_value(entry["output_tokens_s"]), format_value(entry["output_tokens_s_per_gpu"]),
            "yes" if entry["fits"] else "no",
        ])  # fmt: skip
    notes = list(dict.fromkeys(note for answer in answers for note in answer.expected.notes))
    last = answers[-1].to_dict()
    memory = phrase(
        "predict.server-memory",
        weights=format_value(last["weights_gib"]),
        tokens=format_value(last["cache_tokens"]),
        users=format_value(last["largest_concurrency"]),
    )
    basis = phrase("predict.server-basis", count=last["learned_from"])
    table = Table(columns(heads), [[TonedText(str(cell)) for cell in row] for row in rows])
    show(Document("", [table, Notes([memory, *notes, basis])]))
