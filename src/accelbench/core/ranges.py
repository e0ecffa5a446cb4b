"""What a number can be at all, by what it counts: each bound with its reason.

They are wide on purpose: nothing that was ever measured comes near one. What lies beyond is a unit
that was mistaken, a counter that ran over, or made up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """The least and the most that something can be; `above` where the least itself cannot."""

    least: float
    most: float
    above: bool = False
    floor: float | None = None  # what is above the least and still too little to be

    def wrong(self, value: float) -> str:
        """Why a number is not within it; empty where it is. NaN is within none."""
        if self.above and not value > self.least:
            return f"{value:g} is not above {self.least:g}"
        if not value >= self.least:
            return f"{value:g} is below {self.least:g}"
        if self.floor is not None and value < self.floor:
            return f"{value:g} is less than there can be, {self.floor:g}"
        if not value <= self.most:
            return f"{value:g} is more than there can be, {self.most:g}"
        return ""


#: Physical addresses have 52 bits at most, on x86-64 and on Arm.
_BYTES = 2.0**52
#: The largest machine with one memory has 64 TiB.
MEMORY_MB = Range(0, 2.0**47 / 2**20)
#: Allocators of devices give 512 bytes or more, those of hosts pages of 4 KiB.
LEAST_MEMORY_MB = 2.0**8 / 2**20
#: An estimate is made of what is asked for, which may be more than any machine has.
ESTIMATE_MB = Range(0, 2.0**64)
#: A year: no step takes that long, nor does anything around it.
TIME_MS = Range(0, 365 * 24 * 3600e3)
#: A step takes time: light goes 0.3 mm in a picosecond, and no transistor switches in one. Ratios
#: of less run over what a double holds.
STEP_MS = Range(0, TIME_MS.most, above=True, floor=1e-9)
#: Parts of a step are timed in a pass of their own, which waits for the device between them. On a
#: busy machine they came to 2.25 times the median step. Parts of more than so many times the
#: slowest step, and a millisecond, are not that step's.
PHASE_TIMES = 3.0
#: What is asked for has a size, and no more items than a memory has bytes.
SIZE = Range(0, _BYTES, above=True)
#: Threads or processes: the largest machines have ten million cores.
WORKERS = Range(0, 1e8, above=True)
#: A billion samples of a microsecond are 17 minutes and 8 GB: nobody keeps more.
COUNT = Range(0, 1e9)
#: Steps that were run and not kept, of a nanosecond in the extreme.
STEPS = Range(0, 1e12)
#: The largest models have 10^13 weights.
WEIGHTS = Range(0, 1e15)
#: A million items in a nanosecond; one in thirty years.
RATE = Range(0, 1e15, above=True, floor=1e-9)
SHARE = Range(0, 1)
#: Of processes that are perfect together 1; more where parts fit caches that the whole did not.
SCALING = Range(0, 1e3, above=True)
#: The largest of several over their middle.
RATIO = Range(1, 1e9)
CORRELATION = Range(-1, 1)
#: A whole number of 64 bits, with a sign or without: it means nothing.
SEED = Range(-(2.0**63), 2.0**64)
#: A share of right answers, or a perplexity: who is sure of what is wrong by a logit of 230.
ACCURACY = Range(0, 1e100)
#: What fp32 holds. A loss is the logarithm of a density, or less a likeness, and may be below 0.
LOSS = Range(-3.5e38, 3.5e38)
#: The largest difference that fp32 holds, over its smallest number.
ERROR = Range(0, 1e84)
#: All training of the largest models so far took 10^27.
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
#: That of an idle device is subtracted: it was more where something else ran beside it.
ENERGY_ABOVE_IDLE_J = Range(-ENERGY_J.most, ENERGY_J.most)
MONEY = Range(0, 1e15)

#: What a column of a unit holds where it says nothing else.
BY_UNIT = {
    "ms": TIME_MS, "MB (2^20 bytes)": MEMORY_MB, "items/s": RATE, "tokens/s": RATE, "J": ENERGY_J,
    "W": POWER_W, "$": MONEY, "FLOP": OPERATIONS, "B": OPERATIONS,
}  # fmt: skip
