"""Figures as people read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accelbench.core.axes import Part, axes_of
from accelbench.core.case import engine_options
from accelbench.core.columns import step_ms
from accelbench.core.devices import sharing_unit
from accelbench.core.formatting import format_value, join_first
from accelbench.core.result_statistics import Statistic, interval_text
from accelbench.core.rows import Row
from accelbench.core.safe_text import visible
from accelbench.core.unusable_reasons import THIS_ARM, simulation_of
from accelbench.judge.ratios import mean_beside

#: Machines that are named; a lake may hold results of hundreds.
_MACHINES = 8
#: Of one pass; what a request reads and writes is said together.
_SIZES = axes_of(Part.INPUT, Part.PASSES)


def mean_note(rows: Sequence[Row]) -> str:
    """Return the mean to show next to a median that contradicts it, in brackets; "" otherwise."""
    mean = mean_beside(rows)
    return f" ({Statistic.MEAN} {format_value(mean)})" if mean else ""


def parameters_in_short(parameters: int) -> str:
    """Three digits: the exact count would leave no room for what stands beside it."""
    size, unit = (parameters / 1e9, "B") if parameters >= 1e9 else (parameters / 1e6, "M")
    return f"{size:.{2 if size < 10 else 1 if size < 100 else 0}f} {unit}"


def other_machines(names: Sequence[str]) -> Iterable[str]:
    """Yield the sentence that names the machines that were not asked about, if there are any."""
    if names:
        yield f"Other machines, by --machine: {join_first(names, _MACHINES, '; ')}."


def duration(seconds: float) -> str:
    """12 s, 3 min 5 s, 2 h 10 min, 3 days."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{round((hours + minutes / 60) / 24):,} days"
    return f"{hours} h {minutes} min"


def spread(row: Mapping[str, Any], unit: str = "") -> str:
    """The within-run interval around what a step took."""
    low, high = row.get("latency_ci_low_ms"), row.get("latency_ci_high_ms")
    return interval_text(low, step_ms(row), high, format_value, unit)


def shapes(row: Mapping[str, Any]) -> str:
    """The size beside the batch, short: what is read and written, else the first that there is.

    A size that has no place in this order is said behind it.
    """
    sizes = {
        axis.field: axis.label.format(row[axis.column]) for axis in _SIZES if row.get(axis.column)
    }
    audio, text, image, steps = (sizes.pop(n, "") for n in ("audio", "sequence", "image", "steps"))
    if image and steps:
        image = f"{image} × {row['denoising_steps']}"
    first = audio or text or image
    if row.get("new_tokens"):
        first = f"{audio or row.get('prompt_tokens')}+{row['new_tokens']} tok"
    return " ".join(filter(None, (first, *sizes.values())))


def batch_and_shapes(row: Mapping[str, Any]) -> str:
    """The batch, and the size beside it."""
    return f"batch {row['batch_size']} {shapes(row)}".strip()


def where(row: Mapping[str, Any]) -> str:
    """The platform; of one that is simulated the device as well, of which there may be several."""
    if simulation_of(row) is None:
        return str(row["hardware"])
    return f"{row['hardware']}:{row['device']}"


def marks(row: Mapping[str, Any]) -> str:
    """What was done beside the usual, each word with a space before it."""
    arm = row.get("arm") or THIS_ARM
    return ("" if arm == THIS_ARM else f" {visible(str(arm))}") + marks_without_arm(row)


def marks_without_arm(row: Mapping[str, Any]) -> str:
    """Return the same for a table with a column for the arm."""
    options = row.get("options") or {}
    words = [" simulated"] if simulation_of(row) is not None else []  # nobody measured them
    words += [" emulated"] if row.get("emulated") else []  # its times are no device's
    words += [" train"] if row.get("mode") == "training" else []
    together = int(row.get("world_size") or 1)
    words += [f" {together} {sharing_unit(row)}"] if together > 1 else []
    words += [" compiled"] if options.get("compile") else []
    words += [f" {name}={value}" for name, value in sorted(engine_options(options).items())]
    return "".join(words)


def case_name(row: Mapping[str, Any]) -> str:
    """What a result is of, but for its sizes."""
    return f"{row['model']} {row['runtime']}/{where(row)} {row['precision']}{marks(row)}"


def parts(row: Mapping[str, Any]) -> list[str]:
    """The times of a step's parts, where it has any."""
    names: tuple[str, ...] = ()
    if row.get("mode") == "training":
        names = ("forward", "loss", "backward", "optimizer")
        return _times(row, names) + _together(row)
    if row.get("new_tokens"):
        times = [f"first token {format_value(row.get('ttft_ms'))} ms"]
        if row.get("tpot_ms") is not None:
            times.append(f"each further {format_value(row['tpot_ms'])} ms")
        names = ("embed", "retrieve", "generate")
        return times + _times(row, names)
    return _times(row, names)


def _together(row: Mapping[str, Any]) -> list[str]:
    known = []
    if (efficiency := row.get("scaling_efficiency")) is not None:
        known.append(f"scaling {efficiency:.0%}")
    if (share := row.get("communication_share")) is not None:
        known.append(f"communication {share:.0%} ({format_value(row['communication_ms'])} ms)")
    return known


def _times(row: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [f"{n} {format_value(row[f'{n}_ms'])}" for n in names if row.get(f"{n}_ms") is not None]
