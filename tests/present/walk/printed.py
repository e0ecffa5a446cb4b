"""Figures as people read them: numbers with a unit beside them, or below a heading that has one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from carried import Kind

_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_ALONE = re.compile(rf"(?<![\w.,×≈<>-])(?:{_NUMBER})(?![\w%.,]*[\w%])")
_UNITS = {
    "ms": (Kind.TIME, 1.0), "µs": (Kind.TIME, 1e-3), "s": (Kind.TIME, 1e3),
    "MB": (Kind.MEMORY, 1.0), "GiB": (Kind.MEMORY, 1024.0), "×": (Kind.RATIO, 1.0),
}  # fmt: skip
#: A device's bandwidth is a rate of no items.
_RATE = r"(?![KMGT]i?[Bb]/)[A-Za-z]+/s"
_WITH_UNIT = re.compile(
    rf"(?<![\w.,≈<>/-])(?P<number>{_NUMBER})(?:[ \u00a0\u202f](?P<unit>ms|µs|MB|GiB|s|{_RATE})"
    r"|(?P<times>×))(?![\w/])(?P<item> an item)?"
)
#: How many launches a range is of is no figure of a row.
_COUNT = re.compile(r", range of \d+ (?:launches|runs)")
#: A ratio or the interval of one: how sure it is, and no figure of a row.
_INTERVAL = re.compile(
    rf"\((?:95 % interval[^()]*?)?(?P<low>{_NUMBER})×? (?:–|to|…) (?P<high>{_NUMBER})×?\)"
)


@dataclass(frozen=True)
class Printed:
    """A number that stands somewhere as a figure of a kind."""

    kind: Kind
    value: float
    reach: float  # what rounding may have taken or added
    context: str


def figures_in(text: str, *, tables: bool = True) -> Iterator[Printed]:
    """Those of a terminal's or a Markdown's text."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        rule = lines[at + 1] if at + 1 < len(lines) else ""
        if tables and line.startswith("| ") and re.fullmatch(r"[|\s:-]+", rule or "x"):
            end = _end(lines, at + 2, lambda one: one.startswith("|"))
            rows = [_cells(one) for one in lines[at + 2 : end]]
            yield from figures_of_table(_cells(line), rows, _caption(lines, at))
            at = end
        elif tables and re.fullmatch(r"\s*─+\s*", rule or "x"):
            end = _end(lines, at + 2, lambda one: bool(one.strip()))
            yield from _of_terminal(line, lines[at + 2 : end], _caption(lines, at))
            at = end
        else:
            yield from figures_with_units(line)
            at += 1


def figures_with_units(text: str) -> Iterator[Printed]:
    """Numbers of a sentence that have their unit behind them."""
    text = _INTERVAL.sub("( )", text)
    for found in _WITH_UNIT.finditer(text):
        if text[: found.start("number")].endswith("~"):  # a prediction
            continue
        kind, scale = _UNITS.get(found["unit"] or found["times"], (Kind.RATE, 1.0))
        if found["item"]:
            kind = Kind.ITEM
        yield Printed(kind, *_value(found["number"], scale), text.strip()[:200])


def figures_of_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], about: str = ""
) -> Iterator[Printed]:
    """Numbers of a table, by the headings of their columns."""
    kinds = [kind_of(one, about) for one in headers]
    count = headers.index("launches") if "launches" in headers else None
    for row in rows:
        several = count is not None and count < len(row) and row[count] not in ("", "1", "no data")
        for header, kind, cell in zip(headers, kinds, row, strict=False):
            if several and header in ("low", "high"):
                continue  # how sure a mean of several is
            yield from _of_cell(cell, kind, f"{about} | {header} | {' | '.join(row)}")


def kind_of(header: str, about: str = "") -> Kind | None:
    """What the numbers below a heading are; None where each has to say it itself."""
    low = header.lower().strip(" ↑↓")
    if low in ("value", "low", "high", "q1", "q3") or re.fullmatch(r"batch \d+|unknown batch", low):
        low = about.lower()
    if re.search(r"times as fast|^speed", low):
        return Kind.RATIO
    if re.search(r"\bms an item\b", low):
        return Kind.ITEM
    if re.search(r"/s\b|throughput|pareto", low):
        return Kind.RATE
    if re.search(r"\bms\b|latency", low):
        return Kind.TIME
    if re.search(r"\bmb\b", low):
        return Kind.MEMORY
    return None


