"""Figures as pages show them, compared with exact ones: no format of the product's own is used."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TAG = re.compile(r"<[^>]+>")
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<(t[dh])\b([^>]*)>(.*?)</\1>", re.DOTALL)
_HEAD = re.compile(r"<thead>(.*?)</thead>", re.DOTALL)
_BODY = re.compile(r"<tbody>(.*?)</tbody>", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e-?\d+)?")


def text_of(markup: str) -> str:
    """What is read, without marks of order."""
    plain = html.unescape(_TAG.sub(" ", markup))
    return " ".join(plain.replace("↑", " ").replace("↓", " ").split())


@dataclass(frozen=True)
class ShownCell:
    """One field of a table, as it stands there."""

    markup: str

    @property
    def text(self) -> str:
        return text_of(self.markup)

    @property
    def lead(self) -> str:
        """What stands before anything small or marked: the figure itself."""
        return text_of(re.split(r"<small|<span|<br", self.markup)[0])

    def title(self, of: str) -> str:
        """What is said of an element of a class when somebody points at it."""
        found = re.search(rf'class="{of}"[^>]*title="([^"]*)"', self.markup)
        return html.unescape(found[1]) if found else ""


@dataclass(frozen=True)
class ShownRow:
    """One row: by the heading of each column what stands below it."""

    key: str
    cells: Mapping[str, ShownCell]
    markup: str = field(repr=False, default="")


def tables_of(page: str) -> Iterator[list[ShownRow]]:
    """The tables of a page that have a head, each as its rows."""
    for table in re.findall(r"<table\b.*?</table>", page, re.DOTALL):
        head, body = _HEAD.search(table), _BODY.search(table)
        if head is None or body is None:
            continue
        headings = [text_of(one) for _, _, one in _CELL.findall(head[1])]
        rows = []
        for markup in _ROW.findall(body[1]):
            cells, at = {}, 0
            for _, attributes, inner in _CELL.findall(markup):
                span = re.search(r'colspan="(\d+)"', attributes)
                if at < len(headings):
                    cells[headings[at]] = ShownCell(inner)
                at += int(span[1]) if span else 1
            key = re.search(r"/cell/([0-9a-f]{16})\"", markup)
            rows.append(ShownRow(key[1] if key else "", cells, markup))
        yield rows


def is_shown(text: str, value: float | None, *, whole: bool = False) -> bool:
    """Whether a text is what an exact figure is rounded to, in three digits at least."""
    if value is None:
        return text == "no data"
    found = _NUMBER.match(text)
    if found is None:
        return False
    number, decimals = float(found[0].replace(",", "")), len((found[1] or ".")[1:])
    if found[2]:
        return abs(number - value) <= 0.005 * abs(value)
    reach = 0.5 * 10.0**-decimals * (1 + 1e-9) + 1e-12
    precise = whole or value == 0 or reach <= 0.0051 * abs(value)
    return abs(number - value) <= reach and precise
