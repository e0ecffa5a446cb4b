"""How fast the CPU's clocks may run, and who decides: governor, range, boost."""

from __future__ import annotations

from dataclasses import dataclass

from accelbench.hardware.common import Files, NotAvailable, number
from accelbench.hardware.cpufacts import online

_CPUS = "/sys/devices/system/cpu"

#: Reading one frequency may interrupt that CPU; a few are enough to see a trend.
_SAMPLED_CPUS = 8

NO_CPUFREQ = NotAvailable(
    "the kernel shows no cpufreq for this CPU, as on most virtual machines: the host decides"
)


@dataclass(frozen=True)
class Scaling:
    """What stands between the CPU and its highest clock."""

    governor: str  # one name, or several where CPUs differ: "performance, powersave"
    driver: str
    minimum_mhz: float | None
    maximum_mhz: float | None
    boost: bool | NotAvailable


def spread(cpus: list[int], most: int) -> list[int]:
    """At most so many of the CPUs, evenly apart and always the same ones."""
    if len(cpus) <= most:
        return cpus
    return [cpus[i * len(cpus) // most] for i in range(most)]


def scaling(files: Files) -> Scaling | NotAvailable:
    """Governor, driver, range and boost."""
    governors, lows, highs, drivers = set(), [], [], set()
    for cpu in spread(online(files), _SAMPLED_CPUS):
        folder = f"{_CPUS}/cpu{cpu}/cpufreq"
        governor = files.text(f"{folder}/scaling_governor")
        if governor is None:
            continue
        governors.add(governor)
        drivers.add(files.text(f"{folder}/scaling_driver") or "")
        lows.append(number(files.text(f"{folder}/scaling_min_freq")))
        highs.append(number(files.text(f"{folder}/scaling_max_freq")))
    if not governors:
        return NO_CPUFREQ
    return Scaling(
        governor=", ".join(sorted(governors)),
        driver=", ".join(sorted(drivers - {""})),
        minimum_mhz=min((low / 1000 for low in lows if low is not None), default=None),
        maximum_mhz=max((high / 1000 for high in highs if high is not None), default=None),
        boost=boost(files),
    )


def governor(files: Files) -> str | NotAvailable:
    """The governor's name alone: cheap, for snapshots."""
    names = {
        name
        for cpu in spread(online(files), _SAMPLED_CPUS)
        if (name := files.text(f"{_CPUS}/cpu{cpu}/cpufreq/scaling_governor")) is not None
    }
    return ", ".join(sorted(names)) if names else NO_CPUFREQ


def boost(files: Files) -> bool | NotAvailable:
    """Whether clocks may go above the nominal one (turbo)."""
    no_turbo = number(files.text(f"{_CPUS}/intel_pstate/no_turbo"))
    if no_turbo is not None:
        return no_turbo == 0
    for path in (f"{_CPUS}/cpufreq/boost", f"{_CPUS}/cpu0/cpufreq/boost"):
        value = number(files.text(path))
        if value is not None:
            return value == 1
    return NotAvailable("neither intel_pstate/no_turbo nor cpufreq/boost exists")


def frequencies_mhz(files: Files) -> dict[int, float]:
    """Present frequency of a few CPUs; none where the kernel does not show them."""
    frequencies = {}
    for cpu in spread(online(files), _SAMPLED_CPUS):
        value = number(files.text(f"{_CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"))
        if value is not None:
            frequencies[cpu] = value / 1000
    return frequencies
