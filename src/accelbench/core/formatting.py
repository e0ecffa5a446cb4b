"""Text of counts, numbers, durations, missing values and similar names.

A value that could be known is `no data`; a value that cannot exist, such as the time of an emulated
device, is `n/a`. Files for programs have null, or nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

#: Significant digits of a shown value.
_DIGITS = 3


def format_digits(value: float) -> str:
    """Return three significant digits without an exponent: 0.153, 12.3, 1,240."""
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    places = max(0, _DIGITS - 1 - floor(log10(abs(value))))
    return f"{value:,.{places}f}"


def format_value(value: float | None) -> str:
    """Return three digits, or "no data" without a value."""
    return NO_DATA if value is None else format_digits(value)


def format_four_digits(value: float) -> str:
    """Return four digits without an exponent, or all of a large number: 0.1234, 12.3, 23,960."""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: "3 launches", "1 launch"."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def join_first(names: Sequence[str], limit: int = 3, separator: str = ", ") -> str:
    """Return the first names, and the number of the others."""
    shown = separator.join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


#: A value that could be known, and is not.
NO_DATA = "no data"
#: There can be no value.
NOT_APPLICABLE = "n/a"
#: Shown instead of an interval that is too wide.
NOT_KNOWN = "not known"
UNKNOWN_DEVICE = "unknown device"
UNKNOWN_ENGINE = "unknown engine"
UNKNOWN_HARDWARE = "unknown hardware"
UNKNOWN_MACHINE = "unknown machine"
UNKNOWN_MODEL = "unknown model"
UNKNOWN_BATCH = "unknown batch"


def format_batch(batch: object) -> str:
    """Return the text of a batch size, which may be unknown."""
    return f"batch {batch}" if batch else UNKNOWN_BATCH


#: Largest count that every engine accepts: some index tensors by signed 32 bits.
LARGEST = 2**31 - 1


def split_words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Return every word of a list option, in order and without duplicates.

    An empty list raises UsageError: an empty shell variable causes it, and it differs from a
    missing option.
    """
    given = list(values or ())
    entries = [w for value in given for w in value.replace(",", " ").split()]
    if given and not entries:
        raise UsageError("A list is empty.", "Name at least one value, or leave the option out.")
    return tuple(dict.fromkeys(entries))


def parse_integers(values: Iterable[str] | None, option: str, least: int = 1) -> tuple[int, ...]:
    """Return whole numbers, each at least `least`; raise UsageError for others."""
    integers = []
    for word in split_words(values):
        try:
            number = int(word)
        except ValueError:
            if _is_number(word):
                raise UsageError(f"{option} takes whole numbers, not {word}.") from None
            raise UsageError(
                f"{option} takes whole numbers, not {in_quotes(word)}.",
                "Models come before the options: accelbench run MODEL … --batch-sizes 1,8",
            ) from None
        if not least <= number <= LARGEST:
            raise UsageError(f"{option} takes numbers from {least} to {LARGEST:,}, not {word}.")
        integers.append(number)
    return tuple(integers)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def parse_duration(text: str | None, option: str) -> float | None:
    """Return the seconds of a duration such as 90, 90s, 10m or 1.5h."""
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    unit = units.get(text[-1:].lower())
    try:
        value = float(text[:-1] if unit else text) * (unit or 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"{option} takes a duration such as 90s, 10m or 1.5h, not {in_quotes(text)}."
        )
    return value


def format_duration(value: float) -> str:
    """Return a duration as `parse_duration` reads it: 90s, 10m, 2h."""
    for unit, size in (("h", 3600.0), ("m", 60.0)):
        if value % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}s"


#: Least similarity of a suggested name: one wrong letter in four leaves 0.75, transposed ones 0.5.
MIN_SIMILARITY = 0.5
#: Most names that are suggested.
_MOST = 3


def find_similar(word: str, names: Iterable[str], similarity: float = MIN_SIMILARITY) -> list[str]:
    """Return names that resemble a word in any case, most similar first."""
    spelt: dict[str, list[str]] = {}
    for name in names:
        spelt.setdefault(name.lower(), []).append(name)
    matches = difflib.get_close_matches(word.lower(), spelt, n=_MOST, cutoff=similarity)
    return [spelling for low in matches for spelling in spelt[low]]


def suggest(
    word: str, names: Iterable[str], otherwise: str = "Known", similarity: float = MIN_SIMILARITY
) -> str:
    """Return the advice: similar names, or all names after `otherwise`."""
    every = list(names)
    hits = find_similar(word, every, similarity)
    return f"Did you mean {' or '.join(hits)}?" if hits else f"{otherwise}: {', '.join(every)}."


_TORCH_CPU = "PyTorch in fp32 on the CPU"
_OF_FILES = "each file as it is on the CPU, nothing of it rewritten"
#: Key in the evidence of the reference, if it is not the unchanged model.
REFERENCE_KEY = "held_against"
_OF_CONVERTED = "graphs of old operators converted to opset 7 by onnx"
_OF_CALLABLES = "each callable's own reference"
_ORDER = (_TORCH_CPU, _OF_FILES, _OF_CONVERTED, _OF_CALLABLES)
_REFERENCES = {"file": _OF_FILES}
#: Engine of callables.
_CALLABLE_ENGINE = "python"


def describe_references(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the references that outputs of results were compared with."""
    kinds = {
        _OF_CALLABLES
        if row.get("runtime") == _CALLABLE_ENGINE
        else _OF_CONVERTED
        if _has_named_reference(row)
        else _REFERENCES.get(str(row.get("weights")), _TORCH_CPU)
        for row in rows
    }
    return " and ".join(words for words in _ORDER if words in kinds)


def add_reference(reference: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return an evidence that names the reference of its outputs."""
    details = {**(evidence.get("details") or {}), REFERENCE_KEY: reference}
    return {**evidence, "details": details}


def _has_named_reference(row: Mapping[str, Any]) -> bool:
    """Return whether a row's evidence names a reference, in a mapping or its JSON text."""
    evidence = row.get("evidence")
    if isinstance(evidence, str):
        return f'"{REFERENCE_KEY}"' in evidence
    return REFERENCE_KEY in ((evidence or {}).get("details") or {})
