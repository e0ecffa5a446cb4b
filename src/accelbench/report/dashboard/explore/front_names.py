"""Names beside the marks of a front, of as many as do not lie on each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from accelbench.core.rows import Row
from accelbench.report.charts.phrases import safe

#: Beyond a few none is named in the picture: the table below it has all.
MOST_NAMED = 7
#: Room of the points in pixels: with filters beside it on a small screen, and on a phone.
_SCREEN, _PHONE = (640.0, 496.0), (290.0, 320.0)
#: Pixels of a letter of a name, of the line it stands in, and of a mark around its middle.
_LETTER, _LINE, _MARK = 7.0, 15.0, 5.0
#: A name is so long at most; what tells it from others of its model stands behind it.
_LONGEST = 30
#: Lines above and below a mark on which its name may stand, the nearest first: the baseline.
_BESIDE = (-7.0, 17.0, -22.0, 32.0, -37.0, 47.0)
#: What tells points of one model from each other: the column, and how it is said.
_APART = (
    ("batch_size", "batch {}"),
    ("precision", "{}"),
    ("runtime", "{}"),
    ("hardware", "{}"),
    ("device_name", "{}"),
)


@dataclass(frozen=True)
class FrontName:
    """A text beside a mark.

    Attributes:
        x: where the mark stands, per cent along, and `y` down.
        beside: pixels from there along, and `below` down to its baseline.
        left: whether it ends beside the mark, and does not begin there.
    """

    x: float
    y: float
    beside: float
    below: float
    left: bool
    text: str


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def over(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def names_of_front(rows: Sequence[Row], places: Sequence[tuple[float, float]]) -> list[FrontName]:
    """Names of marks, each on the nearest line that is free.

    Args:
        rows: the configurations.
        places: of each, per cent along and down.
    """
    marks = [_around(place) for place in places]
    names: list[FrontName] = []
    taken: list[_Box] = []
    step = max(1, int(sqrt(len(rows) / MOST_NAMED)))
    for number in range(0, len(rows), step):
        if len(names) == MOST_NAMED:
            break
        others = [mark for n, mark in enumerate(marks) if n != number]
        text = name_on_front(rows[number], rows)
        made = list(_candidates(places[number], text))
        # On another mark a name can be read, on another name it cannot.
        found = next(
            (
                (name, box)
                for avoided in ([*taken, *others], taken)
                for name, box in made
                if not any(box.over(other) for other in avoided)
            ),
            None,
        )
        if found:
            names.append(found[0])
            taken.append(found[1])
    return names


def numbers_of_front(places: Sequence[tuple[float, float]]) -> list[FrontName]:
    """For a phone, where names find no room: which line of the table a mark is."""
    numbers: list[FrontName] = []
    taken: list[_Box] = []
    for number, place in enumerate(places, 1):
        text = f"{number}"
        x, y = place[0] * _PHONE[0] / 100, place[1] * _PHONE[1] / 100
        box = _Box(x - _LETTER, y - 7 - _LINE, x + _LETTER, y - 7)
        if not any(box.over(other) for other in taken):
            numbers.append(FrontName(*place, 0.0, -7.0, False, text))
            taken.append(box)
    return numbers


def name_on_front(row: Row, rows: Sequence[Row]) -> str:
    """The model, and of several of one model what tells this one from the others."""
    alike = [other for other in rows if other.get("model") == row.get("model")]
    apart = [
        said.format(safe(row[column], 16))
        for column, said in _APART
        if row.get(column) and len({str(other.get(column)) for other in alike}) > 1
    ]
    return ", ".join([safe(row.get("model"), _LONGEST), *apart[:1]])


def _candidates(place: tuple[float, float], text: str) -> Iterator[tuple[FrontName, _Box]]:
    wide, high = _SCREEN
    x, y, long = place[0] * wide / 100, place[1] * high / 100, _LETTER * len(text)
    left = x + 8 + long > wide and x > wide / 2
    first = x - 8 - long if left else x + 8
    for below in _BESIDE:
        baseline = min(max(y + below, 12.0), high - 6.0)
        box = _Box(first, baseline - _LINE + 4, first + long, baseline + 4)
        name = FrontName(*place, -8.0 if left else 8.0, round(baseline - y, 1), left, text)
        yield name, box


def _around(place: tuple[float, float]) -> _Box:
    x, y = place[0] * _SCREEN[0] / 100, place[1] * _SCREEN[1] / 100
    return _Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK)
