"""What two results do not share of their systems and conditions, in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from accelbench.core.case import QUESTION
from accelbench.core.rows import Row, record
from accelbench.judge.questions import flat

#: How a name begins that counts devices: 8x NVIDIA H200.
_COUNT = re.compile(r"(\d{1,6})x ")
#: Of a run with a budget, the seconds of sampling that were left for a case: no two have the same.
_SHARE = "rules.seconds"
#: Parts of the question are no condition: who compares two models compares two questions.
_ASKED = f"{QUESTION}."
#: The other run on the machine, with its time of start: a warning of its own.
_BESIDE = "measured_beside."
_VARIABLES = "variables"
_SET = f"{_VARIABLES}."
#: Shares that differ by less are alike: what they tell of is the interval's to say.
_FAR = 1.5


def _systems(a: Row, b: Row) -> Iterable[str]:
    """Where a figure is a whole system's: how many devices it has, and what hosts them."""
    counts = [_COUNT.match(str(row.get("device_name") or "")) for row in (a, b)]
    devices = [int(count[1]) for count in counts if count]
    if len(devices) == 2 and devices[0] != devices[1]:
        yield f"devices {devices[0]} → {devices[1]}"
    hosts = [_host(row) for row in (a, b)]
    if all(hosts) and hosts[0] != hosts[1]:
        yield f"host {hosts[0]} → {hosts[1]}"


def _host(row: Row) -> str:
    """The processor beside an accelerator, where who published the figure says it."""
    if row.get("hardware") == "cpu":
        return ""
    conditions = record(row, "conditions")
    details = conditions.get("said")
    within = details.get("Processor") if isinstance(details, Mapping) else None
    return str(conditions.get("Processor") or within or "")


def differences(a: Row, b: Row) -> list[str]:
    """What two rows do not share of their systems and conditions: a word and its two values."""
    recorded = [record(row, "conditions") for row in (a, b)]
    ours, theirs = map(flat, recorded)
    if all(isinstance(each.get(_VARIABLES), Mapping) for each in recorded):
        set_in_one = [name for name in ours.keys() ^ theirs.keys() if name.startswith(_SET)]
        ours, theirs = (dict.fromkeys(set_in_one, "unset") | each for each in (ours, theirs))
    return [
        *_systems(a, b),
        *(
            f"{name} {ours[name]} → {theirs[name]}"
            for name in sorted(ours.keys() & theirs.keys())
            if ours[name] != theirs[name] and not (name == "Processor" and _host(a))
            if not name.startswith((_ASKED, _BESIDE))
            if name != _SHARE or _far(ours[name], theirs[name])
        ),
    ]


def _far(a: str, b: str) -> bool:
    try:
        low, high = sorted(map(float, (a, b)))
    except ValueError:  # somebody else's word
        return True
    return high > _FAR * low
