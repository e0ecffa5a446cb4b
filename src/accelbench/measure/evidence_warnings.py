"""Warnings from what a session recorded about its inputs and outputs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The name of a detail of the evidence, the value that causes a warning, and the warning.
_SEEN = (
    ("outputs_finite", False, "The outputs contain values that are not finite."),
    (
        "inputs_changed",
        True,
        "The calls changed their inputs: each call began with the changes of the previous one.",
    ),
    (
        "same_answer",
        True,
        "Each call returned the same object, made before: a step only returns it.",
    ),
    (
        "same_for_similar_inputs",
        True,
        "Other numbers than the example's gave the same answer: it may be computed only once.",
    ),
)


def warned_of(details: Mapping[str, Any]) -> list[str]:
    """Return the warnings for the details of a session's evidence."""
    warnings = [text for name, value, text in _SEEN if details.get(name) is value]
    if later := details.get("imported_later"):
        warnings.append(
            f"{', '.join(later)} was imported during a call: weights_digest does not cover it."
            " Import it at the top of the file."
        )
    if going_on := details.get("left_running"):
        warnings.append(
            "Threads or processes that the calls started continue after the calls return. They"
            f" do work ({going_on} between calls), which is not in the time of their call and slows"
            " the next one down."
        )
    if kinds := details.get("not_compared"):
        warnings.append(
            f"Returned values of type {', '.join(kinds)} are not verified: they are neither numbers"
            " nor text."
        )
    if late := details.get("evaluated"):
        warnings.append(
            f"Each step also evaluates the returned value, by {', '.join(late)}: a call alone does"
            " less."
        )
    if unread := details.get("computed_when_read"):
        warnings.append(
            f"The returned value computes {', '.join(unread)} only on access: this is not part of a"
            " step, and is not verified."
        )
    if empty := details.get("holds_only_inputs"):
        warnings.append(
            f"The returned {', '.join(empty)} contains only the inputs or no computed numbers: what"
            " its methods compute later is not part of a step."
        )
    if caches := details.get("found_in_caches"):
        warnings.append(
            f"Each call found results in the cache of {', '.join(caches)}. A call with new inputs"
            " may take longer."
        )
    if changed := details.get("state_changed"):
        warnings.append(
            f"The steps changed the module: {', '.join(changed)}. Each step begins in the state"
            " that the previous one left, and outputs were verified in that state."
        )
    return warnings
