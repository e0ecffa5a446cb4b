"""What an export says of the runs that its results are of: whose machine each was, which commit.

A result alone tells neither. JSON has it once a run; a table, which is lines alone, in each line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The column of a table, which is none of the store's.
RUN = "run"
#: The same of all runs, by their ids, in a JSON document.
RUNS = "runs"

#: What tells a machine from another one, or names the source of figures that have none.
_MACHINE: Mapping[str, type] = {
    "machine": str,
    "cpu": str,
    "cpus_logical": int,
    "memory_total": int,
    "source": Mapping,
}
_SAID: Mapping[str, type] = dict.fromkeys(("label", "git_commit", "git_branch", "started_at"), str)


def told(run: Mapping[str, Any]) -> dict[str, Any]:
    """Of what a run said when it began, what its results are judged by elsewhere."""
    facts = _typed(run, _SAID)
    machine = machine_facts(run.get("environment"))
    return {**facts, "environment": machine} if machine else facts


def machine_facts(environment: Any) -> dict[str, Any]:
    """Of an environment, what tells machines apart."""
    return _typed(environment, _MACHINE) if isinstance(environment, Mapping) else {}


def _typed(given: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """What is there as it has to be: a file may say anything, and everybody reads it later."""
    return {name: given[name] for name, kind in types.items() if isinstance(given.get(name), kind)}
