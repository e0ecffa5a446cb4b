"""A result as a file tells it, held to what a result can be; refused by its line and field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.columns import BY_NAME
from accelbench.core.possible import OURS, contradiction, impossible
from accelbench.core.ranges import TIME_MS
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Provenance, Timing
from accelbench.exchange.imports.records import Record
from accelbench.store.fit import MisfitError, as_kind

_MOST_NS = int(TIME_MS.most * 1e6)


def hold(record: Record, body: Mapping[str, Any], rates: float | None) -> None:
    """Refuse what a column cannot hold, nothing can be, or another figure of it contradicts.

    Args:
        record: where it stands.
        body: by our columns; what is beside them is not looked at.
        rates: how many times off a rate may be; None where it need not follow from the latency.
    """
    held = {}
    for name, value in body.items():
        if name not in BY_NAME:
            continue
        kind = BY_NAME[name].kind
        try:
            # JSON it is, having been read as such.
            held[name] = value if kind == "json" else as_kind(kind, value)
        except MisfitError as misfit:
            record.wrong(name, str(misfit))
        if why := impossible(name, held[name]):
            record.wrong(name, why)
    if conflict := contradiction(held, rates):
        record.wrong(*conflict)


def rates_of(body: Mapping[str, Any]) -> float | None:
    """How far off a rate in a file of ours may be.

    What came from elsewhere was compared with the rules of its own format when it came.
    """
    return None if body.get("provenance") == Provenance.IMPORTED else OURS


def hold_samples(record: Record, body: Mapping[str, Any]) -> None:
    """Refuse samples that cannot be what they are said to be, and what is said of them."""
    if "samples" in body and (why := wrong_samples(body["samples"], body.get("sample_count"))):
        record.wrong("samples", why)
    if "sampling" in body and (why := wrong_sampling(body["sampling"], body.get("samples") or {})):
        record.wrong("sampling", why)


def wrong_samples(samples: Any, count: int | None) -> str:
    """Why samples cannot be what they are said to be; empty where they can.

    Args:
        samples: nanoseconds by phase.
        count: how many the result says it has of whole steps.
    """
    if not isinstance(samples, Mapping):
        return "phases with lists were expected"
    for phase, values in samples.items():
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            return f"{in_quotes(phase)} is no list of whole nanoseconds"
        if any(value < 0 for value in values):
            return f"{min(values)} of {in_quotes(phase)} is below 0"
        if any(value > _MOST_NS for value in values):
            return f"a sample of {in_quotes(phase)} is longer than a year"
    steps = samples.get("step")
    if steps is not None and count is not None and len(steps) != count:
        return f"{len(steps)} are there, where sample_count says {count}"
    return ""


def wrong_sampling(sampling: Any, samples: Mapping[str, Any]) -> str:
    """Why it cannot be what is said of how samples were taken; empty where it can."""
    if not isinstance(sampling, Mapping) or not all(
        isinstance(details, Mapping) for details in sampling.values()
    ):
        return "phases with objects were expected"
    for phase, details in sampling.items():
        timing, steps = details.get("timing"), details.get("steps")
        if timing is not None and timing not in set(Timing):
            return f"the timing of {in_quotes(phase)} is none of {', '.join(Timing)}"
        if steps is None:
            continue
        if not isinstance(steps, list) or not all(type(n) is int and n > 0 for n in steps):
            return f"the steps of {in_quotes(phase)} are no list of whole numbers above 0"
        if len(steps) != len(samples.get(phase, steps)):
            return f"{len(steps)} steps of {in_quotes(phase)} do not fit the number of its samples"
    return ""
