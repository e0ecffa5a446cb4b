"""What the results of a run are warned of, each warning once, with the results it concerns. Pure.

Most cases of a run are warned of the same, and often only a figure differs: then they are one
warning, which says from where to where the figure goes. The first sentence of a warning says what
it is about, and those after it what that did to one case or what would help there: results that
have the first one in common are one warning, with every sentence that any of them has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.core.formatting import join_first
from accelbench.core.rows import Row, texts

#: A number as our sentences have it: 12, 0.5, 1,024; none within a name or a version: fp16, 2.13.0.
_NUMBER = r"(?<![\w.:-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-]|[.:]\d)"
#: A date, a time of day or both: 2026-01-02, 03:04:05, 2026-01-02T03:04:05Z.
_DATE, _CLOCK = r"\d{4}-\d\d-\d\d", r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
_AT = rf"(?<![\w.:-])(?:{_DATE}[ T]{_CLOCK}|{_DATE}|{_CLOCK})Z?(?![\w-]|[.:]\d)"
_MOMENT = re.compile(_AT)
#: A moment, one number, or a range that a sentence has already.
_FIGURE = re.compile(f"{_AT}|{_NUMBER}(?: to {_NUMBER})?")
#: Between two sentences.
_BETWEEN = re.compile(r"(?<=[.!?]) (?=[A-Z])")


@dataclass(frozen=True)
class Warned:
    """A warning, and the results that carry it, in their order."""

    text: str
    rows: tuple[Row, ...]


def warned(rows: Sequence[Row]) -> list[Warned]:
    """Every warning of some results, that of most of them first."""
    warnings_by_form: dict[str, list[tuple[Row, list[str]]]] = {}
    for row in rows:
        # Once a result, whatever it says of it twice.
        for text in dict.fromkeys(texts(row, "warnings")):
            sentences = _BETWEEN.split(text)
            warnings_by_form.setdefault(_form(sentences[0]), []).append((row, sentences))
    made = [
        Warned(
            _together([sentences for _, sentences in pairs]), _each_once([row for row, _ in pairs])
        )
        for pairs in warnings_by_form.values()
    ]
    return sorted(made, key=lambda warning: -len(warning.rows))


def _form(sentence: str) -> str:
    """A sentence without its figures."""
    return _FIGURE.sub("#", sentence)


def _each_once(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple({id(row): row for row in rows}.values())


def _together(texts: Sequence[Sequence[str]]) -> str:
    """Every sentence of some texts, those that differ in their figures alone as one."""
    alike: dict[str, list[str]] = {}
    # Those that say most have the order in which sentences follow each other.
    for sentences in sorted(texts, key=len, reverse=True):
        for sentence in sentences:
            alike.setdefault(_form(sentence), []).append(sentence)
    return " ".join(map(_joined, alike.values()))


def _joined(sentences: Sequence[str]) -> str:
    """Sentences that differ in their figures alone as one."""
    figures = [_FIGURE.findall(sentence) for sentence in sentences]
    ranges = [_range(several) for several in zip(*figures, strict=True)]
    words = _FIGURE.split(sentences[0])
    return "".join(a + b for a, b in zip(words, [*ranges, ""], strict=True))


def _range(figures: Sequence[str]) -> str:
    """Return the least to the most of some figures, of which each may be a range.

    Moments have no range: something happened at each, and nothing is known of the time between.
    """
    if any(map(_MOMENT.fullmatch, figures)):
        return join_first(sorted(set(figures)))
    ends = {end for figure in figures for end in figure.split(" to ")}
    ordered = sorted(ends, key=lambda end: float(end.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
