"""The worker's side of a profile: a session opened for it alone, stepped and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.identity import plain
from accelbench.core.profile import Profiling, by_kind
from accelbench.core.protocols import Session
from accelbench.core.vocabulary import Timing

#: Profilers write down every call: a few steps tell as much as many, and a long one is enough.
MOST_STEPS = 5
WORTH_NS = 500_000_000


def profile(session: Session, case: Case, runtime: str, folder: str | None) -> dict[str, Any]:
    """What the session's engine says of a few steps, or why it says nothing."""
    if not isinstance(session, Profiling):
        return {"profile": None, "why_not": f"the runtime {runtime} has no profiler"}
    inputs = session.prepare(case)
    session.compile(inputs)
    # The first step may compile or allocate; the second says how many are worth while.
    session.sample(inputs, 1, Timing.EACH)
    [ns] = session.sample(inputs, 1, Timing.EACH).phase_ns["step"]
    steps = max(1, min(MOST_STEPS, WORTH_NS // max(ns, 1)))
    engine_profile = session.profile(inputs, steps, Path(folder) if folder else None)
    body = {
        "engine": session.evidence().engine,
        **plain(engine_profile),
        "explained": engine_profile.explained,
        "kinds": [
            {name: value for name, value in plain(operator).items() if name != "name"}
            for operator in by_kind(engine_profile)
        ],
    }
    return {"profile": body, "why_not": None}
