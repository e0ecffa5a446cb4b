"""Platforms, calibrations, the findings of `doctor` and the noise floor as documents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from accelbench.core.calibration import (
    DeviceCalibration,
    ProbeKind,
    ProbeResult,
    TimedCollectives,
)
from accelbench.core.formatting import NO_DATA, NOT_APPLICABLE, format_digits, format_value
from accelbench.core.protocols import Absent, Device
from accelbench.core.result_statistics import ends_text
from accelbench.core.vocabulary import MIB
from accelbench.exchange.titles import format_title
from accelbench.hardware.browsers import NOT_ASKED
from accelbench.hardware.doctor.checks import Examined, is_healthy
from accelbench.hardware.doctor.world import ILL, Finding, Health
from accelbench.judge.run_noise import NoiseFloor
from accelbench.present.document import (
    Block,
    Document,
    DocumentSection,
    Facts,
    GroupedTable,
    Notes,
    Table,
    TableColumn,
    TableGroup,
    Tone,
    TonedText,
    columns,
)
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.terminal import print_line
from accelbench.present.texts import phrase

if TYPE_CHECKING:
    from accelbench.judge.calibrations import StoredCalibrations


#: What a rate is shown in, the largest first.
_OPERATIONS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"))
_BYTES = ((1e12, "TB/s"), (1e9, "GB/s"))


#: What probes of a device take; collectives among several processes come on top.
_SECONDS, _SECONDS_OF_SEVERAL = 30, 50


class ProbeProgress:
    """A line on standard error that counts probes; drawn when one ends, at no other time."""

    def __init__(self, name: str, processes: int = 1) -> None:
        from rich.live import Live

        from accelbench.present.terminal.console import console

        self._name = name
        self._seconds = _SECONDS if processes == 1 else _SECONDS_OF_SEVERAL
        stream = console(sys.stderr)
        self._live = (
            Live(console=stream, auto_refresh=False, transient=True) if stream.is_terminal else None
        )

    def __enter__(self) -> ProbeProgress:
        if self._live is None:
            print_line(
                phrase("hardware.calibrating", name=self._name, seconds=self._seconds),
                sys.stderr,
            )
        else:
            self._live.start()
        return self

    def hear(self, done: int, of: int) -> None:
        """So many probes of so many have been timed or refused."""
        if self._live is not None:
            self._live.update(
                phrase("hardware.calibrating-probes", name=self._name, done=done, of=of),
                refresh=True,
            )

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def show_calibration(calibration: DeviceCalibration) -> None:
    """Print the best of each kind of probe, with its interval and its size."""
    threads = f", {calibration.threads} threads" if calibration.hardware == "cpu" else ""
    title = (
        f"{calibration.hardware}: {calibration.device_name}, {calibration.engine}{threads},"
        f" {calibration.measured_at[:16].replace('T', ' ')} UTC"
    )
    heads = ("probe", "precision", "median", "95 % interval", "best size")
    blocks: list[Block] = [Table(columns(heads, (2, 3)), rows_of(calibration))]
    if collectives := collective_rows(calibration):
        among = " and ".join(str(timed.ranks) for timed in calibration.collectives)
        table = Table(columns(_COLLECTIVES, (1, 2, 3, 4, 5)), collectives)
        blocks.append(
            DocumentSection(phrase("hardware.collectives-among-ranks", among=among), [table])
        )
    kept = sum(len(entry.samples_ns) for entry in calibration.figures)
    notes = [phrase("hardware.probes-kept", figures=len(calibration.figures), kept=kept)]
    of_collectives = [text for timed in calibration.collectives for text in timed.warnings]
    notes += [f"warning: {text}" for text in (*calibration.warnings, *of_collectives)]
    left_out = [
        phrase(
            "hardware.probe-left-out",
            value=f"{refusal.name} {refusal.precision}".strip(),
            reason=refusal.reason,
        )
        for refusal in calibration.refusals
    ]
    show(Document(title, [*blocks, Notes(notes), Notes(left_out, tone=Tone.FAINT)]))


def rows_of(calibration: DeviceCalibration) -> list[list[str]]:
    """A row for each kind and precision, caches each for themselves."""
    rows = []
    for kind in ProbeKind:
        if kind is ProbeKind.COLLECTIVE:
            continue  # they have a table of their own
        some = [entry for entry in calibration.figures if entry.spec.kind is kind]
        groups: dict[tuple[str, str], list[ProbeResult]] = {}
        for entry in some:
            apart = entry.spec.name if kind is ProbeKind.CACHE else ""
            groups.setdefault((apart, entry.spec.precision), []).append(entry)
        for (_, precision), entries in groups.items():
            sign = -1 if kind is ProbeKind.LAUNCH else 1
            best = max(entries, key=lambda entry: sign * entry.value)
            rows.append([_label(best), precision, *_figures(best), _size(best)])
    return rows


#: In 80 columns; the interval is the bus's.
_COLLECTIVES = ["collective", "size", "µs", "alg GB/s", "bus GB/s", "95 % interval"]


def collective_rows(calibration: DeviceCalibration) -> list[list[str]]:
    """A row for each collective and size: what it takes, and both bandwidths."""
    return [
        [
            entry.spec.collective,
            entry.spec.name.split("-")[1],
            format_digits(entry.step_seconds * 1e6),
            format_digits(entry.algorithm_rate / 1e9),
            format_digits(entry.value / 1e9),
            _interval(entry, 1e9, format_digits),
        ]
        for timed in calibration.collectives
        for entry in timed.figures
    ]


def _label(best: ProbeResult) -> str:
    kind = best.spec.kind
    if kind is ProbeKind.CACHE:
        return f"{best.spec.name.rpartition('-')[2]} cache"
    return "matmul" if kind is ProbeKind.MATRIX else str(kind)


def _size(best: ProbeResult) -> str:
    spec = best.spec
    if spec.kind is ProbeKind.MATRIX:
        return f"{spec.size}³"
    if spec.kind is ProbeKind.ATTENTION:
        return f"{spec.size} tokens"
    if spec.kind is ProbeKind.LAUNCH:
        return "1 value"
    arrays = 3 if spec.name.endswith("-triad") else 2
    mib = spec.size / 2**20
    amount = f"{mib:,.0f} MiB" if mib >= 1 else f"{spec.size / 2**10:,.0f} KiB"
    work = spec.name.rpartition("-")[2] if spec.kind is ProbeKind.MEMORY else "copy"
    return f"{work}, {arrays} × {amount}"


def _figures(best: ProbeResult) -> tuple[str, str]:
    scale, unit = _scale(best)
    return f"{format_value(best.value / scale)} {unit}", _interval(best, scale)


def _interval(
    entry: ProbeResult, scale: float, spelled: Callable[[float], str] = format_value
) -> str:
    return ends_text(entry.low, entry.high, lambda end: spelled(end / scale), " … ")


def _scale(best: ProbeResult) -> tuple[float, str]:
    if best.spec.kind is ProbeKind.LAUNCH:
        return 1e-6, "µs"
    units = _OPERATIONS if best.spec.unit == "FLOP/s" else _BYTES
    return next(((scale, unit) for scale, unit in units if best.value >= scale), units[-1])


def peaks_line(calibration: DeviceCalibration) -> str:
    """The limits of a device in a line, with the day: fp32 105 GFLOP/s, …; memory 12 GB/s."""
    parts = [
        f"{precision} {_figures(best)[0]}"
        for precision in calibration.precisions(ProbeKind.MATRIX)
        if (best := calibration.best(ProbeKind.MATRIX, precision))
    ]
    memory = calibration.best(ProbeKind.MEMORY)
    parts += [f"memory {_figures(memory)[0]}"] if memory else []
    beside = ", beside other work" if calibration.warnings else ""
    return f"{', '.join(parts)} ({calibration.measured_at[:10]}, {calibration.engine}{beside})"


def collectives_line(timed: TimedCollectives) -> str:
    """Collectives in a line: 2 ranks: all_reduce 1.2 GB/s, 60 µs; … (2026-03-04, torch 2.13.0)."""
    parts = []
    for name, figures in timed.group_by_name().items():
        best = max(figures, key=lambda entry: entry.value)
        least = min(entry.step_seconds for entry in figures)
        parts.append(f"{name} {_figures(best)[0]}, {format_value(least * 1e6)} µs")
    beside = ", beside other work" if timed.warnings else ""
    return f"{timed.ranks} ranks: {'; '.join(parts)} ({timed.day}, {timed.engine}{beside})"


def collectives_document(timed: TimedCollectives) -> dict[str, Any]:
    """Collectives among some ranks as JSON holds them beside the device."""
    return {
        "ranks": timed.ranks,
        "measured_at": timed.measured_at,
        "engine": timed.engine,
        "warnings": list(timed.warnings),
        "figures": [
            {
                "collective": entry.spec.collective,
                "bytes": entry.spec.size,
                "seconds": entry.step_seconds,
                "algorithm_bytes_per_s": entry.algorithm_rate,
                "bus_bytes_per_s": entry.value,
                "bus_low_bytes_per_s": entry.low,
                "bus_high_bytes_per_s": entry.high,
            }
            for entry in timed.figures
        ],
    }


def limits_document(calibration: DeviceCalibration) -> dict[str, Any]:
    """The limits of a device as JSON holds them beside it."""
    memory = calibration.best(ProbeKind.MEMORY)
    launch = calibration.best(ProbeKind.LAUNCH)
    return {
        "measured_at": calibration.measured_at,
        "engine": calibration.engine,
        "threads": calibration.threads,
        "warnings": list(calibration.warnings),
        "peak_flops": {
            precision: best.value
            for precision in calibration.precisions(ProbeKind.MATRIX)
            if (best := calibration.best(ProbeKind.MATRIX, precision))
        },
        "bandwidth_bytes_per_s": memory.value if memory else None,
        "launch_s": launch.value if launch else None,
    }


_GIB = 2**30


def hardware_document(
    platforms: Mapping[str, list[Device | Absent]],
    served: Mapping[str, Sequence[object]],
    broken: Mapping[str, str],
    *,
    verbose: bool,
    known: StoredCalibrations | None = None,
    meters: Mapping[str, str] | None = None,
) -> Document:
    """Return the platforms, the CPU in full, and what is absent with what would bring it."""
    entries = [entry for many in platforms.values() for entry in many]
    devices = [entry for entry in entries if isinstance(entry, Device)]
    notes = []
    if any(map(_unasked, entries)):
        notes.append(phrase("hardware.browser-not-asked", not_asked=NOT_ASKED))
    sections: list[tuple[str, Sequence[tuple[str, str]]]] = []
    for device in devices:
        if device.hardware == "cpu" and "topology" in device.details:
            sections.append(("CPU in full", _cpu(device)))
        elif verbose:
            sections.append((f"{device} — {device.name}", _details(device)))
    if known is not None:
        peaks = [
            (str(device), peaks_line(entry))
            for device in devices
            if (entry := known.of(device.fingerprint)) is not None
        ]
        collectives = [
            (str(device), collectives_line(entry))
            for device in devices
            for entry in known.collectives_of(device.fingerprint)
        ]
        sections += [
            ("Calibrated: measured peaks", peaks),
            (phrase("hardware.calibrated-collectives-best"), collectives),
        ]
    absent = [
        (entry.hardware, TonedText(_sentence(entry.reason), further=(entry.remedy,)))
        for entry in entries
        if isinstance(entry, Absent)
    ]
    sections += [
        ("Energy, by run --energy", list((meters or {}).items())),
        (phrase("hardware.absent-bring"), absent),
        (phrase("hardware.runtimes-cannot-loaded"), list(broken.items())),
    ]
    found = [DocumentSection(title, [Facts(pairs)]) for title, pairs in sections if pairs]
    return Document("", [_table(platforms, served), *([Notes(notes)] if notes else []), *found])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _unasked(entry: Device | Absent) -> bool:
    return entry.details.get("adapter") == NOT_ASKED


def _table(
    platforms: Mapping[str, list[Device | Absent]], served: Mapping[str, Sequence[object]]
) -> Table:
    rows: list[Sequence[str]] = []
    for name, ones in platforms.items():
        runtimes = ", ".join(map(str, served.get(name, ()))) or "none"
        for entry in ones:
            if isinstance(entry, Absent):
                cells = (name, "no", NOT_APPLICABLE, NOT_APPLICABLE, runtimes)
                rows.append([TonedText(text, Tone.FAINT) for text in cells])
                continue
            label = name if entry.ordinal == 0 else f"{name}:{entry.ordinal}"
            memory = NO_DATA if entry.memory_bytes is None else size(entry.memory_bytes)
            rows.append((label, _present(entry), _name(entry), memory, runtimes))
    heads = [
        TableColumn("platform", is_whole=True),
        TableColumn("present", is_whole=True),
        TableColumn("device"),
        TableColumn("memory", is_number=True),
        TableColumn("runtimes"),
    ]
    return Table(heads, rows, is_compact=True)


def _present(device: Device) -> str:
    if device.emulated:
        return "emulated"
    return "browser" if _unasked(device) else "yes"


def _name(device: Device) -> str:
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
    facts = device.details
    usable = phrase(
        "hardware.cpus-memory",
        effective_cpus=facts["effective_cpus"],
        size=size(facts["effective_memory"]),
    )
    return [
        ("model", f"{facts['model']} ({facts['architecture']})"),
        ("cores", _cores(facts["topology"])),
        ("caches", ", ".join(_cache(c) for c in facts["caches"]) or "not told"),
        (
            "instruction sets",
            ", ".join(facts["instruction_sets"]) or phrase("hardware.none-found"),
        ),
        ("lacks", ", ".join(_lacking(facts)) or phrase("hardware.none-found")),
        ("memory", _memory(facts)),
        *_scaling(facts["scaling"]),
        ("virtualisation", facts["virtualisation"] or "none seen"),
        ("container limits", _limits(facts)),
        ("usable here", usable),
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
        parts.append(phrase("hardware.cpus-quota", cpu_quota=limits["cpu_quota"]))
    if limits["affinity"] is not None and limits["affinity"] < threads:
        parts.append(phrase("hardware.cpus-affinity", affinity=limits["affinity"], threads=threads))
    if limits["memory_limit_bytes"] is not None:
        parts.append(f"{size(limits['memory_limit_bytes'])} of memory")
    kind = f" (cgroup {limits['cgroup']})" if limits["cgroup"] else ""
    return (", ".join(parts) or "none") + kind


def _details(device: Device) -> list[tuple[str, str]]:
    watts = device.power_limit_watts
    rows = [
        ("driver", device.driver or "not told"),
        ("power limit", "not told" if watts is None else f"{watts:g} W"),
        ("memory", size(device.memory_bytes)),
    ]
    rows += [(key.replace("_", " "), _plain(value)) for key, value in device.details.items()]
    return [*rows, ("fingerprint", device.fingerprint)]


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value) or "none"
    return str(value)


def noise_document(floors: Sequence[NoiseFloor]) -> Document:
    """Return what launches of the same differ by, and which changes they detect."""
    groups = [
        TableGroup(name, [_row(floor) for floor in several])
        for name, several in groupby(floors, key=lambda floor: format_title(floor.row))
    ]
    labels = ("figure", "noise", phrase("hardware.changes-launches-detect"), "against itself")
    note = phrase("hardware.noise-legend")
    return Document("", (GroupedTable("what", columns(labels), groups), Notes([note])))


def _row(floor: NoiseFloor) -> tuple[str, ...]:
    finds = ", ".join(f"{k}: {shown:.1%}" for k, _, shown in floor.finds() if shown)
    against = f"against itself: {floor.against_itself.answer.value}"
    return (floor.metric.name, f"noise {floor.noise:.2%}", f"launches find {finds}", against)


_TONES = {
    Health.OK: Tone.GOOD,
    Health.HINT: Tone.WARNING,
    Health.MISSING: Tone.FAINT,
    Health.BROKEN: Tone.BAD,
    Health.CLASH: Tone.BAD,
}


def doctor_document(findings: Examined) -> Document:
    """Return the findings by group, then what mends what is ill and brings what is missing."""
    groups = [
        DocumentSection(group, [_findings_table([finding for _, finding in pairs])])
        for group, pairs in groupby(findings, key=lambda pair: pair[0])
    ]
    ones = [finding for _, finding in findings]
    remedies = [
        DocumentSection(title, [Facts(pairs)])
        for title, healths in (
            ("To mend", ILL),
            ("Worth knowing", (Health.HINT,)),
            (phrase("hardware.remedies-of-missing"), (Health.MISSING,)),
        )
        if (pairs := [(o.name, o.remedy) for o in ones if o.health in healths and o.remedy])
    ]
    counts = ", ".join(f"{sum(o.health is health for o in ones)} {health}" for health in Health)
    is_well = is_healthy(findings)
    verdict = phrase("hardware.nothing-installed-broken") if is_well else "Something needs mending"
    tone = Tone.GOOD if is_well else Tone.BAD
    return Document("", [*groups, *remedies], verdict=f"{verdict}: {counts}", tone=tone)


def _findings_table(findings: list[Finding]) -> Table:
    rows = [(o.name, TonedText(o.health.value, _TONES[o.health]), o.said) for o in findings]
    return Table(
        [TableColumn(""), TableColumn("", is_whole=True), TableColumn("")], rows, is_compact=True
    )
