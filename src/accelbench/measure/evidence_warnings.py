"""What a reader is warned of by what a session has seen of its inputs and outputs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: By the name of a detail of the evidence, and the value that is warned of.
_SEEN = (
    ("outputs_finite", False, "The outputs hold values that are not finite."),
    (
        "inputs_changed",
        True,
        "The calls changed their inputs: each of them began with what the one before had left.",
    ),
)


def warned_of(details: Mapping[str, Any]) -> list[str]:
    """Sentences about what the details of an evidence say."""
    warnings = [text for name, value, text in _SEEN if details.get(name) is value]
    if later := details.get("imported_later"):
        warnings.append(
            f"{', '.join(later)} was imported as it was called: weights_digest does not tell where"
            " that changes. Import it at the top of the file."
        )
    if going_on := details.get("left_running"):
        warnings.append(
            "Something that the calls began goes on when they have returned, in threads or"
            f" processes, and used {going_on} while nothing was asked of them: its work is in no"
            " call's own time, and takes from that of the next."
        )
    if kinds := details.get("not_compared"):
        warnings.append(
            f"Of what it returns {', '.join(kinds)} is not verified: it is neither numbers nor"
            " text."
        )
    if changed := details.get("state_changed"):
        warnings.append(
            f"The module is not the same after its steps: {', '.join(changed)} changed. Each step"
            " begins with what the one before left, and its outputs were verified in that state."
        )
    if not details.get("computed_in", True):
        why = details.get("computed_in_unknown") or "the engine does not say"
        warnings.append(f"In what type its products were computed is not known: {why}.")
    return warnings
