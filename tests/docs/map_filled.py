"""Which columns of results measured on an ordinary machine hold something.

A line that names a column works only where a measurement has filled it: that the registry knows
the column shows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from guides_map import LINES, Line
from map_running import in_process
from map_trials import Trials

#: No machine has both; the refused one fills the columns that only a refusal has.
REFUSED_SOMEWHERE = (
    "accelbench run bert-tiny --hardware rocm",
    "accelbench run bert-tiny --hardware mps",
)
OF_REFUSALS = frozenset({"reason", "advice"})


def results_of(trials: Trials, commands: Iterable[str]) -> list[dict[str, Any]]:
    """The results of commands that print them."""
    shown = [trials.of(command, in_process).done.stdout for command in commands]
    return [result for one in shown for result in json.loads(one)["results"]]


def filled(results: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Columns that hold something in any of them."""
    return frozenset(
        name for one in results for name, value in one.items() if value not in (None, "", [], {})
    )


def columns_of(lines: Iterable[Line]) -> frozenset[str]:
    """Columns that lines name."""
    named = (reference for line in lines for reference in line.references)
    return frozenset(r.removeprefix("column ") for r in named if r.startswith("column "))


COLUMNS = columns_of(line for line in LINES if line.works)
#: Those that nothing but hardware that is absent here can fill.
ABSENT_COLUMNS = columns_of(line for line in LINES if line.lacks) - COLUMNS