def _of_cell(cell: str, kind: Kind | None, context: str) -> Iterator[Printed]:
    # An estimate says so, by ≈ or by ~ before it; a cell that cannot tell tells nothing.
    if "≈" in cell or re.search(r"~\d", cell) or ("can" in cell and "tell" in cell):
        return
    cell = _COUNT.sub("", cell)
    known = list(figures_with_units(cell))
    if kind is None or known:
        yield from (Printed(one.kind, one.value, one.reach, context[:300]) for one in known)
        return
    if kind is Kind.RATIO:
        return  # without × behind it, it is the end of an interval
    for found in _ALONE.finditer(cell):
        yield Printed(kind, *_value(found[0]), context[:300])


def _value(text: str, scale: float = 1.0) -> tuple[float, float]:
    """A number, and half of its last digit."""
    plain = text.replace(",", "")
    digits, _, power = plain.partition("e")
    places = len(digits.partition(".")[2]) - int(power or 0)
    return float(plain) * scale, 0.5 * 10.0**-places * scale * (1 + 1e-6)


def _cells(line: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]]


def _caption(lines: Sequence[str], at: int) -> str:
    """What stands above a table: the nearest lines that say something."""
    said = [one.strip(" *#") for one in lines[max(0, at - 3) : at] if one.strip()]
    return re.sub(r"<[^>]*>", "", said[-1]) if said else ""


def _end(lines: Sequence[str], at: int, goes_on: object) -> int:
    while at < len(lines) and goes_on(lines[at]):  # type: ignore[operator]
        at += 1
    return at


def _of_terminal(header: str, body: Sequence[str], about: str) -> Iterator[Printed]:
    """Columns of figures are flush right: their cells end where their heading ends."""
    heads = {found.end(): found[0] for found in _CHUNK.finditer(header)}
    for line in body:
        for found in _CHUNK.finditer(line):
            # A mark behind a figure, as * of the best, stands beyond it or within.
            head = heads.get(found.end()) or heads.get(found.end() + 1)
            kind = None if head is None else kind_of(head, about.rpartition("·")[2])
            yield from _of_cell(found[0], kind, f"{head} | {line.strip()}")


_CHUNK = re.compile(r"\S+(?: \S+)*")


class Page(HTMLParser):
    """A page as its tables and the text between them; neither styles nor pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        self._hidden = 0
        self._cell: list[str] | None = None
        self._inside = self._caption = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "table":
            self.tables.append(("", []))
            self._inside = True
        elif tag == "tr" and self._inside:
            self.tables[-1][1].append([])
        elif tag in ("td", "th") and self._inside:
            self._cell = []
        elif tag == "caption":
            self._caption = True
        elif tag in ("p", "li", "dd", "dt", "div", "section", "br"):
            self.texts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden -= 1
        elif tag == "table":
            self._inside = False
        elif tag in ("td", "th") and self._cell is not None:
            if self.tables[-1][1]:
                self.tables[-1][1][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None
        elif tag == "caption":
            self._caption = False

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._cell is not None:
            self._cell.append(f"{data} ")
        elif self._caption:
            name, rows = self.tables[-1]
            self.tables[-1] = (f"{name}{data}", rows)
        else:
            self.texts.append(data)


_HIDDEN = ("style", "script", "svg", "head", "footer")


def figures_of_page(text: str, captions: dict[str, str] | None = None) -> Iterator[Printed]:
    """Those of a page: of its tables, and of its sentences.

    Args:
        text: of HTML.
        captions: what a table's figures are, by its caption.
    """
    page = Page(text)
    for caption, rows in page.tables:
        if rows:
            about = next((v for k, v in (captions or {}).items() if k in caption), caption)
            yield from figures_of_table(rows[0], rows[1:], about)
    yield from figures_in(
        " ".join(f"{' '.join(one.split())}\n" if one == "\n" else one for one in page.texts),
        tables=False,
    )
