"""Columns of energy and power, which `accelbench run --energy` fills in a pass of its own."""

from __future__ import annotations

from accelbench.core import ranges
from accelbench.core.column import Column
from accelbench.core.energy import EnergyMethod
from accelbench.core.ranges import Range


def _joules(name: str, doc: str, header: str = "", within: Range | None = None) -> Column:
    return Column(name, "float", "metric", doc, "J", header, "lower", within)


ENERGY_COLUMNS: tuple[Column, ...] = (
    _joules("energy_joules", "energy of one step: all that the meter counts, idle included", "J"),
    _joules("energy_ci_low_joules", "lower end of the 95 % interval of energy_joules"),
    _joules("energy_ci_high_joules", "upper end of it"),
    _joules(
        "energy_above_idle_joules",
        "energy of one step less what the idle device takes in that time",
        within=ranges.ENERGY_ABOVE_IDLE_J,
    ),
    _joules(
        "energy_per_item_joules",
        "energy of one step ÷ its items, which throughput_unit names: of an image, of a token",
        "J/item",
    ),
    Column("power_watts", "float", "metric", "mean power during steps, idle included", "W", "W",
           "lower"),
    Column("idle_power_watts", "float", "metric",
           "mean power before them: the model is loaded and nothing steps", "W"),
    Column("energy_source", "text", "conditions",
           "which meter energy and power come from, and what it counts"),
    Column("energy_method", "text", "conditions",
           "counter: the difference of two readings of a counter of energy; integrated: readings "
           "of power over time", words=tuple(EnergyMethod)),
    Column("energy_updates", "int", "metric", "updates of the meter in the window of steps",
           within=ranges.COUNT),
    Column("energy_steps", "int", "metric", "steps in that window", within=ranges.STEPS),
    Column("energy_window_ms", "float", "metric", "time between its first update and its last",
           "ms"),
)  # fmt: skip
