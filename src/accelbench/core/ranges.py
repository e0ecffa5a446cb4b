"""Possible range of a number by its unit; each bound has a reason.

The ranges are wide on purpose: no measurement comes close to a bound. A value beyond one has a
wrong unit, comes from an overflowing counter, or is invented.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Least and largest possible value; `excludes_least` excludes the least value itself."""

    least: float
    most: float
    excludes_least: bool = False
    floor: float | None = None  # smallest possible value above the least

    def explain_misfit(self, value: float) -> str:
        """Return why a number is not in the range; "" if it is. NaN is in no range."""
        if self.excludes_least and not value > self.least:
            return f"{value:g} is not above {self.least:g}"
        if not value >= self.least:
            return f"{value:g} is below {self.least:g}"
        if self.floor is not None and value < self.floor:
            return f"{value:g} is below the smallest possible value, {self.floor:g}"
        if not value <= self.most:
            return f"{value:g} is above the largest possible value, {self.most:g}"
        return ""


#: Physical addresses have 52 bits at most, on x86-64 and on Arm.
_BYTES = 2.0**52
#: The largest machine with one memory has 64 TiB.
MEMORY_MB = Range(0, 2.0**47 / 2**20)
#: Allocators of devices give 512 bytes or more, those of hosts pages of 4 KiB.
LEAST_MEMORY_MB = 2.0**8 / 2**20
#: An estimate may exceed the memory of every machine.
ESTIMATE_MB = Range(0, 2.0**64)
#: A year, which no step and no phase reaches.
TIME_MS = Range(0, 365 * 24 * 3600e3)
#: In a picosecond light travels 0.3 mm, and no transistor switches. Ratios of smaller times
#: overflow a double.
STEP_MS = Range(0, TIME_MS.most, excludes_least=True, floor=1e-9)
#: Largest sum of a step's phases, as a multiple of the slowest step, plus a millisecond. Phases are
#: timed in a separate pass that waits for the device between them: on a busy machine they added up
#: to 2.25 times the median step.
PHASE_TIMES = 3.0
#: A size is above zero, and has no more items than a memory has bytes.
SIZE = Range(0, _BYTES, excludes_least=True)
#: Threads or processes; the largest machines have ten million cores.
WORKERS = Range(0, 1e8, excludes_least=True)
#: A billion samples of a microsecond take 17 minutes and 8 GB.
COUNT = Range(0, 1e9)
#: Steps whose samples are not kept; a nanosecond each in the extreme.
STEPS = Range(0, 1e12)
#: The largest models have 10^13 weights.
WEIGHTS = Range(0, 1e15)
#: A million items in a nanosecond; one in thirty years.
RATE = Range(0, 1e15, excludes_least=True, floor=1e-9)
SHARE = Range(0, 1)
#: Perfect scaling is 1; it exceeds 1 if the parts fit caches that the whole did not.
SCALING = Range(0, 1e3, excludes_least=True)
#: The largest of several values ÷ their median.
RATIO = Range(1, 1e9)
CORRELATION = Range(-1, 1)
#: A whole number of 64 bits, signed or unsigned.
SEED = Range(-(2.0**63), 2.0**64)
#: A share of right answers, or a perplexity: 1e100 is a confidently wrong logit of 230.
ACCURACY = Range(0, 1e100)
#: The range of fp32. A loss can be the logarithm of a density or a negated similarity, so below 0.
LOSS = Range(-3.5e38, 3.5e38)
#: The largest difference of two fp32 values ÷ the smallest fp32 value.
ERROR = Range(0, 1e84)
#: The complete training of the largest models so far took 10^27.
OPERATIONS = Range(0, 1e30)
#: Operations a second of one accelerator: the fastest announced do 2e16 in four bits.
ACCELERATOR_OPERATIONS = 5e16
#: Bytes of inputs a second: the fastest memory of an accelerator gives 8e12, its caches 2e13.
BYTES_READ = 1e14
#: The largest computing centres draw 10^8 W.
POWER_W = Range(0, 1e9)
#: Watts of one process and its devices. The largest single device, a wafer, takes 23 kW, and a rack
#: of 72 GPUs 132 kW.
POWER_EACH_W = 1e5
#: The power of the largest computing centres for a year.
ENERGY_J = Range(0, 3.2e16)
#: Idle energy is subtracted, and exceeds the energy of a step if other work ran while idle.
ENERGY_ABOVE_IDLE_J = Range(-ENERGY_J.most, ENERGY_J.most)
MONEY = Range(0, 1e15)

#: Range of the columns of a unit, unless a column has its own.
BY_UNIT = {
    "ms": TIME_MS, "MB (2^20 bytes)": MEMORY_MB, "items/s": RATE, "tokens/s": RATE, "J": ENERGY_J,
    "W": POWER_W, "$": MONEY, "FLOP": OPERATIONS, "B": OPERATIONS,
}  # fmt: skip
