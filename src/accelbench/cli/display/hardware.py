"""What `accelbench hardware` prints for people; fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accelbench.cli.display.calibration import collectives_line, peaks_line
from accelbench.cli.display.console import console as made_for
from accelbench.cli.display.console import in_lines
from accelbench.cli.display.word_table import WordTable
from accelbench.core.absent import NO_DATA, NOT_APPLICABLE
from accelbench.core.protocols import Absent, Device
from accelbench.core.vocabulary import MIB
from accelbench.hardware.browsers import NOT_ASKED

if TYPE_CHECKING:
    from accelbench.query.calibrations import StoredCalibrations

_GIB = 2**30


def show(
    platforms: Mapping[str, list[Device | Absent]],
    served: Mapping[str, Sequence[object]],
    broken: Mapping[str, str],
    *,
    verbose: bool,
    console: Console | None = None,
    known: StoredCalibrations | None = None,
    meters: Mapping[str, str] | None = None,
) -> None:
    """The table, the CPU in full, and what is absent with what would bring it."""
    console = console or made_for()
    console.print(_table(platforms, served))
    if any(_unasked(entry) for many in platforms.values() for entry in many):
        console.print()
        console.print(f"browser: one is installed; its adapter is {NOT_ASKED}.")
    devices = [entry for many in platforms.values() for entry in many if isinstance(entry, Device)]
    for device in devices:
        if device.hardware == "cpu" and "topology" in device.details:
            _section(console, "CPU in full", _cpu(device))
        elif verbose:
            _section(console, f"{device} — {device.name}", _details(device))
    if known is not None:
        peaks = [
            (str(device), peaks_line(entry))
            for device in devices
            if (entry := known.of(device.fingerprint)) is not None
        ]
        _section(console, "Calibrated: measured peaks", peaks)
        collectives = [
            (str(device), collectives_line(entry))
            for device in devices
            for entry in known.collectives_of(device.fingerprint)
        ]
        _section(console, "Calibrated: collectives, best bus bandwidth and least time", collectives)
    _section(console, "Energy, by run --energy", list((meters or {}).items()))
    missing = [entry for many in platforms.values() for entry in many if isinstance(entry, Absent)]
    rows = [(entry.hardware, in_lines(_sentence(entry.reason), entry.remedy)) for entry in missing]
    _section(console, "Absent, and what would bring it", rows)
    _section(console, "Runtimes that cannot be loaded", list(broken.items()))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _unasked(entry: Device | Absent) -> bool:
    return entry.details.get("adapter") == NOT_ASKED


def _section(console: Console, title: str, rows: Sequence[tuple[str, str | Text]]) -> None:
    if not rows:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in rows:
        grid.add_row(Text(key), Text(value) if isinstance(value, str) else value)
    console.print()
    console.print(Text(title, style="bold"))
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def _table(
    platforms: Mapping[str, list[Device | Absent]], served: Mapping[str, Sequence[object]]
) -> WordTable:
    table = WordTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("platform", no_wrap=True)
    table.add_column("present", no_wrap=True)
    table.add_column("device")
    table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("runtimes")
    for name, ones in platforms.items():
        runtimes = ", ".join(map(str, served.get(name, ()))) or "none"
        for entry in ones:
            if isinstance(entry, Absent):
                table.add_row(
                    Text(name), "no", NOT_APPLICABLE, NOT_APPLICABLE, Text(runtimes), style="dim"
                )
                continue
            label = name if entry.ordinal == 0 else f"{name}:{entry.ordinal}"
            memory = NO_DATA if entry.memory_bytes is None else size(entry.memory_bytes)
            cells = (label, _present(entry), _name(entry), memory, runtimes)
            table.add_row(*map(Text, cells))
    return table


def _present(device: Device) -> str:
    if device.emulated:
        return "emulated"
    return "browser" if _unasked(device) else "yes"


def _name(device: Device) -> str:
    """The device's name, with what tells it apart from others of one platform."""
    kind = device.details.get("device")
    return f"{device.name} ({kind})" if kind else device.name


def size(bytes_: int | None) -> str:
    """Bytes for people: one decimal, binary units."""
    if bytes_ is None:
        return "not told"
    for unit, name in ((_GIB, "GiB"), (MIB, "MiB")):
        if bytes_ >= unit:
            return f"{bytes_ / unit:.1f} {name}"
    return f"{bytes_ / 1024:.0f} KiB"


