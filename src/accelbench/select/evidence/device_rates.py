"""Rates of devices at their best, as a store shows them."""

from __future__ import annotations

from collections.abc import Mapping

#: Hardware, device, precision, mode.
Key = tuple[str, str, str, str]
#: Operations a millisecond that one in twenty models exceeds there.
Rates = Mapping[Key, float]
#: So many models have to be known of a device before its best is.
FEWEST_MODELS = 10
