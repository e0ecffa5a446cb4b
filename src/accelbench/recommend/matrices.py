"""The compatibility matrix in the documents' format, and the source of each entry.

The first source with an entry counts: the configuration, a named file, the database, ./CLAUDE.md,
the defaults. Markdown pages have other tables and columns too. Only known platforms become
hardware, and in a named file columns in which every cell is a level.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from accelbench.core.errors import UsageError
from accelbench.core.vocabulary import FAMILIES, HARDWARE, Family, Mode
from accelbench.hardware.detect import list_platforms
from accelbench.judge.matrix import rating
from accelbench.recommend import validation
from accelbench.recommend.config import ANY_FAMILY, PlatformEntry
from accelbench.recommend.evidence.cells import Tried
from accelbench.recommend.platform_rules import (
    cannot_generate,
    family_rating,
    is_refused_by_all,
)

CONFIG, DATABASE, DEFAULT = "the configuration", "the database", "the default"


@dataclass(frozen=True)
class MatrixEntry:
    """The compatibility of a platform with a family, by one source."""

    compatible: bool
    rating: str | None = None  # None: it runs, without a rating
    reason: str = ""
    source: str = ""


#: Why a platform that is compatible with a family is not offered for generation.
FORWARD_ONLY = "forward passes only: no engine of it generates token by token"

#: By family, platform, and mode; "" is both modes.
Entries = Mapping[tuple[str, str, str], MatrixEntry]


@dataclass(frozen=True)
class MatrixLayer:
    """The entries of one source."""

    name: str
    entries: Entries


@dataclass(frozen=True)
class Matrices:
    """Sources in the order of their precedence; the default is the last."""

    layers: Sequence[MatrixLayer]

    @property
    def source(self) -> str:
        """The first source with entries that is not the configuration."""
        names = (layer.name for layer in self.layers if layer.entries and layer.name != CONFIG)
        return next(names, DEFAULT)

    def entry(self, family: str, hardware: str, mode: str) -> MatrixEntry:
        """Return the entry of the first source that has one; its rating may be from a later one."""
        rated: MatrixEntry | None = None
        for layer in self.layers:
            for name in (family, ANY_FAMILY):
                cell = layer.entries.get((name, hardware, mode)) or layer.entries.get(
                    (name, hardware, "")
                )
                if cell is None:
                    continue
                if cell.rating or not cell.compatible:
                    return cell
                rated = rated or cell
        return rated or MatrixEntry(compatible=True, source=DEFAULT)

    def platforms(self) -> list[str]:
        return list(dict.fromkeys(key[1] for layer in self.layers for key in layer.entries))

    def document(self, hardware: Sequence[str], timestamp: str) -> dict[str, object]:
        """Return the matrix in the documents' format, with the source of each entry."""
        families = {}
        for family in FAMILIES:
            entries = {}
            for name in hardware:
                entry = self.entry(family.value, name, Mode.INFERENCE.value)
                level = entry.rating or family_rating(name, family.value)
                is_text = entry.compatible and family is Family.TEXT_GENERATION
                reason = entry.reason or (FORWARD_ONLY if is_text and cannot_generate(name) else "")
                entries[name] = {
                    "compatible": entry.compatible,
                    "performance_rating": level if entry.compatible else "n/a",
                    "source": entry.source,
                    **({"reason": reason} if reason else {}),
                }
            families[family.value] = {"hardware_compatibility": entries}
        return {
            "timestamp": timestamp,
            "source": self.source,
            "hardware_types": list(hardware),
            "model_families": families,
        }


def of_results(tried: Iterable[Tried]) -> MatrixLayer:
    """Return the entries by results: compatible if a model of the family succeeded there.

    It is incompatible if all engines of the platform refused everything. A missing platform or a
    full disk gives no entry.
    """
    entries: dict[tuple[str, str, str], MatrixEntry] = {}
    for outcome in tried:
        key = (outcome.family, outcome.hardware, outcome.mode)
        reason = f"{outcome.through} of {outcome.models} models went through"
        if outcome.through:
            speed = 1.0 if outcome.hardware == "cpu" else outcome.speed
            level = None if speed is None else str(rating(speed, outcome.best))
            entries[key] = MatrixEntry(True, level, reason, DATABASE)
        elif is_refused_by_all(outcome.hardware, outcome.refused_by):
            entries[key] = MatrixEntry(False, None, f"{reason}: {outcome.reason}", DATABASE)
    return MatrixLayer(DATABASE, entries)


