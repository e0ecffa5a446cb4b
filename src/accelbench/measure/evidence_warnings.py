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


#: The name of a detail, and the warning if it has a value: `{}` is the value, or the names in it.
_TOLD = {
    "imported_later": (
        "{} was imported during a call: weights_digest does not cover it. Import it at the top of"
        " the file."
    ),
    "left_running": (
        "Threads or processes that the calls started continue after the calls return. They do "
        "work ({} between calls), which is not in the time of their call and slows the next one "
        "down."
    ),
    "not_compared": (
        "Returned values of type {} are not verified: they are neither numbers nor text."
    ),
    "evaluated": "Each step also evaluates the returned value, by {}: a call alone does less.",
    "computed_when_read": (
        "The returned value computes {} only on access: this is not part of a step, and is not "
        "verified."
    ),
    "holds_only_inputs": (
        "The returned {} contains only the inputs or no computed numbers: what its methods "
        "compute later is not part of a step."
    ),
    "found_in_caches": (
        "Each call found results in the cache of {}. A call with new inputs may take longer."
    ),
    "state_changed": (
        "The steps changed the module: {}. Each step begins in the state that the previous one "
        "left, and outputs were verified in that state."
    ),
}


def warned_of(details: Mapping[str, Any]) -> list[str]:
    """Return the warnings for the details of a session's evidence."""
    warnings = [text for name, value, text in _SEEN if details.get(name) is value]
    for name, template in _TOLD.items():
        if value := details.get(name):
            shown = value if isinstance(value, str) else ", ".join(value)
            warnings.append(template.format(shown))
    return warnings
