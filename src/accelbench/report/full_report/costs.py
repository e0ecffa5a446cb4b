"""The section of a report that says what figures cost, and by which prices. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accelbench.analysis.cost_words import amount, cost_notes, has_costs, money
from accelbench.analysis.costs import Price, items_of, known_price
from accelbench.analysis.points import FigureInterval, Point
from accelbench.analysis.questions import Key, values
from accelbench.core.absent import NO_DATA, NOT_APPLICABLE
from accelbench.report.charts.chart import Subject
from accelbench.report.charts.words import ALIKE, PLACE, told
from accelbench.report.full_report.contents import Block, Section, Table, Text

#: More models than this are told of in the table alone.
_MOST_MODELS = 12
#: A longer table is shown where somebody opens it.
_MOST_OPEN = 40
#: Other places whose cheapest is told beside the cheapest of all.
_OTHERS = 3
COMPUTED = (
    (
        "A million items cost the price of an hour ÷ 3,600 ÷ items a second × 1,000,000; a training"
        " step costs the price of an hour ÷ 3,600 × its seconds, by the mean of all steps. What"
        " an item is stands in the table: an inference, or an image, a token, a second of sound."
    ),
    (
        "Prices are the user's: the most specific name counts, a machine's before a device's before"
        " a platform's. A device's or a platform's price is of one device, so several cost several"
        " times as much; a machine's is of the whole machine. The interval is that of the"
        " throughput, as a price has none."
    ),
    (
        "The device is taken to be busy all the time: what stands idle, storage, transfer and"
        " whoever runs it are not in the figure. What is emulated, predicted or simulated has no"
        " cost."
    ),
)


def costs(subject: Subject) -> Iterable[Section]:
    """The section; none where nobody gave a price and no result says its own cost."""
    notes = cost_notes(subject.rows, subject.prices)
    if not has_costs(subject.rows):
        if notes:
            yield Section("Cost", [Text(notes)])
        return
    priced = [point for point in subject.points if point.cost or point.step_cost]
    blocks: list[Block] = [
        Text(cheapest(priced, subject.sign), listed=True),
        _table(priced, subject.sign),
        Text([*notes, *COMPUTED]),
    ]
    yield Section("Cost", blocks)


def cheapest(priced: Sequence[Point], sign: str) -> list[str]:
    """Of each model what is cheapest, and the cheapest of other places: sentences."""
    groups: dict[Key, list[Point]] = {}
    for point in priced:
        if point.cost is not None and point.usable:
            groups.setdefault((point.machine, *values(point.row, ALIKE)), []).append(point)
    best: dict[Key, list[Point]] = {}
    for several in groups.values():  # of one model the work that was done in most ways
        key = values(several[0].row, ("model", "mode"))
        best[key] = max(best.get(key, []), several, key=len)
    return [_cheapest(several, sign) for several in list(best.values())[:_MOST_MODELS]]


def _cheapest(several: Sequence[Point], sign: str) -> str:
    names = told(several, always=(PLACE,), longest=60)
    ordered = sorted(zip(several, names.apart, strict=True), key=lambda pair: _value(pair[0].cost))
    first, way = ordered[0]
    places: dict[Key, str] = {}
    for point, name in ordered:
        place = values(point.row, ("hardware", "device_name"))
        places.setdefault(place, f"{name} {sign}{money(_value(point.cost))}")
    others = list(places.values())[1:]
    beside = f"; elsewhere {', '.join(others[:_OTHERS])}" if others else ""
    row = first.row
    return (
        f"{row.get('model')}, {row.get('mode')}: cheapest is {way},"
        f" {sign}{money(_value(first.cost))} for a million {items_of(row)}{beside}."
        f"{_unsure(ordered)}"
    )


def _unsure(ordered: Sequence[tuple[Point, str]]) -> str:
    """What is said where launches do not tell the cheapest from the next."""
    if len(ordered) < 2:
        return ""
    (first, _), (second, name) = ordered[:2]
    if min(len(first.rows), len(second.rows)) < 2 or first.cost is None or second.cost is None:
        return " A single launch does not show how sure it is."
    if first.cost.sure and second.cost.sure and first.cost.sure[1] < second.cost.sure[0]:
        return ""
    return f" Launches do not tell it from {name}."


def _value(span: FigureInterval | None) -> float:
    return span.value if span is not None else float("inf")


def _table(priced: Sequence[Point], sign: str) -> Table:
    """Every cell that has a cost, the cheapest of a model first."""
    ordered = sorted(priced, key=_place)
    names = told(ordered, always=("model",), longest=72).apart
    mark = sign.strip()
    headers = (
        *("configuration", "figures", f"{mark} for a million", "of", "95 % interval"),
        *(f"{mark} a training step", f"{mark} an hour", "priced as"),
    )
    folded = len(ordered) > _MOST_OPEN
    rows = [[name, *_cell(point)] for point, name in zip(ordered, names, strict=True)]
    caption = "Every configuration that has a price"
    return Table(headers, rows, frozenset({2, 4, 5, 6}), caption, folded=folded)


def _place(point: Point) -> tuple[str, str, float]:
    return str(point.row.get("model")), str(point.row.get("mode")), _value(point.cost)


def _cell(point: Point) -> list[str]:
    cost, step = point.cost, point.step_cost
    price = known_price(point.row)
    return [
        point.kind,
        money(cost.value) if cost else NO_DATA,
        items_of(point.row),
        cost.spread.ends(money) if cost and cost.spread else "",
        money(step.value) if step else "",
        amount(price.per_hour, "") if price else NOT_APPLICABLE,
        _priced_as(price),
    ]


def _priced_as(price: Price | None) -> str:
    if price is None:
        return "its own figure"
    return price.name if price.devices == 1 else f"{price.devices} × {price.name}"