def _cpu(device: Device) -> list[tuple[str, str]]:
    """The CPU's facts as lines, from the plain details of its detector."""
    facts = device.details
    return [
        ("model", f"{facts['model']} ({facts['architecture']})"),
        ("cores", _cores(facts["topology"])),
        ("caches", ", ".join(_cache(c) for c in facts["caches"]) or "not told"),
        ("instruction sets", ", ".join(facts["instruction_sets"]) or "none of those looked for"),
        ("lacks", ", ".join(_lacking(facts)) or "none of those looked for"),
        ("memory", _memory(facts)),
        *_scaling(facts["scaling"]),
        ("virtualisation", facts["virtualisation"] or "none seen"),
        ("container limits", _limits(facts)),
        ("usable here", _usable(facts)),
        ("fingerprint", device.fingerprint),
    ]


def _cores(topology: Mapping[str, Any]) -> str:
    parts = [_count(topology["cores"], "physical core"), _count(topology["threads"], "thread")]
    if topology["sockets"] is not None:
        parts.append(_count(topology["sockets"], "socket"))
    if topology["numa_nodes"] is not None:
        parts.append(_count(topology["numa_nodes"], "NUMA node"))
    return ", ".join(parts)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _cache(cache: Mapping[str, Any]) -> str:
    size_kib = cache["bytes"] // 1024
    amount = f"{size_kib // 1024} MiB" if size_kib % 1024 == 0 else f"{size_kib} KiB"
    times = f" × {cache['instances']}" if (cache["instances"] or 1) > 1 else ""
    return f"{cache['name']} {amount}{times}"


def _lacking(facts: Mapping[str, Any]) -> list[str]:
    """Sets that speed models up elsewhere and are not here."""
    from accelbench.hardware.cpufacts import ARM_SETS, X86_SETS

    known = X86_SETS if facts["architecture"].lower() in ("x86_64", "amd64") else ARM_SETS
    have = set(facts["instruction_sets"])
    return [name for name in known.values() if name not in have] if have else []


def _memory(facts: Mapping[str, Any]) -> str:
    swap = facts["swap_total"]
    swapped = "no swap" if swap == 0 else f"swap {size(swap)}"
    total, free = size(facts["memory_total"]), size(facts["memory_available"])
    return f"{total}, {free} available, {swapped}"


def _scaling(scaling: Any) -> Iterator[tuple[str, str]]:
    if isinstance(scaling, str):
        yield "governor", scaling
        return
    low, high = scaling["minimum_mhz"], scaling["maximum_mhz"]
    range_ = f", {low:.0f} to {high:.0f} MHz" if low and high else ""
    yield "governor", f"{scaling['governor']} ({scaling['driver']}){range_}"
    boost = scaling["boost"]
    yield "boost", boost if isinstance(boost, str) else ("on" if boost else "off")


def _limits(facts: Mapping[str, Any]) -> str:
    limits, threads = facts["limits"], facts["topology"]["threads"]
    parts = []
    if limits["cpu_quota"] is not None:
        parts.append(f"{limits['cpu_quota']:g} CPUs by quota")
    if limits["affinity"] is not None and limits["affinity"] < threads:
        parts.append(f"{limits['affinity']} of {threads} CPUs by affinity")
    if limits["memory_limit_bytes"] is not None:
        parts.append(f"{size(limits['memory_limit_bytes'])} of memory")
    kind = f" (cgroup {limits['cgroup']})" if limits["cgroup"] else ""
    return (", ".join(parts) or "none") + kind


def _usable(facts: Mapping[str, Any]) -> str:
    return f"{facts['effective_cpus']:g} CPUs, {size(facts['effective_memory'])} of memory"


def _details(device: Device) -> list[tuple[str, str]]:
    """Every detail of a device that is not the CPU, as the detector gave it."""
    rows = [
        ("driver", device.driver or "not told"),
        ("power limit", _watts(device.power_limit_watts)),
        ("memory", size(device.memory_bytes)),
    ]
    rows += [(key.replace("_", " "), _plain(value)) for key, value in device.details.items()]
    return [*rows, ("fingerprint", device.fingerprint)]


def _watts(watts: float | None) -> str:
    return "not told" if watts is None else f"{watts:g} W"


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value) or "none"
    return str(value)
