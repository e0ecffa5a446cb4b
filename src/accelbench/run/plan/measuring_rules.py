"""The measuring rules of a run, as plain JSON for workers and journals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.measure.loop import Rules
from accelbench.measure.stopping import StoppingRule
from accelbench.measure.warmup import WarmupRule


def rules_from_json(body: Mapping[str, Any]) -> Rules:
    """{"iterations", "warmup", "seconds"}: null means by the design's rules."""
    limit = round(float(body.get("seconds") or 10.0) * 1e9)
    return Rules(
        warmup=WarmupRule(fixed=body.get("warmup"), budget_ns=limit),
        stopping=StoppingRule(fixed=body.get("iterations"), time_limit_ns=limit),
    )
