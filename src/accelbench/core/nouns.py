"""Words of sentences and lists: counts, digits, missing values, durations, names that are alike.

A value that could be known is `no data`; a value that cannot exist, as times of an emulated device,
is `n/a`. Files for programs have null, or nothing. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from accelbench.core.errors import UsageError
from accelbench.core.safe_text import in_quotes

#: Digits of a figure that anybody reads.
_DIGITS = 3


def digits(value: float) -> str:
    """Three digits, or as many as a whole number has, never an exponent: 0.153, 12.3, 1,240."""
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    places = max(0, _DIGITS - 1 - floor(log10(abs(value))))
    return f"{value:,.{places}f}"


def figure(value: float | None) -> str:
    """Return three digits, or "no data" without a value."""
    return NO_DATA if value is None else digits(value)


def four_digits(value: float) -> str:
    """Return four digits without an exponent, or all of a large number: 0.1234, 12.3, 23,960."""
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def counted(number: int, singular: str, many: str = "") -> str:
    """3 cells, 1 cell."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first of them, and how many more there are."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


#: A value that could be known, and is not.
NO_DATA = "no data"
#: There can be no value: the question does not apply.
NOT_APPLICABLE = "n/a"
#: What is shown instead of an interval that is too wide to be one.
NOT_KNOWN = "not known"
UNKNOWN_DEVICE = "unknown device"
UNKNOWN_ENGINE = "unknown engine"
UNKNOWN_HARDWARE = "unknown hardware"
UNKNOWN_MACHINE = "unknown machine"
UNKNOWN_MODEL = "unknown model"
UNKNOWN_BATCH = "unknown batch"


def batch_text(batch: object) -> str:
    """The size of a batch; one that nobody says is no batch of one."""
    return f"batch {batch}" if batch else UNKNOWN_BATCH


#: Beyond it no engine can count: tensors are indexed by signed 32 or 64 bits.
LARGEST = 2**31 - 1


def words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Return every word of a list option, in order, each once.

    An empty list raises UsageError: an empty variable of a shell leaves it, and that is not the
    same as no option.
    """
    given = list(values or ())
    entries = [w for value in given for w in value.replace(",", " ").split()]
    if given and not entries:
        raise UsageError("A list is empty.", "Name at least one value, or leave the option out.")
    return tuple(dict.fromkeys(entries))


def numbers(values: Iterable[str] | None, option: str, least: int = 1) -> tuple[int, ...]:
    """Whole numbers, each of at least `least`."""
    integers = []
    for word in words(values):
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


def seconds(text: str | None, option: str) -> float | None:
    """A duration as people write it: 90, 90s, 10m, 1.5h."""
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


def duration_word(value: float) -> str:
    """Return a duration as `seconds` reads it: 90s, 10m, 2h."""
    for unit, size in (("h", 3600.0), ("m", 60.0)):
        if value % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}s"


#: How like a name has to be. Names of platforms are short: one slip in four letters is a quarter.
LIKE = 0.5
#: Names that are offered.
_MOST = 3


def near(word: str, names: Iterable[str], like: float = LIKE) -> list[str]:
    """Names that are like a word, whatever their case; the likest first."""
    spelt: dict[str, list[str]] = {}
    for name in names:
        spelt.setdefault(name.lower(), []).append(name)
    matches = difflib.get_close_matches(word.lower(), spelt, n=_MOST, cutoff=like)
    return [spelling for low in matches for spelling in spelt[low]]


def meant(word: str, names: Iterable[str], otherwise: str = "Known", like: float = LIKE) -> str:
    """Return the advice: the names that are like a word, or after `otherwise` all of them."""
    every = list(names)
    hits = near(word, every, like)
    return f"Did you mean {' or '.join(hits)}?" if hits else f"{otherwise}: {', '.join(every)}."


_TORCH_CPU = "PyTorch in fp32 on the CPU"
_OF_FILES = "each file as it is on the CPU, nothing of it rewritten"
#: Where the evidence names what outputs were compared with, if not the model as it is.
HELD_AGAINST = "held_against"
_OF_CONVERTED = "graphs of old operators converted to opset 7 by onnx"
_OF_CALLABLES = "each callable's own reference"
_ORDER = (_TORCH_CPU, _OF_FILES, _OF_CONVERTED, _OF_CALLABLES)
_REFERENCES = {"file": _OF_FILES}
#: The runtime of callables.
_CALLS = "python"


def reference_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """What outputs are compared with: of files, the graph as it is; of callables, their owner's."""
    kinds = {
        _OF_CALLABLES
        if row.get("runtime") == _CALLS
        else _OF_CONVERTED
        if _names_another(row)
        else _REFERENCES.get(str(row.get("weights")), _TORCH_CPU)
        for row in rows
    }
    return " and ".join(words for words in _ORDER if words in kinds)


def naming(reference: str, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence that names what outputs were compared with."""
    details = {**(evidence.get("details") or {}), HELD_AGAINST: reference}
    return {**evidence, "details": details}


def _names_another(row: Mapping[str, Any]) -> bool:
    """Whether a row's evidence names a reference: as a mapping, or as the JSON of one."""
    evidence = row.get("evidence")
    if isinstance(evidence, str):
        return f'"{HELD_AGAINST}"' in evidence
    return HELD_AGAINST in ((evidence or {}).get("details") or {})