def of_config(compatibility: Mapping[str, Mapping[str, PlatformEntry]]) -> MatrixLayer:
    """Return the entries of the configuration."""
    return MatrixLayer(
        CONFIG,
        {
            (family, hardware, ""): MatrixEntry(
                entry["compatible"], entry["performance_rating"], source=CONFIG
            )
            for family, entries in compatibility.items()
            for hardware, entry in entries.items()
        },
    )


_RULE_LINE = re.compile(r"^[\s|:-]*-[\s|:-]*$")
_FENCE = re.compile(r"^\s*(```|~~~)")
#: Whole words: "slow" and "highly experimental" are no levels.
_LEVEL = re.compile(r"(?<![\w-])(high|medium|low)(?![\w-])")
_YES, _NO, _SOSO = ("✅", "✔", "✓"), ("❌", "✗", "✘", "✖"), ("⚠",)
#: Words of cells that mean compatible, incompatible, or nothing.
_RUNS = frozenset({"yes", "supported", "not verified", "not sure", "compatible, not rated"})
_DOES_NOT = frozenset({"no", "none", "not supported", "unsupported"})
_SILENT = frozenset({"", "n/a", "na", "-", "–", "—", "?", "unknown", "untested"})

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_FAMILIES: dict[str, str] = {
    **_NAMES["families"],
    **{family.value.replace("_", ""): family.value for family in FAMILIES},
}
_MAKERS: dict[str, str] = _NAMES["makers"]


@dataclass(frozen=True)
class _Column:
    """A heading with its cells by family."""

    heading: str
    cells: tuple[tuple[str, str], ...]


def of_markdown(
    text: str, name: str, known: Iterable[str] = (), *, named: bool = True
) -> MatrixLayer:
    """Return the entries of a page's tables: families down, platforms across, levels in cells."""
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
    """Yield the rows of each table, its heading first; ignore fenced examples."""
    table: list[list[str]] = []
    fenced = False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        follows = lines[number + 1] if number + 1 < len(lines) else ""
        # Outer bars may be missing if the next line is the rule of a heading.
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
    """Return the platforms of a heading: "WebNN / WebGPU" are two, "Intel OpenVINO" is one.

    Names come before those in brackets, and names of platforms before those of makers.
    """
    text = re.sub(r"\]\(.*?\)", "]", heading)
    if _plain(text) in spelt:
        return [spelt[_plain(text)]]
    outside = re.sub(r"\(.*?\)", " ", text)
    for spellings in (spelt, _MAKERS):
        for phrase in (outside, text):
            parts = re.split(r"[/,&+]|\band\b", phrase)
            firsts = (
                next((spellings[w] for w in _words(part) if w in spellings), "") for part in parts
            )
            platforms = list(dict.fromkeys(filter(None, firsts)))
            if platforms:
                return platforms
    return []


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _plain(name: str) -> str:
    return "".join(_words(name))


def _own_name(heading: str) -> str:
    return " ".join(re.sub(r"\(.*?\)|[*_`]", " ", heading).lower().split())


def _is_levels(column: _Column) -> bool:
    """Return whether every cell is a level or empty, and one at least is a level."""
    words = [_bare(cell) for _, cell in column.cells]
    levels = [word for word in words if _LEVEL.fullmatch(word)]
    return bool(levels) and all(word in _SILENT or _LEVEL.fullmatch(word) for word in words)


def _bare(cell: str) -> str:
    text = cell.lower().replace("\ufe0f", "")
    for mark in (*_YES, *_NO, *_SOSO, "*", "`"):
        text = text.replace(mark, " ")
    return " ".join(text.split())


def _entry(cell: str, source: str) -> MatrixEntry | None:
    """Return the entry of a cell; None if it has neither a level nor a verdict."""
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


CLAUDE_FILE = "CLAUDE.md"


def pages(
    named: str | PathLike[str] | None, own: Iterable[str] = ()
) -> tuple[list[MatrixLayer], list[MatrixLayer]]:
    """Return the pages with a matrix: those before the database, and those after it."""
    path = validation.path("matrix_file", named)
    if path is None:
        return [], _beside(own)
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(
            f"The matrix file {named} cannot be read: {why}.", "Name a Markdown page."
        ) from error
    layer = of_markdown(text, path, (*own, *list_platforms()))
    if not layer.entries:
        raise UsageError(
            f"There is no compatibility matrix in {named}.",
            "A table is expected with families down, platforms across, levels in its cells.",
        )
    return [layer], []


def _beside(own: Iterable[str]) -> list[MatrixLayer]:
    """Return the entries of the page that is read if none is named."""
    try:
        text = Path(CLAUDE_FILE).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return []
    return [of_markdown(text, f"./{CLAUDE_FILE}", (*own, *list_platforms()), named=False)]
