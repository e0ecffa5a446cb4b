"""Predictions at one batch, over batches, as heat maps, and against measurements. Pure.

A prediction is a pale square with a band, where nine of ten lie; a measurement a filled circle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from accelbench.core.axes import AXES
from accelbench.core.formatting import format_count, format_digits
from accelbench.core.result_statistics import ITEMS
from accelbench.core.vocabulary import Provenance
from accelbench.predict.cases import option_words
from accelbench.present.charts import axes
from accelbench.present.charts.axes import Record, axis, words
from accelbench.present.charts.axes import legend as legend_of
from accelbench.present.charts.by_batch import batch_axis, reach, way_of
from accelbench.present.charts.chart import ChartBody, Picture, label_of, pictured
from accelbench.present.charts.marks import (
    COLOUR,
    MOST_PANELS,
    PAINT,
    Panel,
    arranged,
    beyond,
    dots,
    ends,
    kind_legend,
    labels,
    tooltip,
)
from accelbench.present.charts.words import left_out, safe, short_device
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.predict.answers import Knee, PredictedFigures, PredictionAnswer
    from accelbench.predict.scoring import EvaluatedCases, Score


_IS_PREDICTED = f"datum.kind === '{Provenance.PREDICTED.value}'"
#: Nine in ten are meant to lie in a prediction's interval.
LEVEL = "90 %"
_PREDICTED_NOTE = phrase("charts.predicted-legend")
_MEASURED_NOTE = phrase("charts.measured-legend")
_BEYOND_NOTE = phrase("charts.band-reaches-edge")
#: Letters of a line below a panel's title.
_LONGEST_WAY = 60


@dataclass(frozen=True)
class PredictedQuantity:
    """A figure of a prediction that is drawn."""

    name: str  # above a panel
    title: str  # of its axis: the unit, as the panel says what it is
    fields: tuple[str, str, str]  # of a prediction: the figure, and the ends of its interval

    def records(self, figures: Iterable[PredictedFigures]) -> list[Record]:
        """A record a prediction, and another one where the same case was measured."""
        records = []
        for entry in figures:
            said = cast("Mapping[str, Any]", entry)
            value, low, high = (said[name] for name in self.fields)
            records.append(_mark_record(entry, Provenance.PREDICTED, value, low, high))
            if (known := self._measured(entry)) is not None:
                records.append(_mark_record(entry, Provenance.MEASURED, known, None, None))
        return records

    def titled(self, figures: Sequence[PredictedFigures]) -> str:
        """The axis's title, with the unit that all of these have."""
        units = {entry["throughput_unit"] for entry in figures}
        unit = units.pop() if len(units) == 1 else ITEMS
        return self.title.replace(ITEMS, safe(unit))

    def _measured(self, entry: PredictedFigures) -> float | None:
        known = entry["measured_latency_ms"]
        if known is None or self is PREDICTED_LATENCY:
            return known
        # As many items as the prediction's step completes.
        return entry["throughput"] * entry["latency_ms"] / known


PREDICTED_LATENCY = PredictedQuantity(
    "latency", "ms a step", ("latency_ms", "latency_low_ms", "latency_high_ms")
)
PREDICTED_THROUGHPUT = PredictedQuantity(
    "throughput", "items/s", ("throughput", "throughput_low", "throughput_high")
)
QUANTITIES = (PREDICTED_LATENCY, PREDICTED_THROUGHPUT)


def _mark_record(
    entry: PredictedFigures, kind: str, value: float, low: float | None, high: float | None
) -> Record:
    hardware = entry["hardware"]
    return {
        "model": safe(entry["model"]),
        "hardware": safe(hardware),
        "device": safe(entry["device"]),
        "runtime": safe(entry["runtime"]),
        "precision": safe(entry["precision"]),
        "mode": entry["mode"],
        "batch": entry["batch_size"],
        "kind": kind,
        "value": value,
        "low": low,
        "high": high,
        "basis": safe(entry["basis"]) if kind == Provenance.PREDICTED else "",
        **axes.look_of(hardware, kind),
    }


#: Where and how something runs.
WayKey = tuple[str, str, str, str, bool, str]
#: What a panel is of.
WorkKey = tuple[str, tuple[tuple[str, int], ...]]


