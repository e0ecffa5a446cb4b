"""The compatibility matrix that a Markdown page has: which table it is, and what its cells say.

People's pages have other tables, and other columns in this one: notes, comments, what a thing is
best for. Only a platform that is known becomes hardware, and, on a page that was named for it, a
column whose every cell is a level. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from accelbench.core.vocabulary import FAMILIES, HARDWARE, Family
from accelbench.select.rank.matrices import MatrixEntry, MatrixLayer

_RULE_LINE = re.compile(r"^[\s|:-]*-[\s|:-]*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
#: Whole words: "slow" and "highly experimental" are no levels.
_LEVEL = re.compile(r"(?<![\w-])(high|medium|low)(?![\w-])")
_YES, _NO, _SOSO = ("✅", "✔", "✓"), ("❌", "✗", "✘", "✖"), ("⚠",)
#: What a cell may say in one word, or say nothing with.
_RUNS = frozenset({"yes", "supported", "not verified", "not sure", "compatible, not rated"})
_DOES_NOT = frozenset({"no", "none", "not supported", "unsupported"})
_SILENT = frozenset({"", "n/a", "na", "-", "–", "—", "?", "unknown", "untested"})

#: Names that tables have for the documents' families.
_FAMILIES = {
    "text": Family.TEXT_GENERATION.value,
    "textgeneration": Family.TEXT_GENERATION.value,
    "generation": Family.TEXT_GENERATION.value,
    "language": Family.TEXT_GENERATION.value,
    "llm": Family.TEXT_GENERATION.value,
    "llms": Family.TEXT_GENERATION.value,
    "embeddings": Family.EMBEDDING.value,
    "textembedding": Family.EMBEDDING.value,
    "textembeddings": Family.EMBEDDING.value,
    "speech": Family.AUDIO.value,
    **{family.value.replace("_", ""): family.value for family in FAMILIES},
}
#: Words that name a platform by its maker or its library, where no word is a platform's own.
_MAKERS = {
    "amd": "rocm",
    "radeon": "rocm",
    "apple": "mps",
    "metal": "mps",
    "qualcomm": "qnn",
    "snapdragon": "qnn",
    "hexagon": "qnn",
    "nvidia": "cuda",
    "intel": "openvino",
    "google": "tpu",
}


@dataclass(frozen=True)
class _Column:
    """A heading with what stands below it, by family."""

    heading: str
    cells: tuple[tuple[str, str], ...]


def of_markdown(
    text: str, name: str, known: Iterable[str] = (), *, named: bool = True
) -> MatrixLayer:
    """What the tables of a page say: families down, platforms across, a level in each cell.

    Args:
        text: the page.
        name: what the page is called where an answer says where it is from.
        known: platforms beside the documents', as plugins and a configuration bring them.
        named: it was named for its matrix. Of another page nothing but platforms is believed.
    """
    spelt = {_plain(platform): platform for platform in (*known, *HARDWARE)}
    entries: dict[tuple[str, str, str], MatrixEntry] = {}
    for table in _tables(text):
        for column in _columns(table):
            platforms = _platforms(column.heading, spelt)
            if not platforms and named and _is_levels(column):
                platforms = [_own_name(column.heading)]
            for hardware in filter(None, platforms):
                for family, cell in column.cells:
                    entry = _entry(cell, name)
                    if entry:
                        entries.setdefault((family, hardware, ""), entry)
    return MatrixLayer(name, entries)


def _tables(text: str) -> Iterator[list[list[str]]]:
    """The rows of each table, its heading first; what stands in a fence is an example."""
    table: list[list[str]] = []
    fenced = False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        follows = lines[number + 1] if number + 1 < len(lines) else ""
        # Outer bars may be left out where a rule below says that it is a heading.
        bare = "|" in line and (bool(table) or ("|" in follows and bool(_RULE_LINE.match(follows))))
        if fenced or not (line.strip().startswith("|") or bare):
            if table:
                yield table
            table = []
        elif not _RULE_LINE.match(line):
            table.append(_cells(line))
    if table:
        yield table


def _cells(line: str) -> list[str]:
    text = line.strip().removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", text)]


def _columns(table: Sequence[Sequence[str]]) -> Iterator[_Column]:
    heading, *rows = table
    of_families = [(family, row) for row in rows for family in _families(row[0])]
    for number, name in enumerate(heading[1:], 1):
        cells = ((family, row[number]) for family, row in of_families if number < len(row))
        yield _Column(name, tuple(cells))


def _families(cell: str) -> list[str]:
    text = re.sub(r"\(.*?\)", "", cell.lower())
    words = (re.sub(r"[^a-z]", "", part).removesuffix("models") for part in re.split("[/,&]", text))
    return [_FAMILIES[word] for word in words if word in _FAMILIES]


def _platforms(heading: str, spelt: dict[str, str]) -> list[str]:
    """The platforms that a heading names: "WebNN / WebGPU" are two, "Intel OpenVINO" is one.

    Names count before what stands in brackets, and names of platforms before those of makers.
    """
    text = re.sub(r"\]\(.*?\)", "]", heading)
    if _plain(text) in spelt:
        return [spelt[_plain(text)]]
    outside = re.sub(r"\(.*?\)", " ", text)
    for known in (spelt, _MAKERS):
        for phrase in (outside, text):
            parts = re.split(r"[/,&+]|\band\b", phrase)
            firsts = (next((known[w] for w in _words(part) if w in known), "") for part in parts)
            platforms = list(dict.fromkeys(filter(None, firsts)))
            if platforms:
                return platforms
    return []


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _plain(name: str) -> str:
    return "".join(_words(name))


def _own_name(heading: str) -> str:
    """Hardware of one's own, as people would type it."""
    return " ".join(re.sub(r"\(.*?\)|[*_`]", " ", heading).lower().split())


def _is_levels(column: _Column) -> bool:
    """Whether every cell is a level, or says nothing, and one at least is a level."""
    words = [_bare(cell) for _, cell in column.cells]
    levels = [word for word in words if _LEVEL.fullmatch(word)]
    return bool(levels) and all(word in _SILENT or _LEVEL.fullmatch(word) for word in words)


def _bare(cell: str) -> str:
    """A cell without its mark and its stress."""
    text = cell.lower().replace("\ufe0f", "")
    for mark in (*_YES, *_NO, *_SOSO, "*", "`"):
        text = text.replace(mark, " ")
    return " ".join(text.split())


def _entry(cell: str, source: str) -> MatrixEntry | None:
    """A level, or that it does not run; None of a cell that says neither."""
    bare = _bare(cell)
    if any(mark in cell for mark in _NO) or bare in _DOES_NOT:
        return MatrixEntry(compatible=False, reason=cell, source=source)
    level = _LEVEL.search(bare)
    if level:
        return MatrixEntry(compatible=True, rating=level[1], reason=cell, source=source)
    if any(mark in cell for mark in (*_YES, *_SOSO)) or bare in _RUNS:
        low = any(mark in cell for mark in _SOSO)
        return MatrixEntry(True, "low" if low else None, cell, source)
    return None
