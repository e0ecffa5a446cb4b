"""What each table of a comparison is of, in words that no other table beside it has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.analysis.questions import Axis, Row, physical, plain
from accelbench.cli.display.words import MISSING, shapes
from accelbench.core.words import SINGLE_STREAM

#: What stands before and after a value; what is not here is said with its name.
_AROUND: Mapping[str, tuple[str, str]] = {
    "model": ("", ""),
    "mode": ("", ""),
    "hardware": ("", ""),
    "device_name": ("", ""),
    "runtime": ("", ""),
    "precision": ("", ""),
    "scenario": ("", ""),
    "batch_size": ("batch ", ""),
    "sequence_length": ("seq ", ""),
    "image_size": ("", "px"),
    "audio_seconds": ("", " s"),
    "denoising_steps": ("", " steps"),
    "prompt_tokens": ("prompt ", ""),
    "new_tokens": ("new ", ""),
    "world_size": ("", " devices"),
    "threads": ("", " threads"),
}


def headings(rows: Sequence[Row], axis: Axis) -> list[str]:
    """A heading for each question, by a row of it.

    The usual things are always said; of questions that are alike in them, whatever else they
    differ in is said as well.
    """
    found = [_usual(row, axis) for row in rows]
    alike: dict[str, list[int]] = {}
    for number, heading in enumerate(found):
        alike.setdefault(heading, []).append(number)
    for numbers in alike.values():
        among = [rows[number] for number in numbers]
        apart = [name for name in axis.alike if len({plain(row.get(name)) for row in among}) > 1]
        for number in numbers:
            words = [_word(name, rows[number].get(name)) for name in apart]
            found[number] = " · ".join(part for part in (found[number], *words) if part)
    return found


def _usual(row: Row, axis: Axis) -> str:
    """What a question is known by, as far as all sides have it in common."""
    common = {name: row.get(name) for name in axis.alike}
    options = common.get("options") or {}
    world = int(common.get("world_size") or 1)
    scenario = common.get("scenario")
    parts = [
        str(common.get("model") or ""),
        str(common.get("precision") or ""),
        f"batch {common['batch_size']}" if common.get("batch_size") else "",
        shapes(common),
        "training" if common.get("mode") == "training" else "",
        str(scenario) if scenario not in (None, SINGLE_STREAM) else "",
        f"{world} devices" if world > 1 else "",
        *(f"{name}={options[name]}" for name in sorted(options)),
        "/".join(str(common[name]) for name in ("runtime", "hardware") if common.get(name)),
        str(physical(row)) if "hardware" in axis.along else "",
    ]
    return " · ".join(part for part in parts if part)


def _word(name: str, value: Any) -> str:
    if name == "compiled" and value is not None:
        return "compiled" if value else "not compiled"
    before, after = _AROUND.get(name, (f"{name} ", ""))
    if value is None or value == {}:
        return f"{name} {MISSING}" if value is None else f"no {name}"
    return f"{before}{plain(value)}{after}"
