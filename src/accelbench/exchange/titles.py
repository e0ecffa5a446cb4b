"""Stable titles of results, and the facts of runs that an export contains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelbench.core.axes import TITLE_ORDER, axes_of
from accelbench.core.devices import sharing_unit
from accelbench.core.formatting import UNKNOWN_DEVICE, UNKNOWN_ENGINE, UNKNOWN_MODEL
from accelbench.core.safe_text import visible
from accelbench.core.vocabulary import SINGLE_STREAM, Mode

#: The column of a comparison with the values of each launch of a side, and the names of the values.
LAUNCH_VALUES = "launch_values"
LAUNCH_COLUMNS = (
    *("launch", "quality", "latency_mean_ms", "latency_p50_ms"),
    *("latency_ci_low_ms", "latency_ci_high_ms", "effective_sample_count"),
    *("throughput", "memory_peak_mb", "energy_joules"),
)
#: Sizes other than the batch.
_SIZES = axes_of(*TITLE_ORDER)


def format_title(row: Mapping[str, Any]) -> str:
    """Return the configuration and its device, without facts that a later run would change.

    Control characters are removed, because pages of other tools display it.
    """
    unit = row.get("device") or row.get("hardware") or UNKNOWN_DEVICE
    words = [
        str(row.get("model") or UNKNOWN_MODEL),
        f"{row.get('runtime') or UNKNOWN_ENGINE}/{unit}",
        str(row.get("precision") or ""),
        f"batch {row['batch_size']}" if row.get("batch_size") else "",
    ]
    words += [axis.label.format(row[axis.column]) for axis in _SIZES if row.get(axis.column)]
    if row.get("mode") == Mode.TRAINING:
        words.append("training")
    if row.get("scenario") not in (None, SINGLE_STREAM):
        words.append(str(row["scenario"]))
    if (row.get("world_size") or 1) > 1:
        words.append(f"{row['world_size']} {sharing_unit(row)}")
    options = row.get("options") or {}
    words += [f"{name}={options[name]}" for name in sorted(options)]
    return visible(" ".join(word for word in words if word))


#: The column of a table with the run, which the store does not have.
RUN = "run"
#: The key of a JSON document with all runs, by their ids.
RUNS = "runs"

#: Facts that distinguish machines, or the source of results without a machine.
_MACHINE_FACTS: Mapping[str, type] = {
    "machine": str,
    "cpu": str,
    "cpus_logical": int,
    "memory_total": int,
    "source": Mapping,
}
_RUN_FACTS: Mapping[str, type] = dict.fromkeys(
    ("label", "git_commit", "git_branch", "started_at"), str
)


def run_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a run's start that its results need in other stores."""
    facts = _select_typed(run, _RUN_FACTS)
    machine = machine_facts(run.get("environment"))
    return {**facts, "environment": machine} if machine else facts


def machine_facts(environment: Any) -> dict[str, Any]:
    """Return the facts of an environment that distinguish machines."""
    return _select_typed(environment, _MACHINE_FACTS) if isinstance(environment, Mapping) else {}


def _select_typed(given: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    return {name: given[name] for name, kind in types.items() if isinstance(given.get(name), kind)}