def way_key(entry: PredictedFigures | Knee) -> WayKey:
    """Where and how a prediction, or a knee, runs."""
    return (
        entry["hardware"], entry["device"], entry["runtime"], entry["precision"],
        entry["compiled"], entry["options"],
    )  # fmt: skip


def work_key(entry: PredictedFigures | Knee) -> WorkKey:
    """The model at sizes that a prediction, or a knee, is of."""
    return entry["model"], tuple(entry["sizes"].items())


def by_work(figures: Iterable[PredictedFigures]) -> dict[WorkKey, list[PredictedFigures]]:
    """Predictions of each model at each of its sizes."""
    works: dict[WorkKey, list[PredictedFigures]] = {}
    for entry in figures:
        works.setdefault(work_key(entry), []).append(entry)
    return works


def way_names(
    figures: Sequence[PredictedFigures], *, longest: int = _LONGEST_WAY
) -> dict[WayKey, str]:
    """A name for each way of running: engine and place, and what else they differ in."""
    entries = {way_key(entry): entry for entry in figures}
    devices: dict[str, set[str]] = {}
    for hardware, device, *_ in entries:
        devices.setdefault(hardware, set()).add(device)
    precisions = {entry["precision"] for entry in entries.values()}
    plain = {entry["runtime"] for entry in entries.values() if not entry["compiled"]}
    several = {key for key, count in Counter(key[:-1] for key in entries).items() if count > 1}

    def words(entry: PredictedFigures) -> Iterable[str]:
        hardware = entry["hardware"]
        yield entry["runtime"]
        yield hardware
        if len(devices[hardware]) > 1 and entry["device"]:
            yield short_device(entry["device"])
        if len(precisions) > 1:
            yield entry["precision"]
        if entry["compiled"] and entry["runtime"] in plain:
            yield "compiled"
        if way_key(entry)[:-1] in several:
            yield from option_words(entry["options"])

    return {
        key: safe(" · ".join(dict.fromkeys(words(entry))), longest)
        for key, entry in entries.items()
    }


def in_common(figures: Sequence[PredictedFigures]) -> str:
    """What all predictions of a panel have in common: sizes, precision, training."""
    labels = {axis.column: axis.label for axis in AXES}
    words = [labels[name].format(size) for name, size in figures[0]["sizes"].items()]
    precisions = {entry["precision"] for entry in figures}
    modes = {entry["mode"] for entry in figures} - {"inference"}
    words += [*precisions] if len(precisions) == 1 else []
    words += sorted(modes)
    return safe(" · ".join(words), 2 * _LONGEST_WAY)


def kind_notes(records: Sequence[Record], *, cut: bool = False) -> list[str]:
    """What squares, bands and circles are; and that a band is cut off, where one is."""
    known = any(record["kind"] == Provenance.MEASURED for record in records)
    return [_PREDICTED_NOTE, *([_BEYOND_NOTE] if cut else []), *([_MEASURED_NOTE] if known else [])]


def kind_dots(place: axes.Spec, tooltip: Sequence[axes.Spec]) -> list[axes.Spec]:
    """Pale squares of predictions; on them circles of measurements, with a paper edge."""
    told = {**place, "tooltip": tooltip}
    form: axes.Spec = {"size": 55, "stroke": axes.PAPER, "strokeWidth": 1.2, "opacity": 1}
    circle = {"shape": axes.SHAPES["measured"], **form}
    return [
        {"transform": [{"filter": _IS_PREDICTED}], **dots(told, 55)},
        axes.layer("point", {**told, "fill": PAINT}, where="datum.kind === 'measured'", **circle),
    ]


PREDICTED_BY_BATCH = label_of("predicted-by-batch")
#: More ways of running, each a line with a band, are a tangle.
MOST_WAYS = 8
#: A band is drawn this many times further than all figures reach.
_FURTHEST = 8.0


@dataclass(frozen=True)
class _Drawing:
    title: str
    about: str
    quantity_title: str
    records: list[Record]


