"""Launches of one case compared with each other: the same seed gives the same outputs."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Repeats:
    """The outputs of a run's launches, by case and device."""

    _seen: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def look(self, body: MutableMapping[str, Any]) -> None:
        """Warn in a result whose outputs are not those of an earlier launch."""
        digest = body.get("outputs_digest")
        if digest is None:
            return
        key = (str(body["case_id"]), str(body["device_fingerprint"]))
        launch, before = self._seen.setdefault(key, (body["launch"], digest))
        if digest != before:
            text = f"The same seeded inputs gave other outputs in launch {launch}."
            body["warnings"] = [*(body.get("warnings") or ()), text]
