"""Calibrations as people and machines read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from accelbench.cli.display.terminal import print_line
from accelbench.cli.display.words import figure
from accelbench.core.calibration import (
    DeviceCalibration,
    ProbeFigure,
    ProbeKind,
    TimedCollectives,
)
from accelbench.core.nouns import digits
from accelbench.core.spreads import ends_text

#: What a rate is shown in, the largest first.
_OPERATIONS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"))
_BYTES = ((1e12, "TB/s"), (1e9, "GB/s"))


#: What probes of a device take; collectives among several processes come on top.
_SECONDS, _SECONDS_OF_SEVERAL = 30, 50


class ProbeProgress:
    """A line on standard error that counts probes; drawn when one ends, at no other time."""

    def __init__(self, name: str, processes: int = 1) -> None:
        from rich.live import Live

        from accelbench.cli.display.console import console

        self._name = name
        self._seconds = _SECONDS if processes == 1 else _SECONDS_OF_SEVERAL
        stream = console(sys.stderr)
        self._live = (
            Live(console=stream, auto_refresh=False, transient=True) if stream.is_terminal else None
        )

    def __enter__(self) -> ProbeProgress:
        if self._live is None:
            print_line(f"Calibrating {self._name}: about {self._seconds} s", sys.stderr)
        else:
            self._live.start()
        return self

    def hear(self, done: int, of: int) -> None:
        """So many probes of so many have been timed or refused."""
        if self._live is not None:
            self._live.update(f"Calibrating {self._name}: {done} of {of} probes", refresh=True)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def show_calibration(calibration: DeviceCalibration) -> None:
    """The table of a calibration: the best of each kind, with its interval and its size."""
    from rich.text import Text

    from accelbench.cli.display.columns import table
    from accelbench.cli.display.console import console

    threads = f", {calibration.threads} threads" if calibration.hardware == "cpu" else ""
    print_line(
        f"{calibration.hardware}: {calibration.device_name}, {calibration.engine}{threads},"
        f" {calibration.measured_at[:16].replace('T', ' ')} UTC"
    )
    heads = ["probe", "precision", "median", "95 % interval", "best size"]
    console().print(table(heads, rows_of(calibration), (2, 3)))
    collectives = collective_rows(calibration)
    if collectives:
        among = " and ".join(str(timed.ranks) for timed in calibration.collectives)
        print_line(f"Collectives among {among} ranks:")
        console().print(table(_COLLECTIVES, collectives, (1, 2, 3, 4, 5)))
    blocks = sum(len(entry.samples_ns) for entry in calibration.figures)
    print_line(f"{len(calibration.figures)} probes, {blocks:,} blocks, all of them kept.")
    of_collectives = [text for timed in calibration.collectives for text in timed.warnings]
    for warning in (*calibration.warnings, *of_collectives):
        print_line(f"warning: {warning}")
    for refusal in calibration.refusals:
        name = f"{refusal.name} {refusal.precision}".strip()
        console().print(Text(f"left out: {name}: {refusal.reason}", style="dim"))


def rows_of(calibration: DeviceCalibration) -> list[list[str]]:
    """A row for each kind and precision, caches each for themselves."""
    rows = []
    for kind in ProbeKind:
        if kind is ProbeKind.COLLECTIVE:
            continue  # they have a table of their own
        some = [entry for entry in calibration.figures if entry.spec.kind is kind]
        groups: dict[tuple[str, str], list[ProbeFigure]] = {}
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
            digits(entry.step_seconds * 1e6),
            digits(entry.algorithm_rate / 1e9),
            digits(entry.value / 1e9),
            _interval(entry, 1e9, digits),
        ]
        for timed in calibration.collectives
        for entry in timed.figures
    ]


def _label(best: ProbeFigure) -> str:
    kind = best.spec.kind
    if kind is ProbeKind.CACHE:
        return f"{best.spec.name.rpartition('-')[2]} cache"
    return "matmul" if kind is ProbeKind.MATRIX else str(kind)


def _size(best: ProbeFigure) -> str:
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


def _figures(best: ProbeFigure) -> tuple[str, str]:
    """The median with its unit, and the interval in the same unit."""
    scale, unit = _scale(best)
    return f"{figure(best.value / scale)} {unit}", _interval(best, scale)


def _interval(entry: ProbeFigure, scale: float, spelled: Callable[[float], str] = figure) -> str:
    return ends_text(entry.low, entry.high, lambda end: spelled(end / scale), " … ")


def _scale(best: ProbeFigure) -> tuple[float, str]:
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
    for name, figures in timed.by_name().items():
        best = max(figures, key=lambda entry: entry.value)
        least = min(entry.step_seconds for entry in figures)
        parts.append(f"{name} {_figures(best)[0]}, {figure(least * 1e6)} µs")
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


def calibration_documents(calibrations: Sequence[DeviceCalibration]) -> dict[str, Any]:
    """Calibrations whole, every block of every probe."""
    return {"calibrations": [calibration.to_body() for calibration in calibrations]}