def predicted_by_batch(
    figures: Sequence[PredictedFigures],
    knees: Sequence[Knee] = (),
    notes: Sequence[str] = (),
    quantities: Sequence[PredictedQuantity] = QUANTITIES,
) -> ChartBody | None:
    """A line for each way of running over batches; None where nothing has two."""
    works = {
        key: entries
        for key, entries in by_work(figures).items()
        if len({entry["batch_size"] for entry in entries}) > 1
    }
    if not works:
        return None
    shown = dict(list(works.items())[: MOST_PANELS // len(quantities)])
    names = way_names([entry for entries in shown.values() for entry in entries])
    kept = {key: names[key] for key in list(names)[:MOST_WAYS]}
    rings = {(work_key(knee), way_key(knee), knee["batch_size"]) for knee in knees}
    drawn = [
        entry for entries in shown.values() for entry in entries if way_key(entry) in kept
    ]  # fmt: skip
    drawings = [
        _drawing(entries, quantity, kept, rings)
        for entries in by_work(drawn).values()
        for quantity in quantities
    ]
    records = [record for drawing in drawings for record in drawing.records]
    x, way = batch_axis(records, "batch", powers=True), way_of(records)
    panels = [
        Panel(drawing.title, [drawing.about], drawing.records, _batch_layers(drawing, x, way))
        for drawing in drawings
    ]
    cut = any(beyond(drawing.records, _scale(drawing)) for drawing in drawings)
    said = [
        *kind_notes(records, cut=cut),
        *([phrase("charts.knee-legend")] if any(record["knee"] for record in records) else []),
        *notes,
        *left_out(len(works) - len(shown), "model", advice=phrase("charts.name-fewer-models")),
        *left_out(len(names) - len(kept), "line", advice=phrase("charts.name-hardware-runtimes")),
    ]
    return ChartBody(arranged(panels, kind_legend(records)), notes=said, records=records)


def _drawing(
    entries: Sequence[PredictedFigures],
    quantity: PredictedQuantity,
    names: Mapping[WayKey, str],
    rings: Collection[tuple[object, ...]],
) -> _Drawing:
    work = work_key(entries[0])
    records: list[Record] = []
    for key, name in names.items():
        for record in quantity.records(e for e in entries if way_key(e) == key):
            ring = (work, key, record["batch"]) in rings and record["kind"] == "predicted"
            records.append({**record, "line": name, "knee": ring})
    title = f"{safe(work[0], 36)}: {quantity.name}"
    return _Drawing(title, in_common(entries), quantity.titled(entries), records)


def _scale(drawing: _Drawing) -> axes.ChartAxis:
    return axis(drawing.quantity_title, reach(drawing.records, _FURTHEST), log=True)


def _batch_layers(drawing: _Drawing, x: axes.Spec, way: Mapping[str, axes.Spec]) -> list[axes.Spec]:
    scale = _scale(drawing)
    place = {"x": x, "y": scale.of("value")}
    ends = {"y": {**place["y"], "field": "low"}, "y2": {"field": "high"}}
    area = {"x": x, **ends, "color": way["color"], "detail": {"field": "line"}}
    band = axes.layer("area", area, where=_IS_PREDICTED, opacity=0.16, clip=True)
    line = axes.layer("line", {**place, **way}, where=_IS_PREDICTED, clip=True)
    form: axes.Spec = {
        "size": 230,
        "strokeWidth": 1.6,
        "fill": None,
        "stroke": axes.INK,
        "opacity": 1,
    }
    ring = axes.layer("point", place, where="datum.knee", shape="circle", **form)
    told = tooltip(scale.title, drawing.records, level=LEVEL)
    rings = [ring] if any(record["knee"] for record in drawing.records) else []
    return [band, line, *kind_dots(place, told), *rings]


PREDICTED_PLACES = label_of("predicted-places")
_PREDICTED_PLACES_ADVICE = phrase("charts.name-hardware-models")
#: More rows than this are no picture.
_MOST_ROWS = 24
_ROW = 26


def predicted_places(
    figures: Sequence[PredictedFigures], notes: Sequence[str] = ()
) -> ChartBody | None:
    """A row for each way of running, the fastest first; None of no predictions."""
    works = by_work(figures)
    if not works:
        return None
    shown = list(works.values())[: MOST_PANELS // len(QUANTITIES)]
    drawings = [
        sorted(entries, key=lambda entry: entry["latency_ms"])[:_MOST_ROWS] for entries in shown
    ]
    panels: list[Panel] = []
    everything: list[Record] = []
    for entries in drawings:
        names = way_names(entries)
        for place, quantity in enumerate(QUANTITIES):
            records = [
                {**record, "bar": names[way_key(entry)]}
                for entry in entries
                for record in quantity.records([entry])
            ]
            everything += records
            title = f"{safe(entries[0]['model'], 36)}: {quantity.name}"
            layers = _layers(records, entries, quantity, labels=not place)
            about = filter(None, [f"batch {entries[0]['batch_size']:,}", in_common(entries)])
            panels.append(Panel(title, [" · ".join(about)], records, layers, {"step": _ROW}))
    drawn = [entry for entries in drawings for entry in entries]
    said = [
        *kind_notes(everything),
        *notes,
        *left_out(len(works) - len(shown), "model", advice=_PREDICTED_PLACES_ADVICE),
        *left_out(sum(map(len, shown)) - len(drawn), "row", advice=_PREDICTED_PLACES_ADVICE),
    ]
    return ChartBody(arranged(panels, kind_legend(everything)), notes=said, records=everything)


def _layers(
    records: Sequence[Record],
    entries: Sequence[PredictedFigures],
    quantity: PredictedQuantity,
    *,
    labels: bool,
) -> list[axes.Spec]:
    reach = ends(records)
    scale = axis(quantity.titled(entries), reach, log=axes.far(reach))
    bars = (record["bar"] for record in records)
    rows = axes.named("bar", bars, labelLimit=300, labels=labels, grid=True)
    place = {"y": rows, "x": scale.of("value")}
    span = {"x": {**place["x"], "field": "low"}, "x2": {"field": "high"}}
    form: axes.Spec = {"height": 13, "opacity": 0.25, "clip": True}
    band = axes.layer(
        "bar", {"y": rows, **span, "color": COLOUR}, where="isValid(datum.low)", **form
    )
    return [band, *kind_dots(place, tooltip(scale.title, records, level=LEVEL))]


PREDICTED_MATRIX = label_of("predicted-matrix")
_ADVICE = "the JSON of --matrix has all"
_MOST_MODELS, _MOST_COLUMNS = 60, 24
_CELL_WIDE, _CELL_HIGH = 40, 17
_LONGEST_HEAD, _BETWEEN = 90, " · "
#: Of a letter of a head, in pixels; no line of one is kept shorter than a word has letters.
_HEAD_LETTER, _SHORTEST_LINE = 6.4, 12
#: Of the names of models, alike in all families so that their columns stand above each other.
_NAMES_WIDE = 150
#: The end of an interval is further than this factor from its figure: it is said with a tilde.
_WIDE_INTERVAL = 2.0
#: Share of the best throughput, from none to all of it.
_PALE, _FULL = "#f4f6f8", "#4fa3b5"
_TILDE = "~"
_WIDE_NOTE = phrase("charts.wide-interval-marked")
_ALL_WIDE = phrase("charts.all-intervals-wide")


def predicted_matrix(
    figures: Sequence[PredictedFigures], notes: Sequence[str] = ()
) -> ChartBody | None:
    """A heat map a family, a row a model; None of no predictions."""
    if not figures:
        return None
    works = by_work(figures)
    shown = list(works)[:_MOST_MODELS]
    names = way_names(figures, longest=_LONGEST_HEAD)
    batches = sorted({entry["batch_size"] for entry in figures})
    ways = list(names)[: max(1, _MOST_COLUMNS // len(batches))]
    kept = batches[:_MOST_COLUMNS]
    records = _records(works, shown, names, set(ways), set(kept))
    families = dict.fromkeys(record["family"] for record in records)
    body = {
        "vconcat": [
            _family(name, [r for r in records if r["family"] == name], [names[way] for way in ways])
            for name in families
        ],
        "spacing": 14,
    }
    measured = any(record["measured"] for record in records)
    tilde = any(record["said"].startswith(_TILDE) for record in records)
    wide = [_WIDE_NOTE] if tilde else [_ALL_WIDE] if all(r["wide"] for r in records) else []
    kinds = {(entry["mode"], entry["precision"]) for entry in figures}
    alike = [f"All: {safe(' in '.join(kind))}." for kind in kinds] if len(kinds) == 1 else []
    said = [
        " ".join([phrase("charts.predicted-number"), *wide]),
        " ".join([phrase("charts.throughput-colour"), *alike]),
        *([phrase("charts.measured-frame")] if measured else []),
        *notes,
        *left_out(len(works) - len(shown), "model", advice=_ADVICE),
        *left_out(len(names) - len(ways), "way of running", "ways of running", advice=_ADVICE),
        *left_out(len(batches) - len(kept), "batch size", advice=_ADVICE),
    ]
    return ChartBody(body, notes=said, records=records)


def _records(
    works: Mapping[WorkKey, Sequence[PredictedFigures]],
    shown: Sequence[WorkKey],
    names: Mapping[WayKey, str],
    ways: set[WayKey],
    batches: set[int],
) -> list[Record]:
    labels = _labels(shown)
    records = []
    for key in shown:
        entries = [e for e in works[key] if way_key(e) in ways and e["batch_size"] in batches]
        best = max(entry["throughput"] for entry in entries)
        records += [
            _record(entry, labels[key], names[way_key(entry)], entry["throughput"] / best)
            for entry in entries
        ]
    if all(record["wide"] for record in records):
        return records
    return [{**r, "said": f"{_TILDE}{r['said']}" if r["wide"] else r["said"]} for r in records]


def _labels(works: Sequence[WorkKey]) -> dict[WorkKey, str]:
    models = [model for model, _ in works]
    return {
        (model, sizes): safe(
            model if models.count(model) == 1 else f"{model} {' '.join(str(n) for _, n in sizes)}",
            26,
        )
        for model, sizes in works
    }


def _record(entry: PredictedFigures, label: str, way: str, share: float) -> Record:
    value, low, high = entry["latency_ms"], entry["latency_low_ms"], entry["latency_high_ms"]
    wide = max(high / value, value / low) > _WIDE_INTERVAL
    return {
        "family": entry["family"],
        "model": label,
        "way": way,
        "batch": entry["batch_size"],
        "value": value,
        "low": low,
        "high": high,
        "throughput": entry["throughput"],
        "unit": entry["throughput_unit"],
        "share": share,
        "basis": entry["basis"],
        "kind": "predicted",
        "measured": entry["measured_latency_ms"],
        "wide": wide,
        "said": _short(value),
    }


def _short(value: float) -> str:
    """Format a value in few letters: 0.15, 4.2, 87, 1.2k, 35k."""
    for above, letter in ((1e6, "M"), (1e3, "k")):
        if value >= above * 0.9995:
            return f"{_two(value / above)}{letter}"
    return _two(value)


def _two(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


def _family(name: str, records: Sequence[Record], ways: Sequence[str]) -> axes.Spec:
    models = list(dict.fromkeys(record["model"] for record in records))
    batches = len({record["batch"] for record in records})
    room = max(int(batches * _CELL_WIDE / _HEAD_LETTER), _SHORTEST_LINE)
    views = [
        _view([r for r in records if r["way"] == way], _wrapped(way, room), models, first=not place)
        for place, way in enumerate(ways)
    ]
    title = {**axes.PANEL_TITLE, "text": safe(name.replace("_", " ")), "frame": "bounds"}
    return {"title": title, "hconcat": views, "spacing": 8}


def _wrapped(way: str, room: int) -> list[str]:
    lines = [""]
    for word in way.split(_BETWEEN):
        longer = f"{lines[-1]}{_BETWEEN}{word}" if lines[-1] else word
        if lines[-1] and len(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _view(
    records: Sequence[Record], head: Sequence[str], models: Sequence[str], *, first: bool
) -> axes.Spec:
    room: axes.Spec = dict.fromkeys(("minExtent", "maxExtent", "labelLimit"), _NAMES_WIDE)
    rows = {**axes.named("model", models, **room), "scale": {"domain": list(models)}}
    rows |= {} if first else {"axis": None}
    head_form: axes.Spec = {"titleFontSize": 11, "labelFontSize": 11, "titleColor": axes.DIM}
    plain: axes.Spec = {"orient": "bottom", "labelAngle": 0, "ticks": False, "domain": False}
    columns: axes.Spec = {"field": "batch", "type": "ordinal", "title": "batch"}
    gradient: axes.Spec = {"direction": "horizontal", "gradientLength": 220, "tickCount": 2}
    share: axes.Spec = {
        "field": "share",
        "type": "quantitative",
        "title": phrase("charts.axis-throughput-share"),
        "scale": {"domain": [0, 1], "range": [_PALE, _FULL]},
        "legend": {"format": ".0%", **gradient, "titleLimit": 300},
    }
    titles = {"value": "ms", "low": "90 % from", "high": "90 % to", "throughput": "throughput"}
    names = words("model", "way", "batch", "basis", "measured", "unit")
    fill = {"fill": share, "tooltip": [*names, *axes.numbers(**titles)]}
    frame: axes.Spec = {
        "transform": [{"filter": "isValid(datum.measured)"}],
        "mark": {"type": "rect", "fill": None, "stroke": axes.INK, "strokeWidth": 1.4},
    }
    title: axes.Spec = {"fontSize": 11.5, "fontWeight": 500, "anchor": "middle", "offset": 4}
    layers = [
        axes.layer("rect", fill, stroke=axes.PAPER, strokeWidth=1),
        *([frame] if any(record["measured"] for record in records) else []),
        labels({"text": {"field": "said"}}, fontSize=10.5),
    ]
    return {
        **axes.view(records, {"step": _CELL_WIDE}, {"step": _CELL_HIGH}, *layers),
        "title": {"text": list(head), **title},
        "encoding": {"x": {**columns, "axis": {**plain, **head_form}}, "y": rows},
    }


#: More models, each with panels of its own, are a heat map.
_MOST_WITH_PANELS = 4
#: Letters of a line of notes.
_LONGEST = 120


def prediction_picture(answer: PredictionAnswer, notes: Sequence[str] = ()) -> Picture | None:
    """Lines over batches, rows at one batch, or a heat map of many models; None of nothing."""
    from accelbench.predict.answers import devices_told

    devices = devices_told(answer.figures)
    learned = f"{answer.learned_said.capitalize()}."
    about = [*([safe(f"On {devices}.", _LONGEST)] if devices else []), learned, *notes]
    if len(by_work(answer.figures)) > _MOST_WITH_PANELS:
        drawn, label = predicted_matrix(answer.figures, about), PREDICTED_MATRIX
    elif (drawn := predicted_by_batch(answer.figures, answer.knees, about)) is not None:
        label = PREDICTED_BY_BATCH
    else:
        drawn, label = predicted_places(answer.figures, about), PREDICTED_PLACES
    return None if drawn is None else pictured(label, drawn)


PREDICTED_MEASURED = label_of("predicted-measured")
_UNITS = {"latency": phrase("charts.axis-step-latency"), "memory": "peak memory, MB (2^20)"}
#: Marks of a panel: more are a stain, and megabytes.
_MOST_MARKS = 2000
#: Of more marks intervals would hide each other.
_MOST_INTERVALS = 150
_SIDE = 300
_OTHERS = "others"
_LINES_NOTE = phrase("charts.diagonal-legend")
_INTERVALS_NOTE = "Thin lines: 90 % intervals."


def evaluation_picture(every: Sequence[EvaluatedCases], about: str = "") -> Picture | None:
    """A panel a target, with its scores above it; None where nothing was predicted."""
    shown = [cases for cases in every if len(cases.rows)]
    if not shown:
        return None
    return pictured(PREDICTED_MEASURED, predicted_against_measured(shown, about))


def predicted_against_measured(shown: Sequence[EvaluatedCases], about: str = "") -> ChartBody:
    """The body of such a picture."""
    names = _group_names(shown)
    several = len(set(names.values())) > 1
    panels: list[axes.Spec] = []
    everything: list[Record] = []
    for cases in shown:
        records = _evaluated_records(cases, names)
        everything += records
        panels.append(_panel(cases, records, names, legend=several))
    more = [
        phrase("charts.marks-thinned", most_marks=_MOST_MARKS, rows=len(cases.rows))
        for cases in shown
        if len(cases.rows) > _MOST_MARKS
    ][:1]
    spans = any(len(cases.rows) <= _MOST_INTERVALS for cases in shown)
    notes = [about, _LINES_NOTE, " ".join([*([_INTERVALS_NOTE] if spans else []), *more])]
    body: axes.Spec = {"concat": panels, "columns": 2, "spacing": 30}
    return ChartBody(body, notes=list(filter(None, notes)), records=everything)


def score_sentence(score: Score) -> str:
    """Scores in words: 52 cases · median error 13.5 % · 88 % inside their 90 % interval."""
    count = format_count(int(score["n"] or 0), "case")
    if score["mdape"] is None:
        return count
    return (
        f"{count} · median error {format_digits(float(score['mdape']))} %"
        f" · {float(score['within25'] or 0):.0f} % inside 25 %"
        f" · {float(score['coverage90'] or 0):.0f} % inside their 90 % interval"
    )


def _group_names(shown: Sequence[EvaluatedCases]) -> dict[str, str]:
    counts = Counter(cases.groups[row] for cases in shown for row in cases.rows)
    largest = sorted(counts, key=lambda name: (-counts[name], name))
    return {
        name: safe(name) if place < len(axes.GROUP_COLOURS) else _OTHERS
        for place, name in enumerate(largest)
    }


def _evaluated_records(cases: EvaluatedCases, names: Mapping[str, str]) -> list[Record]:
    return [
        {
            "target": cases.target,
            "model": safe(entry.model),
            "group": names[entry.group],
            "measured": entry.measured,
            "predicted": entry.predicted,
            "low": entry.low,
            "high": entry.high,
            "off_by_percent": round(100 * (entry.predicted / entry.measured - 1), 1),
        }
        for entry in cases.drawn(_MOST_MARKS)
    ]


def _panel(
    cases: EvaluatedCases, records: Sequence[Record], names: Mapping[str, str], *, legend: bool
) -> axes.Spec:
    figures = [datum[name] for datum in records for name in ("measured", "predicted")]
    scale = axis(_UNITS.get(cases.target, cases.target), figures, log=True)
    first, *rest = score_sentence(cases.score()).split(" · ")
    # A line has room for so much above a panel.
    lines = [f"{first} · {rest[0]} · {rest[1]}", *rest[2:]] if rest else [first]
    title = {**axes.PANEL_TITLE, "text": cases.target.capitalize(), "subtitle": lines}
    place = _place(scale)
    ends = {"x": place["x"], "y": {**place["y"], "field": "low"}, "y2": {"field": "high"}}
    intervals = axes.layer("rule", ends, strokeWidth=1, opacity=0.4, color=axes.DIM, clip=True)
    layers = [
        *_right(scale),
        *([intervals] if len(cases.rows) <= _MOST_INTERVALS else []),
        _marks(records, place, names, legend=legend),
    ]
    return {"title": title, **axes.view(records, _SIDE, _SIDE, *layers)}


def _place(scale: axes.ChartAxis) -> axes.Spec:
    x, y = scale.of("measured"), scale.of("predicted")
    return {
        "x": {**x, "title": f"measured {x['title']}"},
        "y": {**y, "title": f"predicted {y['title']}"},
    }


def _right(scale: axes.ChartAxis) -> list[axes.Spec]:
    place, ends = _place(scale), (scale.low, scale.high)
    return [
        axes.layer(
            "line",
            place,
            of=[{"measured": end, "predicted": end * factor} for end in ends],
            clip=True,
            strokeWidth=wide,
            strokeDash=dashes,
            color=colour,
        )
        for factor, wide, dashes, colour in (
            (1.0, 1.4, [1, 0], axes.INK),
            (1.25, 1.1, [5, 4], axes.DIM),
            (0.75, 1.1, [5, 4], axes.DIM),
        )
    ]


def _marks(
    records: Sequence[Record], place: axes.Spec, names: Mapping[str, str], *, legend: bool
) -> axes.Spec:
    domain = list(dict.fromkeys(names.values()))
    shown = legend_of(symbolSize=90) if legend else None
    values = {
        "color": [*axes.GROUP_COLOURS[: len(domain)], axes.REST_COLOUR],
        "shape": [*axes.GROUP_SHAPES, axes.GROUP_SHAPES[0]],
    }
    groups = {
        channel: {
            **axes.grouped("group", dict(zip(domain, each, strict=False)), shown),
            "sort": domain,
        }
        for channel, each in values.items()
    }
    form: axes.Spec = {"type": "quantitative", "format": axes.NUMBER}
    figures = ("measured", "predicted", "low", "high", "off_by_percent")
    tips = [*words("model", "group"), *({"field": name, **form} for name in figures)]
    many = len(records) > _MOST_INTERVALS
    look: axes.Spec = {"size": 22 if many else 60, "opacity": 0.45 if many else 0.85}
    channels = {**place, **groups, "tooltip": tips}
    return axes.layer("point", channels, filled=True, clip=True, **look)
