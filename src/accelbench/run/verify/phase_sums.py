"""The parts of a step compared with the step: timed in a pass of their own, they must add up.

Splitting a step synchronises between its parts, so the pass that splits is never the headline one.
Where the parts then come to another time than the whole, they are no times of that step.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from accelbench.core.columns import step_ms
from accelbench.core.vocabulary import Mode

#: Of the step, what its parts may add up to more or less. The pass has few steps, so its medians
#: are rougher than the step's: at the highest priority on two busy cores, ten of twelve splits in
#: training came within 11 % of the step, and two that something disturbed to 0.66 and 2.25 times.
LIMIT = 0.25
_TRAINING = ("forward", "loss", "backward", "optimizer")
_REQUESTS = (("embed", "retrieve", "generate"), ("prefill", "decode"))


def share(row: Mapping[str, Any]) -> float | None:
    """What the parts add up to, of the step; None where it has none, or one is unknown.

    A request of one token is its prefill alone, and has no parts to add up.
    """
    whole = step_ms(row)
    times = [row.get(f"{name}_ms") for name in _names(row)]
    known = [float(time) for time in times if time is not None]
    return sum(known) / whole if whole and known and len(known) == len(times) else None


def look(body: MutableMapping[str, Any]) -> None:
    """Warn in a result whose parts are not those of its step."""
    ratio = share(body)
    if ratio is None or abs(ratio - 1) <= LIMIT:
        return
    *most, last = _names(body)
    text = (
        f"{', '.join(most).capitalize()} and {last} add up to {ratio:.2f} times the step: they are"
        " timed in a pass of their own, which waits for the device between them, or something"
        " disturbed one of the two. Take them for shares, not for times."
    )
    body["warnings"] = [*(body.get("warnings") or ()), text]


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row.get("mode") == Mode.TRAINING.value:
        return _TRAINING
    return next((p for p in _REQUESTS if row.get(f"{p[0]}_ms") is not None), ())
